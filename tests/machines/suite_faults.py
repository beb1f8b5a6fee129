"""Named faults for the property suite to find: each is a mistake that somebody could make. Proves nothing by itself."""

from __future__ import annotations

import json
import pickle
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from interlock import Call, Conversation, Interlock, Message, Session, ToolUse
from interlock.errors import Refused
from interlock.gate import conversation as conversations
from interlock.model import state as states
from interlock.model.answers import ControlText
from interlock.model.canonical import pack
from interlock.model.chain import Sealed
from interlock.model.entries import Entry
from interlock.model.labels import CLEAN, Taint
from interlock.model.messages import Role, Text
from interlock.model.state import State, apply
from interlock.model.transcript import Transcript, covers_after
from interlock.stores import session_file
from interlock.stores.memory import MemoryJournal as Memory
from interlock.stores.session_file import SessionFile
from interlock.testing import Kit
from interlock.testing.toolbox import reference

# --- conversations ----------------------------------------------------------------------------------------------------


def without(taint: Taint, hidden: Iterable[str]) -> Taint:
    gone = set(hidden)
    return Taint(tuple((one, source) for one, source in taint.items if one not in gone))


class Forgetful(Conversation):
    """Its state has no label that was hidden."""

    hidden: frozenset[str] = frozenset()

    @property
    def state(self) -> State:
        found = super().state
        return replace(found, taint=without(found.taint, self.hidden)) if self.hidden else found


class RollbackClears(Forgetful):
    def roll_back_failed_turn(self, before: Any) -> None:
        super().roll_back_failed_turn(before)
        self.hidden = frozenset(super().state.taint)


class RewriteClears(Forgetful):
    def rewrite(self, messages: Iterable[Message]) -> None:
        super().rewrite(messages)
        self.hidden = frozenset(super().state.taint)


class NewTurnClears(Forgetful):
    def snapshot(self) -> Any:
        self.hidden = frozenset(super().state.taint)
        return super().snapshot()


class ForkStartsClean(Conversation):
    def fork(self) -> Conversation:
        return Conversation.from_messages(self.messages)


class ChildStartsClean(Conversation):
    def child(self, task: str, **more: Any) -> Any:
        child = super().child(task, **more)
        child._early = replace(child._early, taint=CLEAN)
        return child


class JoinForgets(Forgetful):
    known: frozenset[str] = frozenset()

    def child(self, task: str, **more: Any) -> Any:
        self.known = frozenset(self.taint)
        return super().child(task, **more)

    def join(self, child: Any) -> None:
        super().join(child)
        self.hidden = frozenset(super().state.taint) - self.known


class PickleDropsLabels(Conversation):
    def __reduce__(self) -> Any:
        return Conversation.from_messages, (self.messages,)


class RewriteDropsResults(Conversation):
    def rewrite(self, messages: Iterable[Message]) -> None:
        super().rewrite(messages)
        old = self.transcript
        kept = tuple(one for one in old.messages if one.role is not Role.TOOL)
        self.follow(replace(old, messages=kept, covers=covers_after(old.messages, old.covers, kept)))


class PastedIsTyped(Conversation):
    def say(self, text: str, *, pasted: bool = False) -> None:
        super().say(text)


class RollbackTakesResults(Conversation):
    """The last message always goes, also the results of a round with the person's text in them."""

    def roll_back_failed_turn(self, before: Any) -> None:
        super().roll_back_failed_turn(before)
        now = self.transcript
        if now.messages and now.messages[-1].role is Role.TOOL:
            self.follow(replace(now, messages=now.messages[:-1], covers=now.covers[:-1]))


class RestartTrustsRoles(Conversation):
    def restart_from_trusted(self, *, instructions: str = "") -> Conversation:
        other = super().restart_from_trusted(instructions=instructions)
        for message in self.messages:
            if message.role is Role.USER:
                for block in message.blocks:
                    if isinstance(block, Text):
                        other.say(block.text)
        return other


class RestartClosesChannels(Conversation):
    def restart_from_trusted(self, *, instructions: str = "") -> Conversation:
        return Conversation.new()


class ImagesAreNothing(Conversation):
    def push(self, message: Message) -> None:
        self.follow(self.transcript.pushed(message, ()))


