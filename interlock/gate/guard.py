"""The guard: one conversation's side of an Interlock. What developers call in their agent loop."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Generator, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Literal, Self

from interlock.errors import Bug, Refused
from interlock.gate import approval_steps, asking_steps, remedy_steps, steps
from interlock.gate.artifact_steps import carried_by
from interlock.gate.conversation import Conversation, Ledger
from interlock.gate.drivers import Run, World, adrive, drive, spread
from interlock.gate.effects import Effect
from interlock.gate.outbox import Outbox
from interlock.gate.steps import Rules
from interlock.gate.tickets import late, taken_up
from interlock.model import render
from interlock.model.artifacts import KINDS
from interlock.model.calls import Call
from interlock.model.carried import Carried
from interlock.model.decisions import Decision, Verdict
from interlock.model.digests import content_digest, voice_digest
from interlock.model.entries import Admitted, Ruling
from interlock.model.grants import Held
from interlock.model.labels import label
from interlock.model.marks import heard_in
from interlock.model.messages import Role, Text
from interlock.model.origins import parties
from interlock.model.question import Question
from interlock.model.remedies import MAX_TEXTS
from interlock.model.results import Outcome, Ticket, ToolResult, printable
from interlock.model.standing import Standing
from interlock.ports import Store

# The guards around this code, innermost last. A tuple in a context variable: each task and thread has its own.
_AROUND: ContextVar[tuple[Guard, ...]] = ContextVar("interlock_guards", default=())

Noted = Callable[[Outcome], None]

MAX_LOOKED_AT: Final = 64
MAX_TYPED: Final = 16_384


@dataclass(frozen=True, slots=True)
class Active:
    """What is in force: the ports, and the rules that belong to their engine. Replaced whole by a reload."""

    world: World
    rules: Rules


@dataclass(frozen=True, slots=True)
class Shown:
    """What may be shown of a text: all of it, or what is left without anything that leads somewhere."""

    text: str
    outcome: Outcome

    @property
    def whole(self) -> bool:
        """May it be shown as it was written?"""
        return bool(self.outcome.executed)


class Guard:
    """Decides, runs and records the tool calls of one conversation. Safe to share between threads.

    Two primitives, :meth:`propose` and :meth:`observe`; the rest is sugar on them. No method raises because a call was
    denied or a tool failed: both are outcomes.
    """

    def __init__(self, conversation: Conversation, current: Callable[[], Active], decided: Noted) -> None:
        """``current`` gives what is in force now; it is read once per step, so a reload never splits a decision."""
        now = current()
        journal = now.world.journal
        # A store holds many namespaces; a conversation only ever sees its own.
        conversation.bind(journal.within(conversation.namespace) if isinstance(journal, Store) else journal)
        self.conversation = conversation
        self._ledger = Ledger(conversation)
        self._seen = (now, replace(now, world=now.world.over(self._ledger, conversation.pages)))
        self._source = current
        self._decided = decided

    def _current(self) -> Active:
        """What is in force now, with this conversation's own view of its journal."""
        now, ours = self._source(), self._seen
        if ours[0] is not now:  # reloaded; one tuple, so that no thread sees half of it
            self._seen = ours = (now, replace(now, world=now.world.over(self._ledger, self.conversation.pages)))
        return ours[1]

    # --- primitives -------------------------------------------------------------------------------------------------

    def propose(self, *calls: Call) -> Ticket:
        """Decide one or more calls of one assistant turn together, journal them and put the allowed ones in flight.

        Returns:
            A ticket with one outcome per call: refused calls have their result already, allowed ones are pending.
        """
        now = self._current()
        ticket = drive(steps.propose(self.conversation.id, calls, now.rules), now.world)
        return self._noted(drive(self._remedied(ticket, calls, now), now.world))

    async def apropose(self, *calls: Call) -> Ticket:
        """Like :meth:`propose`, for ports that must be awaited."""
        now = self._current()
        ticket = await adrive(steps.propose(self.conversation.id, calls, now.rules), now.world)
        return self._noted(await adrive(self._remedied(ticket, calls, now), now.world))

    def propose_and_ask(self, *calls: Call) -> Ticket:
        """Like :meth:`propose`; a person is asked at once about the calls that need one, before any of them runs.

        Returns:
            A ticket in which nothing waits for a person: what was approved is allowed, everything else is refused.
        """
        now = self._current()
        ticket = drive(asking_steps.propose_and_ask(self.conversation.id, calls, now.rules), now.world)
        return self._noted(drive(self._remedied(ticket, calls, now), now.world))

    async def apropose_and_ask(self, *calls: Call) -> Ticket:
        """Like :meth:`propose_and_ask`; whoever waits for a person does not hold up the event loop."""
        now = self._current()
        steps_to_take = asking_steps.propose_and_ask(self.conversation.id, calls, now.rules)
        ticket = await adrive(steps_to_take, now.world)
        return self._noted(await adrive(self._remedied(ticket, calls, now), now.world))

    def answer(self, question: str, verdict: Literal["approve", "refuse"], *, by: str = "") -> Held:
        """Journal a person's answer to a question of this conversation, for hosts that pause while somebody decides.

        After a yes, propose the same call again: it may run once, if nothing has changed.

        Args:
            question: its id, as in ``ticket.questions``.
            by: who answered, for the record.

        Raises:
            Refused: the question was answered already, or is over; says why.
            JournalUnavailable: not on record, so nothing was answered.
        """
        if verdict not in ("approve", "refuse") or type(question) is not str or type(by) is not str:
            raise Refused("a question is answered with approve or refuse, and by whom is a text")
        return drive(
            approval_steps.answer(self.conversation.id, question, verdict, printable(by)), self._current().world
        )

    def stand(self, question: Question, *, seconds: float, by: str = "") -> Standing:
        """Let the tool of an approved question send to its one receiver without asking, for so many seconds.

        It ends by itself with the next untrusted thing that is read, and never answers what the trifecta objects to.

        Args:
            question: as it was shown; it must have been approved in this conversation.

        Raises:
            Refused: nothing was approved by it; says why.
            JournalUnavailable: not on record.
        """
        steps_to_take = approval_steps.stand(self.conversation.id, question, seconds, printable(by))
        return drive(steps_to_take, self._current().world)

    def outbox(self) -> Outbox:
        """What this conversation has drafted; see :meth:`interlock.Interlock.outbox`. For conversations that are kept
        in a session this is the only way: their journal is there.
        """

        def current() -> tuple[World, Rules]:
            now = self._current()
            return now.world, now.rules

        return Outbox(current, self.conversation.namespace, self.conversation.id)

    def ready(self, ticket: Ticket, call_id: str) -> Outcome | None:
        """Right before an allowed call runs: may it still? ``call`` and ``batch`` ask by themselves.

        Returns:
            None if it may; else its outcome, because a file that it names was changed after a person had approved it.
        """
        allowed = self._pending(ticket, call_id)
        return drive(steps.still_approved(self.conversation.id, allowed), self._current().world)

    def observe(self, ticket: Ticket, call_id: str, result: ToolResult | BaseException | str) -> Outcome:
        """Report what came of an allowed call: joins its labels and returns what the model may see.

        Raises:
            Refused: the ticket belongs to another conversation, or allowed no call of this id.
        """
        allowed = self._pending(ticket, call_id)
        return drive(steps.observe(self.conversation.id, allowed, _result(result)), self._current().world)

    async def aobserve(self, ticket: Ticket, call_id: str, result: ToolResult | BaseException | str) -> Outcome:
        """Like :meth:`observe`, for ports that must be awaited."""
        allowed = self._pending(ticket, call_id)
        return await adrive(steps.observe(self.conversation.id, allowed, _result(result)), self._current().world)

    def take_up(self, call: Call, decided: Ruling | int = 0) -> Ticket:
        """The ticket of a call that was decided elsewhere, for a host whose processes come and go: one proposes, and
        another one observes. Nothing is decided or recorded here.

        Args:
            call: as it was proposed, or as it ran; its result is observed under its id.
            decided: what is on record of it; the call's digest must be the one there. Of hosts that run calls
                whatever we say, the number of the decision alone, or 0 if there was none: then the labels of another
                call than the one decided join all the same, and what it wrote is labelled.

        Raises:
            Refused: it was not allowed, or is another call; or it is malformed.
            JournalUnavailable, MemoryUnavailable: what it wrote could not be labelled.
        """
        now = self._current()
        if isinstance(decided, int):
            allowed = drive(late(self.conversation.id, call, decided, now.rules), now.world)
        else:
            allowed = drive(taken_up(call, decided, now.rules), now.world)
        pending = Outcome(
            str(allowed.call.tool), allowed.call.id, allowed.decision, allowed.number, pending=True, is_error=False
        )
        return Ticket(self.conversation.id, {allowed.call.id: pending}, {allowed.call.id: allowed})

    def render(self, text: str) -> Shown:
        """Ask before the assistant's text is shown: what it would load, or offer to click, are destinations of a send.

        Decided and journalled like any call, as the tool ``interlock/render``; the operator may declare that tool
        otherwise. Streams must wait for it: half of a picture's address is an address.

        Raises:
            Refused: no text.
        """
        if type(text) is not str:
            raise Refused("render takes the text that would be shown")
        now = self._current()
        rules = now.rules
        if render.RENDER not in rules.manifest.specs:
            rules = replace(rules, manifest=rules.manifest.joined([render.spec()]))
        call = Call(render.RENDER.name, render.arguments(text), "render", render.RENDER.server)
        ticket = self._noted(drive(steps.propose(self.conversation.id, (call,), rules), now.world))
        (outcome,) = ticket.outcomes.values()
        if not ticket.allowed:
            return Shown(render.inert(text), outcome)
        done = self.observe(ticket, outcome.call_id, ToolResult("", external=False))
        return Shown(text if done.error is None else render.inert(text), done)

    def preview(self, call: Call, *siblings: Call) -> Decision:
        """What would be decided now. A dry run: nothing is recorded or put in flight.

        A refusal says in ``remedies`` what would make the call allowed; each was put to the policy. They hold values,
        for people: hand ``for_model`` of an outcome to the model, not these.
        """
        now, calls = self._current(), (call, *siblings)
        decision = drive(steps.preview(self.conversation.id, calls, now.rules), now.world)[0]
        texts = () if decision.verdict is Verdict.ALLOW else self._user_texts()
        looking = remedy_steps.remedies_of(self.conversation.id, decision, calls, now.rules, texts)
        return replace(decision, remedies=drive(looking, now.world)[0])

    def admit(self, text: str, *, labels: Iterable[str], source: str) -> str:
        """Let content enter that no tool brought. Its labels are on record before the text is returned.

        Args:
            labels: at least one; content without a label has no business here.
            source: where it came from, for people; a URL or mail address is also remembered as a party that spoke.

        Raises:
            Refused: no label, or something that is not a label.
            JournalUnavailable: not on record, so the text must not be shown to the model.
        """
        if type(text) is not str or type(source) is not str:
            raise Refused("admit takes text and the name of its source")
        parsed = tuple(sorted({label(one) for one in labels}))
        if not parsed:
            raise Refused("admit needs at least one label, such as untrusted:memory; content never enters unlabelled")
        now = steps.stamp(self._current().world.clock.now())
        who, unheard = parties(source)
        voices = tuple(sorted(map(voice_digest, who)))
        note = printable(source)
        entry = Admitted(now, note, parsed, content_digest(text), len(text), voices, unheard, words=heard_in(text))
        self.conversation.record(entry)
        return text

    def admit_artifact(self, text: str, kind: str, name: str, *, labels: Iterable[str] = ()) -> str:
        """Let the content of an artifact enter that no tool read, such as a file that the host loads at start.

        What it carries is on record before the text is returned; see :meth:`carried_by`.

        Args:
            kind: ``path``, ``url``, ``table`` or ``key``.
            labels: that it has besides those on its record.

        Raises:
            Refused: not a kind of artifact, or not a label.
            MemoryUnavailable, JournalUnavailable: not on record, so the text must not be shown to the model.
        """
        if type(text) is not str:
            raise Refused("admit_artifact takes text, the kind and the name of its artifact")
        more = [label(one) for one in labels]
        self.conversation.take_in(self.carried_by(kind, name).under(*more), f"{kind} {printable(name)}", text)
        return text

    def carried_by(self, kind: str, name: str) -> Carried:
        """What is on record of an artifact. ``carried_by(…).notices(name)`` says so in words.

        Raises:
            Refused: not a kind of artifact.
            MemoryUnavailable: it could not be read.
        """
        if kind not in KINDS or type(name) is not str:
            raise Refused(f"{kind!r} is not a kind of artifact; use one of {', '.join(KINDS)}")
        return drive(carried_by(kind, name, self.conversation.namespace), self._current().world)

    # --- sugar ------------------------------------------------------------------------------------------------------

    def call(
        self, name: str, arguments: Any = None, *, run: Callable[..., Any], id: str = "", server: str = ""
    ) -> Outcome:
        """Propose one call, run it if it is allowed as ``run(**arguments)``, and observe the result."""
        (outcome,) = self.batch([Call(name, {} if arguments is None else arguments, id, server)], run=spread(run))
        return outcome

    async def acall(
        self, name: str, arguments: Any = None, *, run: Callable[..., Any], id: str = "", server: str = ""
    ) -> Outcome:
        """Like :meth:`call`. A synchronous ``run`` is executed in a worker thread."""
        one = Call(name, {} if arguments is None else arguments, id, server)
        (outcome,) = await self.abatch([one], run=spread(run))
        return outcome

    def batch(self, calls: Sequence[Call], *, run: Run, workers: int = 1) -> list[Outcome]:
        """Decide the parallel calls of one turn together, then run the allowed ones as ``run(name, arguments)``.

        Args:
            workers: how many may run at once; with 1 they run in order. The decisions do not depend on it (T15).

        Returns:
            One outcome per call, in the order of ``calls``.
        """
        ticket = self.propose_and_ask(*calls)
        if workers <= 1 or len(ticket.allowed) < 2:
            return [self._run(ticket, call_id, run) for call_id in ticket.outcomes]
        from concurrent.futures import ThreadPoolExecutor  # loaded late: few hosts opt into threads

        with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="interlock-tool") as pool:
            futures = [
                pool.submit(contextvars.copy_context().run, self._run, ticket, call_id, run)
                for call_id in ticket.outcomes
            ]
            return [future.result() for future in futures]

    async def abatch(self, calls: Sequence[Call], *, run: Run, workers: int = 1) -> list[Outcome]:
        """Like :meth:`batch`, in the running event loop; ``run`` may be a coroutine function."""
        ticket = await self.apropose_and_ask(*calls)
        if workers <= 1 or len(ticket.allowed) < 2:
            return [await self._arun(ticket, call_id, run) for call_id in ticket.outcomes]
        import asyncio  # loaded already: this runs in its loop

        room = asyncio.Semaphore(workers)

        async def one(call_id: str) -> Outcome:
            async with room:
                return await self._arun(ticket, call_id, run)

        tasks = [asyncio.ensure_future(one(call_id)) for call_id in ticket.outcomes]
        try:
            return list(await asyncio.gather(*tasks))
        except BaseException:
            # Not a task group: a `Bug` must come out as itself, not inside a group that `except Exception` takes.
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    def _run(self, ticket: Ticket, call_id: str, run: Run) -> Outcome:
        allowed = ticket.allowed.get(call_id)
        if allowed is None:
            return ticket.outcomes[call_id]
        return drive(steps.run_allowed(self.conversation.id, allowed), self._current().world, run)

    async def _arun(self, ticket: Ticket, call_id: str, run: Run) -> Outcome:
        allowed = ticket.allowed.get(call_id)
        if allowed is None:
            return ticket.outcomes[call_id]
        return await adrive(steps.run_allowed(self.conversation.id, allowed), self._current().world, run)

    def _remedied(self, ticket: Ticket, calls: Sequence[Call], now: Active) -> Generator[Effect, Any, Ticket]:
        texts = () if len(ticket.allowed) == len(ticket.outcomes) else self._user_texts()
        return remedy_steps.remedied(self.conversation.id, ticket, calls, now.rules, texts)

    def _user_texts(self) -> tuple[str, ...]:
        """A few of the texts that stand where the person types, newest first. Whether they did is in the journal."""
        found = list[str]()
        for message in reversed(self.conversation.messages[-MAX_LOOKED_AT:]):
            if message.role in (Role.USER, Role.TOOL):
                texts = [one.text for one in message.blocks if isinstance(one, Text) and len(one.text) <= MAX_TYPED]
                found += reversed(texts)
        return tuple(found[:MAX_TEXTS])

    def _noted(self, ticket: Ticket) -> Ticket:
        for outcome in ticket.outcomes.values():
            self._decided(outcome)
        return ticket

    def _pending(self, ticket: Ticket, call_id: str) -> Any:
        if ticket.conversation != self.conversation.id:
            raise Refused("this ticket belongs to another conversation")
        allowed = ticket.allowed.get(call_id)
        if allowed is None:
            raise Refused(f"the ticket allowed no call {call_id!r}; only allowed calls have a result to observe")
        return allowed

    # --- decorated tools --------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Inside ``with guard:`` functions wrapped by ``@tool`` may be called; each call goes through this guard."""
        _AROUND.set((*_AROUND.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        around = _AROUND.get()
        if not around or around[-1] is not self:
            raise Bug("a guard was left in another order than entered")
        _AROUND.set(around[:-1])


def active() -> Guard | None:
    """The guard of the innermost ``with guard:`` around this code, or None."""
    around = _AROUND.get()
    return around[-1] if around else None


def _result(result: ToolResult | BaseException | str) -> ToolResult | BaseException:
    # By type, not by isinstance: an object that fights back answers isinstance with whatever it likes. What is none of
    # these is withheld by the steps.
    return ToolResult(result) if issubclass(type(result), str) else result  # type: ignore[return-value]  # see above
