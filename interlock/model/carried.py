"""What a stored thing carries: the labels that were on whoever wrote it, and where each of them came from (T12).

Facts, artifacts, scheduled work and messages between agents have no journal of their own. Their labels travel in a
value of this kind, whose only operation is a join. A record that is missing or can't be read is :data:`LOST`, which is
every leg and anybody's words: absence is never cleanliness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from interlock.errors import InterlockError, NotCanonical
from interlock.model.canonical import pack, parse
from interlock.model.digests import NO_DIGEST, Digest, content_digest
from interlock.model.entries import Admitted
from interlock.model.labels import EVERY_LEG, Label, Leg, Source, Taint, label, leg_of
from interlock.model.marks import heard_in
from interlock.model.results import printable

MAX_NOTES: Final = 64
MAX_VOICES: Final = 1024
MAX_LABELS: Final = 256
_SHAPE: Final = ["heard", "labels", "notes", "voices"]


@dataclass(frozen=True, slots=True)
class Carried:
    """Labels with what is known of their sources.

    Attributes:
        labels: sorted; all that was on the writer.
        notes: label → where it came from, for people: ``https://news.example/ (call 1 fetch of c-7f3a)``.
        voices: digests of the parties whose words may be in it.
        heard: ``voices`` is all of them. Otherwise untrusted labels may be anybody's words.
    """

    labels: tuple[Label, ...] = ()
    notes: tuple[tuple[Label, str], ...] = ()
    voices: tuple[Digest, ...] = ()
    heard: bool = True

    def __post_init__(self) -> None:
        labels = tuple(sorted({label(one) for one in self.labels}))
        if len(labels) > MAX_LABELS:
            # Past the bound a category is the unknown of its leg, which is stronger.
            labels = tuple(sorted({Label(f"{leg_of(one)}:unknown") for one in labels}))
        held = set(labels)
        notes = tuple(sorted({(one, printable(note)) for one, note in self.notes if one in held}))[:MAX_NOTES]
        voices = tuple(sorted(set(self.voices)))
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "notes", notes)
        object.__setattr__(self, "voices", voices[:MAX_VOICES])
        object.__setattr__(self, "heard", self.heard and len(voices) <= MAX_VOICES)

    def join(self, other: Carried) -> Carried:
        """Everything of both. Nothing that either holds is lost by it (T1, T12)."""
        if other == self:
            return self
        return Carried(
            (*self.labels, *other.labels),
            (*self.notes, *other.notes),
            (*self.voices, *other.voices),
            self.heard and other.heard,
        )

    def under(self, *labels: str) -> Carried:
        """The same with more labels."""
        return Carried((*self.labels, *(label(one) for one in labels)), self.notes, self.voices, self.heard)

    def along(self, way: str) -> Carried:
        """The same, with its notes saying which way it came: `` by way of memory m-1``."""
        notes = tuple((one, f"{note[:180]} by way of {way}") for one, note in self.notes)
        return Carried(self.labels, notes, self.voices, self.heard)

    def notices(self, name: str) -> tuple[str, ...]:
        """What a person should know who wonders why something is refused since this was read, and what they can do."""
        return tuple(
            f"{name} brings {one}: {note}. It stays with it; to be rid of it, delete {name} and write it anew in a"
            " conversation that has not read that"
            for one, note in self.notes
        )

    @property
    def untrusted(self) -> bool:
        """Does it hold a stranger's words?"""
        return _untrusted(self.labels)

    def of(self, *legs: Leg) -> tuple[Label, ...]:
        """Its labels of these legs."""
        return tuple(one for one in self.labels if leg_of(one) in legs)

    def encode(self) -> bytes:
        """Canonical bytes, as stored."""
        notes = [list(pair) for pair in self.notes]
        return pack({"labels": self.labels, "notes": notes, "voices": self.voices, "heard": self.heard})


CLEAN: Final = Carried()
LOST: Final = Carried(EVERY_LEG, tuple((one, "a label record that is lost") for one in EVERY_LEG), heard=False)


def decode(body: bytes | None) -> Carried:
    """Read a stored record. Whatever is not exactly one is :data:`LOST`; nothing is raised."""
    try:
        value: Any = parse(body) if body is not None else None
        if not isinstance(value, dict) or sorted(value) != _SHAPE or type(value["heard"]) is not bool:
            return LOST
        read = Carried(
            tuple(label(one) for one in value["labels"]),
            tuple((label(one), _text(note)) for one, note in value["notes"]),
            tuple(Digest(_text(one)) for one in value["voices"]),
            value["heard"],
        )
        return read if read.encode() == body else LOST
    except (InterlockError, NotCanonical, TypeError, ValueError, KeyError):
        return LOST


def joined(found: Iterable[Carried]) -> Carried:
    """The join of all of them; of none it is clean."""
    held = CLEAN
    for one in found:
        held = held.join(one)
    return held


def written_by(
    conversation: str, exposure: Taint, voices: Iterable[Digest], anybody: bool, pages: Mapping[int, str] | None = None
) -> Carried:
    """What something carries that a conversation writes now: its whole exposure.

    Args:
        voices, anybody: whose words may be in the conversation (:meth:`interlock.model.state.State.heard`).
        pages: what single calls read, by number, as far as anybody remembers.
    """
    notes = tuple((one, _note(source, conversation, pages or {})) for one, source in exposure.items)
    return Carried(tuple(exposure), notes, tuple(voices), not anybody)


def _note(source: Source, conversation: str, pages: Mapping[int, str]) -> str:
    if not source.call:
        return source.tool if " of c-" in source.tool else f"{source.tool} of {conversation}"
    call = f"call {source.call} {source.tool} of {conversation}"
    page = pages.get(source.call, "")
    return f"{page} ({call})" if page else call


def admissions(
    carried: Carried, at: str, name: str, text: str | None = None, *, words: str | None = None
) -> list[Admitted]:
    """The entries under which it enters a conversation: one for each place that its labels came from, so that an
    explanation can name it, and one for all of it.

    Args:
        name: what it is, for people: ``memory m-7``.
        text: what enters; None when nothing is shown yet.
        words: packed words of what enters (:mod:`interlock.model.marks`); without them, those of the text and its name,
            and without a text nobody wrote them down.
    """
    if words is None:
        words = "" if text is None else heard_in(f"{name}\n{text}")
    content = NO_DIGEST if text is None else content_digest(text)
    length = 0 if text is None else len(text)
    places: dict[str, list[Label]] = {}
    for one, note in carried.notes:
        places.setdefault(f"{note[:200]} by way of {name}", []).append(one)
    told = {one for one, _ in carried.notes}
    rest = [one for one in carried.labels if one not in told]
    found = sorted(places.items()) + ([(name, rest)] if rest or not places else [])
    # Whose words they are is said once, in the first entry that brings any.
    speaks = next((place for place, (_, labels) in enumerate(found) if _untrusted(labels)), 0)
    return [
        Admitted(
            at,
            printable(source),
            tuple(sorted(set(labels))),
            content,
            length,
            carried.voices if place == speaks else (),
            place == speaks and not carried.heard,
            words=words if _untrusted(labels) else "",
        )
        for place, (source, labels) in enumerate(found)
    ]


def _untrusted(labels: Iterable[Label]) -> bool:
    return any(leg_of(one) is Leg.UNTRUSTED for one in labels)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value
