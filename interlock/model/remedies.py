"""What would make a refused call allowed: the changes, each made here and judged elsewhere.

A control names the changes that may lift its objection. This module makes each of them by the functions that the real
thing goes through: what the person would type is folded as typed, arguments are replaced or left out, a state begins
anew. Whether that helps is for the policy to say, of the changed call in the changed state (T13: of any engine); only
what it then allows is offered.

There is no change called quarantine: a child begins with its parent's exposure and hands its labels back, so reading
something there keeps nothing away from anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from interlock.model.decisions import (
    CONTROL_PLANE,
    GATE_CODES,
    IN_DOUBT,
    NO_ANSWER,
    NOT_BINDABLE,
    OPERAND_CHANGED,
    Decision,
    Verdict,
)
from interlock.model.destinations import Destination, normalised
from interlock.model.digests import content_digest
from interlock.model.document import Asked, Setting
from interlock.model.entries import Typed
from interlock.model.origins import bare_words, said_by_person
from interlock.model.places import segments
from interlock.model.routes import Change, Remedy
from interlock.model.state import State, apply, inherited
from interlock.model.tools import Egress, Kind

Book: TypeAlias = Sequence[tuple[Kind, str]]

# INVARIANT: a refused call costs at most so many evaluations more, however long the conversation is (T18).
MAX_TRIES: Final = 8
MAX_REPLACEMENTS: Final = 3
MAX_NAMED: Final = 32
MAX_TEXTS: Final = 16
MAX_TEXT: Final = 4096
MAX_WORDS: Final = 2000


@dataclass(frozen=True, slots=True)
class Trial:
    """A remedy that the policy has not been asked about yet: the arguments and the state that it would lead to."""

    remedy: Remedy
    arguments: Mapping[str, Any]
    state: State


def can_be_helped(decision: Decision) -> frozenset[str]:
    """The names of changes that the objecting controls name. None for what no change may help.

    Nobody is shown a way around the gate's own files, around a person's no, or around a failure.
    """
    if decision.verdict is Verdict.ALLOW or not decision.enforced or decision.terminal:
        return frozenset()
    if CONTROL_PLANE in decision.codes or not _FINAL.isdisjoint(decision.codes):
        return frozenset()
    return frozenset(decision.candidates)


# What is said of the asking says nothing against another way; a failure does, and so does a person's no.
_FINAL: Final = GATE_CODES - {IN_DOUBT, NO_ANSWER, NOT_BINDABLE, OPERAND_CHANGED}


def trials(
    one: Asked, setting: Setting, state: State, names: Iterable[str], at: str, texts: Sequence[str], book: Book
) -> Iterator[Trial]:
    """What could be tried, the smallest changes first.

    Args:
        one: the call, and ``setting`` what the policy was told around it.
        names: of the changes that controls name.
        at: the time of asking.
        texts: what the person typed, newest first; a few of them are looked at.
        book: the operator's address book.
    """
    wanted = frozenset(names)
    arguments = one.arguments
    receivers = _loose(one.destinations, setting, receivers=True) if one.spec.egress is not Egress.NONE else []
    others = _loose((*one.objects, *one.parties), setting) + _plain_destinations(one, setting)
    links = _loose(one.links, setting)
    if Change.NAME_DESTINATION in wanted:
        for place_value in _replacements(one, receivers, texts, book):
            changed = _placed(arguments, place_value)
            if changed is not None:
                yield Trial(Remedy((Change.NAME_DESTINATION,), replaced=place_value), changed, state)
        for values in _distinct(receivers, receivers + links):
            yield from _said(Change.NAME_DESTINATION, values, arguments, state, at)
    if Change.NAME_TARGET in wanted:
        for values in _distinct(others, others + links):
            yield from _said(Change.NAME_TARGET, values, arguments, state, at)
    if Change.DROP_ARGUMENT in wanted and one.unclassified:
        yield Trial(
            Remedy((Change.DROP_ARGUMENT,), dropped=one.unclassified), _without(arguments, one.unclassified), state
        )
    if Change.NEW_CONVERSATION in wanted:
        yield Trial(Remedy((Change.NEW_CONVERSATION,)), arguments, begun_anew(state, at))
    yield from _together(one, receivers, others + links, wanted, state, at)


def _together(
    one: Asked, receivers: list[Destination], others: list[Destination], wanted: frozenset[str], state: State, at: str
) -> Iterator[Trial]:
    """Everything that can be named is named, and what nobody classified is left out."""
    changes = []
    if Change.NAME_DESTINATION in wanted and receivers:
        changes.append(Change.NAME_DESTINATION)
    if others:
        changes.append(Change.NAME_TARGET)
    dropped = one.unclassified if Change.DROP_ARGUMENT in wanted else ()
    if dropped:
        changes.append(Change.DROP_ARGUMENT)
    values = [*receivers, *others]
    if len(changes) < 2 or not _sayable(values):
        return
    text = _text(values)
    remedy = Remedy(tuple(changes), typed=text, dropped=dropped)
    yield Trial(remedy, _without(one.arguments, dropped), as_typed(state, text, at) if text else state)


def as_typed(state: State, text: str, at: str) -> State:
    """The state after the person typed a text, as :meth:`Conversation.say` makes it."""
    return apply(state, Typed(at, content_digest(text), len(text), said_by_person(text)))


def begun_anew(state: State, at: str) -> State:
    """The state of a conversation that begins anew from trusted words, as :meth:`Conversation.restart_from_trusted`
    makes it. What was typed is left out: with it nothing can be judged more strictly, and whether its texts are still
    there is not known here."""
    return apply(State(), inherited(state, at, state.conversation, restart=True))


# --- naming ---------------------------------------------------------------------------------------------------------


def _loose(values: Sequence[Destination], setting: Setting, *, receivers: bool = False) -> list[Destination]:
    """Values that nobody vouches for."""
    if receivers:
        return [one for one in values if not setting.is_grounded(one)]
    return [one for one in values if not setting.grounds(one, setting.origin(one))]


def _plain_destinations(one: Asked, setting: Setting) -> list[Destination]:
    """Where a tool that sends nothing would write."""
    return [] if one.spec.egress is not Egress.NONE else _loose(one.destinations, setting)


def _distinct(*groups: list[Destination]) -> Iterator[list[Destination]]:
    seen: list[list[Destination]] = []
    for group in groups:
        if group and group not in seen:
            seen.append(group)
            yield group


def _said(
    change: Change, values: list[Destination], arguments: Mapping[str, Any], state: State, at: str
) -> Iterator[Trial]:
    if _sayable(values):
        text = _text(values)
        yield Trial(Remedy((change,), typed=text), arguments, as_typed(state, text, at))


def _sayable(values: Sequence[Destination]) -> bool:
    """Can all of it be typed? What can't be read has no normal form, and nobody types thirty addresses."""
    return len(values) <= MAX_NAMED and all(one.kind is not Kind.UNKNOWN and one.value for one in values)


