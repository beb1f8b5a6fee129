"""Artifacts: resources that agents write and read, by which a label could get lost between two conversations.

The manifest says which argument of a tool names one (``writes_to``, ``reads_from``). Each has a *key*, its kind and its
normal form: ``path:/srv/notes.txt``. Two spellings that some file system, server or database takes for one have one
key: too few keys give a label too many, one too many loses a label. A label that is on record for a folder counts for
what is in it, and one of a file for its folder, since listing a folder or copying it reads the file. What can't be made
out is the whole kind when it is written, and a lost record when it is read: every leg.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from unicodedata import normalize
from urllib.parse import unquote

from interlock.model.carried import Carried
from interlock.model.destinations import Destination, normalised
from interlock.model.labels import Leg
from interlock.model.results import printable
from interlock.model.tools import Kind, ToolSpec, widened

KINDS: Final = ("key", "path", "table", "url")
ANY: Final = "*"
# A key that stands for nothing that can be looked up: reading it is reading a lost record.
UNREADABLE: Final = "?"
MAX_KEYS: Final = 64
MAX_KEY: Final = 4096

Declared = tuple[tuple[str, str], ...]


def places(declared: Declared, arguments: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Kind and text of every artifact that the arguments name; the text is ``*`` for any of its kind and ``?`` where an
    argument is missing or holds something else than a text or a list of texts."""
    found: list[tuple[str, str]] = []
    for argument, kind in declared:
        if argument == ANY:
            found.append((kind, ANY))
            continue
        found += [(kind, one if _is_name(one) else UNREADABLE) for one in _at(arguments, argument)]
    if len(found) > MAX_KEYS:
        return tuple((kind, UNREADABLE) for kind in sorted({kind for kind, _ in found}))
    return tuple(dict.fromkeys(found))


def _at(arguments: Mapping[str, Any], path: str) -> Iterator[Any]:
    """What stands at a path of the arguments (keys with dots between them, ``*`` for every key), lists opened; None
    wherever it leads nowhere: unlike a destination, an artifact that is not named is not nothing."""
    keys = path.split(".")
    if len(keys) > 1 and path in arguments:  # one key that holds the dots itself
        yield from _walked(arguments[path], [])
        if keys[0] not in arguments:
            return
    yield from _walked(arguments, keys)


def _walked(value: Any, keys: Sequence[str]) -> Iterator[Any]:
    if not keys:
        yield from value if isinstance(value, list) and value else [value]
    elif isinstance(value, list):
        for item in value or [None]:
            yield from _walked(item, keys)
    elif isinstance(value, dict) and (keys[0] in value or (keys[0] == "*" and value)):
        for item in value.values() if keys[0] == "*" else [value[keys[0]]]:
            yield from _walked(item, keys[1:])
    else:
        yield None


def folder_of_pattern(text: str) -> str:
    """The folder that a path names if its reader takes it for a pattern; empty when it is none for anybody.

    Nobody says whether a tool does, and a pattern is a second name for whatever it matches.
    """
    place = min((text.find(one) for one in "*?[{" if one in text), default=-1)
    if place < 0:
        return ""
    above, slash, _ = text[:place].rpartition("/")
    return above or slash or "."


def key(kind: str, text: str, resolved: str = "") -> str:
    """The key of one artifact.

    Args:
        resolved: for a path, where the file system says that it leads.
    """
    if text in (ANY, UNREADABLE):
        return f"{kind}:{text}"
    normal: str | None
    if kind == "path":
        normal = _path(text, resolved)
    elif kind == "url":
        normal = _url(text)
    elif kind == "table":
        normal = _table(text)
    else:
        normal = text
    if not normal or len(normal) > MAX_KEY or normal in (ANY, UNREADABLE):
        normal = UNREADABLE
    return f"{kind}:{normal}"


def to_write(keys: Iterable[str]) -> tuple[str, ...]:
    """The keys to label before something is written: what can't be made out may be any of its kind."""
    return tuple(sorted({f"{kind_of(one)}:{ANY}" if is_lost(one) else one for one in keys}))


def kind_of(one: str) -> str:
    return one.partition(":")[0]


