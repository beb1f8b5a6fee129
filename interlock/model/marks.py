"""Marks: what is remembered of values and texts instead of the values and texts.

Two kinds. What can *grant* is remembered by 128 bits of a SHA-256, so that no other value can take its place. What can
only *take away* (the words that a stranger's text held) is remembered by 32 bits of a checksum: another word that has
the same makes decisions stricter, never looser, and a text of 2 kB takes a kilobyte.
"""

from __future__ import annotations

import re
import sys
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final
from unicodedata import category, normalize
from zlib import crc32

from interlock.model.digests import Digest, digest
from interlock.model.tools import Kind

MAX_WORDS: Final = 20_000
MAX_PHRASE: Final = 8
MAX_MARKS: Final = 4000


@lru_cache(maxsize=16384)
def mark(kind: str, text: str) -> Digest:
    """A short digest that can grant: the kind is part of it."""
    whole = digest("value", f"{kind}\0{text}".encode("utf-8", "surrogatepass"))
    return Digest(b64encode(bytes.fromhex(whole[7:39]), b"-_").decode().rstrip("="))


def folded(text: str) -> str:
    """One spelling for all that look alike to a careless reader: case, width and invisible characters are gone."""
    if text.isascii():
        return text.lower()
    plain = "".join(char for char in normalize("NFKC", text) if category(char) != "Cf")
    return plain.casefold()


_WORD: Final = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """The words of a value, folded, in order."""
    return _WORD.findall(folded(text))


# --- what takes away --------------------------------------------------------------------------------------------------

# Everything that is no letter or digit parts words; bytes beyond ASCII belong to them.
_PARTING: Final = bytes(byte if byte >= 0x80 or chr(byte).isalnum() else 0x20 for byte in range(256))


def checksums(text: str) -> set[int]:
    """Checksums of all words of a text, folded: whatever stands between letters and digits parts them."""
    data = folded(text).encode("utf-8", "surrogatepass").translate(_PARTING)
    return set(map(crc32, data.split()))


def packed(sums: Iterable[int]) -> str:
    """Checksums as text, in order; at most 20,000. More fill it with the sign for everything."""
    found = sorted(set(sums))
    if len(found) > MAX_WORDS:
        return EVERYTHING
    if not found:
        return NO_WORDS
    return b64encode(_little(array("I", found)).tobytes()).decode()


def heard_in(text: str) -> str:
    """Packed words of a stranger's text."""
    return packed(checksums(text))


def _little(found: array[int]) -> array[int]:
    """In the order of bytes that journals have, whatever the machine's is."""
    if sys.byteorder == "big":
        found.byteswap()
    return found


EVERYTHING: Final = "*"
"""Stands for more words than are remembered one by one."""
NO_WORDS: Final = "-"
"""Says that a text was looked at and held no word; an empty text says that nobody looked."""


def unpacked(text: str) -> array[int]:
    """The checksums of :func:`packed`. Raises ValueError for anything else."""
    found = array("I")
    if text == NO_WORDS:
        return found
    found.frombytes(b64decode(text, validate=True))
    return _little(found)


# --- what the person typed --------------------------------------------------------------------------------------------

_SENTENCE: Final = re.compile(r"[.!?](?:\s|$)|[\n;]")
_TOKEN: Final = re.compile(r"[@#]?\w+")
_QUOTED: Final = re.compile(r"[\"'`“‘«]([^\s\"'`“”’»]{2,64})[\"'`”’»]")
_CREDENTIAL: Final = frozenset("password passphrase passcode pin secret token key".split())
# What only somebody does: `Spotify sent me a note` names a party as well as `to Spotify`.
_ACTS: Final = frozenset(
    "sent called wrote asked told said emailed mailed messaged charged billed invoiced paid owes".split()
)
_MONEY: Final = frozenset(
    "amount pay paid send sent transfer price cost fee rent dollars dollar usd eur euro euros".split()
)
_NUMBER: Final = re.compile(r"(?<![\w.,])([$€£¥]?)\s?(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?([$€£¥]?)(?![\w]|[.,]\d)")
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan, february feb, march mar, april apr, may, june jun, july jul, august aug, september sep sept,"
            " october oct, november nov, december dec"
        ).split(", "),
        1,
    )
    for name in names.split()
}
_ISO: Final = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
# Bounded, and begun at the beginning of a word only: a text of a megabyte must not cost its square.
_DAY_FIRST: Final = re.compile(r"(?<!\d)(\d{1,2})(?:st|nd|rd|th)?(?: of)? ([a-z]{3,9})\b\.?,?(?: (\d{4})(?!\d))?")
_MONTH_FIRST: Final = re.compile(r"\b([a-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?(?!\d)(?:,? (\d{4})(?!\d))?")


def person_marks(text: str) -> tuple[Digest, ...]:
    """Marks of the phrases, words, names, numbers and dates in text that a person typed; at most 4,000.

    A phrase is up to eight words of one sentence. A single word or number is kept together with its neighbours, since
    it vouches only for a field of the kind that the person named beside it.
    """
    found: dict[Digest, None] = {}
    for one in _person_marks(text):
        found[one] = None
        if len(found) >= MAX_MARKS:
            break  # what is not remembered is `unseen`: the strict side
    return tuple(found)


