"""The steps of a call that reads or writes artifacts (T2, T12): find their keys, load what they carry before anybody
decides, label what will be written before it may be, and load again when the result is there."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from interlock.gate.effects import Effect, LabelArtifacts, ReadArtifacts, ResolvePaths
from interlock.model.artifacts import ANY, UNREADABLE, carrying, folder_of_pattern, key, page_of, places, to_write
from interlock.model.carried import CLEAN, Carried, admissions
from interlock.model.document import Asked
from interlock.model.entries import Admitted, Failed, Observed
from interlock.model.labels import Leg, leg_of
from interlock.model.marks import heard_in
from interlock.model.results import Allowed
from interlock.model.state import State


def keyed(one: Asked) -> Generator[Effect, Any, Asked]:
    """The call with the keys of the artifacts that it names."""
    if not one.spec.reads_from and not one.spec.writes_to:
        return one
    reads = yield from _keys(_also_folders(places(one.spec.reads_from, one.arguments)))
    writes = yield from _keys(places(one.spec.writes_to, one.arguments))
    return replace(one, reads=reads, writes=to_write(writes))


def _also_folders(named: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """What is read, with the folders of those that may be patterns."""
    folders = [
        folder_of_pattern(text) if kind == "path" and text not in (ANY, UNREADABLE) else "" for kind, text in named
    ]
    return [*named, *(("path", one) for one in folders if one)]


def _keys(named: Sequence[tuple[str, str]]) -> Generator[Effect, Any, tuple[str, ...]]:
    keys: dict[str, None] = {}
    for kind, text in named:
        found: tuple[str, ...] = ()
        if kind == "path" and text not in (ANY, UNREADABLE):
            found = yield ResolvePaths((text,))  # a link to a file is no other file
        keys[key(kind, text, found[0] if found else "")] = None
    return tuple(keys)


def loaded(one: Asked, namespace: str) -> Generator[Effect, Any, Asked]:
    """The call with the labels that the artifacts carry which it reads, before it is decided."""
    if not one.reads:
        return one
    carried: Carried = yield ReadArtifacts(one.reads, namespace)
    # Joined with what an earlier attempt found: labels of artifacts only grow.
    carried = one.carried.join(carried)
    return replace(one, carried=carried, spec=carrying(one.spec, carried))


def carried_by(kind: str, name: str, namespace: str) -> Generator[Effect, Any, Carried]:
    """What one artifact carries."""
    keys = yield from _keys(_also_folders([(kind, name)]))
    carried: Carried = yield ReadArtifacts(keys, namespace)
    return carried


def labelled(one: Asked, state: State) -> Generator[Effect, Any, None]:
    """Put the labels of the conversation, and those of the call itself, on what the call will write.

    INVARIANT: an artifact has its labels before the decision is on record by which it may be written. If the decision
    is then made anew and refused, a label too many is kept.
    """
    if one.writes:
        spec = one.spec
        where = f"{page_of(one.destinations, one.reads) or spec.id} ({spec.id} of {state.conversation})"
        own = Carried((*spec.private, *spec.untrusted, *spec.opens))
        told = {label for label, _ in one.carried.notes}
        own = replace(own, notes=tuple((label, where) for label in own.labels if label not in told))
        yield LabelArtifacts(one.writes, state, one.carried.join(own))


def read_by(allowed: Allowed, namespace: str, at: str, text: str) -> Generator[Effect, Any, list[Admitted]]:
    """The entries for what the call has read, however it ended.

    Asked again after the call: labels are on an artifact before its content is, so whatever the call saw, they are
    there by now.

    Args:
        text: all of it that anybody will see.
    """
    if not allowed.reads:
        return []
    carried: Carried = yield ReadArtifacts(allowed.reads, namespace)
    name = ", ".join(allowed.reads)
    return admissions(carried, at, name, words=heard_in(text)) if carried.labels else []


def handed_on(allowed: Allowed, state: State, entry: Observed | Failed) -> Generator[Effect, Any, None]:
    """Put on what the call wrote whatever it brought that nobody foresaw: labels that its result named, and labels that
    came on what it read between the decision and the reading. A copy would lose them: its target got the labels that
    its source had when the copy was decided.

    Done before the outcome is on record. If it can't be done the result is withheld, and the call stays in flight.
    """
    if not allowed.writes:
        return
    spec = allowed.spec
    declared = {*spec.private, *spec.untrusted, *spec.opens}
    strange = tuple(one for one in entry.labels if one not in declared)
    brought = Carried(strange, tuple((one, f"{spec.id} of {state.conversation}") for one in strange), heard=not strange)
    if allowed.reads:
        carried: Carried = yield ReadArtifacts(allowed.reads, state.namespace)
        brought = brought.join(carried)
    known = allowed.carried or CLEAN
    if known.join(brought) != known:
        # What else the conversation learnt since is not in it: the arguments were written before.
        yield LabelArtifacts(allowed.writes, State(state.conversation, state.namespace), brought)


def as_read(entry: Observed | Failed, allowed: Allowed, read: list[Admitted], text: str) -> Observed | Failed:
    """The entry of a result, when what was read holds a stranger's words: then no field of it vouches for anything,
    whatever the manifest says of who writes it."""
    brought = {one for admitted in read for one in admitted.labels if leg_of(one) is Leg.UNTRUSTED}
    if not brought or not isinstance(entry, Observed):
        return entry
    declared = allowed.spec.untrusted if entry.external else ()
    labels = tuple(sorted({*entry.labels, *declared, *brought}))
    return replace(entry, exact=False, labels=labels, words=heard_in(text), vouched=(), records=())
