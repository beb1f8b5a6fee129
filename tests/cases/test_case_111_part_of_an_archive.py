"""Case 111: what can't be read in an archive of controls is passed over, and its denials with it.

A directory refuses a dangling link and an ending in capitals; an archive must not leave out, in silence, members that
are links or devices, endings in capitals, or all that stood after the place where it was cut. It is refused, or what
the link means is loaded. The honest twin is the whole archive.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.errors import Misconfigured
from tests.cases.desk import CONTROL, did, fresh, got, locked

FIRST = CONTROL.replace("controls.mine", "controls.first") + "input.tool.known == true\n"
THIRD = CONTROL.replace("controls.mine", "controls.third") + 'input.tool.name == "read_mail"\n'


def add(archive: tarfile.TarFile, name: str, text: str = "", kind: bytes = tarfile.REGTYPE, to: str = "") -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, to, len(text)
    archive.addfile(member, io.BytesIO(text.encode()))


def archive(path: Path, fill: Callable[[tarfile.TarFile], object], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as written:  # type: ignore[call-overload]
        add(written, "first.rego", FIRST)
        fill(written)
    return path


MEMBERS: dict[str, Callable[[tarfile.TarFile], object]] = {
    "a link": lambda tar: (add(tar, "t.txt", THIRD), add(tar, "third.rego", kind=tarfile.SYMTYPE, to="t.txt")),
    "a hard link": lambda tar: (add(tar, "t.txt", THIRD), add(tar, "third.rego", kind=tarfile.LNKTYPE, to="t.txt")),
    "a link to nowhere": lambda tar: add(tar, "third.rego", kind=tarfile.SYMTYPE, to="nowhere"),
    "a device": lambda tar: add(tar, "third.rego", kind=tarfile.FIFOTYPE),
    "an ending in capitals": lambda tar: add(tar, "third.REGO", THIRD),
}


@pytest.mark.parametrize("fill", MEMBERS.values(), ids=MEMBERS)
def test_attack_no_member_is_passed_over(tmp_path: Path, fill: Callable[[tarfile.TarFile], object]) -> None:
    path = archive(tmp_path / "controls.tar.gz", fill)
    try:
        lock = locked(policies=[path])
    except Misconfigured:
        return  # told at start
    assert "third" in lock.engine.controls  # or followed, as in a directory
    assert got(did(fresh(lock), "calc")) == ("deny", "third")


@pytest.mark.parametrize("cut", [1024, 1025, 1100, 1500])
def test_attack_a_plain_archive_that_was_cut_does_not_start(tmp_path: Path, cut: int) -> None:
    path = archive(tmp_path / "controls.tar", lambda tar: add(tar, "third.rego", THIRD), "w")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(Misconfigured):
        locked(policies=[path])


@pytest.mark.parametrize(("name", "mode"), [("controls.tar.gz", "w:gz"), ("controls.tar", "w")])
def test_honest_a_whole_archive(tmp_path: Path, name: str, mode: str) -> None:
    lock = locked(policies=[archive(tmp_path / name, lambda tar: add(tar, "third.rego", THIRD), mode)])
    assert {"first", "third"} <= set(lock.engine.controls)
    assert got(did(fresh(lock), "calc")) == ("deny", "third")
    assert did(fresh(lock), "read_mail").executed