def _person_marks(text: str) -> Iterator[Digest]:
    plain = normalize("NFKC", text)
    for quoted in _QUOTED.findall(plain):
        for word in words_of(quoted)[:1]:
            if words_of(quoted) == [word]:
                yield mark("quoted", word)
    yield from (mark("day", day) for day in days_of(plain))
    yield from (mark("amount", number) for number in _amounts(plain))
    yield from _secrets(text)
    for sentence in _SENTENCE.split(plain):
        tokens = _TOKEN.findall(sentence)
        for token, after in zip(tokens, (*tokens[1:], ""), strict=False):
            if token[0] in "@#":
                yield mark("near", f"{'user' if token[0] == '@' else 'channel'} {folded(token[1:])}")
            if token[0].isupper() and folded(after) in _ACTS:
                yield mark("acts", folded(token))
        words = words_of(sentence)
        yield from _neighbours(words)
        for length in range(2, MAX_PHRASE + 1):
            for start in range(len(words) - length + 1):
                yield mark("phrase", " ".join(words[start : start + length]))


def _neighbours(words: list[str]) -> Iterator[Digest]:
    for place, word in enumerate(words):
        yield mark("word", word)
        if place:
            yield mark("near", f"{words[place - 1]} {word}")
        if place >= 3 and words[place - 1] == "and":
            yield mark("near", f"{words[place - 3]} {word}")  # `to Alice and Bob`
        for other in (*words[max(0, place - 3) : place], *words[place + 1 : place + 2]):
            yield mark("beside", f"{other} {word}")


def _secrets(text: str) -> Iterator[Digest]:
    """Whole words after a word for a credential, as they are and without the punctuation around them."""
    tokens = text.split()
    bare = [token.strip(".,;:!?\"'`()“”‘’") for token in tokens]
    for place, token in enumerate(tokens):
        if not _CREDENTIAL.isdisjoint(map(folded, bare[max(0, place - 3) : place])):
            yield from (mark("secret", one) for one in dict.fromkeys((token, bare[place])) if len(one) >= 4)


def _amounts(text: str) -> Iterator[str]:
    for found in _NUMBER.finditer(text):
        sign, whole, rest, after = found.groups()
        near = words_of(text[max(0, found.start() - 24) : found.start()])[-3:]
        following = words_of(text[found.end() : found.end() + 12])[:1]
        if sign or after or not _MONEY.isdisjoint((*near, *following)):
            yield amount(whole.replace(",", "") + (rest or ""))


def amount(text: str) -> str:
    """A number without zeros that change nothing; ``text`` as it is if it is none."""
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        return text
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, _, rest = digits.partition(".")
    rest = rest.rstrip("0")
    return f"{sign}{whole.lstrip('0') or '0'}{f'.{rest}' if rest else ''}"


def days_of(text: str) -> Iterator[str]:
    """Days that a text names, ``2024-05-19``, or ``05-19`` when it names no year."""
    plain = folded(text)
    for year, month, day in _ISO.findall(plain):
        yield from _day(year, int(month), int(day))
    for day, month, year in _DAY_FIRST.findall(plain):
        yield from _day(year, _MONTHS.get(month, 0), int(day))
    for month, day, year in _MONTH_FIRST.findall(plain):
        yield from _day(year, _MONTHS.get(month, 0), int(day))


def _day(year: str, month: int, day: int) -> Iterator[str]:
    if 1 <= month <= 12 and 1 <= day <= 31:
        yield f"{year}-{month:02d}-{day:02d}" if year else f"{month:02d}-{day:02d}"


# --- what vouches for a value -----------------------------------------------------------------------------------------

_TO_SOMEBODY: Final = ("to", "with", "invite", "message", "ask", "tell", "contact", "for", "cc")
# Words after `to` that are nobody's name. A stranger could choose one of them for theirs.
_NOBODY: Final = frozenset(
    "a all an and any be everybody everyone find get give go her him his it its make me my no one our out read see send"
    " so some that the their them these they this those us use what who you your".split()
)
_NOUNS: Final = {
    Kind.USER: ("user", "users", "member", "person", "colleague", "friend"),
    Kind.CHANNEL: ("channel", "channels", "room"),
    Kind.ACCOUNT: ("account", "iban"),
    Kind.ID: ("id",),
}


def vouching_marks(kind: Kind, noun: str, value: str) -> Iterator[Digest]:
    """Marks of typed text that vouch for a value of an opaque kind; any one of them is enough.

    For WORDS every mark is needed; see :func:`needs_all`.
    """
    words = words_of(value)
    match kind:
        case Kind.SECRET:
            yield mark("secret", value)
        case Kind.AMOUNT:
            yield mark("amount", amount(value))
        case Kind.TIME:
            for day in days_of(value[:10]):
                yield mark("day", day)
                yield mark("day", day[5:])
        case Kind.WORDS:
            yield from (mark("word", one) for one in words)
        case _:
            if len(words) > 1:
                yield mark("phrase", " ".join(words))
            elif words:
                yield from _single(kind, noun, words[0])


def _single(kind: Kind, noun: str, word: str) -> Iterator[Digest]:
    nouns = (noun, f"{noun}s") if noun else ()
    # An id of a file is named by `file 13`; `id 13` names it only where nobody says what it is the id of.
    beside = (*nouns, *(() if kind is Kind.ID and noun else _NOUNS.get(kind, ())))
    yield from (mark("beside", f"{one} {word}") for one in beside)
    if kind in (Kind.USER, Kind.CHANNEL, Kind.NAME):
        yield mark("quoted", word)
    if kind in (Kind.USER, Kind.NAME, Kind.ACCOUNT) and word.isalpha():
        yield mark("acts", word)
    if kind is Kind.CHANNEL:
        yield mark("near", f"channel {word}")
    if kind is Kind.USER and word not in _NOBODY:
        yield from (mark("near", f"{one} {word}") for one in ("user", *_TO_SOMEBODY))


def needs_all(kind: Kind) -> bool:
    """Must every mark be there?"""
    return kind is Kind.WORDS
