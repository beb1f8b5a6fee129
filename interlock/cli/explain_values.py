"""What ``interlock explain`` says of every value that a call names: its normal form, who vouches for it, and where in
the story it was first seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rich.text import Text

from interlock.model.canonical import pack
from interlock.model.marks import words_of
from interlock.model.results import Outcome, text_for_model
from interlock.model.scenario import CallStep, Story

Texts = list[tuple[str, str]]
_PARTS: Final = ("destinations", "objects", "parties", "links")
_NOT_NAMED: Final = "nowhere before: the model made it, or put it together"


def story_texts(story: Story, played: Sequence[tuple[str, CallStep, Outcome]], until: int) -> Texts:
    """What the model had seen or written before a call, oldest first: where, and the text.

    Args:
        until: place of the explained call among the calls, from 0; what came later is left out.
    """
    calls = {place: (step, outcome) for place, step, outcome in played[:until]}
    last = int(played[until][0].partition("[")[2].partition("]")[0])
    found: Texts = []
    for index, step in enumerate(story.steps[: last + 1]):
        if step.user is not None:
            found.append(("typed by the person", step.user))
        elif step.pasted is not None:
            found.append(("pasted by the person", step.pasted))
        elif step.admit is not None:
            found.append((f"admitted from {step.source}", step.admit))
        for number in range(len(step.calls)):
            place = f"steps[{index}].batch[{number}]" if step.batch is not None else f"steps[{index}]"
            if place in calls:
                found += _of_call(*calls[place])
    return found


def _of_call(step: CallStep, outcome: Outcome) -> Texts:
    name = f"call {outcome.number} {step.call}"
    arguments = (f"arguments of {name}", pack(step.arguments).decode() if isinstance(step.arguments, dict) else "")
    return [arguments, (f"result of {name}", text_for_model(step.result))] if outcome.executed else [arguments]


def named_values(document: dict[str, Any], texts: Texts) -> Iterator[dict[str, Any]]:
    """Every value that the call names, with ``role`` and ``first_seen`` beside what the document says of it."""
    for part in _PARTS:
        for one in document["call"][part]:
            yield {"role": part, **one, "first_seen": first_seen(one["value"], texts)}


def first_seen(value: str, texts: Texts) -> str:
    """Where the words of a value stand together for the first time."""
    wanted = words_of(value)
    if not wanted:
        return _NOT_NAMED
    for where, text in texts:
        words = words_of(text)
        width = len(wanted)
        if any(words[start : start + width] == wanted for start in range(len(words) - width + 1)):
            return where
    return _NOT_NAMED


def values_text(document: dict[str, Any], texts: Texts) -> Text:
    """The values as lines."""
    call = document["call"]
    lines: dict[str, list[str]] = {part: [] for part in _PARTS}
    for one in named_values(document, texts):
        where = one["argument"] or "(no destination argument)"
        kind = f"{one['kind']}:{one['noun']}" if one.get("noun") else one["kind"]
        back = ", and untrusted text came from there" if one.get("talks_back") else ""
        seen = f"; first seen: {one['first_seen']}" if one["value"] else ""
        lines[one["role"]].append(f"  {where}: {kind} {one['value']!a}, origin {one['origin']}{back}{seen}")
    grounded = "grounded" if call["grounded"] else "not grounded"
    shown = [f"Destinations ({grounded}):", *(lines["destinations"] or ["  none"])]
    if call["unclassified"]:
        shown.append(f"  unclassified arguments: {', '.join(call['unclassified'])}")
    for part in _PARTS[1:]:
        if lines[part]:
            vouched = "vouched for" if call["vouched"][part] else "not vouched for"
            shown += [f"{part.capitalize()} ({vouched}):", *lines[part]]
    return Text("\n".join(shown))
