"""Tells what happened: as JSON for programs; as an overview, a short story per attack and a sum for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final, TypeAlias

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from interlock.cli.demo.stage import Decided, Result, Run
from interlock.model.decisions import Cause
from interlock.model.labels import Leg, leg_of

Json: TypeAlias = "str | int | bool | list[Json] | dict[str, Json] | None"

MAX_WIDTH: Final = 100
_CHANNELS: Final = {
    "mail": "by mail to {}",
    "http": "in a web request to {}",
    "port": "through the open port: {}",
}
_ORDERS: Final = re.compile(r"^ASSISTANT: (.*)$", re.MULTILINE)
_LEGS: Final = list(Leg)


# --- for programs ---------------------------------------------------------------------------------------------------


def as_json(results: Iterable[Result]) -> dict[str, Json]:
    """Everything that was seen, without the secret itself."""
    return {
        "scenarios": [
            {
                "name": one.scenario.name,
                "title": one.scenario.title,
                "honest": one.scenario.honest,
                "broken": list(one.broken),
                "without": _run(one.without),
                "with": {**_run(one.guarded), "decisions": [_decision(decided) for decided in one.guarded.decided]},
            }
            for one in results
        ]
    }


def _run(run: Run) -> dict[str, Json]:
    return {"left": [asdict(one) for one in run.left], "written": [path for path, _ in run.written]}


def _decision(decided: Decided) -> dict[str, Json]:
    outcome = decided.outcome
    return {
        "tool": outcome.tool,
        "verdict": outcome.verdict.value,
        "code": outcome.decision.code,
        "call": outcome.number,
        "codes": list(outcome.decision.codes),
        "causes": [
            {
                "label": cause.label,
                "tool": cause.source.tool if cause.source else None,
                "call": cause.source.call if cause.source else None,
            }
            for cause in outcome.decision.causes
        ],
    }


# --- for people -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Signs:
    good: str
    bad: str
    source: str
    target: str


# A terminal that can't show the first set gets the second, instead of an error in the middle of the output.
_FINE: Final = _Signs("✓", "✗", "←", "→")
_PLAIN: Final = _Signs("+", "!", "<-", "->")


def tell(console: Console, results: Sequence[Result], seconds: float, *, every_story: bool = False) -> None:
    """Print the overview, the stories (those with a remark, or every one), the controls that refused, and the sum."""
    console.width = min(console.width, MAX_WIDTH)
    signs = _PLAIN if console.options.ascii_only else _FINE
    console.print()
    console.print(
        "[bold]Interlock demo.[/] One agent with real tools on loopback, and a scripted model that obeys every order it"
        " reads. Each story is played twice, with the same loop, tools and model; only the guard is new. A refused call"
        " comes back to the model as a result, so it tries what it was told next. Left is what receivers really got."
    )
    console.print(_overview(results, signs))
    for result in results:
        if every_story or result.scenario.remark:
            _story(console, result, signs)
    _controls(console, results)
    _sum(console, results, seconds)


def _overview(results: Sequence[Result], signs: _Signs) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for title in ("Story", "What happens", "Without", "With Interlock"):
        table.add_column(title)
    kinds = (
        (False, "Attacks", "ordered by a page that the agent reads"),
        (True, "Honest work", "to receivers and files that were typed"),
    )
    for honest, kind, what in kinds:
        shown = [one for one in results if one.scenario.honest is honest]
        if not shown:
            continue
        if table.row_count:
            table.add_row()
        table.add_row(Text(kind, "bold", no_wrap=True), Text(what, "dim"))
        for one in shown:
            cells = _honest_cells(one, signs) if honest else _attack_cells(one, signs)
            table.add_row(Text(f" {one.scenario.name}", "cyan", no_wrap=True), one.scenario.title, *cells)
    return table


def _attack_cells(result: Result, signs: _Signs) -> tuple[Text, Text]:
    cells = []
    for run in (result.without, result.guarded):
        if run.leaks:
            cells.append(Text(f"{signs.bad} left by {run.leaks[0].channel}", "bold red"))
        elif run.refused:
            cells.append(Text(f"{signs.good} refused: {run.refused[0].outcome.decision.code}", "green"))
        else:
            cells.append(Text("nothing left", "yellow"))
    return cells[0], cells[1]


def _honest_cells(result: Result, signs: _Signs) -> tuple[Text, Text]:
    cells = []
    for run, text in ((result.without, "done"), (result.guarded, "done, nothing asked")):
        done = all(run.served(owed) for owed in result.scenario.owed) and not run.refused
        cells.append(Text(f"{signs.good} {text}", "green") if done else Text(f"{signs.bad} not done", "bold red"))
    return cells[0], cells[1]


def _story(console: Console, result: Result, signs: _Signs) -> None:
    scenario = result.scenario
    console.rule(Text(f"{scenario.name}: {scenario.title}", "bold cyan"), align="left", style="dim")
    ledger = Table.grid(padding=(0, 2))
    ledger.add_column(style="dim", no_wrap=True)
    ledger.add_column()

    def told(who: str, lines: Iterable[Text]) -> None:
        for number, line in enumerate(lines):
            ledger.add_row("" if number else who, line)

    told("person", map(Text, scenario.person))
    told("page", (_order(order) for page in scenario.pages.values() for order in _ORDERS.findall(page)))
    left = [_CHANNELS[leak.channel].format(leak.destination) for leak in result.without.leaks]
    sign, style, end = (signs.good, "green", ", as asked") if scenario.honest else (signs.bad, "bold red", "")
    told("without", (Text(f"{sign} the secret left {how}{end}", style) for how in left))
    ledger.add_row("with", _decisions(result.guarded, signs))
    if scenario.remark:
        ledger.add_row("note", Text(scenario.remark, "italic"))
    console.print(Padding(ledger, (0, 0, 1, 1)))


def _order(order: str) -> Text:
    text = Text(order, "magenta")
    text.truncate(160, overflow="ellipsis")
    return text


def _decisions(run: Run, signs: _Signs) -> Table:
    """Every call in order. A refusal shows its control, and which call brought each leg."""
    table = Table.grid(padding=(0, 1))
    for justify in ("right", "left", "left", "left"):
        table.add_column(justify=justify)
    shown: list[Text] = []
    for decided in run.decided:
        outcome, targets = decided.outcome, ", ".join(decided.targets)
        number = Text(str(outcome.number), "dim")
        if decided.allowed:
            brought = "".join(f"  +{one}" for one in (*decided.spec.private, *decided.spec.untrusted))
            table.add_row(number, outcome.tool, Text("allow", "green"), Text.assemble(targets, (brought, "yellow")))
            continue
        about = Text.assemble((outcome.decision.code, "bold red"), f"  {signs.target} {targets}")
        table.add_row(number, outcome.tool, Text(outcome.verdict.value, "bold red"), about)
        legs = list(_legs(decided, signs))
        for leg in legs if legs != shown else [Text("for the same reason", "dim")]:
            table.add_row("", "", "", leg)
        shown = legs
    return table


def _legs(decided: Decided, signs: _Signs) -> Iterator[Text]:
    for cause in sorted(decided.outcome.decision.causes, key=lambda one: _LEGS.index(leg_of(one.label))):
        yield _leg(cause.label, _bringer(cause, decided), signs)
    if decided.spec.sends and not decided.spec.opens:
        yield _leg("egress", "this call, to a receiver that nobody vouched for", signs)
    if decided.outcome.decision.code == "control_plane":
        yield _leg("target", "this call, a file that decides what agents may do", signs)


def _leg(label: str, bringer: str, signs: _Signs) -> Text:
    return Text.assemble((f"{label:<15}", "yellow"), (f"{signs.source} {bringer}", "dim"))


def _bringer(cause: Cause, decided: Decided) -> str:
    if cause.source is not None:
        return f"call {cause.source.call}, {cause.source.tool}"
    own = (*decided.spec.private, *decided.spec.opens)
    return "this call itself" if cause.label in own else "a call beside it, in the same turn"


def _controls(console: Console, results: Sequence[Result]) -> None:
    reasons = {
        reason.code: reason
        for one in results
        for decided in one.guarded.refused
        for reason in decided.outcome.decision.reasons[:1]
    }
    if not reasons:
        return
    console.rule(Text("the controls that refused", "bold cyan"), align="left", style="dim")
    table = Table.grid(padding=(0, 2))
    for code, reason in reasons.items():
        table.add_row(Text(code, "bold red", no_wrap=True), reason.for_person)
        table.add_row("", Text(f"The model is told: {reason.for_model}", "dim"))
    console.print(Padding(table, (0, 0, 1, 1)))


def _sum(console: Console, results: Sequence[Result], seconds: float) -> None:
    attacks = [one for one in results if not one.scenario.honest]
    honest = [one for one in results if one.scenario.honest]
    if attacks:
        without, guarded = (sum(map(bool, runs)) for runs in zip(*map(_leaky, attacks), strict=True))
        console.print(
            f"[bold]Attacks:[/] the secret left in {without} of {len(attacks)} without Interlock,"
            f" in {guarded} of {len(attacks)} with it."
        )
    if honest:
        alike = sum(not one.broken for one in honest)
        stopped = sum(len(one.guarded.refused) for one in honest)
        console.print(
            f"[bold]Honest work:[/] {alike} of {len(honest)} done alike in both runs,"
            f" {stopped} calls refused or asked about."
        )
    console.print(f"{seconds:.1f} s; the same as data: interlock demo --json", style="dim")


def _leaky(result: Result) -> tuple[bool, bool]:
    return bool(result.without.leaks), bool(result.guarded.leaks)
