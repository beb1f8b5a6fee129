"""``interlock replay``: what manifest and controls would have said about conversations that were recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from interlock.assembly import Manifest, Parts, read_parts
from interlock.cli.output import console, existing, json_option, print_json
from interlock.model.decisions import Verdict
from interlock.replay import (
    SHAPES,
    Assumptions,
    Line,
    Noticed,
    Totals,
    Transcript,
    changed,
    read_transcript,
    replay,
    side,
)

_COLOURS = {Verdict.ALLOW: "green", Verdict.ASK: "yellow", Verdict.DENY: "red"}
_LONG = 500  # calls; from there on people want to see that something moves

Replayed = list[tuple[Transcript, list[tuple[Line, ...]]]]


@click.command("replay")
@click.argument(
    "transcripts",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="TRANSCRIPT...",
)
@click.option(
    "--config", type=click.Path(path_type=Path), help="The configuration; without it interlock.toml, if it is there."
)
@click.option(
    "--policy",
    "policies",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Other controls than the configuration's.",
)
@click.option("--manifest", type=click.Path(path_type=Path), help="Another manifest than the configuration's.")
@click.option("--shape", type=click.Choice(list(SHAPES)), default=None, help="Of the messages, if it can't be told.")
@click.option("--typed/--untyped", default=True, help="Does text in the user's role count as typed? It does.")
@click.option("--trust-refusals", is_flag=True, help="A result that reads like Interlock's refusal was not run.")
@click.option("--now", type=click.DateTime(), default=None, help="The time at which it is decided, in UTC.")
@click.option("--totals", "only_totals", is_flag=True, help="Print no calls, only sums.")
@json_option
def command(
    transcripts: tuple[Path, ...],
    config: Path | None,
    policies: tuple[Path, ...],
    manifest: Path | None,
    shape: str | None,
    typed: bool,
    trust_refusals: bool,
    now: datetime | None,
    only_totals: bool,
    as_json: bool,
) -> None:
    """Replay recorded conversations: one line per call with its verdict, its code and what brought each leg.

    Reads Anthropic Messages, Chat Completions, Responses and our own messages, as JSON or one message per line.
    Recorded results are used as they are; nothing is executed. With a configuration, --policy and --manifest are the
    other side of a comparison. Exit code 0: replayed; 2: something can't be read.
    """
    configurations, folder = _sides(config, policies, manifest)
    begin = now.replace(tzinfo=UTC) if now is not None else datetime.now(UTC)
    sides = [side(parts, begin, folder) for parts in configurations]
    recordings = [read_transcript(path, shape or "") for path in transcripts]
    assumptions = Assumptions(typed=typed, trust_refusals=trust_refusals)
    noticed, totals = Noticed(), Totals()
    replayed: Replayed = []
    with _progress(sum(one.calls for one in recordings)) as step:
        for recording in recordings:
            done = []
            for lines in replay(recording, sides, assumptions, noticed):
                totals.add(lines)
                done.append(lines)
                step()
            replayed.append((recording, done))
    heads = [_head(one.lock.manifest.digest, one.lock.engine.revision, len(one.lock.manifest)) for one in sides]
    if as_json:
        print_json(_as_json(replayed, totals, noticed, assumptions, heads))
        return
    out = console()
    _show_head(out, assumptions, noticed, heads)
    if not only_totals:
        for recording, done in replayed:
            _show(out, recording, done)
    _show_totals(out, totals, compared=len(sides) > 1)


def _sides(config: Path | None, policies: tuple[Path, ...], manifest: Path | None) -> tuple[list[Parts], Path]:
    """What to replay with: the configuration, and its other side if one is named; or what is named alone."""
    default = Path("interlock.toml")
    if config is None and manifest is not None and not default.is_file():
        return [Parts(Manifest.load(manifest), policies=policies)], manifest.parent
    path = existing(config if config is not None else default)
    base = read_parts(path)
    if not policies and manifest is None:
        return [base], path.parent
    other = base if manifest is None else replace(base, manifest=Manifest.load(manifest))
    return [base, replace(other, policies=policies) if policies else other], path.parent


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """Calls a bar on a terminal, and a line now and then elsewhere; nothing for short runs."""
    err, count = console(stderr=True), 0
    if total < _LONG:
        yield lambda: None
    elif err.is_terminal:
        with Progress(console=err, transient=True) as bar:
            task = bar.add_task("calls", total=total)
            yield lambda: bar.advance(task)
    else:

        def step() -> None:
            nonlocal count
            count += 1
            if count % 1000 == 0:
                err.print(f"interlock: {count} of {total} calls")

        yield step


# --- for people -------------------------------------------------------------------------------------------------------


def _head(manifest: str, revision: str, tools: int) -> dict[str, Any]:
    return {"manifest": manifest, "revision": revision, "tools": tools}


def _show_head(out: Console, assumptions: Assumptions, noticed: Noticed, heads: Sequence[dict[str, Any]]) -> None:
    for name, one in zip(("with", "beside"), heads, strict=False):
        out.print(f"{name} controls {one['revision'][7:19]}, manifest {one['manifest'][7:19]} ({one['tools']} tools)")
    for assumption in _assumed(assumptions, noticed):
        out.print(Text(f"assumed: {assumption}", style="dim"))


def _assumed(assumptions: Assumptions, noticed: Noticed) -> Iterator[str]:
    """What the recording can't tell, and what was made of it."""
    texts = noticed.said - noticed.pasted
    if assumptions.typed:
        yield f"all text in the user's role ({texts}) was typed by the person; --untyped lets it vouch for nothing"
    else:
        yield f"no text in the user's role ({texts}) was typed by the person, so none of it vouches for anything"
    yield "every result is external, and every call was made unless the record says otherwise"
    if noticed.attached:
        yield f"what was attached ({noticed.attached}) is private, and untrusted unless it is an image"
    if noticed.stray:
        yield f"results of no recorded call ({noticed.stray}) hold everything"
    if noticed.refusals and not assumptions.trust_refusals:
        yield f"results that read like Interlock's refusals ({noticed.refusals}) were run; --trust-refusals: not run"
    elif noticed.refusals:
        yield f"results that read like Interlock's refusals ({noticed.refusals}) were not run"


