"""From one ``[tools.NAME]`` table to a tool spec: what the shape alone can't check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from interlock.errors import ManifestError, NotCanonical, Refused
from interlock.model.canonical import canonical
from interlock.model.destinations import normalised
from interlock.model.labels import Label, Leg, label, leg_of
from interlock.model.manifest import NAME, SERVER, only_legs
from interlock.model.manifest_file import ClauseEntry, ConditionEntry, ToolEntry
from interlock.model.sql import is_dialect
from interlock.model.tools import (
    PINS_ONLY,
    Audience,
    Clause,
    Condition,
    Effect,
    Egress,
    FieldSpec,
    IdSpec,
    Kind,
    Named,
    ToolId,
    ToolSpec,
    Trust,
    looks_like_receiver,
)

_ROLES: Final = ("destinations", "objects", "parties")
MAX_CLAUSES: Final = 64
MAX_PATH: Final = 256


def read_spec(where: str, tool: ToolId, entry: ToolEntry) -> ToolSpec:
    """Read one tool.

    Raises:
        ManifestError: with the place and what to do.
    """
    place = f"{where}: tool {str(tool)!r}"
    if not NAME.fullmatch(tool.name) or (tool.server and not SERVER.fullmatch(tool.server)):
        raise ManifestError(f"{place}: names are ASCII letters, digits and _.:/- (servers: _.-), at most 128")
    nouns: dict[str, str] = {}
    try:
        returns = tuple(label(one) for one in entry.returns)
        reads = tuple(label(one) for one in entry.reads)
        opens = tuple(label(one) for one in entry.opens)
        roles: dict[str, Named] = {role: _named(getattr(entry, role), role, nouns) for role in _ROLES}
        fields = tuple(_field(path, said) for path, said in entry.fields.items())
        ids = tuple(_id(path, one.kind, one.names, one.queries, one.made) for path, one in entry.ids.items())
        for path in entry.content:
            _path(path)
    except Refused as error:
        raise ManifestError(f"{place}: {error}") from None
    only_legs(place, "returns", returns, Leg.UNTRUSTED, Leg.PRIVATE)
    only_legs(place, "reads", reads, Leg.PRIVATE)
    only_legs(place, "opens", opens, Leg.EGRESS)
    for one in fields:
        only_legs(place, f"fields.{one.path}", one.labels, Leg.UNTRUSTED, Leg.PRIVATE)
    stranger = any(leg_of(one) is Leg.UNTRUSTED for one in returns)
    for one in fields:
        if one.trust in (Trust.UNTRUSTED, Trust.METADATA) and not stranger and not _is_untrusted(one.labels):
            raise ManifestError(
                f"{place}: fields.{one.path} is {one.trust.value!r}, but returns has no untrusted label that it would"
                " bring; write one there"
            )
    _one_role_each(place, entry)
    _audience_fits(place, entry, roles)
    if entry.keep and not fields:
        raise ManifestError(f"{place}: keep needs fields that say what is {entry.keep!r}; else everything is dropped")
    spec = ToolSpec(
        tool,
        returns=returns,
        egress=Egress(entry.egress),
        reads=reads,
        opens=opens,
        effect=Effect(entry.effect),
        destinations=roles["destinations"],
        objects=roles["objects"],
        parties=roles["parties"],
        nouns=tuple(nouns.items()),
        content=tuple(entry.content),
        arguments=tuple(entry.arguments),
        writes_to=tuple(entry.writes_to.items()),
        reads_from=tuple(entry.reads_from.items()),
        defaults=_defaults(place, entry.defaults),
        audience=Audience(entry.audience),
        fields=fields,
        ids=ids,
        keep=Trust(entry.keep),
        description=entry.description,
    )
    if len(entry.when) > MAX_CLAUSES:
        raise ManifestError(f"{place}: more than {MAX_CLAUSES} clauses under when")
    when = tuple(_clause(f"{place}: when[{number}]", spec, one) for number, one in enumerate(entry.when))
    return replace(spec, when=when) if when else spec


def _defaults(place: str, values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    try:
        return tuple((name, canonical(value).decode()) for name, value in values.items())
    except NotCanonical as error:
        raise ManifestError(f"{place}: defaults: {error}") from None


def _is_untrusted(labels: Iterable[Label]) -> bool:
    return any(leg_of(one) is Leg.UNTRUSTED for one in labels)


def _one_role_each(place: str, entry: ToolEntry) -> None:
    """A path stands in one role, and under no path of another: an argument is one thing."""
    seen: dict[str, str] = {}
    for role in (*_ROLES, "content"):
        for path in getattr(entry, role):
            other = seen.setdefault(path, role)
            if other != role:
                raise ManifestError(
                    f"{place}: {[path]} stand under {other} and {role}; an argument is one or the other"
                )
    for path, role in seen.items():
        above = next((one for one in seen if path.startswith(f"{one}.")), None)
        if above is not None:
            raise ManifestError(
                f"{place}: {path!r} ({role}) lies below {above!r} ({seen[above]}); name single fields of it only"
            )


def _audience_fits(place: str, entry: ToolEntry, roles: Mapping[str, Named]) -> None:
    egress = Egress(entry.egress)
    if egress is Egress.BLIND and (roles["destinations"] or entry.audience != "closed"):
        # `blind` is earned: a field that names a receiver, or an open audience, makes it `chosen`.
        raise ManifestError(
            f'{place}: egress "blind" needs audience = "closed" and no destinations; else write "chosen"'
        )
    receivers = sorted(one for one in (*entry.arguments, *entry.content) if looks_like_receiver(one))
    if egress is Egress.BLIND and receivers:
        raise ManifestError(f'{place}: egress "blind", but {receivers} look like receivers; write "chosen"')
    if egress is not Egress.BLIND and entry.audience == "closed":
        raise ManifestError(f'{place}: audience belongs to egress "blind" only')
    if egress is not Egress.NONE and entry.audience == "self":
        raise ManifestError(f'{place}: audience "self" belongs to egress "none" only: what is sent is seen by others')


def _path(path: str) -> str:
    if not path or len(path) > MAX_PATH or not path.isprintable() or "" in path.split("."):
        raise Refused(f"{path!r} is no path of an argument or field; write keys with dots between them")
    return path


def _named(entries: Mapping[str, str], role: str, nouns: dict[str, str]) -> Named:
    found: list[tuple[str, Kind]] = []
    for path, text in entries.items():
        kind, noun = read_kind(text)
        if kind in PINS_ONLY and role != "parties":
            raise Refused(f"{text!r} under {role}: {kind.value} stands under parties only")
        if noun:
            nouns[path] = noun
        found.append((_path(path), kind))
    return tuple(found)


_WITH_NOUN: Final = frozenset({Kind.ID, Kind.USER, Kind.CHANNEL, Kind.NAME, Kind.ACCOUNT})


def read_kind(text: str) -> tuple[Kind, str]:
    """``id:file`` is the kind ID with the noun ``file``.

    Raises:
        Refused: no kind is called so, or this kind takes no noun.
    """
    name, colon, noun = text.partition(":")
    try:
        kind = Kind(name)
    except ValueError:
        kind = Kind.UNKNOWN
    if kind is Kind.UNKNOWN:
        names = ", ".join(one.value for one in Kind if one is not Kind.UNKNOWN)
        raise Refused(f"{text!r} is not a kind of destination; use one of {names}")
    if colon and (kind not in _WITH_NOUN or not noun.isascii() or not noun.isidentifier() or noun != noun.lower()):
        names = ", ".join(sorted(one.value for one in _WITH_NOUN))
        raise Refused(f"{text!r}: a noun is one word in lower case, after {names} only")
    return kind, noun


_CLASSES: Final = {one.value: one for one in Trust if one is not Trust.TOOL}


def _field(path: str, said: str | list[str]) -> FieldSpec:
    words = [said] if isinstance(said, str) else said
    classes = [_CLASSES[one] for one in words if one in _CLASSES]
    labels = tuple(sorted({label(one) for one in words if one not in _CLASSES}))
    if len(classes) > 1:
        raise Refused(f"fields.{path}: {' and '.join(classes)} exclude each other")
    trust = classes[0] if classes else Trust.TOOL
    if _is_untrusted(labels):
        if trust in (Trust.TRUSTED, Trust.PRIVATE):
            raise Refused(f"fields.{path}: {trust.value!r} and an untrusted label exclude each other")
        trust = Trust.UNTRUSTED if trust is Trust.TOOL else trust
    # A private label alone says nothing about who wrote it: the tool's own labels stay.
    return FieldSpec(_path(path), trust, labels)


def _id(path: str, text: str, names: Iterable[str], queries: Iterable[str], made: bool) -> IdSpec:
    kind, noun = read_kind(text)
    if kind is not Kind.ID:
        raise Refused(f'ids.{path}: kind = "id:<noun>" is expected, not {text!r}')
    for one in names:
        if "." in _path(one):
            raise Refused(f"ids.{path}: names are keys beside the id, not paths; {one!r} has a dot")
    if not made and not tuple(names):
        raise Refused(f"ids.{path}: write names = [...] (keys beside it that name the record), or made = true")
    return IdSpec(_path(path), kind, noun, tuple(names), made, tuple(queries))


def _clause(place: str, spec: ToolSpec, entry: ClauseEntry) -> Clause:
    """A clause may only narrow: it adds no label, and strengthens no class."""
    try:
        conditions = tuple(sorted(_condition(path, one) for path, one in entry.if_.items()))
        changes: dict[str, Any] = {}
        for name in ("returns", "reads", "opens"):
            written = getattr(entry, name)
            if written is None:
                continue
            labels = tuple(label(one) for one in written)
            more = sorted(set(labels) - set(getattr(spec, name)))
            if more:
                raise Refused(f"{name} {more}: a clause can't add labels that the tool does not have")
            changes[name] = labels
        if entry.egress is not None:
            changes["egress"] = _weaker("egress", Egress(entry.egress), spec.egress)
        if entry.effect is not None:
            changes["effect"] = _weaker("effect", Effect(entry.effect), spec.effect)
        if entry.audience is not None:
            changes["audience"] = Audience(entry.audience)
        narrowed = replace(spec, **changes)
        if narrowed.audience is Audience.SELF and narrowed.egress is not Egress.NONE:
            raise Refused('audience "self" belongs to egress "none" only')
        if narrowed.egress is Egress.BLIND and spec.egress is not Egress.BLIND:
            raise Refused('egress "blind" is earned by a tool without destinations, not by what a call says')
        if narrowed.audience is Audience.CLOSED and narrowed.egress is not Egress.BLIND:
            raise Refused('audience "closed" belongs to egress "blind" only')
    except Refused as error:
        raise ManifestError(f"{place}: {error}") from None
    return Clause(conditions, narrowed)


_Class = TypeVar("_Class", Egress, Effect)


def _weaker(name: str, wanted: _Class, held: _Class) -> _Class:
    order = list(type(held))
    if order.index(wanted) > order.index(held):
        raise Refused(f"{name} {wanted.value!r} is more than the tool's {held.value!r}; a clause only narrows")
    return wanted


def _condition(path: str, entry: ConditionEntry) -> Condition:
    given = {name.rstrip("_"): value for name, value in entry if value is not None}
    if len(given) != 1:
        raise Refused(f"if.{path}: write exactly one of is, absent, plain, host, domain, under, sql")
    ((test, value),) = given.items()
    _path(path)
    if test == "sql":
        tables = tuple(one.lower() for one in value.tables)
        if not is_dialect(value.dialect):
            raise Refused(f"if.{path}: {value.dialect!r} is no dialect of SQL that the parser knows")
        return Condition(path, test, tuple(value.verbs), tables, value.dialect)
    if test in ("absent", "plain"):
        return Condition(path, test)
    if test in ("host", "domain"):
        value = [_domain(path, test, one) for one in value]
    if test == "under" and not all(one.startswith("/") and normalised(Kind.PATH, one) for one in value):
        raise Refused(f"if.{path}: under takes absolute paths without '..'")
    return Condition(path, test, tuple(value))


def _domain(path: str, test: str, text: str) -> str:
    normal = normalised(Kind.DOMAIN, text)
    if normal is None:
        raise Refused(f"if.{path}: {test} {text!r} is no name of a host below a public suffix")
    return normal
