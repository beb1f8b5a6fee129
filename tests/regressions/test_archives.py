"""Archives of controls lost controls without a word.

A folder refuses what it can't read, but an archive passed over ``strict.REGO``, over members that were symbolic or hard
links, and over everything behind a cut: the strict control was missing, and the calls that it should have denied were
allowed. Now an archive holds every control, or it is refused.
Mutations that this file catches: ``_exact_suffix`` not asked for members; members that are no ordinary files passed
over, or only symbolic links refused; the check for the archive's end left out.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.errors import PolicyError
from tests.regressions.stage import control, decided, says
from tests.regressions.workspaces import FINE

STRICT = control("strict")
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "tar.gz": gzip.compress,
    "tar.bz2": bz2.compress,
    "tar.xz": lzma.compress,
}


def _tar(*members: tuple[str, str] | tuple[str, bytes, str]) -> bytes:
    """A tar of files ``(name, text)`` and of links ``(name, type, target)``."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member in members:
            info = tarfile.TarInfo(member[0])
            if len(member) == 3:
                info.type, info.linkname = member[1], member[2]
                archive.addfile(info)
            else:
                data = member[1].encode()
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _says(folder: Path, data: bytes, name: str = "rules.tar") -> str:
    (folder / name).write_bytes(data)
    return says(decided("calc", {}, policies=[folder / name]))


def _refused(folder: Path, data: bytes, why: str, name: str = "rules.tar") -> None:
    with pytest.raises(PolicyError, match=why):
        _says(folder, data, name)


@pytest.mark.parametrize("name", ["strict.REGO", "strict.Rego", "deep/down/strict.rEGO", "./strict.REGO"])
def test_a_suffix_in_capitals_is_refused(name: str, tmp_path: Path) -> None:
    _refused(tmp_path, _tar(("fine.rego", FINE), (name, STRICT)), "lower case")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
@pytest.mark.parametrize("name", ["strict.rego", "strict.REGO"])
def test_a_control_that_is_no_file_is_refused(kind: bytes, name: str, tmp_path: Path) -> None:
    data = _tar(("fine.rego", FINE), ("keep.txt", STRICT), (name, kind, "keep.txt"))
    _refused(tmp_path, data, "no ordinary file")


@pytest.mark.parametrize("packed", PACKERS)
def test_a_cut_archive_is_refused_wherever_it_is_cut(packed: str, tmp_path: Path) -> None:
    whole = _tar(("fine.rego", FINE), ("strict.rego", STRICT))
    assert whole.index(b"strict.rego") == 1024
    for size in (1024, 1025, 1536, 2048):
        _refused(tmp_path, PACKERS[packed](whole[:size]), "cut|can't be read|not an archive", f"rules.{packed}")
    if packed != "tar":
        data = PACKERS[packed](whole)
        for size in range(10, len(data) - 1, 7):
            _refused(tmp_path, data[:size], "not an archive|cut", f"rules.{packed}")


@pytest.mark.parametrize("packed", PACKERS)
def test_honest_a_whole_archive_is_loaded(packed: str, tmp_path: Path) -> None:
    fine = PACKERS[packed](_tar(("./fine.rego", FINE), ("README.md", "x"), ("fine_test.rego", "package x")))
    assert _says(tmp_path, fine, f"fine.{packed}") == "allow"
    both = PACKERS[packed](_tar(("fine.rego", FINE), ("deep/strict.rego", STRICT)))
    assert _says(tmp_path, both, f"both.{packed}") == "deny strict"


def test_honest_links_that_are_no_controls_do_no_harm(tmp_path: Path) -> None:
    assert _says(tmp_path, _tar(("fine.rego", FINE), ("latest.md", tarfile.SYMTYPE, "README.md"))) == "allow"