class TaintIsAssigned(Forgetful):
    @property
    def taint(self) -> Taint:
        return super().taint

    @taint.setter
    def taint(self, value: Any) -> None:
        self.hidden = frozenset(super().taint)


class PartsCallsFromResults(Conversation):
    def rewrite(self, messages: Iterable[Message]) -> None:
        new = tuple(messages)
        try:
            super().rewrite(new)
        except Refused:
            self.follow(Transcript(new, (None,) * len(new)))


class ForkIsNotTold(Conversation):
    """A pickled copy where a fork should be: late results do not reach it."""

    def fork(self) -> Conversation:
        return pickle.loads(pickle.dumps(self))  # type: ignore[no-any-return]


def open_calls_stay_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conversations, "answered", lambda messages, covers, *_more: (messages, covers))
    patch.setattr("interlock.model.transcript.answered", lambda messages, covers, *_more: (messages, covers))


def what_is_in_flight_does_not_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(State, "exposure", property(lambda self: self.taint))


CONVERSATIONS: dict[str, Any] = {
    "rollback clears the taint": RollbackClears,
    "rewrite clears the taint": RewriteClears,
    "a new turn clears the taint": NewTurnClears,
    "fork starts clean": ForkStartsClean,
    "child starts clean": ChildStartsClean,
    "join forgets": JoinForgets,
    "pickling drops labels": PickleDropsLabels,
    "rewrite drops results": RewriteDropsResults,
    "pasted text counts as typed": PastedIsTyped,
    "rollback takes results": RollbackTakesResults,
    "restart trusts the user role": RestartTrustsRoles,
    "restart closes channels": RestartClosesChannels,
    "images are nothing": ImagesAreNothing,
    "the taint can be assigned": TaintIsAssigned,
    "parting calls from results is not refused": PartsCallsFromResults,
    "late results do not reach forks": ForkIsNotTold,
    "open calls stay open": open_calls_stay_open,
    "what is in flight does not count": what_is_in_flight_does_not_count,
}

# --- sessions ---------------------------------------------------------------------------------------------------------


def labels_of_the_last_line_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(session_file, "labels_in", lambda _line: frozenset())


def the_head_is_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(session_file, "verify", lambda *_arguments: None)


def damage_loads_clean(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(session_file, "EVERY_LEG", ())


def calls_in_doubt_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        states, "_resumed", lambda state, entry: replace(state, version=state.version + 1, in_flight={}, children={})
    )


def labels_are_written_when_it_is_closed(patch: pytest.MonkeyPatch) -> None:
    def append(self: Any, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        for entry in entries:
            self._state = apply(self._state, entry)
        return self._state  # type: ignore[no-any-return]

    patch.setattr(SessionFile, "append", append)


def what_a_rewrite_replaced_is_not_kept(patch: pytest.MonkeyPatch) -> None:
    keep = SessionFile.keep
    patch.setattr(SessionFile, "keep", lambda self, old, new, entry: keep(self, new, new, entry))


def it_works_on_a_copy(patch: pytest.MonkeyPatch) -> None:
    """So that nobody is kept out, and what one writes the other does not know."""
    load = Session.load

    def copied(path: Path, **more: Any) -> Session:
        place = path.parent / "copy" / path.name
        shutil.rmtree(place.parent, ignore_errors=True)
        place.parent.mkdir(mode=0o700)
        for file in path.parent.iterdir():
            if file.is_file():
                shutil.copy(file, place.parent)
        return load(place, **more)

    patch.setattr(Session, "load", copied)


def messages_are_not_recorded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Session, "record_run", lambda self, before, conversation: None)


def results_are_not_loaded(patch: pytest.MonkeyPatch) -> None:
    transcript = SessionFile.transcript

    def kept(self: Any) -> Transcript:
        whole = transcript(self)
        messages = tuple(one for one in whole.messages if one.role is not Role.TOOL)
        return Transcript(messages, (None,) * len(messages))

    patch.setattr(SessionFile, "transcript", kept)


SESSIONS: dict[str, Any] = {
    "load ignores labels of the last line": labels_of_the_last_line_are_ignored,
    "the head is not looked at": the_head_is_not_looked_at,
    "damage loads clean": damage_loads_clean,
    "calls in doubt are forgotten": calls_in_doubt_are_forgotten,
    "labels are written at the end": labels_are_written_when_it_is_closed,
    "what a rewrite replaced is not kept": what_a_rewrite_replaced_is_not_kept,
    "two writers at once": it_works_on_a_copy,
    "runs are not recorded": messages_are_not_recorded,
    "results are not loaded": results_are_not_loaded,
}