def _text(values: Iterable[Destination]) -> str:
    return "\n".join(dict.fromkeys(f"{one.noun} {one.value}".strip() for one in values))


# --- replacing ------------------------------------------------------------------------------------------------------


def _replacements(
    one: Asked, loose: list[Destination], texts: Sequence[str], book: Book
) -> Iterator[tuple[tuple[str, str], ...]]:
    """Other values for the places of all loose destinations: what the person typed of this kind, then the operator's.
    Only where all are of one kind: which of two kinds of receivers was meant for which place nobody knows."""
    declared = dict(one.spec.destinations)
    kinds = {declared.get(each.argument) for each in loose}
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    if kind is None or any(not each.argument for each in loose):
        return
    places = sorted({each.argument for each in loose})
    taken = {each.value for each in loose}
    tried = 0
    for value in (*_named(kind, texts), *(value for of, value in book if of is kind)):
        if value in taken:
            continue
        taken.add(value)
        yield tuple((place, value) for place in places)
        tried += 1
        if tried == MAX_REPLACEMENTS:
            return


_TYPED_WHOLE: Final = frozenset({Kind.URL, Kind.EMAIL, Kind.DOMAIN, Kind.PATH})


def _named(kind: Kind, texts: Sequence[str]) -> Iterator[str]:
    """Values of a kind in typed texts. Paths and pages need a mark of their own, or any word would be one."""
    if kind not in _TYPED_WHOLE:
        return
    marks = {Kind.EMAIL: ("@",), Kind.URL: ("://", "www."), Kind.PATH: ("/",), Kind.DOMAIN: (".",)}[kind]
    words = (word for text in texts[:MAX_TEXTS] for word in bare_words(text[:MAX_TEXT]))
    for _, word in zip(range(MAX_WORDS), words, strict=False):
        if any(mark in word for mark in marks):
            value = normalised(kind, word)
            if value is not None:
                yield value


def _placed(arguments: Mapping[str, Any], values: Iterable[tuple[str, str]]) -> dict[str, Any] | None:
    """The arguments with other values at these places, or None where a place is not one single value."""
    changed = dict(arguments)
    for place, value in values:
        path = (place,) if place in changed else segments(place)
        inner = changed
        for key in path[:-1]:
            below = inner.get(key)
            if not isinstance(below, dict):
                return None
            inner[key] = dict(below)
            inner = inner[key]
        held = inner.get(path[-1])
        if not isinstance(held, str | list):
            return None
        inner[path[-1]] = [value] if isinstance(held, list) else value
    return changed


def _without(arguments: Mapping[str, Any], places: Sequence[str]) -> dict[str, Any]:
    """The arguments without what stands at these places."""
    changed = {key: item for key, item in arguments.items() if key not in places}
    deeper = [segments(place) for place in places if place not in arguments]
    result: dict[str, Any] = _pruned(changed, deeper) if deeper else changed
    return result


def _pruned(value: Any, paths: Sequence[tuple[str, ...]]) -> Any:
    if isinstance(value, list):
        return [_pruned(item, paths) for item in value]
    if not isinstance(value, dict):
        return value
    gone = {path[0] for path in paths if len(path) == 1}
    kept = {}
    for key, item in value.items():
        below = [path[1:] for path in paths if len(path) > 1 and path[0] == key]
        if key not in gone:
            kept[key] = _pruned(item, below) if below else item
    return kept
