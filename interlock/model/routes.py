"""Routes: the closed set of changes that may make a refused call allowed, and how they are told.

The model is told of them without a value: what it could do with one is the person's to decide. A person is told the
changed values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Change(StrEnum):
    """What a remedy changes. Controls name those that may lift their objection, all but ``approval``."""

    NAME_DESTINATION = "name_destination"
    NAME_TARGET = "name_target"
    DROP_ARGUMENT = "drop_argument"
    NEW_CONVERSATION = "new_conversation"
    APPROVAL = "approval"


@dataclass(frozen=True, slots=True)
class Remedy:
    """One way to a call that is allowed, which the policy was asked about: it allows the call so changed.

    With ``approval`` nothing is changed: a person may answer the question that is open.

    Attributes:
        changes: what it changes, all of it together.
        typed: what the person would have to type, one value a line; for people only.
        replaced: arguments with the values that they would hold instead; for people only.
        dropped: arguments that would be left out; for people only.
    """

    changes: tuple[Change, ...]
    typed: str = field(default="", repr=False)
    replaced: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    dropped: tuple[str, ...] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        """The names of its changes, with a plus between them."""
        return "+".join(self.changes)

    @property
    def for_model(self) -> str:
        """What the model is told: the same words for every value."""
        return ", and ".join(dict.fromkeys(_FOR_MODEL[one] for one in self.changes))

    @property
    def for_person(self) -> str:
        """What a person is told, with the changed values, escaped."""
        return ", and ".join(self._parts())

    def _parts(self) -> list[str]:
        told = []
        if self.replaced:
            places = (f"{place} is {value!a}" for place, value in self.replaced)
            told.append(f"another receiver, whom the person or the operator named: {', '.join(places)}")
        if self.typed:
            values = ", ".join(ascii(one) for one in self.typed.splitlines())
            told.append(f"the person, if they mean it, types in their own words: {values}")
        if self.dropped:
            told.append(f"without {', '.join(map(ascii, self.dropped))}, which the manifest does not classify")
        if Change.NEW_CONVERSATION in self.changes:
            told.append("a new conversation that begins with the typed words only: restart_from_trusted()")
        if Change.APPROVAL in self.changes:
            told.append("a person approves this very call, once")
        return told


_FOR_MODEL: Final = {
    Change.NAME_DESTINATION: "to a destination that the person has named in their own words",
    Change.NAME_TARGET: "if the person has named in their own words what it is about",
    Change.DROP_ARGUMENT: "without what the operator has not classified",
    Change.NEW_CONVERSATION: "in a new conversation that the person begins",
    Change.APPROVAL: "once the person who is asked approves it",
}


def routes_for_model(remedies: tuple[Remedy, ...]) -> str:
    """One sentence about what is open, or nothing. Holds no value."""
    told = dict.fromkeys(one.for_model for one in remedies if one.changes != (Change.APPROVAL,))
    return f"It would be allowed {'; or '.join(told)}." if told else ""