# --- engines ----------------------------------------------------------------------------------------------------------


class Altered:
    """The reference, with answers that a fault changes."""

    name = "altered"
    revision = "altered"
    looks_at: Any = None

    def __init__(self, alter: Callable[[Any, dict[str, Any], bytes], Any], own: str = "") -> None:
        self._inner, self._alter = reference(), alter
        self.controls = dict(self._inner.controls)
        if own:
            self.controls[own] = ControlText(own, own, own, own, own=False)

    def evaluate(self, document: bytes) -> bytes:
        answers = json.loads(self._inner.evaluate(document))
        said = self._alter(json.loads(document), answers, document)
        return said if isinstance(said, bytes) else pack(said)


def at(document: Any, *path: str) -> Any:
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def silence_passes(document: Any, answers: dict[str, Any], _raw: bytes) -> Any:
    return answers if at(document, "forecast") is not None else {code: {"verdict": "allow"} for code in answers}


def a_control_is_silent(document: Any, answers: dict[str, Any], _raw: bytes) -> Any:
    return {code: one for code, one in answers.items() if code != "trifecta" or at(document, "tool", "known")}


def no_remedies(_document: Any, answers: dict[str, Any], _raw: bytes) -> Any:
    return {code: {"verdict": one["verdict"]} for code, one in answers.items()}


def trifecta_allows_strangers(_document: Any, answers: dict[str, Any], _raw: bytes) -> Any:
    return {**answers, "trifecta": {"verdict": "allow"}}


def spaces_matter(_document: Any, answers: dict[str, Any], raw: bytes) -> Any:
    return {**answers, "trifecta": {"verdict": "allow"}} if b"\n" in raw else answers


def many_siblings_loosen(document: Any, answers: dict[str, Any], _raw: bytes) -> Any:
    return {**answers, "own": {"verdict": "allow" if at(document, "call", "siblings") != 0 else "deny"}}


def a_negation_in_a_proof(document: Any, answers: dict[str, Any], _raw: bytes) -> Any:
    return {**answers, "own": {"verdict": "deny" if at(document, "tool", "known") is False else "allow"}}


class KeepsTheLastDocument(Altered):
    def __init__(self) -> None:
        super().__init__(lambda document, answers, raw: answers)
        self._broken = False

    def evaluate(self, document: bytes) -> bytes:
        try:
            json.loads(document)
        except ValueError:
            self._broken = True
            raise
        kept, self._broken = self._broken, False
        whole = b'{"tool":{"egress":"none","opens":[],"effect":"none"}}' if kept else document
        return super().evaluate(whole)


class AnswersNoJson(Altered):
    def __init__(self) -> None:
        super().__init__(lambda document, answers, raw: answers)

    def evaluate(self, document: bytes) -> bytes:
        try:
            return super().evaluate(document)
        except Exception:
            return super().evaluate(b"{}")


class OneThreadOnly(Altered):
    def __init__(self) -> None:
        super().__init__(lambda document, answers, raw: answers)
        self._home = threading.get_ident()

    def evaluate(self, document: bytes) -> bytes:
        if threading.get_ident() != self._home:
            raise BaseException("panic: used in another thread")  # noqa: TRY002
        return super().evaluate(document)


class LooksAtTooLittle(Altered):
    looks_at = (("tool", "egress"),)

    def __init__(self) -> None:
        super().__init__(lambda document, answers, raw: answers)


ENGINES: dict[str, Callable[[], Any]] = {
    "an engine that lets silence pass": lambda: Altered(silence_passes),
    "a control is silent": lambda: Altered(a_control_is_silent),
    "remedies are left out": lambda: Altered(no_remedies),
    "trifecta allows strangers": lambda: Altered(trifecta_allows_strangers),
    "the writing of a document matters": lambda: Altered(spaces_matter),
    "siblings loosen": lambda: Altered(many_siblings_loosen, "own"),
    "a negation in a proof": lambda: Altered(a_negation_in_a_proof, "own"),
    "the last document is kept after an error": KeepsTheLastDocument,
    "no JSON is answered": AnswersNoJson,
    "one thread only": OneThreadOnly,
    "it looks at more than it says": LooksAtTooLittle,
}

