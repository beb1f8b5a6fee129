r"""Text of others as a person may be shown it: nothing in it can hide, move the cursor or read as something else.

Escaped as ``\u{202e}`` is whatever has no picture of its own: control characters (C0, C1), format characters (bidi,
zero width, tags), line and paragraph separators, private use, surrogates, unassigned, blanks other than the space, and
the letters that are drawn as nothing. A backslash is written twice, so that nothing can pretend to be an escape.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from unicodedata import category, east_asian_width

_ESCAPED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Drawn as nothing although they are letters, marks or symbols: Hangul and Khmer fillers, the Braille blank, joiners,
# and the variation selectors.
_BLANK: Final = frozenset(
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0, 0x1D159}
    | set(range(0xFE00, 0xFE10))
    | set(range(0xE0100, 0xE01F0))
)
_MARKS: Final = frozenset({"Mn", "Me"})
MAX_MARKS: Final = 3
AGAIN: Final = "    > "
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


def escaped(text: str) -> str:
    """The text in one line, with everything that could hide or act as an escape. Different texts stay different."""
    if text.isascii() and text.isprintable() and "\\" not in text:
        return text
    shown: list[str] = []
    marks = 0
    for one in text:
        marks = marks + 1 if category(one) in _MARKS else 0
        # Marks are drawn over what stands before them: a heap of them covers other lines, and a first one the label.
        alone = marks == len(shown) + 1
        shown.append(_as_code(one) if marks > MAX_MARKS or (marks and alone) else _shown(one))
    return "".join(shown)


def cells(text: str) -> int:
    """How many columns of a terminal an escaped text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if category(one) in _MARKS else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def wrapped(line: str, columns: int) -> list[str]:
    """An escaped line in pieces that a screen of so many columns does not break by itself. Every piece but the first
    begins with a sign that says so: no text can make a line of its own, by being long."""
    if cells(line) <= columns:
        return [line]
    pieces, piece, room = [], "", columns
    for one in line:
        room -= cells(one)
        if room < 0:
            pieces.append(piece)
            piece, room = AGAIN, columns - len(AGAIN) - cells(one)
        piece += one
    return [*pieces, piece]


def hidden(text: str) -> int:
    """How many characters of a text nobody would see: escapes other than of line ends, tabs and backslashes."""
    return sum(1 for one in text if one not in _SHORT and _shown(one) != one)


@lru_cache(maxsize=4096)
def _shown(character: str) -> str:
    short = _SHORT.get(character)
    if short is not None:
        return short
    kind, code = category(character), ord(character)
    if kind in _ESCAPED or code in _BLANK or (kind == "Zs" and character != " "):
        return _as_code(character)
    return character


def _as_code(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"
