"""Proves that files which decide what an agent may do are recognised however they are written.

Mutations that this file catches: a comparison with regard to case; links that are not followed; folders above a
protected file; payload that counts as a path.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Call, Conversation, Manifest, MemoryJournal
from interlock.model.control_plane import MAX_PIECES, TOO_MANY, Control, candidates, targets, touched
from interlock.model.tools import ToolId, ToolSpec, undeclared
from tests.strategies import texts
from tests.worlds import StepsWorld, Tools, guard_in, rules

OWN = ["interlock.toml", "./interlock.yaml", "/etc/x/INTERLOCK.TOML", ".interlock/rules.rego", "a/interlock.yml"]
AGENTS = [
    ".bashrc",
    "/home/u/.bashrc",
    "~/.BASHRC",
    "a/.git/hooks/pre-commit",
    ".git//hooks/./x",
    ".vscode/settings.json",
    ".mcp.json",
    "CLAUDE.md",
    "c:\\users\\u\\.claude\\settings.json",
    "file:///home/u/.zshrc",
    "file:%2Fhome%2Fu%2F.zshrc",
    "file://localhost/home/u/.profile",
    ".bashrc.",
    ".bashrc ",
    ".bashrc::$DATA",
    "\uff0ebashrc",
    ".bash\u200brc",
    ".bashr?",
    ".bash*",
    ".git/[h]ooks/x",
]
NOBODYS = [
    "",
    "/",
    ".",
    "notes/todo.txt",
    "bashrc",
    "x.bashrc.txt",
    "my.bashrc",
    ".git/HEAD",
    "vscode/settings.json",
    "interlock.toml.txt",
    "notinterlock.toml",
    "*",
    "?",
    "settings.json",
]


@pytest.mark.parametrize("path", OWN, ids=ascii)
def test_interlocks_own_files(path: str) -> None:
    assert touched([path]) is Control.INTERLOCK


@pytest.mark.parametrize("path", AGENTS, ids=ascii)
def test_files_that_agents_obey(path: str) -> None:
    assert touched([path]) is Control.AGENT


@pytest.mark.parametrize("path", NOBODYS, ids=ascii)
def test_other_files_are_nobodys_rules(path: str) -> None:
    assert touched([path]) is Control.NONE


def test_the_strongest_of_several() -> None:
    assert touched([]) is Control.NONE
    assert touched(["x", ".bashrc"]) is Control.AGENT
    assert touched([".bashrc", "interlock.toml", "x"]) is Control.INTERLOCK
    assert touched([TOO_MANY]) in (Control.AGENT, Control.INTERLOCK)


@given(paths=st.lists(texts(10), max_size=4), more=st.lists(st.sampled_from([*OWN, *AGENTS, *NOBODYS]), max_size=3))
def test_t5_more_paths_are_never_looser(paths: list[str], more: list[str]) -> None:
    order = list(Control)
    assert order.index(touched([*paths, *more])) >= order.index(touched(paths))
    assert order.index(touched(paths, ["/srv/x"])) >= order.index(touched(paths))
    assert order.index(touched(paths, ["/srv/x"], paths)) >= order.index(touched(paths, ["/srv/x"]))


@pytest.mark.parametrize(
    "path", ["/srv/policies", "/srv/policies/a.rego", "/SRV/Policies/sub/b.rego", "/srv/./policies"]
)
def test_protected_folders_and_what_lies_below(path: str) -> None:
    assert touched([path], ["/srv/policies"]) is Control.INTERLOCK


@pytest.mark.parametrize("path", ["/srv", "/srv/policiesx", "/srv/policie", "policies/a.rego", "/other/srv/policies/a"])
def test_what_lies_beside(path: str) -> None:
    assert touched([path], ["/srv/policies"]) is Control.NONE
    assert touched([path], [""]) is Control.NONE


@pytest.mark.parametrize(("removed", "found"), [("/srv", True), ("/", True), ("/srv/policies", True), ("/var", False)])
def test_removing_a_folder_removes_what_is_below(removed: str, found: bool) -> None:
    control = touched([], ["/srv/policies"], [removed])
    assert control is (Control.INTERLOCK if found else Control.NONE)


def spec_of(**entry: Any) -> ToolSpec:
    whole = {"returns": [], "egress": "none", **entry}
    return Manifest.parse({"version": 1, "tools": {"x": whole}}).spec(ToolId("", "x"))


def test_which_arguments_may_name_files() -> None:
    given_arguments = {"path": "a/b", "to": "u@x.example", "body": ".bashrc", "command": "cat 'c d' > e;f", "n": 1}
    writes = spec_of(effect="write", destinations={"path": "path", "to": "email"}, content=["body"])
    found = candidates(writes, given_arguments)
    assert {"a/b", "cat 'c d' > e;f", "cat", "c", "d", "e", "f"} <= set(found)
    assert not {".bashrc", "u@x.example", ""} & set(found)
    reads = spec_of(destinations={"path": "path"})
    assert candidates(reads, given_arguments) == ()
    sends = spec_of(egress="chosen", destinations={"path": "path", "to": "email"}, content=["body"])
    assert "e" in candidates(sends, given_arguments)
    assert "a/b" not in candidates(sends, given_arguments)
    assert "a/b" in candidates(undeclared(ToolId("", "x")), given_arguments)


@pytest.mark.parametrize("value", [["a", [".bashrc"]], {"k": {".bashrc": 1}}, {"k": [".bashrc"]}], ids=ascii)
def test_texts_in_every_depth(value: Any) -> None:
    assert ".bashrc" in candidates(spec_of(effect="write"), {"x": value})


@pytest.mark.parametrize(
    "command", ["x -o.bashrc", "x --out=.bashrc", "a:.bashrc", "'.ba'shrc", ".ba\\shrc", "$(.bashrc)"]
)
def test_command_lines_are_read_as_a_shell_would(command: str) -> None:
    assert touched(candidates(spec_of(effect="write"), {"command": command})) is Control.AGENT


def test_more_paths_than_are_looked_at_count_as_one_that_matters() -> None:
    found = candidates(spec_of(effect="write"), {"x": [f"f{number}" for number in range(MAX_PIECES + 10)]})
    assert len(found) == MAX_PIECES + 1
    assert touched(found) is not Control.NONE


def test_what_a_destroying_call_takes_with_it() -> None:
    spec = spec_of(effect="destroy", destinations={"path": "path", "to": "email"})
    assert targets(spec, {"path": ["a", "b"], "to": "c", "x": "d"}) == ("a", "b")
    assert targets(spec_of(effect="write", destinations={"path": "path"}), {"path": "a"}) == ()


class Links:
    """A file system with one link."""

    def resolve(self, paths: Any) -> tuple[str, ...]:
        return tuple("/home/u/policies/a.rego" if path == "link" else f"/home/u/{path}" for path in paths)


@pytest.mark.parametrize(("path", "verdict"), [("link", "deny"), ("other", "allow"), (".bashrc", "ask")])
def test_a_link_hides_nothing(path: str, verdict: str) -> None:
    world = StepsWorld(MemoryJournal())
    object.__setattr__(world, "files", Links())
    conversation = Conversation.new()
    guard = guard_in(world, conversation, rules(world.engine))
    (outcome,) = guard.batch([Call("write", {"path": path, "text": "x"}, "a")], run=Tools(world, conversation.id))
    assert outcome.verdict.value == verdict