# --- journals ---------------------------------------------------------------------------------------------------------


class IgnoresExpected(Memory):
    def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        return super().append(conversation, entries)


class NotAtomic(Memory):
    def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        state = super().append(conversation, entries[:1], expected=expected)
        for entry in entries[1:]:
            state = super().append(conversation, [entry])
        return state


class AbsenceIsClean(Memory):
    def state(self, conversation: str) -> State:
        return super().state(conversation) if conversation in self._records else State(conversation)


class OpensAgain(Memory):
    def open(self, entries: Sequence[Entry]) -> State:
        if entries and getattr(entries[0], "conversation", "") in self._records:
            del self._records[entries[0].conversation]  # type: ignore[union-attr]
        return super().open(entries)


class LosesUpdates(Memory):
    """Reads, thinks, writes what it read and the new."""

    def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        record = self._records.get(conversation)
        if record is None or expected is not None:
            return super().append(conversation, entries, expected=expected)
        before = (record.state, list(record.entries))
        time.sleep(0)
        mine = Memory()
        mine._records[conversation] = type(record)(*before)
        state = mine.append(conversation, entries)
        self._records[conversation] = mine._records[conversation]
        return state


class ForgetsWhatIsInFlight(Memory):
    def state(self, conversation: str) -> State:
        return replace(super().state(conversation), in_flight={})


class HeadLagsBehind(Memory):
    def entries(self, conversation: str) -> tuple[Sealed, ...]:
        return super().entries(conversation)[:-1]


class ForgetsTheLast(Memory):
    def reopened(self) -> Memory:
        for record in self._records.values():
            if len(record.entries) > 1:
                del record.entries[-1]
        return self


JOURNALS: dict[str, type[Memory]] = {
    "compare-and-set is ignored": IgnoresExpected,
    "append is not atomic": NotAtomic,
    "absence is cleanliness": AbsenceIsClean,
    "a conversation is opened again": OpensAgain,
    "concurrent appends are lost": LosesUpdates,
    "what is in flight is forgotten": ForgetsWhatIsInFlight,
    "the chain is behind its head": HeadLagsBehind,
    "the last entry is lost in a crash": ForgetsTheLast,
}

# --- integrations -----------------------------------------------------------------------------------------------------


class Honest:
    """An agent that does everything right, in few lines."""

    def __init__(self, kit: Kit, lock: Interlock | None = None, conversation: Conversation | None = None) -> None:
        self.kit = kit
        self.lock = lock or kit.interlock()
        self.conversation = conversation or Conversation.new()
        self.guard = self.lock.guard(self.conversation)

    def say(self, text: str) -> None:
        self.conversation.say(text)

    def act(self, calls: Sequence[Call]) -> list[tuple[str, str]]:
        outcomes = self.guard.batch(calls, run=self.kit.run)
        self._remember(calls, outcomes)
        return [(one.call_id, one.for_model) for one in outcomes]

    def _remember(self, calls: Sequence[Call], outcomes: Sequence[Any]) -> None:
        uses = [ToolUse(one.id, one.name, one.arguments) for one in calls]
        self.conversation.push(Message.assistant("", *uses))
        self.conversation.push(Message.results(*outcomes))
        self.conversation.push(Message.assistant("I see."))

    def _with(self, conversation: Conversation) -> Honest:
        return type(self)(self.kit, self.lock, conversation)

    def resume(self) -> Honest:
        return self._with(Conversation.resumed(self.conversation.messages, self.conversation.exposure))

    def compact(self, summary: str) -> None:
        self.conversation.rewrite([Message.user(summary)])

    def spawn(self, task: str) -> Honest:
        return self._with(self.conversation.child(task))

    def join(self, child: Honest) -> None:
        self.conversation.join(child.conversation)

    def fork(self) -> Honest:
        return self._with(self.conversation.fork())

    def taint(self) -> Taint:
        return self.conversation.taint

    def messages(self) -> tuple[Message, ...]:
        return self.conversation.messages


