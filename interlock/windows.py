"""What a model is shown of a long conversation: a summary of the first part and the messages after it (T12, T17).

Nothing is deleted or rewritten. When too much of the conversation is in no summary, no model is called before one is
made; a given summariser makes them by itself, on the budget of the run. Its text is a stranger's as soon as anything
was that it covers, and it speaks for nobody.
"""

from __future__ import annotations

import contextvars
import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from interlock.errors import Bug, InterlockError, MemoryUnavailable, Refused, SummaryRequired
from interlock.gate.conversation import Conversation, SystemClock
from interlock.gate.marks import mark_for
from interlock.gate.steps import stamp
from interlock.model.digests import Digest
from interlock.model.entries import Summarised
from interlock.model.messages import Message, Role
from interlock.model.quoting import as_result, enclosed
from interlock.model.summaries import (
    INSTRUCTIONS,
    StoredSummary,
    SummaryRequest,
    checked_summary,
    in_force,
    is_of,
    labels_of,
    rendered,
    spoken,
    tail_of,
)
from interlock.model.transcript import Cover
from interlock.model.windows import Count, Plan, WindowLimits, estimated_tokens, plan
from interlock.ports import Clock, Summaries
from interlock.stores.memory_facts import MemorySummaries

Summarise = Callable[[SummaryRequest], str | Awaitable[str]]
TOOL: Final = "earlier_messages"
_LEAD: Final = "(The first {covered} messages of this conversation are summarised in the result that follows.)"
_POLL: Final = 0.05


@dataclass(slots=True)
class RunBudget:
    """What one run may spend on summaries. Give the same one to every call of the run.

    Attributes:
        passes: summaries that may still be made.
        seconds: from now until no summary is waited for any more.
        cancelled: asked before and while a summary is made.
    """

    passes: int = 4
    seconds: float = 60.0
    cancelled: Callable[[], bool] = lambda: False
    _ends: float = field(init=False, default=0.0)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._ends = time.monotonic() + self.seconds

    def take(self) -> bool:
        """Spend one pass. False: none is left. Calls of one run may come from several threads."""
        with self._lock:
            if not self.left:
                return False
            self.passes -= 1
            return True

    @property
    def over(self) -> bool:
        """Is no summary waited for any more? A pass that was spent already may still be."""
        return self.cancelled() or not time.monotonic() < self._ends

    @property
    def left(self) -> float:
        """Seconds; 0 when nothing may be spent any more."""
        return max(0.0, self._ends - time.monotonic()) if self.passes > 0 and not self.cancelled() else 0.0


@dataclass(frozen=True, slots=True)
class _View:
    """The messages as they stood at one moment, with what covers them and the summary that is in force for them."""

    messages: tuple[Message, ...]
    covers: tuple[Cover, ...]
    summary: StoredSummary | None


@dataclass(frozen=True, slots=True)
class _Pass:
    """One summary that is to be made."""

    messages: tuple[Message, ...]
    previous: StoredSummary | None
    covers: tuple[Cover, ...]
    prefix: tuple[Message, ...]
    tail: tuple[Digest, ...]
    covered: int
    anew: bool


