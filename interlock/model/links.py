"""Links: addresses, pages and accounts inside the text that a call sends.

A stranger who can't choose the receiver may still choose what the receiver is told to open, write to or pay. So what a
careless program would turn into a link is found in the payload, and each is a value that somebody must vouch for.
What a person would have to put together (``evil dot com``) is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from unicodedata import category, normalize

from interlock.model.destinations import Destination, is_below_public_suffix, normalised, voice_of
from interlock.model.places import at, leaves
from interlock.model.tools import Audience, Effect, Egress, Kind, ToolSpec

MAX_LINKS: Final = 64

_END: Final = r"[^\s<>\"'`|\\^{}]"
# Of single words: none of these holds a space. Accounts may, and are looked for by themselves.
# Every repetition is bounded or begins where the one before it ended: a payload of a megabyte must not cost its square.
_LINK: Final = re.compile(
    rf"(?P<url>[a-z][a-z0-9+.-]{{0,31}}:(?://|\\\\){_END}+|(?<![\w@.-])www\.{_END}+)"
    r"|(?P<domain>(?<![\w@.-])(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?:[a-z]{2,24}|xn--[a-z0-9-]{1,59})(?![\w-])"
    r"(?:[:/][^\s<>\"'`]*)?)",
    re.IGNORECASE,
)
_MAIL_PARTS: Final = re.compile(r"[\s<>()\[\],;:\"'`|\\]+")
MAX_ADDRESS: Final = 320
_ACCOUNT: Final = re.compile(
    r"(?<!\w)(?P<account>[a-z]{2}\d{2}(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,4})?"
    r"|0x[0-9a-f]{40}|bc1[a-z0-9]{25,60}|[13][a-z1-9]{25,34})(?!\w)",
    re.IGNORECASE,
)
_TELLING: Final = re.compile(r"[.:@0-9\x80-\U0010ffff]")  # a text without any of these holds no link
_MARKS: Final = frozenset(".:@")  # no link is without one of these
_CLOSING: Final = ".,;:!?)]}>*_~"
# Endings of names that are both a public suffix and the end of a file's name: alone, such a word is a file.
_FILES: Final = frozenset(
    "ai app bz cc cfg dev do go is js md me ml mov pl pm ps py rs sc sh so st tf ts vi zip".split()
)


def links(spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[Destination, ...]:
    """All links in the payload of a call whose text others see, or that is kept until somebody sees it; at most 64,
    then one unknown more."""
    if spec.egress is Egress.NONE and spec.effect is Effect.NONE and spec.audience is not Audience.SELF:
        return ()
    found: dict[Destination, None] = {}
    for path in spec.content:
        for value in at(arguments, path):
            for text in _texts(value):
                for one in in_text(text, path):
                    found[one] = None
                    if len(found) > MAX_LINKS:
                        return (*list(found)[:MAX_LINKS], Destination(path, Kind.UNKNOWN, "too many"))
    return tuple(found)


def _texts(value: Any) -> Iterator[str]:
    for keys, leaf in leaves(value):
        yield from keys
        if isinstance(leaf, str):
            yield leaf


def in_text(text: str, argument: str = "") -> Iterator[Destination]:
    """Links in one text, each with its kind and normal form; UNKNOWN when it looks like a link and can't be parsed."""
    if not _TELLING.search(text):
        return
    plain = text
    if not text.isascii():
        # Widths and foreign dots are what programs make of them; characters that nobody sees part nothing.
        plain = "".join(char for char in normalize("NFKC", text) if category(char) != "Cf").replace("\u3002", ".")
    words = [word for word in plain.split() if not _MARKS.isdisjoint(word)]
    for word in words:
        if "@" in word:
            yield from _addresses(word, argument)
    found = [match for word in words for match in _LINK.finditer(word)]
    for match in (*found, *_ACCOUNT.finditer(plain)):
        kind = Kind(str(match.lastgroup))
        word = match.group().rstrip(_CLOSING)
        if kind is Kind.DOMAIN:
            host, slash, _ = re.split(r"([:/])", word, maxsplit=1) if re.search(r"[:/]", word) else (word, "", "")
            if not is_below_public_suffix(host, known=True) or (not slash and _is_file(host)):
                continue
            if slash:
                kind, word = Kind.URL, f"http://{word}"
        normal = normalised(kind, word)
        if normal is None:
            yield Destination(argument, Kind.UNKNOWN, word)
        else:
            yield Destination(argument, kind, normal, voice_of(kind, normal))


def _addresses(word: str, argument: str) -> Iterator[Destination]:
    """Mail addresses in one word; what is too long for one is nobody knows whose."""
    for part in _MAIL_PARTS.split(word):
        if part.startswith("//"):
            continue  # the rest of a URL, which is read as one
        before, at_sign, domain = part.rstrip(_CLOSING).rpartition("@")
        before = before.rpartition("/")[2]
        if at_sign and before and "." in domain.strip("."):
            address = f"{before}@{domain}"
            normal = normalised(Kind.EMAIL, address) if len(address) <= MAX_ADDRESS else None
            if normal is None:
                yield Destination(argument, Kind.UNKNOWN, address[:MAX_ADDRESS])
            else:
                yield Destination(argument, Kind.EMAIL, normal, voice_of(Kind.EMAIL, normal))


def _is_file(host: str) -> bool:
    return host.count(".") == 1 and host.rpartition(".")[2].lower() in _FILES
