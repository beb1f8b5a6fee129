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
from interlock.model.entries import Summarised
from interlock.model.messages import Message, Role
from interlock.model.quoting import as_result, enclosed
from interlock.model.summaries import (
    INSTRUCTIONS,
    StoredSummary,
    SummaryRequest,
    checked_summary,
    in_force,
    labels_of,
    rendered,
    spoken,
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

    def __post_init__(self) -> None:
        self._ends = time.monotonic() + self.seconds

    @property
    def left(self) -> float:
        """Seconds; 0 when nothing may be spent any more."""
        return max(0.0, self._ends - time.monotonic()) if self.passes > 0 and not self.cancelled() else 0.0


@dataclass(frozen=True, slots=True)
class _Pass:
    """One summary that is to be made."""

    messages: tuple[Message, ...]
    previous: StoredSummary | None
    covers: tuple[Cover, ...]
    prefix: tuple[Message, ...]
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
        """The summary that is in force, or None. Raises MemoryUnavailable."""
        state = self.conversation.state
        if state.summary is None:
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
            now, summary, messages = self._planned()
            begun = self._begun(now, summary, messages, budget)
            if begun is None:
                return self._shown(now, summary, messages)
            try:
                text = self._waited(self._request(begun, budget), budget)
                self._kept(begun, text, budget)
            except Bug:
                raise
            except Exception as error:
                self._failed(now, error)
                return self._shown(now, summary, messages)

    async def acontext(self, budget: RunBudget | None = None) -> tuple[Message, ...]:
        """Like :meth:`context`, in an event loop; a synchronous summariser runs in a worker thread.

        Cancelling it leaves everything as it was.
        """
        import asyncio  # loaded already: this runs in its loop

        budget = budget or RunBudget()
        while True:
            now, summary, messages = self._planned()
            begun = self._begun(now, summary, messages, budget)
            if begun is None:
                return self._shown(now, summary, messages)
            try:
                request = self._request(begun, budget)
                async with asyncio.timeout(budget.left):
                    assert self._summarise is not None
                    if inspect.iscoroutinefunction(self._summarise):
                        text: Any = await self._summarise(request)
                    else:
                        text = await asyncio.to_thread(self._summarise, request)
                        text = await text if inspect.isawaitable(text) else text
                self._kept(begun, text, budget)
            except Bug:
                raise
            except Exception as error:
                self._failed(now, error)
                return self._shown(now, summary, messages)

    # --- one summary ------------------------------------------------------------------------------------------------

    def _planned(self) -> tuple[Plan, StoredSummary | None, tuple[Message, ...]]:
        transcript = self.conversation.transcript
        messages, _ = spoken(transcript.messages, transcript.covers)
        summary = self.summary()
        covered = 0 if summary is None else summary.covered
        if covered > self._earlier + len(messages):
            summary, covered = None, 0
        if covered < self._earlier:
            raise Refused(
                f"{self._earlier - covered} messages that are in no summary were not loaded; load the conversation with"
                " more of its messages"
            )
        return plan(messages, covered - self._earlier, self.limits, self._count), summary, messages

    def _begun(
        self, now: Plan, summary: StoredSummary | None, messages: tuple[Message, ...], budget: RunBudget
    ) -> _Pass | None:
        """The next summary; None when none is due, or none can be made and none is required."""
        if now.batch is None or self._summarise is None or not budget.left:
            now.check()
            return None
        first, end = now.batch
        _, covers = spoken(self.conversation.transcript.messages, self.conversation.transcript.covers)
        budget.passes -= 1
        anew = summary is None and self.conversation.state.summary is not None
        covered = self._earlier + end
        return _Pass(messages[first:end], summary, covers[first:end], messages[:end], covered, anew)

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
        limit = time.monotonic() + request.seconds
        while thread.is_alive() and time.monotonic() < limit and not budget.cancelled():
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
        if budget.cancelled():
            raise TimeoutError("the run was cancelled")
        labels = labels_of(begun.previous, begun.covers)
        summary = StoredSummary(begun.covered, checked_summary(text), labels)
        self._summaries.keep(self.conversation.namespace, self.conversation.id, summary)
        at = stamp(self._clock.now())
        entry = Summarised(at, summary.covered, labels, summary.content, len(summary.text), begun.anew)
        with (
            self.conversation.hold()
        ):  # no rewrite comes in between, after which these places would be those of other messages
            transcript = self.conversation.transcript
            messages, _ = spoken(transcript.messages, transcript.covers)
            if messages[: len(begun.prefix)] != begun.prefix:
                raise Refused("the conversation was rewritten while it was summarised; the summary is dropped")
            self.conversation.record(entry)
        self.failure = None

    def _failed(self, now: Plan, error: Exception) -> None:
        """Go on without the summary where that can be: what was to be summarised is shown as it is."""
        if isinstance(error, InterlockError) and not isinstance(error, Refused | MemoryUnavailable):
            raise error  # the journal: nothing may go on that can't be recorded
        self.failure = error
        try:
            now.check()
        except SummaryRequired as required:
            raise required from error

    def _shown(self, now: Plan, summary: StoredSummary | None, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        now.check()
        instructions = tuple(one for one in self.conversation.messages if one.role is Role.SYSTEM)
        if summary is None:
            return (*instructions, *messages[now.start :])
        mark = mark_for(summary.text)
        text = enclosed(
            summary.text, mark, what="A summary of earlier messages, made by a model", untrusted=summary.untrusted
        )
        lead = Message.user(_LEAD.format(covered=summary.covered))
        return (*instructions, lead, *as_result(text, f"summary-{mark}", TOOL), *messages[now.start :])
