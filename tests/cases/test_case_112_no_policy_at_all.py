"""Case 112: the folder of policies is empty, or nothing in it is one, and everything is allowed.

An empty folder, another package, another ending, only tests, only libraries, an empty archive, and an engine without
controls: none of it starts. The shipped controls can't be left out. The honest twin is a folder with one control.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock import Interlock, MemoryJournal
from interlock.errors import Misconfigured
from interlock.model.settings import Settings
from interlock.policy.bundle import assemble
from interlock.policy.sources import Source
from tests.cases.desk import CONTROL, EVIL, MANIFEST, Engine, all_allow, armed, did, fresh, got, locked, mine

WHOLE = CONTROL + "input.tool.known == true\n"
LIBRARY = 'package lib.names\n\ngood := {"calc"}\n'


def with_file(name: str, text: str = WHOLE) -> Callable[[Path], Path]:
    """A folder that holds this file beside its README."""

    def make(folder: Path) -> Path:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        return folder

    return make


def archived(folder: Path) -> Path:
    with tarfile.open(folder / "controls.tar.gz", "w:gz") as archive:
        archive.add(folder / "README.md", "README.md")
    return folder / "controls.tar.gz"


EMPTY: dict[str, Callable[[Path], Path]] = {
    "nothing": lambda folder: folder,
    "nowhere": lambda folder: folder / "nowhere",
    "another ending": with_file("mine.rego.txt"),
    "another package": with_file("mine.rego", WHOLE.replace("controls.mine", "policy.mine")),
    "half of the package's name": with_file("mine.rego", WHOLE.replace("controls.", "")),
    "only a library": with_file("names.rego", LIBRARY.replace("lib.names", "names")),
    "only a test": with_file("mine_test.rego"),
    "only data": with_file("data.json", "{}"),
    "a hidden folder": with_file(".controls/mine.rego"),
    "an archive without one": archived,
    "no archive": lambda folder: folder / "README.md",
}


@pytest.mark.parametrize("make", EMPTY.values(), ids=EMPTY)
def test_attack_a_place_without_a_control_does_not_start(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    folder = tmp_path / "controls"
    folder.mkdir()
    (folder / "README.md").write_text("none yet")
    place = make(folder)
    with pytest.raises(Misconfigured):
        locked(policies=[place])


def test_attack_no_control_is_no_bundle() -> None:
    with pytest.raises(Misconfigured):
        assemble([], Settings())
    with pytest.raises(Misconfigured):
        assemble([Source("lib/names.rego", LIBRARY)], Settings())


def test_attack_an_engine_without_controls_does_not_start() -> None:
    class Bare(Engine):
        def __init__(self) -> None:
            super().__init__(lambda _: b"{}")
            self.controls = {}

    with pytest.raises(Misconfigured):
        Interlock(manifest=MANIFEST, journal=MemoryJournal(), engine=Bare())


def test_attack_the_shipped_controls_stay_whatever_is_given(tmp_path: Path) -> None:
    lock = locked(policies=[mine(tmp_path, "input.tool.known == true")])
    assert "trifecta" in lock.engine.controls
    assert got(did(armed(lock), "send_email", EVIL)) == ("deny", "trifecta")


def test_honest_one_control_is_enough(tmp_path: Path) -> None:
    (tmp_path / "names.rego").write_text(LIBRARY)
    lock = locked(policies=[mine(tmp_path, "input.tool.name in data.lib.names.good")])
    assert did(fresh(lock), "calc").executed
    assert got(did(fresh(lock), "read_page")) == ("deny", "mine")
    lock = Interlock(manifest=MANIFEST, journal=MemoryJournal(), engine=Engine(lambda _: all_allow()))
    assert did(fresh(lock), "calc").executed
