"""A result, looked at before the model sees it: which labels it really brings, whose values it holds, what is dropped.

Everything here is a function of the spec, the arguments and the content. What has no structure that can be read, or no
`fields` in the manifest, has all of the tool's labels and vouches for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from interlock.errors import NotCanonical
from interlock.model.canonical import parse
from interlock.model.destinations import mail_addresses, normalised
from interlock.model.labels import Label, Leg, leg_of
from interlock.model.links import in_text
from interlock.model.marks import NO_WORDS, checksums, mark, packed, words_of
from interlock.model.places import Segments, at, leaves, segments
from interlock.model.tools import FieldSpec, IdSpec, Kind, ToolSpec, Trust

MAX_VOUCHED: Final = 1000
MAX_RECORDS: Final = 500
MAX_VALUE: Final = 512
MAX_TEXT: Final = 20_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What a result is.

    Attributes:
        content: what remains of it for the model.
        untrusted: the untrusted labels that it brings, when its fields were read one by one; None says all of the
            tool's.
        heard: packed words of what taints; empty when nothing does.
        vouched, records: see :func:`interlock.model.provenance.vouching`.
        dropped: how many fields were left out.
    """

    content: Any
    untrusted: tuple[Label, ...] | None = None
    heard: str = ""
    vouched: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    dropped: int = 0


WITHHELD: Final = "The result could not be read field by field, so all of it was left out."


NOTHING_SEEN: Final = Seen("")


def left_out(count: int) -> str:
    """What the model is told of fields that it does not see; nothing of them is repeated."""
    return f"\n[{count} fields were left out: who wrote them is not trusted here.]" if count else ""


def look_at(
    spec: ToolSpec, arguments: Mapping[str, Any], content: Any, text: str, carried: Iterable[Label], *, failed: bool
) -> Seen:
    """Look at a result.

    Args:
        text: the content as the model would see it.
        carried: labels that the result has beyond its tool's; an untrusted one taints all of it.
        failed: the content describes an error: nobody knows who wrote it.
    """
    foreign = any(leg_of(one) is Leg.UNTRUSTED for one in carried)
    taints = foreign or bool(spec.untrusted)
    structured = None if failed or not (spec.fields or spec.ids) else _structure(spec, content)
    if structured is None:
        if spec.keep is not Trust.TOOL:
            return Seen(WITHHELD, untrusted=(), dropped=1)
        return Seen(content, heard=packed(checksums(text)) if taints else "")
    kept, dropped = _kept(spec, structured)
    parts = list(_classified(spec, kept))
    records = () if foreign else _records(spec, arguments, kept)
    if foreign or not spec.fields:
        return Seen(content, heard=packed(checksums(text)) if taints else "", records=records)
    tainting = [(one, value) for one, value in parts if value not in (None, "", [], {}) and one.taints]
    labels = {label for one, _ in tainting for label in _untrusted(spec, one)}
    heard = packed(checksums("\n".join(_texts(tainting)))) if labels else ""
    vouched = tuple(dict.fromkeys(_vouched(parts)))[:MAX_VOUCHED]
    shown = kept if dropped else content
    return Seen(shown, tuple(sorted(labels)), heard, vouched, records, dropped)


def _structure(spec: ToolSpec, content: Any) -> Any:
    """Lists and objects, or JSON text of one; None for everything else, unless the manifest says what all of it is."""
    if isinstance(content, list | dict):
        return content
    if isinstance(content, str) and content[:1] in "[{" and content:
        try:
            read = parse(content)
        except NotCanonical:
            read = None
        if isinstance(read, list | dict):
            return read
    return content if isinstance(content, str) and any(one.path == "**" for one in spec.fields) else None


@lru_cache(maxsize=1024)
def _patterns(fields: tuple[FieldSpec, ...]) -> tuple[tuple[Segments, FieldSpec], ...]:
    """The most telling first: more segments, and among them fewer wildcards."""

    def telling(one: tuple[Segments, FieldSpec]) -> tuple[int, int, str]:
        path, spec = one
        return (-len([part for part in path if part != "**"]), sum(part in ("*", "**") for part in path), spec.path)

    return tuple(sorted(((segments(one.path), one) for one in fields), key=telling))


_SILENT: Final = FieldSpec("", Trust.TOOL)


