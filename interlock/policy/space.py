"""The abstract space of the document: every combination of what a decision may depend on.

A *dimension* is one thing about a call or a conversation with its values from weak to strong. Labels are abstracted to
a few categories (the ones that a control names among them), numbers of calls to none or one. Nothing else in the
document changes a shipped control's answer, and the prover says which paths a control reads beyond them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from interlock.policy.samples import SAMPLES

State: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dimension:
    """One thing that may vary.

    Attributes:
        values: from weak to strong.
        paths: the document's paths that it shows in.
        stronger: for each value, the indices of those that are directly stronger.
    """

    name: str
    values: tuple[Any, ...]
    paths: tuple[Path, ...]
    stronger: tuple[tuple[int, ...], ...]


def _chain(name: str, values: Sequence[Any], *paths: str) -> Dimension:
    last = len(values) - 1
    steps = tuple((place + 1,) if place < last else () for place in range(len(values)))
    return Dimension(name, tuple(values), tuple(tuple(path.split(".")) for path in paths), steps)


def _labels(name: str, categories: Sequence[str], *paths: str) -> Dimension:
    """Nothing, each category alone, all of them, the unknown: `unknown` is stronger than every category."""
    singles = [(category,) for category in categories]
    whole = tuple(sorted(categories))
    values: list[tuple[str, ...]] = [(), *singles]
    if len(singles) > 1:
        values.append(whole)
    values.append(("unknown",))
    last = len(values) - 1
    steps: list[tuple[int, ...]] = [tuple(range(1, len(singles) + 1))]
    for _ in singles:
        steps.append((len(singles) + 1,))
    if len(singles) > 1:
        steps.append((last,))
    steps.append(())
    return Dimension(name, tuple(values), tuple(tuple(path.split(".")) for path in paths), tuple(steps))


SILENT: Final = {"argument": "to", "kind": "email", "value": "bob@example.com", "origin": "user", "talks_back": False}
TALKING: Final = {**SILENT, "talks_back": True}
UNKNOWN: Final = {"argument": "", "kind": "unknown", "value": "", "origin": "unseen", "talks_back": True}


def dimensions(named: Iterable[str] = ()) -> tuple[Dimension, ...]:
    """All dimensions. ``named`` are the categories that controls name, beside the usual ones."""
    extra = sorted(set(named) - {"unknown"})
    private = sorted({"files", *extra})
    untrusted = sorted({"web", *extra})
    channel = ["channel"]
    return (
        _labels("untrusted", untrusted, "exposure.untrusted", "forecast.untrusted"),
        _labels("private", private, "exposure.private", "forecast.private", "forecast.credentials"),
        _labels("open channels", channel, "exposure.egress", "forecast.egress"),
        _labels(
            "private by this call",
            private,
            "forecast.private",
            "forecast.credentials",
            "call.labels.private",
            "call.credentials",
            "tool.returns",
            "tool.reads",
        ),
        _labels("private by siblings", ["files"], "forecast.private", "forecast.credentials", "call.siblings"),
        _labels("opened by this call", channel, "forecast.egress", "call.labels.egress", "tool.opens"),
        _labels("opened by siblings", channel, "forecast.egress", "call.siblings"),
        _chain("egress", ("none", "blind", "chosen"), "tool.egress"),
        _chain(
            "effect",
            (
                ("none", "none"),
                ("add", "none"),
                ("write", "none"),
                ("destroy", "none"),
                ("control", "agent"),
                ("control", "interlock"),
            ),
            "tool.effect",
            "call.control",
        ),
        _chain("grounded", (True, False), "call.grounded"),
        _chain("known", (True, False), "tool.known"),
        _chain("destinations", ((SILENT,), (SILENT, TALKING), (UNKNOWN,)), "call.destinations"),
        _chain("unclassified", ((), ("header",)), "call.unclassified"),
        _chain("audience", ("", "self"), "tool.audience"),
        _chain("receivers", (True, False), "call.vouched.receivers"),
        _chain("objects", (True, False), "call.vouched.objects"),
        _chain("parties", (True, False), "call.vouched.parties"),
        _chain("links", (True, False), "call.vouched.links"),
        _chain("targets", (True, False), "call.vouched.targets"),
        _chain("drip", (False, True), "call.drip"),
    )


def document(state: Mapping[str, Any]) -> State:
    """The document of a state. Dimensions that the state leaves out are at their weakest."""

    def at(name: str, weakest: Any = ()) -> Any:
        return state.get(name, weakest)

    own, opened = set(at("private by this call")), set(at("opened by this call"))
    private = set(at("private")) | own | set(at("private by siblings"))
    channels = set(at("open channels")) | opened | set(at("opened by siblings"))
    untrusted = sorted(at("untrusted"))
    effect, control = at("effect", ("none", "none"))
    base = SAMPLES["clean send"]
    return {
        **base,
        "exposure": {"untrusted": untrusted, "private": sorted(at("private")), "egress": sorted(at("open channels"))},
        "forecast": {
            "untrusted": untrusted,
            "private": sorted(private),
            "egress": sorted(channels),
            "credentials": bool({"credentials", "unknown"} & private),
        },
        "tool": {
            **base["tool"],
            "known": at("known", True),
            "reads": [f"private:{one}" for one in sorted(own)],
            "opens": [f"egress:{one}" for one in sorted(opened)],
            "egress": at("egress", "none"),
            "effect": effect,
            "audience": at("audience", ""),
        },
        "call": {
            **base["call"],
            "siblings": 1 if at("private by siblings") or at("opened by siblings") else 0,
            "destinations": [dict(one) for one in at("destinations", (SILENT,))],
            "grounded": at("grounded", True),
            "unclassified": list(at("unclassified")),
            "labels": {"untrusted": [], "private": sorted(own), "egress": sorted(opened)},
            "control": control,
            "vouched": {name: at(name, True) for name in ("receivers", "objects", "parties", "links", "targets")},
            "credentials": bool({"credentials", "unknown"} & own),
            "drip": at("drip", False),
        },
    }


def states(space: Sequence[Dimension]) -> Iterator[tuple[int, ...]]:
    """Every combination, as indices into the dimensions' values; weak ones first."""
    ranges = [range(len(one.values)) for one in space]
    yield from sorted(itertools.product(*ranges), key=sum)


def valued(space: Sequence[Dimension], state: Sequence[int]) -> dict[str, Any]:
    return {one.name: one.values[place] for one, place in zip(space, state, strict=True)}


def neighbours(space: Sequence[Dimension], state: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """States that are stronger in one step of one dimension."""
    for place, (one, index) in enumerate(zip(space, state, strict=True)):
        for following in one.stronger[index]:
            yield (*state[:place], following, *state[place + 1 :])


def leaks(document: Mapping[str, Any]) -> bool:
    """The one thing that must not happen unasked, said without any control: a call that leaves with untrusted and
    private content to a destination that nobody vouches for."""
    return bool(
        document["tool"]["egress"] == "chosen"
        and document["forecast"]["untrusted"]
        and document["forecast"]["private"]
        and document["call"]["grounded"] is not True
    )