def _show(out: Console, recording: Transcript, done: Sequence[tuple[Line, ...]]) -> None:
    out.print()
    out.print(Text.assemble((recording.path, "bold"), f"  {recording.shape}, {recording.calls} calls"))
    width = min(32, max((len(lines[0].tool) for lines in done), default=0))
    for lines in done:
        out.print(_line(lines[0], width), soft_wrap=True)
        if changed(lines):
            for other in lines[1:]:
                verdict = Text.assemble((f"{other.verdict.value:<6}", _COLOURS[other.verdict]), other.code)
                out.print(Text.assemble(f"{'':>6}{'beside':>{width + 2}}  ", verdict, ("  would change", "bold")))


def _line(line: Line, width: int) -> Text:
    number = f"{line.number:>6}" if line.number else f"{'·':>6}"
    text = Text(f"{number}  {line.tool:<{width}}  ")
    if line.hosted and line.verdict is Verdict.ALLOW:
        text.append(f"{'ran':<6}{'at the provider':<22}", style="dim")
    else:
        text.append(f"{line.verdict.value:<6}", style=_COLOURS[line.verdict])
        text.append(f"{line.code:<22}")
    text.append(_legs(line), style="magenta")
    if line.problem:
        text.append(f"  {line.problem}", style="dim")
    if line.recorded == "not run":
        text.append("  not run in the record", style="dim")
    elif line.made_anyway:
        text.append("  ran at the provider" if line.hosted else "  made anyway: its labels count", style="bold")
    text.rstrip()
    return text


def _legs(line: Line) -> str:
    """For each leg the label that came first, how many more there are, and what brought it."""
    first: dict[str, str] = {}
    more: dict[str, int] = {}
    for one in line.legs:
        leg = one.label.partition(":")[0]
        whence = f"{one.call} {one.by}" if one.call else one.by
        if leg in first:
            more[leg] = more.get(leg, 0) + 1
        else:
            first[leg] = f"{one.label}%s ← {whence}"
    return ", ".join(text % (f" +{more[leg]}" if leg in more else "") for leg, text in first.items())


def _show_totals(out: Console, totals: Totals, *, compared: bool) -> None:
    counts = ", ".join(f"{totals.verdicts[one.value]} {one.value}" for one in Verdict)
    out.print()
    out.print(f"{totals.calls} calls: {counts}; {totals.made_anyway} of the refused were made in the record")
    if totals.hosted:
        out.print(f"{totals.hosted} more were run by the provider, where nothing can be refused")
    tools = Table("tool", *(one.value for one in Verdict), show_edge=False, pad_edge=False)
    for tool, verdicts in sorted(totals.tools.items()):
        tools.add_row(Text(tool), *(str(verdicts[one.value] or "") for one in Verdict))
    controls = Table("control", "decided", "objected too", show_edge=False, pad_edge=False)
    for code, places in sorted(totals.controls.items()):
        controls.add_row(code, str(places["first"] or ""), str(places["objected"] or ""))
    for table in (tools, controls):
        if table.row_count:
            out.print()
            out.print(table)
    if compared:
        out.print()
        out.print(f"{totals.changed} calls would be decided otherwise beside", style="bold")


# --- for programs -----------------------------------------------------------------------------------------------------


def _as_json(
    replayed: Replayed, totals: Totals, noticed: Noticed, assumptions: Assumptions, heads: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "with": heads[0],
        "beside": heads[1] if len(heads) > 1 else None,
        "typed": assumptions.typed,
        "assumed": list(_assumed(assumptions, noticed)),
        "transcripts": [
            {
                "path": recording.path,
                "shape": recording.shape,
                "calls": [_call_as_json(lines) for lines in done],
            }
            for recording, done in replayed
        ],
        "totals": {
            "calls": totals.calls,
            "hosted": totals.hosted,
            "made_anyway": totals.made_anyway,
            "changed": totals.changed if len(heads) > 1 else None,
            "verdicts": {one.value: totals.verdicts[one.value] for one in Verdict},
            "tools": {name: dict(counts) for name, counts in sorted(totals.tools.items())},
            "controls": {
                code: {"decided": places["first"], "objected_too": places["objected"]}
                for code, places in sorted(totals.controls.items())
            },
        },
    }


def _call_as_json(lines: Sequence[Line]) -> dict[str, Any]:
    line = lines[0]
    found: dict[str, Any] = {
        "number": line.number,
        "tool": line.tool,
        "verdict": line.verdict.value,
        "code": line.code,
        "codes": list(line.codes),
        "recorded": line.recorded,
        "made_anyway": line.made_anyway,
        "problem": line.problem,
        "legs": [{"label": one.label, "call": one.call or None, "by": one.by} for one in line.legs],
    }
    if changed(lines):
        found["beside"] = [{"verdict": one.verdict.value, "codes": list(one.codes)} for one in lines[1:]]
    return found
