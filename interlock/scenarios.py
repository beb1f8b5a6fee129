"""Running scenario files: every call really goes through a gate, and each verdict is held against the expected one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from interlock.errors import EngineUnavailable
from interlock.gate.conversation import Conversation
from interlock.gate.guard import Guard
from interlock.model.answers import Answer, judged, parse_answers
from interlock.model.calls import Call
from interlock.model.decisions import ENGINE_ERROR, Decision, Verdict, failure
from interlock.model.markup import read
from interlock.model.results import Outcome, ToolResult
from interlock.model.scenario import CallStep, DocumentStep, Scenario, ScenarioError, Step, Story, parse_scenario
from interlock.ports import Engine


class RecordedFailure(Exception):
    """Stands for the exception that a tool of the story raised."""


@dataclass(frozen=True, slots=True)
class CallReport:
    """One call of a story and what it got.

    Attributes:
        place: where the step stands, ``steps[3]`` or ``steps[3].batch[1]``.
        problem: empty when the call got what it must get.
    """

    place: str
    step: CallStep | DocumentStep
    outcome: Outcome
    problem: str


@dataclass(frozen=True, slots=True)
class StoryReport:
    """One story and all its calls. ``path`` is the file, ``name`` the story in it."""

    path: Path
    name: str
    story: Story
    calls: tuple[CallReport, ...]

    @property
    def passed(self) -> bool:
        return not any(report.problem for report in self.calls)

    @property
    def problems(self) -> list[str]:
        return [f"{self.path}: {self.name}: {one.place}: {one.problem}" for one in self.calls if one.problem]


def load_scenario(path: str | os.PathLike[str]) -> Scenario:
    """Read one scenario file.

    Raises:
        ScenarioError: it can't be read or is wrong.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{file}: can't be read: {error}") from None
    return parse_scenario(read(text, "toml" if file.suffix == ".toml" else "yaml", str(file), ScenarioError), str(file))


def find_scenarios(path: str | os.PathLike[str]) -> list[Path]:
    """The scenario file, or all below a directory, sorted."""
    root = Path(path)
    if root.is_file():
        return [root]
    return sorted(one for one in root.rglob("*") if one.suffix in (".yaml", ".yml") and one.is_file())


def play(guard: Guard, conversation: Conversation, story: Story) -> Iterator[tuple[str, CallStep, Outcome]]:
    """Tell a story to a guard; gives each call with its place and outcome. What is asked of the engine alone is left
    out: no guard sees it, see :func:`asked`."""
    for index, step in enumerate(story.steps):
        if step.asked is None:
            yield from _play(guard, conversation, step, f"steps[{index}]")


def _play(guard: Guard, conversation: Conversation, step: Step, place: str) -> Iterator[tuple[str, CallStep, Outcome]]:
    if step.user is not None:
        conversation.say(step.user)
    elif step.pasted is not None:
        conversation.say(step.pasted, pasted=True)
    elif step.admit is not None:
        guard.admit(step.admit, labels=step.labels, source=step.source)
    calls = [
        Call(one.call, one.arguments, id=f"{place}.{number}", server=one.server)
        for number, one in enumerate(step.calls)
    ]
    if not calls:
        return
    ticket = guard.propose(*calls)
    for number, (one, call_id) in enumerate(zip(step.calls, ticket.outcomes, strict=True)):
        outcome = ticket.outcomes[call_id]
        if outcome.pending:
            result = RecordedFailure() if one.fails else ToolResult(one.result, external=one.external)
            outcome = guard.observe(ticket, call_id, result)
        yield (f"{place}.batch[{number}]" if step.batch is not None else place), one, outcome


def judge(step: CallStep, outcome: Outcome) -> str:
    """What is wrong with an outcome, or nothing."""
    decision = outcome.decision
    if decision.verdict.value != step.expect:
        return f"{step.call}: expected {step.expect}, got {decision.verdict.value} ({', '.join(decision.codes) or '-'})"
    if step.code and decision.code != step.code:
        return f"{step.call}: expected code {step.code}, got {', '.join(decision.codes) or 'none'}"
    if step.causes is not None:
        got = sorted(cause.label for cause in decision.causes)
        if got != sorted(step.causes):
            return f"{step.call}: expected causes {', '.join(sorted(step.causes))}, got {', '.join(got) or 'none'}"
    return ""


def asked(engine: Engine, step: DocumentStep) -> tuple[Decision, str]:
    """Ask an engine a document, without a gate. Gives the decision, and what is wrong with it, or nothing."""
    try:
        answers = parse_answers(engine.evaluate(step.document.encode()), engine.controls)
    except EngineUnavailable as error:
        decision = Decision(Verdict.DENY, (failure(ENGINE_ERROR, str(error)),), engine=engine.name)
        said: dict[str, object] = {}
    else:
        decision = Decision(*judged(answers, engine.controls), engine=engine.name)
        said = {code: _written(one) for code, one in answers.items()}
    if step.answers is not None and step.answers != said:
        wrong = sorted(code for code in {*step.answers, *said} if step.answers.get(code) != said.get(code))
        return decision, f"document: {', '.join(wrong)} answered otherwise"
    if decision.verdict.value != step.expect or (step.code and decision.code != step.code):
        wanted = f"{step.expect} {step.code}".strip()
        return decision, f"document: expected {wanted}, got {decision.verdict.value} {decision.code}"
    return decision, ""


def _written(answer: Answer) -> dict[str, object]:
    remedies = list(answer.remedies)
    return {"verdict": answer.verdict.value, **({"remedies": remedies} if remedies else {})}


class Guards(Protocol):
    """What a scenario needs of an Interlock."""

    @property
    def engine(self) -> Engine: ...

    def guard(self, conversation: Conversation) -> Guard: ...


def run_file(path: str | os.PathLike[str], interlock_for: Callable[[Scenario, Path], Guards]) -> list[StoryReport]:
    """Tell every story of a file, each in a conversation of its own.

    Args:
        interlock_for: builds the Interlock of a scenario; ``interlock.assembly.interlock_for`` for the shipped one.

    Raises:
        ScenarioError: the file is wrong.
    """
    file = Path(path)
    scenario = load_scenario(file)
    lock = interlock_for(scenario, file.parent)
    reports = []
    for name, story in scenario.stories.items():
        conversation = Conversation.new()
        calls = play(lock.guard(conversation), conversation, story)
        told = [CallReport(place, step, outcome, judge(step, outcome)) for place, step, outcome in calls]
        for index, step in enumerate(story.steps):
            if step.asked is not None:
                decision, problem = asked(lock.engine, step.asked)
                told.append(CallReport(f"steps[{index}]", step.asked, Outcome("document", "", decision), problem))
        reports.append(StoryReport(file, name, story, tuple(told)))
    return reports


class RecordingEngine:
    """An engine that keeps every document it was asked, so that decisions can be made again from them (T11)."""

    def __init__(self, engine: Engine) -> None:
        self.inner = engine
        self.name = engine.name
        self.revision = engine.revision
        self.controls = engine.controls
        self.looks_at = None  # every document is to be seen
        self.documents: list[tuple[bytes, str | bytes]] = []

    def evaluate(self, document: bytes) -> str | bytes:
        """See :meth:`interlock.ports.Engine.evaluate`."""
        answer = self.inner.evaluate(document)
        self.documents.append((document, answer))
        return answer
