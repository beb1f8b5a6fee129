"""Reading controls from directories and archives: every file, or an error; nothing is passed over in silence."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from interlock.errors import PolicyError

MAX_FILES: Final = 1000
MAX_FILE_BYTES: Final = 256 << 10
MAX_ARCHIVE_BYTES: Final = 16 << 20


def opened_file(path: Path) -> BinaryIO:
    """Open an ordinary file for reading, also by a link. A pipe in its place must not make anybody wait.

    Raises:
        OSError: it can't be opened, or is no ordinary file.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    file = open(os.open(path, flags), "rb")  # noqa: SIM115 - the caller's
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(0, "no ordinary file", str(path))
    return file


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """One Rego file, with the path that errors show.

    ``own`` is True for what Interlock ships, ``guest`` for what a workspace brings: that may add controls, and nothing
    to what the operator's controls use.
    """

    path: str
    text: str
    own: bool = False
    guest: bool = False


def shipped_directory() -> Path:
    """Where the shipped policies are: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    for place in (package / "_policies", package.parent / "policies"):
        if (place / "interlock" / "controls").is_dir():
            return place
    raise PolicyError("the shipped policies are not installed; install interlock again")


SCHEMA: Final = "settings.schema.json"
_DATA: Final = ("data.json", "data.yaml", "data.yml")
_PROSE: Final = (".md", ".rst", ".txt")


@dataclass(frozen=True, slots=True)
class Folder:
    """What a directory or archive holds: Rego files without tests, and the schema of its settings if it has one."""

    sources: tuple[Source, ...]
    schemas: tuple[Source, ...]


def read_folder(place: str | Path, *, own: bool = False) -> Folder:
    """Read all controls below a directory, or in a ``.tar.gz`` archive, tests left out.

    Raises:
        PolicyError: no such place, nothing in it, a file too large, not UTF-8, or data files, which would silently
            override rules.
    """
    root = Path(place)
    if not root.exists():
        raise PolicyError(f"{root}: no such directory of controls")
    files = _directory(root) if root.is_dir() else _archive(root)
    sources: list[Source] = []
    schemas: list[Source] = []
    for name, data in files:
        shown = name if own else f"{root}/{name}"
        base = name.rpartition("/")[2]
        if base in _DATA:
            raise PolicyError(f"{shown}: data files are not loaded, they could override rules; use settings instead")
        if base != SCHEMA and (not base.endswith(".rego") or base.endswith("_test.rego")):
            continue
        if len(data) > MAX_FILE_BYTES:
            raise PolicyError(f"{shown}: larger than {MAX_FILE_BYTES} bytes")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise PolicyError(f"{shown}: not UTF-8; no part of the bundle is loaded") from None
        (schemas if base == SCHEMA else sources).append(Source(shown, text, own))
        if len(sources) > MAX_FILES:
            raise PolicyError(f"{root}: more than {MAX_FILES} files")
    if not sources:
        raise PolicyError(f"{root}: no .rego file with a control in it")
    return Folder(tuple(sources), tuple(schemas))


def _directory(root: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below a directory, in order. What would be passed over in silence is refused instead."""
    try:
        for folder, folders, files in os.walk(root, onerror=_raised):
            # Mounted configuration keeps its versions in hidden folders; hidden ones hold no controls.
            folders[:] = sorted(one for one in folders if not one.startswith("."))
            for name in folders:
                if os.path.islink(os.path.join(folder, name)):
                    raise PolicyError(
                        f"{folder}/{name}: a link to a folder is not followed; its controls would be missing"
                    )
            for name in sorted(files):
                path = Path(folder, name)
                _exact_suffix(str(path))
                if _is_read(name):
                    if not path.is_file():
                        raise PolicyError(f"{path}: not a file that can be read (a dangling link?)")
                    with path.open("rb") as file:
                        yield path.relative_to(root).as_posix(), file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise PolicyError(f"{error.filename or root}: can't be read ({error.strerror}); nothing is loaded") from None


def _raised(error: OSError) -> None:
    raise error


def _archive(root: Path) -> Iterator[tuple[str, bytes]]:
    """Members are read in memory and nothing is unpacked, so that no name in an archive can reach the file system."""
    import io
    import tarfile  # loaded late: few bundles are archives

    data = _unpacked(root)
    seen: set[str] = set()
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                name = member.name.removeprefix("./").lstrip("/")
                if member.isdir() and not name.rstrip("/").casefold().endswith(".rego"):
                    continue
                # Whatever else a link is called, it may be one to a folder of controls.
                if member.issym() and Path(name).suffix in _PROSE:
                    continue
                if not member.isreg() or member.issparse():
                    raise PolicyError(f"{root}: {name} is no ordinary file; pack the file itself, not a link to it")
                # Of two files with one name other readers know only the last.
                if name in seen or ".." in name.split("/"):
                    raise PolicyError(f"{root}: {name} stands in it twice, or leads out of it; pack it again")
                seen.add(name)
                _exact_suffix(f"{root}/{name}")
                handle = archive.extractfile(member) if _is_read(name) else None
                if handle is not None:
                    yield name, handle.read(MAX_FILE_BYTES + 1)
            end = data[archive.offset :]
            if len(end) < 1024 or end.strip(b"\0"):
                # The reader takes a damaged header, an empty one, and a cut, for the end.
                raise PolicyError(f"{root}: the archive has no end where it should; controls may be missing")
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise PolicyError(f"{root}: not an archive that can be read ({type(error).__name__})") from None


def _unpacked(root: Path) -> bytes:
    """The tar inside a compressed archive, bounded before anything looks into it."""
    import bz2
    import gzip
    import lzma

    openers: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}
    try:
        with opened_file(root) as packed:
            opener = openers.get(packed.read(2))
            packed.seek(0)
            with packed if opener is None else opener(packed, "rb") as file:
                data = file.read(MAX_ARCHIVE_BYTES + 1)
    except (EOFError, OSError, ValueError, lzma.LZMAError) as error:
        raise PolicyError(f"{root}: not an archive that can be read ({type(error).__name__})") from None
    if len(data) > MAX_ARCHIVE_BYTES:
        raise PolicyError(f"{root}: unpacks to more than {MAX_ARCHIVE_BYTES} bytes")
    assert isinstance(data, bytes)
    return data


def _is_read(name: str) -> bool:
    """Controls, settings schemas, and data files, which are then refused."""
    base = name.rpartition("/")[2]
    return base.endswith(".rego") or base in (SCHEMA, *_DATA)


def _exact_suffix(shown: str) -> None:
    if shown.casefold().endswith(".rego") and not shown.endswith(".rego"):
        raise PolicyError(f"{shown}: a control's file ends in .rego, in lower case; this one would not be loaded")


def read_sources(directory: str | Path, *, own: bool = False) -> list[Source]:
    """The Rego files of :func:`read_folder`."""
    return list(read_folder(directory, own=own).sources)


def shipped_sources() -> list[Source]:
    """What Interlock ships: its controls and the entry point."""
    return read_sources(shipped_directory(), own=True)