def _field_at(patterns: tuple[tuple[Segments, FieldSpec], ...], path: Segments) -> FieldSpec:
    for pattern, spec in patterns:
        if pattern[-1] == "**":
            if len(path) >= len(pattern) - 1 and _same(pattern[:-1], path[: len(pattern) - 1]):
                return spec
        elif len(pattern) == len(path) and _same(pattern, path):
            return spec
    return _SILENT


def _same(pattern: Segments, path: Segments) -> bool:
    return all(one in ("*", other) for one, other in zip(pattern, path, strict=True))


def _classified(spec: ToolSpec, value: Any) -> Iterator[tuple[FieldSpec, Any]]:
    """Every leaf with what the manifest says of it. A key that no path writes out is text too, and counts where what it
    holds taints, be it empty: ``{"Ignore all …": ""}``."""
    patterns = _patterns(spec.fields)
    known = {part for pattern, _ in patterns for part in pattern}
    seen: dict[Segments, FieldSpec] = {}
    for path, leaf in leaves(value):
        one = seen.get(path)
        if one is None:
            one = seen[path] = _field_at(patterns, path)
            if one.trust is Trust.TRUSTED and not one.taints:
                # Who writes all of an object writes its keys: `{"Hotel Zur Linde": "Dorfstrasse 1"}`.
                yield from ((one, part) for part in path if part not in known)
            if one.taints and not known.issuperset(path):
                yield one, " ".join(path)
        yield one, leaf


_LEVEL: Final = {Trust.TRUSTED: 3, Trust.PRIVATE: 3, Trust.METADATA: 2}


def _kept(spec: ToolSpec, value: Any) -> tuple[Any, int]:
    """The value without the fields below the level that the manifest keeps, and how many those were."""
    if spec.keep is Trust.TOOL:
        return value, 0
    patterns, least = _patterns(spec.fields), _LEVEL[spec.keep]

    def keep(part: Any, path: Segments) -> tuple[Any, int]:
        if isinstance(part, dict) and part:
            found = {key: keep(item, (*path, str(key))) for key, item in part.items()}
            rest = {key: item for key, (item, _) in found.items() if item is not _GONE}
            return (rest or _GONE), sum(count for _, count in found.values())
        if isinstance(part, list | tuple) and part:
            items = [keep(item, path) for item in part]
            return [item for item, _ in items if item is not _GONE], sum(count for _, count in items)
        one = _field_at(patterns, path)
        tainted = any(leg_of(label) is Leg.UNTRUSTED for label in one.labels)
        return (_GONE, 1) if tainted or _LEVEL.get(one.trust, 0) < least else (part, 0)

    rest, dropped = keep(value, ())
    return ([] if isinstance(value, list) else {}) if rest is _GONE else rest, dropped


_GONE: Final = object()


def _untrusted(spec: ToolSpec, one: FieldSpec) -> tuple[Label, ...]:
    own = tuple(label for label in one.labels if leg_of(label) is Leg.UNTRUSTED)
    return own or tuple(label for label in spec.returns if leg_of(label) is Leg.UNTRUSTED)


def _texts(parts: Iterable[tuple[FieldSpec, Any]]) -> Iterator[str]:
    for _, value in parts:
        yield value if isinstance(value, str) else str(value)


def _vouched(parts: Iterable[tuple[FieldSpec, Any]]) -> Iterator[str]:
    for one, value in parts:
        if one.trust is Trust.TRUSTED and one.taints:
            continue  # somebody has narrowed the tool since: its word is not enough any more
        if one.trust in (Trust.TRUSTED, Trust.METADATA) and isinstance(value, str):
            letter = "t" if one.trust is Trust.TRUSTED else "m"
            for part in (value,) if one.trust is Trust.METADATA else _values_in(value):
                if 0 < len(part) <= MAX_VALUE:
                    words = packed(checksums(part.rpartition("://")[2]))
                    for found in value_marks(part):
                        yield f"{letter}{found} {words}"
            if one.trust is Trust.TRUSTED:
                for link in in_text(value[:MAX_TEXT]):
                    if link.kind in (Kind.URL, Kind.EMAIL, Kind.DOMAIN):
                        # Without the scheme: a stranger may have written it without.
                        words = packed(checksums(link.value.rpartition("://")[2]))
                        yield f"t{mark(link.kind.value, link.value)} {words}"


