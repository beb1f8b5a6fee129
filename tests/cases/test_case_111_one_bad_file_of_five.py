"""Case 111: one policy file of several can't be read, and the others are loaded without it.

The lost file was the one that denied. Here a bundle is whole or it is nothing: at start nothing is built, on a reload
what was in force stays in force, and both say which file it was. The honest twin repairs the file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from interlock import Conversation, Interlock, MemoryJournal
from interlock.errors import Misconfigured
from tests.cases.desk import CONTROL, ROOT, did, got, mine

BAD: dict[str, Callable[[Path], object]] = {
    "a syntax error": lambda file: file.write_text("package controls.third\n\nverdict := {\n"),
    "no text": lambda file: file.write_bytes(b"\xff\xfe"),
    "an empty file": lambda file: file.write_text(""),
    "a package of ours": lambda file: file.write_text(
        CONTROL.replace("controls.mine", "interlock.controls.third") + "true\n"
    ),
    "no default": lambda file: file.write_text('package controls.third\n\nverdict := {"verdict": "allow"}\n'),
    "a builtin that nobody knows": lambda file: file.write_text(CONTROL.replace("mine", "third") + "nonesuch(1)\n"),
    "too large": lambda file: file.write_text("#" * (300 << 10)),
    "a link to nowhere": lambda file: (file.unlink(), file.symlink_to("nowhere.rego")),
    "a name in capitals": lambda file: file.rename(file.with_suffix(".REGO")),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "manifest.toml").write_text((ROOT / "tests" / "scenarios" / "manifest.toml").read_text())
    for name in ("first", "second", "fourth", "fifth"):
        mine(tmp_path / "controls", "input.tool.known == true", name)
    mine(tmp_path / "controls", 'input.tool.name in {"calc", "read_mail"}', "third")
    (tmp_path / "interlock.toml").write_text('version = 1\nmanifest = ["manifest.toml"]\npolicies = ["controls"]\n')
    return tmp_path


def loaded(folder: Path) -> Interlock:
    return Interlock.load(folder / "interlock.toml", journal=MemoryJournal())


@pytest.mark.parametrize("spoil", BAD.values(), ids=BAD)
def test_attack_at_start_nothing_is_built(folder: Path, spoil: Callable[[Path], object]) -> None:
    spoil(folder / "controls" / "third.rego")
    with pytest.raises(Misconfigured, match=r"third|controls"):
        loaded(folder)


@pytest.mark.parametrize("spoil", BAD.values(), ids=BAD)
def test_attack_on_reload_what_was_in_force_stays(folder: Path, spoil: Callable[[Path], object]) -> None:
    lock = loaded(folder)
    guard = lock.guard(Conversation.new())
    before = did(guard, "calc").decision.revision
    spoil(folder / "controls" / "third.rego")
    with pytest.raises(Misconfigured):
        lock.reload()
    assert did(guard, "calc").decision.revision == before
    assert got(did(guard, "read_file", {"path": "x"})) == ("deny", "third")


def test_honest_the_repaired_file_is_loaded(folder: Path) -> None:
    lock = loaded(folder)
    guard = lock.guard(Conversation.new())
    file = folder / "controls" / "third.rego"
    good = file.read_text()
    BAD["a syntax error"](file)
    with pytest.raises(Misconfigured):
        lock.reload()
    file.write_text(good.replace('"read_mail"', '"read_file"'))
    revision = lock.reload()
    outcome = did(guard, "read_file", {"path": "x"})
    assert outcome.executed
    assert outcome.decision.revision == revision
