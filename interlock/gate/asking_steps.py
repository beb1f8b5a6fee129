"""A round of calls with a person beside it (T9): decide, ask at once, hear the answer, decide again."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from interlock.errors import Bug, InterlockError, Refused
from interlock.gate import approval_steps
from interlock.gate.approval_steps import ApprovalRules
from interlock.gate.effects import Append, AskPerson, DropQuestion, Effect, LoadState, ReadClock
from interlock.gate.steps import Rules, propose
from interlock.model.calls import Call
from interlock.model.decisions import ASKED_ENOUGH, NO_ANSWER, REFUSED, Decision, Reason, Verdict, failure
from interlock.model.entries import Failed, Voided
from interlock.model.grants import Status, enough
from interlock.model.question import Answer, Question
from interlock.model.results import Allowed, Ticket, printable, refusal
from interlock.model.state import State
from interlock.model.times import stamp

GRACE: Final = 5.0
MAX_ANSWERS: Final = 8


def propose_and_ask(conversation: str, calls: Sequence[Call], rules: Rules) -> Generator[Effect, Any, Ticket]:
    """Like :func:`propose`, and a person is asked at once about what needs one, before any call of the round runs.

    A question is answered yes, no, with another call in its place, or by nobody. After a yes the calls that it is about
    are decided again, each with its grant; another call in place of one is decided as any call is. In the ticket that
    comes of it nothing waits for a person any more.
    """
    ticket = yield from propose(conversation, calls, rules)
    if rules.approvals is None or not ticket.questions:
        return ticket
    proposed = dict(zip(ticket.outcomes, calls, strict=True))
    instead: dict[str, Call] = {}
    outcomes, allowed = dict(ticket.outcomes), dict(ticket.allowed)

    def denied(call_id: str, reason: Reason, last: bool = False) -> None:
        decision = _refused_by(outcomes[call_id].decision, reason, last)
        outcomes[call_id] = replace(outcomes[call_id], decision=decision, for_model=refusal(decision))

    try:
        for _ in range(MAX_ANSWERS):
            again: dict[str, Call] = {}
            for question in {one.id: one for one in ticket.questions.values()}.values():
                waiting = [call_id for call_id, one in ticket.questions.items() if one.id == question.id]
                came = yield from _heard_from_person(conversation, question, rules.approvals)
                last = isinstance(came, Reason) and (yield from _is_enough(conversation, question.id))
                for call_id in waiting:
                    if isinstance(came, Reason):
                        denied(call_id, came, last)
                    else:
                        again[call_id] = replace(came.instead or proposed[call_id], id=call_id)
                        instead |= {call_id: again[call_id]} if came.instead else {}
            if not again:
                break
            beside = frozenset(one.number for one in allowed.values())
            ticket = yield from propose(conversation, list(again.values()), rules, beside)
            proposed.update(again)
            outcomes.update(ticket.outcomes)
            allowed.update(ticket.allowed)
            if not ticket.questions:
                break
        else:
            for call_id, question in ticket.questions.items():
                denied(call_id, failure(NO_ANSWER, f"{MAX_ANSWERS} answers came to nothing (question {question.id})"))
            yield from _closed(conversation, _names(ticket), "too many answers")
    except BaseException:
        # Cancelled while a person was asked: nothing of the round was run, and nothing of it will be.
        yield from _closed(conversation, _names(ticket), "the round was cancelled")
        yield from not_run(conversation, allowed.values())
        raise
    return Ticket(conversation, outcomes, allowed, {}, instead)


def _names(ticket: Ticket) -> list[str]:
    return sorted({one.id for one in ticket.questions.values()})


def _closed(conversation: str, questions: Iterable[str], why: str) -> Generator[Effect, Any, None]:
    """Nobody waits for these questions any more: a yes that was given, or comes late, lets nothing run."""
    try:
        state: State = yield LoadState(conversation)
        now: datetime = yield ReadClock()
        held = {name: state.questions.get(name) for name in questions}
        over = [name for name, one in held.items() if one is not None and one.open]
        if over:
            yield Append(conversation, [Voided(stamp(now), name, why) for name in over], None)
        for name in held:
            yield DropQuestion(state.namespace, state.conversation, name)
    except Bug:
        raise
    except Exception:
        pass  # it ends by its time, and by the first label that was not shown


def not_run(conversation: str, allowed: Iterable[Allowed]) -> Generator[Effect, Any, None]:
    """The calls of a round that will not be made are no longer in flight, nor in doubt."""
    try:
        now: datetime = yield ReadClock()
        entries = [Failed(stamp(now), one.number, False, "NotRun") for one in allowed]
        if entries:
            yield Append(conversation, entries, None)
    except Bug:
        raise
    except Exception:
        pass  # still in flight, so still in the exposure


def _heard_from_person(
    conversation: str, question: Question, approvals: ApprovalRules
) -> Generator[Effect, Any, Answer | Reason]:
    """An answer that lets the calls be decided again, or the reason why they are denied.

    INVARIANT: after a reason no yes to this question is good for anything.
    """
    if (yield from _is_enough(conversation, question.id)):
        # Many calls of one turn are asked one after the other: the person has said often enough what they think.
        yield from _closed(conversation, [question.id], "enough")
        return failure(ASKED_ENOUGH, "calls like this one were denied often enough since the person last typed")
    answer: Answer | None = None
    why = "nobody answered in time"
    try:
        begun: datetime = yield ReadClock()
        answer = yield AskPerson(question, approvals.seconds)
        ended: datetime = yield ReadClock()
        if answer is not None and (ended - begun).total_seconds() > approvals.seconds + GRACE:
            answer, why = None, "the answer came too late"
    except Bug:
        raise
    except Exception as error:  # fail closed: whoever can't be asked has not answered
        answer, why = None, f"nobody could be asked: {_told(error)}"
    if answer is not None and answer.instead is not None:
        meant = (answer.instead.server, answer.instead.name)
        if meant != (question.server, question.tool):
            # Whoever runs the calls has this tool at hand for them, and would hand it the arguments of another one.
            answer, why = None, "an edit is another call of the same tool"
    try:
        came = yield from _on_record(conversation, question, answer, why)
    except Bug:
        raise
    except Exception as error:  # fail closed: an answer that is not on record allows nothing
        came = failure(NO_ANSWER, f"an answer could not be recorded: {_told(error)} (question {question.id})")
    if isinstance(came, Reason):
        yield from _closed(conversation, [question.id], "denied")
    return came


def _on_record(
    conversation: str, question: Question, answer: Answer | None, why: str
) -> Generator[Effect, Any, Answer | Reason]:
    """What stands in the journal in the end: this answer, nobody's, or the one that somebody else gave meanwhile."""
    said = "none" if answer is None else answer.verdict
    by = printable(why if answer is None else answer.by)  # a channel's error may say anything
    for _ in range(2):
        state: State = yield LoadState(conversation)
        held = state.questions.get(question.id)
        if held is None:
            return failure(NO_ANSWER, f"{why} (question {question.id})")
        if said in ("refuse", "edit") and held.open and held.status is not Status.PENDING:
            return failure(
                REFUSED, f"refused by {by or 'a person'}, after somebody had approved it (question {question.id})"
            )
        if held.status is Status.GRANTED:  # answered elsewhere
            return Answer("approve", held.by)
        if held.status is Status.REFUSED:
            return failure(REFUSED, f"refused by {printable(held.by) or 'a person'} (question {question.id})")
        if held.status is not Status.PENDING:
            return failure(NO_ANSWER, f"{held.why or held.status.value} (question {question.id})")
        try:
            yield from approval_steps.answer(conversation, question.id, said, by)
        except Refused as error:
            why = str(error)
            continue  # somebody else was faster: see what they said
        if said == "refuse":
            return failure(REFUSED, f"refused by {by or 'a person'} (question {question.id})")
        return failure(NO_ANSWER, f"{why} (question {question.id})") if answer is None else answer
    return failure(NO_ANSWER, f"{why} (question {question.id})")


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, InterlockError) else type(error).__name__


def _is_enough(conversation: str, question: str) -> Generator[Effect, Any, bool]:
    """Have calls of this shape been denied so often that the model is to stop?"""
    try:
        state: State = yield LoadState(conversation)
    except Bug:
        raise
    except Exception:
        return False  # only words depend on it
    held = state.questions.get(question)
    return held is not None and enough(state.denials, held.bound.tool, held.shape)


def _refused_by(decision: Decision, reason: Reason, last: bool) -> Decision:
    return replace(decision, verdict=Verdict.DENY, reasons=(reason, *decision.reasons), terminal=last)