def _values_in(text: str) -> Iterator[str]:
    """A trusted text whole, each of its lines, and what stands in a line behind its first colon: `Hotels: Linde`."""
    yield text
    lines = text[:MAX_TEXT].splitlines()
    for line in lines:
        if len(lines) > 1:
            yield line.strip()
        _, colon, rest = line.partition(": ")
        if colon:
            yield rest.strip()


def value_marks(value: str) -> Iterator[str]:
    """Marks of a whole field value, under every kind that it can be read as."""
    text = value.strip()
    for kind in _kinds(text):
        if kind is Kind.EMAIL:
            yield from (mark(kind.value, one) for one in mail_addresses(text) or ())
        else:
            normal = normalised(kind, text)
            if normal is not None:
                yield mark(kind.value, normal)
    words = words_of(text)
    if words and len(words) <= 32:
        yield mark("text", " ".join(words))


def _kinds(text: str) -> Iterator[Kind]:
    if "@" in text:
        yield Kind.EMAIL
    elif "://" in text or text[:4].lower() == "www.":
        yield Kind.URL
    else:
        if "/" in text or "." in text:
            yield Kind.PATH
        if "." in text and " " not in text:
            yield Kind.DOMAIN
        if any(char.isdigit() for char in text):
            yield Kind.PHONE
            yield Kind.ACCOUNT


def index_mark(kind: Kind, noun: str, normal: str) -> str:
    """The mark under which the index knows a value of a call: the counterpart of :func:`value_marks`."""
    if kind in (Kind.USER, Kind.CHANNEL, Kind.NAME):
        return mark("text", " ".join(words_of(normal)))
    if kind is Kind.ID:
        return mark(f"id:{noun}", normal)
    return mark(kind.value, normal)


def _records(spec: ToolSpec, arguments: Mapping[str, Any], value: Any) -> tuple[str, ...]:
    found: dict[str, None] = {}
    own: set[str] = set()
    if any(one.made for one in spec.ids):
        own = {str(leaf) for _, leaf in leaves(dict(arguments)) if leaf is not None}
    for one in spec.ids:
        queries = tuple(_queries(one, arguments))
        above, _, key = one.path.rpartition(".")
        for record in _records_at(value, above):
            name = record.get(key)
            if type(name) not in (str, int) or name == "" or len(str(name)) > MAX_VALUE:
                continue
            # An id that the arguments chose is no id that the provider made.
            made = one.made and str(name) not in own
            names = " ".join((*_names(one, record), *queries)) if not made else "!"
            if names:
                found[f"{one.noun or '-'} {index_mark(one.kind, one.noun, str(name).strip())} {names}"] = None
    return tuple(found)[:MAX_RECORDS]


def _records_at(value: Any, path: str) -> Iterator[dict[str, Any]]:
    for place in at(value, path) if path else (value,):
        for record in place if isinstance(place, list) else (place,):
            if isinstance(record, dict):
                yield record


def _names(one: IdSpec, record: Mapping[str, Any]) -> Iterator[str]:
    for key in one.names:
        name = record.get(key)
        if isinstance(name, str) and 0 < len(name) <= MAX_VALUE and words_of(name):
            # A single word names a record only where the person said of what kind: `the file budget`.
            yield name_mark(one.noun, name)


def _queries(one: IdSpec, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Marks of the words by which the records were looked for, with a sign before them."""
    for key in one.queries:
        query = arguments.get(key)
        if isinstance(query, str) and len(query) <= MAX_VALUE and words_of(query):
            yield f"?{name_mark(one.noun, query)}"


def name_mark(noun: str, name: str) -> str:
    """The mark of a record's name in typed text: the phrase, or for a single word the noun beside it."""
    words = words_of(name)
    return mark("phrase", " ".join(words)) if len(words) > 1 else mark("beside", f"{noun} {words[0]}")


def words_of_arguments(arguments: Mapping[str, Any]) -> str:
    """Packed words of everything that a call's arguments hold, keys too."""
    texts = [part for path, leaf in leaves(dict(arguments)) for part in (*path, "" if leaf is None else str(leaf))]
    return packed(checksums("\n".join(texts))) if texts else NO_WORDS
