"""Operands: the files that a call's arguments name, as they were when a person was asked.

An approval of ``sh deploy.sh`` is worth nothing if the script may be another one by the time it runs. So each file that
the arguments name is read, through links, when the question is asked and again before the call runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from interlock.model.artifacts import ANY, UNREADABLE, places
from interlock.model.canonical import pack
from interlock.model.control_plane import MAX_LENGTH, TOO_MANY, candidates
from interlock.model.digests import Digest, digest
from interlock.model.document import Asked
from interlock.model.places import at
from interlock.model.tools import Effect, Kind


class Sort(StrEnum):
    """What a path leads to. What is in a folder is not looked at; the question says so."""

    FILE = "file"
    FOLDER = "folder"
    MISSING = "missing"
    OTHER = "other"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, order=True)
class Operand:
    """One path that the arguments name.

    Attributes:
        path: as it stands in the arguments.
        resolved: where it leads, after links and dots.
        size, content: of a file, its length in bytes and its SHA-256; else 0 and empty.
    """

    path: str
    resolved: str
    sort: Sort
    size: int = 0
    content: str = ""


MAX_WHOLE: Final = 512
MAX_BELOW: Final = 4096


def operand_paths(one: Asked) -> tuple[str, ...]:
    """The texts of a call that name a file, or may name one, as they stand there; sorted. A path among them may be
    :data:`interlock.model.control_plane.TOO_MANY`, which nobody can read.

    Looked for as if the tool could change anything: what is run or sent is what a person is asked about, whatever the
    tool is declared to do. Of payload (``content``), which is prose, only a whole text in one line counts: the name of
    an attachment.
    """
    spec = one.spec
    found = set(candidates(replace(spec, effect=Effect.CONTROL), one.arguments))
    for declared in (spec.destinations, spec.objects, spec.parties):
        for path, kind in declared:
            if kind is Kind.PATH:
                found.update(text for whole in at(one.arguments, path) for text in _texts(whole))
    reads = (*spec.reads_from, *spec.writes_to)
    found.update(
        text for kind, text in places(reads, one.arguments) if kind == "path" and text not in (ANY, UNREADABLE)
    )
    payload = {text for path in spec.content for whole in at(one.arguments, path) for text in _texts(whole)}
    attached = sorted(text for text in payload if 0 < len(text) <= MAX_LENGTH and len(text.splitlines()) == 1)
    found.update(attached[:MAX_WHOLE], [TOO_MANY] if len(attached) > MAX_WHOLE else [])
    return tuple(sorted(found))


def below(folders: Iterable[Operand], paths: Iterable[str]) -> tuple[str, ...]:
    """The relative ones of these paths, as they would be read in each of these folders.

    A tool may run in a folder that its arguments name: ``{"command": "sh deploy.sh", "cwd": "/srv/app"}``, or ``cd``.
    """
    relative = [one for one in paths if one != TOO_MANY and not one.startswith(("/", "~")) and one not in (".", "./")]
    return tuple(
        f"{folder.path.rstrip('/')}/{one}" for folder in folders if folder.sort is Sort.FOLDER for one in relative
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def operands_digest(operands: Iterable[Operand]) -> Digest:
    """Equal operands, equal digest: the same paths, leading to the same places, with the same content."""
    return digest("operands", pack([[o.path, o.resolved, o.sort.value, o.size, o.content] for o in sorted(operands)]))


def unreadable(operands: Sequence[Operand]) -> tuple[str, ...]:
    """Paths of which nobody can say what is there: no approval can be bound to it."""
    return tuple(one.path for one in operands if one.sort is Sort.UNREADABLE)


def shown(operands: Iterable[Operand]) -> tuple[Operand, ...]:
    """Those that a person is shown: words of a command line that name nothing are left out, and are bound all the
    same."""
    return tuple(one for one in operands if one.sort is not Sort.MISSING)