class Mute(Honest):
    """The same without a word about itself, so that only what the tools received can tell."""

    taint = None  # type: ignore[assignment]
    messages = None  # type: ignore[assignment]


class ResumesFresh(Mute):
    def resume(self) -> Honest:
        return self._with(Conversation.from_messages(self.conversation.messages))


class SpawnsClean(Mute):
    def spawn(self, task: str) -> Honest:
        return self._with(Conversation.user(task))

    def join(self, child: Honest) -> None:
        pass


class ForksClean(Mute):
    def fork(self) -> Honest:
        return self._with(Conversation.from_messages(self.conversation.messages))


class FreshEachTurn(Mute):
    def say(self, text: str) -> None:
        self.conversation = Conversation.from_messages(self.conversation.messages)
        self.guard = self.lock.guard(self.conversation)
        super().say(text)

    def join(self, child: Honest) -> None:
        pass  # the conversation that it was a child of is gone


class SummaryIsTyped(Mute):
    def compact(self, summary: str) -> None:
        self.conversation.rewrite([])
        self.conversation.say(summary)


class ResultsAreTyped(Mute):
    def act(self, calls: Sequence[Call]) -> list[tuple[str, str]]:
        results = super().act(calls)
        for _, text in results:
            self.conversation.say(text)
        return results


class RunsWhatWasDenied(Mute):
    def act(self, calls: Sequence[Call]) -> list[tuple[str, str]]:
        outcomes = self.guard.batch(calls, run=self.kit.run)
        self._remember(calls, outcomes)
        shown = []
        for call, one in zip(calls, outcomes, strict=True):
            known = call.name in self.kit.tools and not one.executed
            shown.append((one.call_id, self.kit.run(call.name, call.arguments) if known else one.for_model))
        return shown


class KeepsSilentAboutDenials(Mute):
    def act(self, calls: Sequence[Call]) -> list[tuple[str, str]]:
        outcomes = self.guard.batch(calls, run=self.kit.run)
        self._remember(calls, outcomes)
        return [(one.call_id, one.for_model) for one in outcomes if one.executed]


class RunsTwice(Mute):
    def act(self, calls: Sequence[Call]) -> list[tuple[str, str]]:
        def twice(name: str, arguments: dict[str, Any]) -> str:
            self.kit.run(name, arguments)
            return self.kit.run(name, arguments)

        outcomes = self.guard.batch(calls, run=twice)
        self._remember(calls, outcomes)
        return [(one.call_id, one.for_model) for one in outcomes]


class ChangesArguments(Mute):
    def act(self, calls: Sequence[Call]) -> list[tuple[str, str]]:
        def changed(name: str, arguments: dict[str, Any]) -> str:
            return self.kit.run(name, {**arguments, **({"body": "more"} if name == "send" else {})})

        outcomes = self.guard.batch(calls, run=changed)
        self._remember(calls, outcomes)
        return [(one.call_id, one.for_model) for one in outcomes]


class JoinForgetsChild(Mute):
    """The sub-agent begins with the labels of its parent, and gives back none."""

    def spawn(self, task: str) -> Honest:
        return self._with(Conversation.resumed([Message.user(task)], self.conversation.exposure))

    def join(self, child: Honest) -> None:
        pass


class HistoryWithoutResults(Honest):
    def messages(self) -> tuple[Message, ...]:
        return tuple(one for one in self.conversation.messages if one.role is not Role.TOOL)


class RunsNothing(Honest):
    def act(self, calls: Sequence[Call]) -> list[tuple[str, str]]:
        return [(one.id, "not now") for one in calls]


INTEGRATIONS: dict[str, type[Honest]] = {
    "a resumed conversation is fresh": ResumesFresh,
    "sub-agents start clean": SpawnsClean,
    "forks start clean": ForksClean,
    "each turn has a fresh conversation": FreshEachTurn,
    "a summary counts as typed": SummaryIsTyped,
    "results count as typed": ResultsAreTyped,
    "denied calls run": RunsWhatWasDenied,
    "denied calls have no result": KeepsSilentAboutDenials,
    "calls run twice": RunsTwice,
    "arguments change after the decision": ChangesArguments,
    "what a sub-agent saw is forgotten": JoinForgetsChild,
    "the history has no results": HistoryWithoutResults,
    "nothing ever runs": RunsNothing,
}
