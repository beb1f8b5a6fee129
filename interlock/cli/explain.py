"""``interlock explain``: why a call was decided as it was, in words and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.text import Text
from rich.tree import Tree

from interlock.assembly import Interlock, interlock_recording
from interlock.cli.explain_journal import explain_journal
from interlock.cli.explain_values import Texts, named_values, story_texts, values_text
from interlock.cli.output import console, json_option, print_json
from interlock.errors import Misconfigured
from interlock.gate.conversation import Conversation
from interlock.model.canonical import unpack
from interlock.model.decisions import Decision, Reason, Verdict
from interlock.model.results import Outcome
from interlock.model.scenario import CallStep
from interlock.policy.bundle import Bundle
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.proofs import Condition, Proofs, proofs_of
from interlock.scenarios import RecordingEngine, load_scenario, play

_COLOURS = {Verdict.ALLOW: "green", Verdict.ASK: "yellow", Verdict.DENY: "red"}
# What only the operator can do, and nobody can try out.
_OPERATORS = {"declare_tool": "the operator could declare the tool in the manifest"}


@click.command()
@click.argument("scenario", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--journal", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="An exported journal.")
@click.option("--story", help="Name of the story; without it the first one.")
@click.option("--call", "wanted", type=int, help="Number of the call, from 1; without it the strictest one.")
@json_option
def explain(scenario: Path | None, journal: Path | None, story: str | None, wanted: int | None, as_json: bool) -> None:
    """Explain a call of a SCENARIO file, or of a journal that ``MemoryJournal.save`` wrote: which calls brought which
    legs, which controls objected, which proof was missing, and what would lift it.

    A journal holds digests of documents, not documents, so it can't say which proof was missing.
    """
    if (scenario is None) == (journal is None):
        raise Misconfigured("name a scenario file, or a journal with --journal")
    if journal is not None:
        explain_journal(journal, wanted, as_json)
        return
    assert scenario is not None
    file = load_scenario(scenario)
    name = story if story is not None else next(iter(file.stories))
    if name not in file.stories:
        raise Misconfigured(f"{scenario}: no story {name!r}; there is {', '.join(file.stories)}")
    lock, recording = interlock_recording(file, scenario.parent, RecordingEngine)
    conversation = Conversation.new()
    played = list(play(lock.guard(conversation), conversation, file.stories[name]))
    if not played:
        raise Misconfigured(f"{scenario}: story {name!r} has no call")
    number = wanted if wanted is not None else _strictest(played)
    if not 1 <= number <= len(played):
        raise Misconfigured(f"{scenario}: story {name!r} has {len(played)} calls; there is no call {number}")
    place, step, outcome = played[number - 1]
    document = next((one for one, _ in recording.documents if _digest_of(one) == outcome.decision.document), None)
    judged = _judged(lock, outcome.decision, document)
    texts = story_texts(file.stories[name], played, number - 1)
    if as_json:
        print_json(_as_json(place, step, outcome, judged, document, texts))
        return
    out = console()
    out.print(_path(played, number))
    out.print(_objections(outcome.decision, judged))
    out.print(_values(document, texts))


Played = list[tuple[str, CallStep, Outcome]]


def _digest_of(document: bytes) -> str:
    from interlock.model.digests import digest

    return digest("document", document)


def _strictest(played: Played) -> int:
    """Number of the first call with the strictest verdict."""
    strict = [outcome.verdict.strictness for _, _, outcome in played]
    return strict.index(max(strict)) + 1


def _judged(lock: Interlock, decision: Decision, document: bytes | None) -> list[tuple[Reason, Proofs | None]]:
    bundle = _bundle(lock)
    found: list[tuple[Reason, Proofs | None]] = []
    for reason in decision.reasons:
        known = document is not None and bundle is not None and reason.code in bundle.controls
        found.append((reason, proofs_of(bundle, reason.code, document) if known and bundle and document else None))
    return found


def _bundle(lock: Interlock) -> Bundle | None:
    engine: Any = lock.engine
    inner = getattr(engine, "inner", engine)
    return inner.bundle if isinstance(inner, EmbeddedEngine) else None


def _path(played: Played, number: int) -> RenderableType:
    """The calls up to the explained one, each with the legs that it brought, and the arrows to the decision."""
    _, step, outcome = played[number - 1]
    by_call: dict[int, list[str]] = {}
    here: list[str] = []
    for cause in outcome.decision.causes:
        if cause.source is None:
            here.append(cause.label)
        else:
            by_call.setdefault(cause.source.call, []).append(cause.label)
    tree = Tree(Text("the conversation", style="bold"), guide_style="dim")
    for label in by_call.get(0, []):
        tree.add(Text.assemble("before any call  ", (f"+{label}", "magenta")))
    for _, earlier, past in played[: number - 1]:
        style = _COLOURS[past.verdict]
        line = Text.assemble(f"call {past.number}  {earlier.call}  ", (past.verdict.value, style))
        for label in by_call.get(past.number, []):
            line.append(f"  +{label}", style="magenta")
        tree.add(line)
    colour = _COLOURS[outcome.verdict]
    last = tree.add(
        Text.assemble(
            (f"call {outcome.number}  {step.call}  ", "bold"), (outcome.verdict.value.upper(), f"bold {colour}")
        )
    )
    for label in here:
        last.add(Text.assemble("would bring  ", (f"+{label}", "magenta"), "  by itself or by a call beside it"))
    return tree


def _objections(decision: Decision, judged: list[tuple[Reason, Proofs | None]]) -> RenderableType:
    if not judged:
        return Text("Every control was satisfied.", style="green")
    panels = []
    for reason, proofs in judged:
        lines: list[RenderableType] = [Text(reason.for_person)]
        if proofs is not None:
            lines.append(Text("It would be lifted by any one of:", style="bold"))
            for proof in proofs.proofs:
                lines.append(_proof(proofs.path, proof.line, proof.conditions))
        lines += [Text(_OPERATORS[one], style="italic") for one in reason.remedies if one in _OPERATORS]
        colour = _COLOURS[reason.verdict]
        title = f"[{colour}]{reason.verdict.value}[/{colour}] {escape(reason.code)}"
        panels.append(Panel(Group(*lines), title=title, title_align="left", border_style="dim"))
    end = "A person could approve this call." if decision.approvable else "No approval can lift a denial."
    return Group(*panels, Text(end), _remedies(decision))


def _remedies(decision: Decision) -> RenderableType:
    """What would make it allowed; the policy was asked about each. Values are shown: this is for people."""
    if decision.verdict is Verdict.ALLOW:
        return Text("")
    if not decision.remedies:
        return Text("No change that the controls name would make it allowed.", style="bold")
    lines = [Text("It would be allowed with any one of:", style="bold")]
    lines += [Text(f"  {one.name}: {one.for_person}") for one in decision.remedies]
    return Group(*lines)


def _proof(path: str, line: int, conditions: tuple[Condition, ...]) -> RenderableType:
    text = Text()
    for place, condition in enumerate(conditions):
        mark, style = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}[condition.holds]
        text.append("\n" if place else "")
        text.append(f"  {mark} ", style=style)
        text.append(condition.text)
        if condition.found and condition.holds is not True:
            text.append(f"   {condition.found}", style="dim")
        if not place:
            text.append(f"   {path.rpartition('/')[2]}:{line}", style="dim")
    return text


def _values(document: bytes | None, texts: Texts) -> RenderableType:
    if document is None:
        return Text("No document was asked: the call was refused before any control.", style="dim")
    return values_text(unpack(document), texts)


def _as_json(
    place: str,
    step: CallStep,
    outcome: Outcome,
    judged: list[tuple[Reason, Proofs | None]],
    document: bytes | None,
    texts: Texts,
) -> dict[str, Any]:
    return {
        "place": place,
        "tool": step.call,
        "verdict": outcome.verdict.value,
        "causes": [
            {
                "label": cause.label,
                "call": cause.source.call if cause.source else None,
                "tool": cause.source.tool if cause.source else None,
                "content": cause.source.digest if cause.source else None,
            }
            for cause in outcome.decision.causes
        ],
        "objections": [
            {
                "code": reason.code,
                "verdict": reason.verdict.value,
                "says": reason.for_person,
                "names": list(reason.remedies),
                "proofs": [
                    {
                        "line": proof.line,
                        "holds": proof.holds,
                        "conditions": [[one.text, one.holds, one.found] for one in proof.conditions],
                    }
                    for proof in (proofs.proofs if proofs is not None else ())
                ],
            }
            for reason, proofs in judged
        ],
        "remedies": [
            {
                "name": one.name,
                "says": one.for_person,
                "typed": one.typed,
                "replaced": dict(one.replaced),
                "dropped": list(one.dropped),
            }
            for one in outcome.decision.remedies
        ],
        "values": list(named_values(unpack(document), texts)) if document is not None else [],
    }
