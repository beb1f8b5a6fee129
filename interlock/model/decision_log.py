"""Journal entries as events of OPA's decision log, for whatever already reads those.

A journal has no documents: an event's ``input`` says which call it was, by digests, and the document's digest is there
to compare. What an operator does not want to hand on is erased by JSON pointer before an event leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from interlock.errors import Refused
from interlock.model.entries import Entry, Ruling, Shadowed

PATH = "interlock/entrypoint/answers"


def events(
    entries: Iterable[tuple[str, Entry]], namespace: str, conversation: str, erase: Iterable[str] = ()
) -> Iterator[dict[str, Any]]:
    """One event per decision.

    Args:
        entries: with their digests, which become the decision ids.
        erase: JSON pointers, such as ``/input/call/id``; as in OPA, ``erased`` lists those that were there.

    Raises:
        Refused: something is no pointer into an event.
    """
    pointers = [_parsed(one) for one in erase]
    for digest, entry in entries:
        if isinstance(entry, Ruling):
            yield _erased(_event(digest, entry, namespace, conversation), pointers)


def _event(digest: str, entry: Ruling, namespace: str, conversation: str) -> dict[str, Any]:
    return {
        "labels": {"app": "interlock", "engine": entry.engine},
        "decision_id": digest,
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
    }


def _parsed(pointer: str) -> tuple[str, ...]:
    parts = pointer.split("/")
    if parts[0] or len(parts) < 2 or parts[1] not in ("input", "result", "labels"):
        raise Refused(f"{pointer!r}: write a JSON pointer into input, result or labels, such as /input/call/id")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts[1:])


def _erased(event: dict[str, Any], pointers: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    erased = []
    for pointer in pointers:
        place: Any = event
        for part in pointer[:-1]:
            place = place.get(part) if isinstance(place, dict) else None
        if isinstance(place, dict) and pointer[-1] in place:
            del place[pointer[-1]]
            erased.append("/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in pointer))
    return {**event, "erased": erased} if erased else event