def is_lost(one: str) -> bool:
    """Does this key name nothing that a record could be found for?"""
    return one.partition(":")[2] == UNREADABLE


def above(one: str) -> tuple[str, ...]:
    """The key itself, everything that it lies in, and any of its kind: a label on one of them is a label on it."""
    kind, _, normal = one.partition(":")
    found = [one, f"{kind}:{ANY}"]
    if kind in ("path", "url"):
        root = normal.find("/", normal.find("://") + 3) if kind == "url" else 0
        cut = len(normal)
        while (cut := normal.rfind("/", 0, cut)) > root:
            found.append(f"{kind}:{normal[:cut]}")
        if normal[root : root + 1] == "/":
            found.append(f"{kind}:{normal[: root + 1]}")
    return tuple(dict.fromkeys(found))


def below(one: str) -> str:
    """What the keys of everything in it begin with; empty when nothing lies in it."""
    kind, _, normal = one.partition(":")
    if normal == ANY:
        return f"{kind}:"
    return f"{one.rstrip('/')}/" if kind in ("path", "url") else ""


def concerns(written: str, read: str) -> bool:
    """Does a label on the one key count for who reads the other?"""
    inside = below(read)
    return written in above(read) or (bool(inside) and written.startswith(inside))


def carrying(spec: ToolSpec, carried: Carried) -> ToolSpec:
    """The spec of a call that reads artifacts: what they carry is what it may bring, before anybody decides."""
    if not carried.labels:
        return spec
    return widened(spec, carried.of(Leg.UNTRUSTED, Leg.PRIVATE), carried.of(Leg.EGRESS))


def page_of(destinations: Iterable[Destination], reads: Iterable[str]) -> str:
    """What a call reads, for people: its URLs without queries, its addresses, its artifacts. Queries may hold anything.

    Args:
        reads: keys of artifacts.
    """
    named = [one.value.partition("?")[0].partition("#")[0] for one in destinations if one.kind is not Kind.UNKNOWN]
    named += [one for one in reads if not is_lost(one)]
    return printable(", ".join(dict.fromkeys(named))[:120] if len(named) > 1 else named[0][:120]) if named else ""


# Not `notes n`, `notes--`, `notes#`: whoever builds a statement of them reads `notes`.
_PLAIN: Final = r"[\w$]+(?:-[\w$]+)*"
_PART: Final = rf"(?:{_PLAIN}|\"[^\"]+\"|'[^']+'|`[^`]+`|\[[^\]\[]+\])"
_TABLE: Final = re.compile(rf"{_PART}(?:\s*\.\s*{_PART})*")
_QUOTES: Final = str.maketrans("", "", "\"'`[]")
MAX_TABLE: Final = 63  # bytes; databases cut off what is longer, each elsewhere


def _is_name(value: Any) -> bool:
    return type(value) is str and bool(value) and value not in (ANY, UNREADABLE) and "\0" not in value


def _path(text: str, resolved: str) -> str | None:
    """Where a path leads. One that nobody resolved counts as far as its text goes, if that says where it begins."""
    if text[:5].casefold() == "file:":
        return None  # an address to some tools, a name to others
    if not resolved and (not text.startswith("/") or "\\" in text or ".." in text.split("/")):
        return None
    plain = posixpath.normpath(resolved or text)
    return _folded(plain[1:] if plain.startswith("//") else plain)


def _url(text: str) -> str | None:
    """Without query, fragment, escapes, and whether it is encrypted."""
    normal = normalised(Kind.URL, text)
    if normal is None:
        return None
    plain = normal.partition("#")[0].partition("?")[0]
    return _folded(unquote(f"https{plain.removeprefix('https').removeprefix('http')}"))


def _table(text: str) -> str | None:
    """The last part of its name: which schema another one leaves out is the database's to know."""
    if not _TABLE.fullmatch(text.strip()):
        return None
    last = text.translate(_QUOTES).rpartition(".")[2].strip()
    return _folded(last) if len(last.encode("utf-8", "surrogatepass")) <= MAX_TABLE else None


def _folded(text: str) -> str:
    """In one case and one normal form, for file systems, servers and databases to which others are the same."""
    return normalize("NFKC", normalize("NFKC", text).casefold())
