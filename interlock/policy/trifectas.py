"""Which servers together make a lethal trifecta possible, through which tools, and what one change breaks each.

Labels are never taken away, so what counts is which legs the tools of a set of servers have between them: an order in
which they are called always exists. A set is shown when no smaller one does.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from interlock.model.classified import legs_of
from interlock.model.decisions import Verdict
from interlock.model.labels import Leg
from interlock.model.tools import ToolId, ToolSpec, undeclared
from interlock.policy.bundle import Bundle
from interlock.policy.prove import Evaluate, combined_verdict, document_of

LEGS: Final = (Leg.UNTRUSTED.value, Leg.PRIVATE.value, Leg.EGRESS.value)
MAX_SWITCHED: Final = 5


def unseen(server: str) -> ToolSpec:
    """What stands for the tools of a server of which nothing is known: every leg."""
    return undeclared(ToolId(server, "any_tool"))


@dataclass(frozen=True, slots=True)
class Break:
    """One change: switch off or narrow some tools of a server, or take the server out.

    Attributes:
        kind: ``tools``, ``narrow`` or ``server``.
        leg: the leg that is gone after it.
    """

    kind: str
    server: str
    leg: str
    tools: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = ", ".join(self.tools)
        if self.kind == "server":
            return f"take out {self.server}"
        if self.kind == "narrow":
            return f"let {self.server}/{shown} run as its clauses say only"
        return f"switch off {shown} of {self.server}"


@dataclass(frozen=True, slots=True)
class Trifecta:
    """A smallest set of servers that has all three legs.

    Attributes:
        tools: by leg, the tools that bring it.
        story: one tool per leg, in an order that leaks.
        held: what the shipped controls say to the last call of the story, to a receiver that nobody vouches for.
    """

    servers: tuple[str, ...]
    tools: Mapping[str, tuple[ToolId, ...]]
    story: tuple[ToolId, ...]
    breaks: Break
    held: Verdict


def trifectas(specs: Iterable[ToolSpec], bundle: Bundle, evaluate: Evaluate) -> tuple[Trifecta, ...]:
    """Every smallest set of servers with a trifecta, smallest sets first."""
    every = sorted(specs, key=lambda one: one.id)
    by_leg: dict[str, dict[str, list[ToolSpec]]] = {leg: {} for leg in LEGS}
    for spec in every:
        for leg in legs_of(spec):
            by_leg[leg].setdefault(spec.id.server, []).append(spec)
    sets = {frozenset(one) for one in itertools.product(*(by_leg[leg] for leg in LEGS))}
    smallest = [one for one in sets if not any(other < one for other in sets)]
    sizes = {spec.id.server: sum(one.id.server == spec.id.server for one in every) for spec in every}
    return tuple(
        _trifecta(tuple(sorted(one)), by_leg, sizes, bundle, evaluate)
        for one in sorted(smallest, key=lambda one: (len(one), sorted(one)))
    )


def _trifecta(
    servers: tuple[str, ...],
    by_leg: Mapping[str, Mapping[str, list[ToolSpec]]],
    sizes: Mapping[str, int],
    bundle: Bundle,
    evaluate: Evaluate,
) -> Trifecta:
    here = {leg: [spec for server in servers for spec in by_leg[leg].get(server, [])] for leg in LEGS}
    # In a story each leg has a tool of its own, where there is one that brings nothing else.
    story = [min(here[leg], key=lambda spec: (len(legs_of(spec)), spec.id)) for leg in LEGS]
    held = tuple(sorted({*story[0].untrusted, *story[0].private, *story[1].untrusted, *story[1].private}))
    last = document_of(story[2], held, grounded=False)
    return Trifecta(
        servers,
        {leg: tuple(spec.id for spec in here[leg]) for leg in LEGS},
        tuple(spec.id for spec in story),
        _break(servers, by_leg, sizes),
        combined_verdict(bundle, evaluate, last),
    )


def _break(
    servers: tuple[str, ...], by_leg: Mapping[str, Mapping[str, list[ToolSpec]]], sizes: Mapping[str, int]
) -> Break:
    """The smallest change. In a smallest set every server is the only one with some leg, so one always exists."""
    found: list[tuple[int, int, str, Break]] = []
    for leg in LEGS:
        having = [server for server in servers if server in by_leg[leg]]
        if len(having) != 1:
            continue
        server, tools = having[0], by_leg[leg][having[0]]
        names = tuple(spec.id.name for spec in tools)
        if not all(spec.known for spec in tools) or len(tools) > MAX_SWITCHED or len(tools) == sizes[server]:
            found.append((2, sizes[server], server, Break("server", server, leg)))
        elif all(_narrows(spec, leg) for spec in tools):
            found.append((0, len(tools), server, Break("narrow", server, leg, names)))
        else:
            found.append((1, len(tools), server, Break("tools", server, leg, names)))
    return min(found, key=lambda one: (one[0], one[1], one[2], one[3].leg))[3]


def _narrows(spec: ToolSpec, leg: str) -> bool:
    """Does a clause of the tool leave this leg out?"""
    return any(leg not in legs_of(clause.spec) for clause in spec.when)


def after(specs: Iterable[ToolSpec], changes: Iterable[Break]) -> tuple[ToolSpec, ...]:
    """The tools that are left when changes are made. A tool that is narrowed is left as
    each of the clauses that leave the leg out."""
    out = {one.server for one in changes if one.kind == "server"}
    off = {(one.server, name) for one in changes if one.kind == "tools" for name in one.tools}
    narrow = {(one.server, name): one.leg for one in changes if one.kind == "narrow" for name in one.tools}
    left = []
    for spec in specs:
        key = (spec.id.server, spec.id.name)
        if spec.id.server in out or key in off:
            continue
        if key in narrow:
            clauses = [one.spec for one in spec.when if narrow[key] not in legs_of(one.spec)]
            left += [replace(one, when=()) for one in clauses]  # whichever of them a call meets
        else:
            left.append(spec)
    return tuple(left)


def breaking_all(found: Iterable[Trifecta]) -> tuple[Break, ...]:
    """Single changes that would break every trifecta at once: servers that are in all of them."""
    sets = [set(one.servers) for one in found]
    shared = set.intersection(*sets) if sets else set()
    return tuple(Break("server", server, "") for server in sorted(shared))
