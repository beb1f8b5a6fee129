"""Explaining a decision from a journal: the fold of its entries says which labels stood when it was made, and whose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text
from rich.tree import Tree

from interlock.cli.output import console, print_json
from interlock.errors import Misconfigured
from interlock.model.decisions import Verdict
from interlock.model.entries import Ruling, Shadowed
from interlock.model.labels import Taint
from interlock.model.settings import parse_settings
from interlock.model.state import State, apply
from interlock.policy.bundle import assemble
from interlock.policy.sources import shipped_sources
from interlock.stores.journal_file import read_journal

_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}


def explain_journal(path: Path, wanted: int | None, as_json: bool) -> None:
    """Print one decision of a verified journal; without a number the first of the strictest.

    Raises:
        Tampered: the journal is not what its head says; nothing of it is explained.
        Misconfigured: it has no such decision.
    """
    state = State()
    decided: list[tuple[Ruling, Taint]] = []
    for entry in read_journal(path):
        if isinstance(entry, Ruling):
            decided.append((entry, state.exposure))
        state = apply(state, entry)
    if not decided:
        raise Misconfigured(f"{path}: no call was decided in this conversation")
    strict = [Verdict(entry.verdict).strictness for entry, _ in decided]
    number = wanted if wanted is not None else decided[strict.index(max(strict))][0].number
    found = next(((entry, exposure) for entry, exposure in decided if entry.number == number), None)
    if found is None:
        raise Misconfigured(f"{path}: there is no call {number}; calls go from 1 to {len(decided)}")
    if as_json:
        print_json(_as_json(*found))
    else:
        _show([entry for entry, _ in decided], *found)


def _show(decided: list[Ruling], one: Ruling, exposure: Taint) -> None:
    out = console()
    brought: dict[int, list[str]] = {}
    for label, source in exposure.items:
        brought.setdefault(source.call, []).append(f"{label} ({source.tool})" if source.call == 0 else label)
    tree = Tree(Text("the conversation, verified against its head", style="bold"), guide_style="dim")
    for early in brought.get(0, []):
        tree.add(Text.assemble("before any call  ", (f"+{early}", "magenta")))
    for entry in decided:
        if entry.number > one.number:
            break
        style = f"bold {_COLOURS[entry.verdict]}" if entry is one else _COLOURS[entry.verdict]
        line = Text.assemble(f"{entry.at[:19]}  call {entry.number}  {_tool(entry)}  ", (entry.verdict, style))
        if isinstance(entry, Shadowed):
            line.append("  not enforced: shadow mode", style="bold yellow")
        for came in brought.get(entry.number, []) if entry is not one else []:
            line.append(f"  +{came}", style="magenta")
        tree.add(line)
    out.print(tree)
    texts = assemble(shipped_sources(), parse_settings({})).controls
    for code in one.codes:
        says = texts[code].description if code in texts else "one of your own controls, or the gate itself"
        out.print(Text.assemble((code, _COLOURS[one.verdict]), f"  {says}"))
    if not one.codes:
        out.print(Text("Every control was satisfied.", style="green"))
    if one.verdict != "allow":
        out.print(
            Text("What would lift it can't be said of digests: explain the scenario, or preview the call.", "dim")
        )
    out.print(Text(f"document {one.document or '(none)'}\nrevision {one.revision or '(none)'}", style="dim"))


def _tool(entry: Ruling) -> str:
    return f"{entry.server}/{entry.tool}" if entry.server else entry.tool


def _as_json(one: Ruling, exposure: Taint) -> dict[str, Any]:
    return {
        "call": one.number,
        "at": one.at,
        "tool": _tool(one),
        "verdict": one.verdict,
        "codes": list(one.codes),
        "enforced": not isinstance(one, Shadowed),
        "causes": [
            {
                "label": label,
                "call": source.call or None,
                "tool": source.tool,
                "at": source.at,
                "content": source.digest,
            }
            for label, source in exposure.items
        ],
        "document": one.document,
        "revision": one.revision,
        "manifest": one.manifest,
    }
