"""What the proposals are worth: their legs beside the catalogue's, on recorded lists. Proves nothing by itself.

A recorded list is what a real server answered to ``tools/list`` when it was run, with its package and version. The
catalogue was written by hand, tool by tool, and knows nothing of the words that proposals are made from.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from interlock.model.catalogue import Known
from interlock.model.classified import classify, legs_of
from interlock.model.listed import Listing, read_listing
from interlock.policy.catalogue_files import shipped_catalogue

HERE = Path(__file__).parent
LEGS = ("untrusted", "private", "egress")
RECORDED = tuple(sorted(path.stem for path in HERE.glob("*.json")))


@functools.cache
def recorded(name: str) -> Listing:
    return read_listing(json.loads((HERE / f"{name}.json").read_text(encoding="utf-8")), name)


def known(name: str) -> Known:
    return next(one for one in shipped_catalogue() if one.name == name)


@dataclass(frozen=True)
class Measured:
    """Tools of one list, and for each leg how many have it in both, in the proposal only, in the catalogue only."""

    tools: int
    both: Counter[str]
    more: Counter[str]
    missed: Counter[str]
    names_missed: tuple[tuple[str, str], ...]

    def precision(self, leg: str) -> float | None:
        said = self.both[leg] + self.more[leg]
        return self.both[leg] / said if said else None

    def recall(self, leg: str) -> float | None:
        there = self.both[leg] + self.missed[leg]
        return self.both[leg] / there if there else None


@functools.cache
def measured(name: str) -> Measured:
    """The proposals for one list, with the catalogue switched off, beside the catalogue."""
    both, more, missed = Counter[str](), Counter[str](), Counter[str]()
    names = []
    entries = known(name).manifest("s")
    found = classify(recorded(name), "s", known=())
    assert not found.unusable
    for one in found.tools:
        assert one.origin == "proposed"
        here, there = set(one.legs), set(legs_of(entries.specs[one.spec.id]))
        both.update(here & there)
        more.update(here - there)
        missed.update(there - here)
        names += [(one.tool.name, leg) for leg in sorted(there - here)]
    return Measured(len(found.tools), both, more, missed, tuple(names))


def together() -> Measured:
    every = [measured(name) for name in RECORDED]
    return Measured(
        sum(one.tools for one in every),
        sum((one.both for one in every), Counter[str]()),
        sum((one.more for one in every), Counter[str]()),
        sum((one.missed for one in every), Counter[str]()),
        tuple(pair for one in every for pair in one.names_missed),
    )


def measured_table() -> str:
    """Precision and recall of each leg, by list, in Markdown."""

    def cell(one: Measured, leg: str) -> str:
        shown = [f"{value:.2f}" if value is not None else "–" for value in (one.precision(leg), one.recall(leg))]
        return " / ".join(shown)

    rows = ["| list | package | tools | untrusted | private | egress |", "|---|---|---|---|---|---|"]
    for name in RECORDED:
        one, listing = measured(name), recorded(name)
        cells = " | ".join(cell(one, leg) for leg in LEGS)
        rows.append(f"| {name} | `{listing.package}` {listing.version} | {one.tools} | {cells} |")
    every = together()
    cells = " | ".join(f"**{cell(every, leg)}**" for leg in LEGS)
    rows.append(f"| **all** | | **{every.tools}** | {cells} |")
    return "\n".join(rows)


def catalogue_table() -> str:
    """Every server of the catalogue, with how many tools have each leg and where the list was read, in Markdown."""
    rows = [
        "| server | tools | untrusted | private | egress | read in |",
        "|---|---|---|---|---|---|",
    ]
    total = Counter[str]()
    for one in shipped_catalogue():
        counts = Counter(leg for spec in one.manifest("s") for leg in legs_of(spec))
        total.update(counts)
        total["tools"] += len(one.entries)
        cells = " | ".join(str(counts[leg]) for leg in LEGS)
        rows.append(f"| {one.title} | {len(one.entries)} | {cells} | {one.source} |")
    cells = " | ".join(str(total[leg]) for leg in LEGS)
    rows.append(f"| {len(shipped_catalogue())} servers | {total['tools']} | {cells} | |")
    return "\n".join(rows)
