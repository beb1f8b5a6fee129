"""Journal entries as events of OPA's decision log, for whatever already reads those.

A journal has no documents: an event's ``input`` says which call it was, by digests, and the document's digest is there
to compare. What an operator does not want to hand on is erased or masked by pointer before an event leaves, as OPA's
``system.log.mask`` does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from interlock.errors import NotCanonical, Refused
from interlock.model.canonical import Json, canonical, pack
from interlock.model.digests import Digest, digest
from interlock.model.entries import Entry, Ruling, Shadowed

PATH: Final = "interlock/entrypoint/answers"
# Under these a pointer may erase or mask; the rest is what an event is found by. OPA has one more, which we never fill.
PARTS: Final = ("input", "result")


def decision_id(namespace: str, conversation: str, number: int, document: str) -> Digest:
    """What one decision is called everywhere: in exported events, in spans, in the log of an OPA server.

    Args:
        number: of the call in its conversation; every decision has its own.
        document: digest of the document that was asked; empty when none was.

    Known before the engine is asked. A decision that lost a race and is made anew has another document or number.
    """
    return digest("decision", pack([namespace, conversation, number, document]))


def trace_ids(namespace: str, conversation: str, decision: str) -> tuple[str, str]:
    """Ids of the trace of a conversation and of the span of a decision in it, in hex: the same whoever works them
    out."""
    trace = digest("decision", pack([namespace, conversation]))
    return trace.partition(":")[2][:32], decision.partition(":")[2][:16]


def document_of(event: Mapping[str, Any]) -> Digest | None:
    """Digest of the document that an event of an OPA server's own decision log was about, to be compared with the
    ``document`` of a journalled decision; None when its input is not there whole."""
    taken = [*(event.get("erased") or ()), *(event.get("masked") or ())]
    if "input" not in event or any(str(one).startswith("/input") for one in taken):
        return None
    try:
        return digest("document", canonical(event["input"]))
    except NotCanonical:
        return None


def events(
    entries: Iterable[tuple[str, Entry]],
    namespace: str,
    conversation: str,
    erase: Iterable[str] = (),
    mask: Mapping[str, Json] | None = None,
) -> Iterator[dict[str, Any]]:
    """One event per decision.

    Args:
        entries: with their digests.
        erase: pointers, such as ``/input/call/id``; as in OPA, ``erased`` lists those that were there.
        mask: pointer → what stands there instead; ``masked`` lists those that were there.

    Raises:
        Refused: something is no pointer into an event.
    """
    erasing = [_parsed(one) for one in erase]
    masking = [(_parsed(one), value) for one, value in (mask or {}).items()]
    for link, entry in entries:
        if isinstance(entry, Ruling):
            yield _redacted(_event(link, entry, namespace, conversation), erasing, masking)


def _event(link: str, entry: Ruling, namespace: str, conversation: str) -> dict[str, Any]:
    name = decision_id(namespace, conversation, entry.number, entry.document)
    trace, span = trace_ids(namespace, conversation, name)
    return {
        "labels": {"app": "interlock", "engine": entry.engine, "engine_decision_id": entry.decision_id},
        "decision_id": name,
        "trace_id": trace,
        "span_id": span,
        "bundles": {"interlock": {"revision": entry.revision}},
        "path": PATH,
        "input": {
            "conversation": {"id": conversation, "namespace": namespace},
            "tool": {"server": entry.server, "name": entry.tool},
            "call": {"id": entry.call_id, "number": entry.number, "digest": entry.call},
            "document": entry.document,
            "manifest": entry.manifest,
            "version": entry.version,
        },
        "result": {
            "verdict": entry.verdict,
            "codes": list(entry.codes),
            "enforced": not isinstance(entry, Shadowed),
            "labels": sorted({*entry.private, *entry.untrusted, *entry.opens}),
        },
        "timestamp": entry.at,
        "custom": {"interlock": {"entry": link}},
    }


def _parsed(pointer: str) -> tuple[str, ...]:
    parts = pointer.split("/")
    if parts[0] or len(parts) < 2 or parts[1] not in PARTS:
        raise Refused(f"{pointer!r}: write a pointer into input or result, such as /input/call/id")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts[1:])


def _redacted(
    event: dict[str, Any], erasing: Sequence[tuple[str, ...]], masking: Iterable[tuple[tuple[str, ...], Json]]
) -> dict[str, Any]:
    # Masked first, and elements of a list erased from its end: what is taken out must not move what is still meant.
    masked = [_shown(one) for one, value in masking if _changed(event, one, value)]
    gone = {one for one in sorted({*erasing}, key=_from_the_end, reverse=True) if _changed(event, one)}
    erased = [_shown(one) for one in dict.fromkeys(erasing) if one in gone]
    more = {"erased": erased} if erased else {}
    return event | more | ({"masked": masked} if masked else {})


def _from_the_end(pointer: tuple[str, ...]) -> list[tuple[int, str]]:
    return [(int(part) if part.isascii() and part.isdigit() else 0, part) for part in pointer]


_GONE: Final = object()


def _changed(event: dict[str, Any], pointer: tuple[str, ...], value: object = _GONE) -> bool:
    """Take out what a pointer names, or put something in its place. Was there anything?"""
    place: Any = event
    for part in pointer[:-1]:
        place = place[_index(place, part)] if _index(place, part) is not None else None
    last = _index(place, pointer[-1])
    if last is None:
        return False
    if value is _GONE:
        del place[last]
    else:
        place[last] = value
    return True


def _index(place: Any, part: str) -> Any:
    """Where a part of a pointer leads to in an object or an array; None when it leads nowhere."""
    if isinstance(place, dict):
        return part if part in place else None
    if isinstance(place, list) and part.isascii() and part.isdigit() and (part == "0" or part[0] != "0"):
        return int(part) if int(part) < len(place) else None
    return None


def _shown(pointer: tuple[str, ...]) -> str:
    return "/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in pointer)
