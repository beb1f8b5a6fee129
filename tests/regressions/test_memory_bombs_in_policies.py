"""A small file among the controls took gigabytes of memory.

``tarfile`` reads the headers of an archive into memory whatever their size, before any member is seen, so that five
megabytes of gzip became more than one gigabyte; and any ``.json`` or ``.yaml`` beside the controls was read whole,
only to be passed over. Now an archive is unpacked to a bound first, and only what is used is read, to its bound.
Mutations that this file catches: ``_unpacked`` reading without a bound; ``_directory`` reading files that are not used,
or reading them whole.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock.errors import PolicyError
from interlock.policy.sources import MAX_ARCHIVE_BYTES, read_folder
from tests.regressions.workspaces import FINE

BOMB = 128 << 20
OPENERS: dict[str, Callable[..., Any]] = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open, "plain": open}


@contextmanager
def _little_memory(bound: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < bound
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, b"Z", tarfile.REGTYPE])
def test_headers_do_not_fill_the_memory(kind: bytes, tmp_path: Path) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, BOMB
    with gzip.open(tmp_path / "bomb.tar.gz", "wb", compresslevel=1) as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        for _ in range(BOMB >> 20):
            file.write(bytes(1 << 20))
    with _little_memory(4 * MAX_ARCHIVE_BYTES), pytest.raises(PolicyError, match="unpacks to more than"):
        read_folder(tmp_path / "bomb.tar.gz")


@pytest.mark.parametrize("packed", OPENERS)
def test_no_packing_does(packed: str, tmp_path: Path) -> None:
    with OPENERS[packed](tmp_path / "bomb", "wb") as file:
        for _ in range(BOMB >> 22):
            file.write(bytes(4 << 20))
    with _little_memory(6 * MAX_ARCHIVE_BYTES), pytest.raises(PolicyError, match="unpacks to more than"):
        read_folder(tmp_path / "bomb")


@pytest.mark.parametrize("name", ["notes.json", "notes.yaml", "notes.yml", "notes.txt"])
def test_honest_a_large_file_that_is_no_control_is_not_read(name: str, tmp_path: Path) -> None:
    (tmp_path / "fine.rego").write_text(FINE)
    with open(tmp_path / name, "wb") as file:
        file.truncate(BOMB)
    with _little_memory(8 << 20):
        assert [one.path for one in read_folder(tmp_path).sources] == [f"{tmp_path}/fine.rego"]


@pytest.mark.parametrize("name", ["huge.rego", "settings.schema.json"])
def test_a_large_control_is_refused_unread(name: str, tmp_path: Path) -> None:
    (tmp_path / "fine.rego").write_text(FINE)
    with open(tmp_path / name, "wb") as file:
        file.truncate(BOMB)
    with _little_memory(8 << 20), pytest.raises(PolicyError, match="larger than"):
        read_folder(tmp_path)
