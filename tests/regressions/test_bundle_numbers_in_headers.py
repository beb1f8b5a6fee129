"""Sizes in the headers of an archive were read as Python reads them, and other readers read them otherwise.

Python stops at the first zero byte and takes ``1_000`` and ``0o17`` for numbers; Go, and so OPA, takes zero bytes off
both ends and refuses the others. With a size that begins with one, the file was empty here and full there, and what
was data for one was the next header for the other: the archive that was inspected was not the one that OPA loaded.
Mutation that this file catches: numbers not looked at before they are read.
"""

from __future__ import annotations

import gzip

import pytest

from interlock.errors import PolicyError
from interlock.policy.archives import files_of, written
from tests.ids import stable


def _with(field: slice, value: bytes) -> bytes:
    plain = bytearray(gzip.decompress(written({"a.rego": b"x" * 8})))
    plain[field] = value.ljust(field.stop - field.start, b"\0")
    plain[148:156] = b" " * 8
    plain[148:156] = b"%06o\0 " % sum(plain[:512])
    return gzip.compress(bytes(plain))


SIZE, MODE, TIME = slice(124, 136), slice(100, 108), slice(136, 148)


@pytest.mark.parametrize(
    "value", [b"\x0000000000010", b"0o10", b"1_0", b"+10", b" 10", b"10\x0077", b"\x80" + b"\0" * 10], ids=stable
)
@pytest.mark.parametrize("field", [SIZE, MODE, TIME], ids=stable)
def test_a_number_that_readers_differ_about_is_refused(field: slice, value: bytes) -> None:
    with pytest.raises(PolicyError):
        files_of(_with(field, value[: field.stop - field.start]), "the bundle")


@pytest.mark.parametrize("value", [b"00000000010", b"10 ", b"10"], ids=stable)
def test_a_plain_number_is_read(value: bytes) -> None:
    assert files_of(_with(SIZE, value), "the bundle") == {"a.rego": b"x" * 8}