class ContextWindow:
    """The context of one conversation."""

    def __init__(
        self,
        conversation: Conversation,
        *,
        limits: WindowLimits | None = None,
        summarise: Summarise | None = None,
        summaries: Summaries | None = None,
        earlier: int = 0,
        count: Count = estimated_tokens,
        clock: Clock | None = None,
    ) -> None:
        """
        Args:
            summarise: makes a summary, synchronously or not; without it :class:`SummaryRequired` is all that happens.
            summaries: where their texts are kept; by default with this object.
            earlier: messages of the conversation that were not loaded (``StoredConversation.earlier``).
            count: tokens of a list of messages.
        """
        self.conversation = conversation
        self.limits = limits or WindowLimits()
        self.failure: BaseException | None = None
        self._summarise = summarise
        self._summaries = summaries or MemorySummaries()
        self._earlier = earlier
        self._count = count
        self._clock = clock or SystemClock()

    # --- what there is ----------------------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """How the conversation would be shown now; places count from its first loaded message.

        Raises:
            Refused: messages that are in no summary were not loaded.
            MemoryUnavailable: the summaries could not be read.
        """
        return self._planned()[0]

    def summary(self) -> StoredSummary | None:
        """The summary that is in force for these messages, or None. Raises MemoryUnavailable."""
        transcript = self.conversation.transcript
        return self._in_force(*spoken(transcript.messages, transcript.covers))

    def _in_force(self, messages: tuple[Message, ...], covers: tuple[Cover, ...]) -> StoredSummary | None:
        state = self.conversation.state
        if state.summary is None or not is_of(state.summary, messages, covers, self._earlier):
            return None
        stored = self._summaries.summary(self.conversation.namespace, self.conversation.id, state.summary.content)
        return in_force(state, stored)

    def context(self, budget: RunBudget | None = None) -> tuple[Message, ...]:
        """The messages to give to a model. Summaries that are due are made first, as far as the budget goes.

        The newest failure of the summariser is in ``failure``; one that can wait does not stop the run.

        Raises:
            SummaryRequired: too much is in no summary, and none could be made. No model may be called.
            Refused: the summariser is asynchronous: use :meth:`acontext`. Or see :meth:`plan`.
            MemoryUnavailable, JournalUnavailable: summaries could not be read, or one could not be recorded.
        """
        budget = budget or RunBudget()
        while True:
            now, view = self._planned()
            begun = self._begun(now, view, budget)
            if begun is None:
                return self._shown(now, view)
            try:
                text = self._waited(self._request(begun, budget), budget)
                self._kept(begun, text, budget)
            except Bug:
                raise
            except Exception as error:
                return self._without(error)

    async def acontext(self, budget: RunBudget | None = None) -> tuple[Message, ...]:
        """Like :meth:`context`, in an event loop; a synchronous summariser runs in a worker thread.

        Cancelling it leaves everything as it was.
        """
        import asyncio  # loaded already: this runs in its loop

        budget = budget or RunBudget()
        while True:
            now, view = self._planned()
            begun = self._begun(now, view, budget)
            if begun is None:
                return self._shown(now, view)
            try:
                asked = asyncio.ensure_future(self._asked(self._request(begun, budget)))
                try:
                    while not asked.done() and not budget.over:
                        await asyncio.wait({asked}, timeout=_POLL)
                finally:
                    asked.cancel()  # nothing happens to one that is done
                if not asked.done():
                    raise TimeoutError("the summariser did not answer in time")
                self._kept(begun, asked.result(), budget)
            except Bug:
                raise
            except Exception as error:
                return self._without(error)

    # --- one summary ------------------------------------------------------------------------------------------------

    def _planned(self) -> tuple[Plan, _View]:
        transcript = self.conversation.transcript
        messages, covers = spoken(transcript.messages, transcript.covers)
        summary = self._in_force(messages, covers)
        covered = 0 if summary is None else summary.covered
        if covered < self._earlier:
            raise Refused(
                f"{self._earlier - covered} messages that are in no summary were not loaded; load the conversation with"
                " more of its messages"
            )
        view = _View(messages, covers, summary)
        return plan(messages, covered - self._earlier, self.limits, self._count), view

    def _begun(self, now: Plan, view: _View, budget: RunBudget) -> _Pass | None:
        """The next summary; None when none is due, or none can be made and none is required."""
        if now.batch is None or self._summarise is None or not budget.take():
            now.check()
            return None
        first, end = now.batch
        anew = view.summary is None and self.conversation.state.summary is not None
        messages, covers = view.messages[:end], view.covers[:end]
        tail = tail_of(messages, covers)
        return _Pass(messages[first:], view.summary, covers[first:], messages, tail, self._earlier + end, anew)

    def _request(self, begun: _Pass, budget: RunBudget) -> SummaryRequest:
        previous = begun.previous.text if begun.previous is not None else ""
        body = rendered(previous, begun.messages)
        record = enclosed(body, mark_for(body), what="A record of a conversation")
        labels = labels_of(begun.previous, begun.covers)
        return SummaryRequest(INSTRUCTIONS, record, begun.messages, previous, labels, max(0.0, budget.left))

    def _waited(self, request: SummaryRequest, budget: RunBudget) -> Any:
        """The answer of a synchronous summariser, in a thread that is left alone when the time is over: Python can't
        stop it, but nobody listens to it any more."""
        answer: list[Any] = []
        problem: list[BaseException] = []

        def ask() -> None:
            try:
                assert self._summarise is not None
                answer.append(self._summarise(request))
            except BaseException as error:
                problem.append(error)

        thread = threading.Thread(target=contextvars.copy_context().run, args=(ask,), daemon=True)
        thread.start()
        while thread.is_alive() and not budget.over:
            thread.join(_POLL)
        if thread.is_alive():
            raise TimeoutError("the summariser did not answer in time")
        if problem:
            raise problem[0]
        if inspect.isawaitable(answer[0]):
            if inspect.iscoroutine(answer[0]):
                answer[0].close()
            raise Refused("the summariser is asynchronous: use acontext")
        return answer[0]

    def _kept(self, begun: _Pass, text: object, budget: RunBudget) -> None:
        """Store the text, then put it on record with its labels. Only what is on record is ever shown."""
        if budget.over:
            raise TimeoutError("the run was cancelled, or its time is over; the summary comes too late")
        labels = labels_of(begun.previous, begun.covers)
        summary = StoredSummary(begun.covered, checked_summary(text), labels)
        self._summaries.keep(self.conversation.namespace, self.conversation.id, summary)
        at = stamp(self._clock.now())
        size = len(summary.text)
        entry = Summarised(at, summary.covered, labels, summary.content, size, begun.anew, begun.tail)
        # Held, so that no rewrite comes in between, after which these places would be those of other messages.
        with self.conversation.hold():
            transcript = self.conversation.transcript
            messages, _ = spoken(transcript.messages, transcript.covers)
            if messages[: len(begun.prefix)] != begun.prefix:
                raise Refused("the conversation was rewritten while it was summarised; the summary is dropped")
            self.conversation.record(entry)
        self.failure = None

    def _without(self, error: Exception) -> tuple[Message, ...]:
        """Go on without the summary where that can be: what was to be summarised is shown as it is by now."""
        if isinstance(error, InterlockError) and not isinstance(error, Refused | MemoryUnavailable):
            raise error  # the journal: nothing may go on that can't be recorded
        self.failure = error
        now, view = self._planned()
        try:
            return self._shown(now, view)
        except SummaryRequired as required:
            raise required from error

    async def _asked(self, request: SummaryRequest) -> Any:
        """The answer of any summariser; a synchronous one runs in a worker thread."""
        import asyncio

        assert self._summarise is not None
        if inspect.iscoroutinefunction(self._summarise):
            return await self._summarise(request)
        answer = await asyncio.to_thread(self._summarise, request)
        return await answer if inspect.isawaitable(answer) else answer

    def _shown(self, now: Plan, view: _View) -> tuple[Message, ...]:
        now.check()
        summary, messages = view.summary, view.messages
        instructions = tuple(one for one in self.conversation.messages if one.role is Role.SYSTEM)
        if summary is None:
            return (*instructions, *messages[now.start :])
        mark = mark_for(summary.text)
        text = enclosed(
            summary.text, mark, what="A summary of earlier messages, made by a model", untrusted=summary.untrusted
        )
        lead = Message.user(_LEAD.format(covered=summary.covered))
        return (*instructions, lead, *as_result(text, f"summary-{mark}", TOOL), *messages[now.start :])
