"""The archive of a bundle: a gzipped tar with one reading and one writing.

Whoever checks an archive and whoever loads it must see the same files, or a signature is worth nothing. Readers of tar
differ about everything that came after 1988: extended headers, sparse files, links, names that stand twice, a second
archive behind the first. So only what all of them read alike is read here, plain headers and ordinary files, and all
else is refused. What is written has the same bytes on every machine: no time, no owner, names in order, and blocks that
are stored instead of compressed, since compressors differ from version to version.
"""

from __future__ import annotations

import re
import struct
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from interlock.errors import PolicyError
from interlock.policy.sources import MAX_ARCHIVE_BYTES, MAX_FILES, opened_file

_BLOCK: Final = 512
_GZIP: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # no flags, no time, an unknown system
_STORED: Final = 0xFFFF  # bytes in a stored block
# Mode, owner, group, size and time. One reader stops at a zero byte where another passes over it, and one takes signs
# and underscores for a part of a number.
_NUMBERS: Final = tuple(slice(*one) for one in ((100, 108), (108, 116), (116, 124), (124, 136), (136, 148)))
_PLAIN_NUMBER: Final = re.compile(rb"[0-7]+[ \0]*|\0+")


def written(files: Mapping[str, bytes]) -> bytes:
    """The archive of some files by name. Equal files give equal bytes.

    Raises:
        PolicyError: a name that :func:`files_of` would refuse, or that a plain header can't hold; too many or large.
    """
    parts = []
    for name, data in sorted(files.items()):
        header = tarfile.TarInfo(_name(name, "the bundle"))
        header.size, header.mode = len(data), 0o644
        try:
            parts.append(header.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict"))
        except ValueError as error:
            raise PolicyError(f"{name}: can't stand in an archive: {error}") from None
        parts.append(data + bytes(-len(data) % _BLOCK))
    plain = b"".join([*parts, bytes(2 * _BLOCK)])
    if len(plain) > MAX_ARCHIVE_BYTES or len(files) > MAX_FILES:
        raise PolicyError(f"a bundle holds at most {MAX_FILES} files and {MAX_ARCHIVE_BYTES} bytes; this one is larger")
    return b"".join([_GZIP, *_stored(plain), struct.pack("<II", zlib.crc32(plain), len(plain))])


def _stored(plain: bytes) -> Iterator[bytes]:
    """Blocks of RFC 1951 without compression."""
    for start in range(0, len(plain), _STORED):
        block = plain[start : start + _STORED]
        last = start + _STORED >= len(plain)
        yield struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF) + block


def read_archive(path: Path) -> bytes:
    """The bytes of an archive file, bounded.

    Raises:
        PolicyError: it can't be read, or is larger than any bundle.
    """
    try:
        with opened_file(path) as file:
            data = file.read(MAX_ARCHIVE_BYTES + 1)
    except OSError as error:
        raise PolicyError(f"{path}: can't be read: {error.strerror}") from None
    if len(data) > MAX_ARCHIVE_BYTES:
        raise PolicyError(f"{path}: larger than {MAX_ARCHIVE_BYTES} bytes, so it is no bundle")
    return data


def files_of(data: bytes, shown: str) -> dict[str, bytes]:
    """The files in an archive by name, a leading ``/`` taken off. Nothing is unpacked to the file system.

    Raises:
        PolicyError: anything that readers could understand differently; ``shown`` names the archive in the message.
    """
    plain = _inflated(data, shown)
    files: dict[str, bytes] = {}
    place = entries = 0
    while any(header := plain[place : place + _BLOCK]):
        entries += 1
        if entries > 2 * MAX_FILES:
            raise PolicyError(f"{shown}: more than {MAX_FILES} files")
        member = _member(header, shown)
        place += _BLOCK
        end = place + member.size
        padded = end + -member.size % _BLOCK
        if padded > len(plain) or any(plain[end:padded]):
            raise PolicyError(f"{shown}: {member.name} is cut off or followed by something hidden")
        if member.isreg():
            if member.name in files:
                raise PolicyError(f"{shown}: {member.name} stands in it twice; readers differ about which one counts")
            files[member.name] = plain[place:end]
        place = padded
    if len(plain) - place < 2 * _BLOCK or any(plain[place:]):
        raise PolicyError(f"{shown}: something stands behind the end of the archive, or the end is missing")
    return files


def _inflated(data: bytes, shown: str) -> bytes:
    """What one gzip member holds; it must be the only one. Bounded while it is read, so that a bomb does not unfold."""
    inflater = zlib.decompressobj(wbits=31)
    try:
        plain = inflater.decompress(data, MAX_ARCHIVE_BYTES + 1)
    except zlib.error:
        raise PolicyError(f"{shown}: not a gzipped archive") from None
    if len(plain) > MAX_ARCHIVE_BYTES:
        raise PolicyError(f"{shown}: unpacks to more than {MAX_ARCHIVE_BYTES} bytes")
    if not inflater.eof:
        raise PolicyError(f"{shown}: the archive is cut off")
    if inflater.unused_data:
        raise PolicyError(f"{shown}: something stands behind the end of the archive; readers differ about it")
    return plain


def _member(header: bytes, shown: str) -> tarfile.TarInfo:
    """One header, if every reader understands it alike."""
    try:
        member = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError):
        raise PolicyError(f"{shown}: a damaged header; nothing of it is loaded") from None
    # GNU's and star's dialects keep other things where the prefix of a name stands.
    plain = header[257:265] == b"ustar\x0000" or (header[257:265] == b"ustar  \0" and not any(header[345:]))
    if not plain or any(header[500:]) or member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE):
        raise PolicyError(
            f"{shown}: {member.name!r} is no ordinary file with a plain header (a link, or a long or extended one?);"
            " pack it with `interlock bundle build` or `opa build`"
        )
    if any(not _PLAIN_NUMBER.fullmatch(header[one]) for one in _NUMBERS):
        raise PolicyError(f"{shown}: {member.name!r} has a header with numbers that readers differ about")
    if member.size < 0 or (member.isdir() and (member.size or header[156:157] != tarfile.DIRTYPE)):
        raise PolicyError(f"{shown}: {member.name!r} has a size or a kind that can't be")
    if not member.isdir():  # a folder is nothing to anybody, whatever its name
        member.name = _name(member.name, shown)
    return member


def _name(name: str, shown: str) -> str:
    short = name.removeprefix("/")
    if any(part in ("", ".", "..") for part in short.split("/")) or not short.isprintable() or "\\" in short:
        raise PolicyError(f"{shown}: {name!r} is no name for a file in a bundle")
    return short
