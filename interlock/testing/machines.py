"""A state machine over conversations: anything that an agent does to one, in any order (T1, T2, T17).

The model beside it knows nothing of the code: for each conversation a set of labels that have entered, the calls that
are under way, the addresses and texts that the person typed, and the list of messages. After every step each
conversation must hold at least the model's labels, never fewer than it held before, exactly one result for each call,
and no address of a stranger that counts as typed.

More labels than the model's are no failure here: an implementation may be more careful than ours.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from interlock.errors import Refused
from interlock.model.history import History, TokenBudget
from interlock.model.messages import Message, Role, Text, ToolAnswer
from interlock.testing.rounds import MAX_POOL, OTHERS, WHICH, Flight, Held, RoundsMachine
from interlock.testing.toolbox import FRIEND, STRANGER, TOOLS, specs
from interlock.testing.traces import NAMES, lost, misshapen, shown, unanswered


class ConversationMachine(RoundsMachine):
    """Turns, rounds, failed turns, rewrites, forks, children, copies. See :func:`interlock.testing.check_conversation`.

    See :class:`~interlock.testing.rounds.RoundsMachine` for its arguments.
    """

    # --- failed turns and rewrites --------------------------------------------------------------------------------

    @rule(which=WHICH)
    def snapshot(self, which: int) -> None:
        held = self._pick(which)
        if held is not None:
            self._snapshot(held)

    def _snapshot(self, held: Held) -> None:
        with self.step(f"a run began in {held.name}"):
            held.before = (held.subject.snapshot(), tuple(held.messages))
            held.rewritten = []

    @rule(which=WHICH)
    def roll_back(self, which: int) -> None:
        held = self._pick(which, lambda one: one.before is not None)
        if held is not None:
            self._roll_back(held)

    def _roll_back(self, held: Held) -> None:
        assert held.before is not None
        snapshot, messages = held.before
        with self.step(f"the run in {held.name} failed and was rolled back"):
            held.subject.roll_back_failed_turn(snapshot)
            expected = list(messages)
            last = expected[-1] if expected else None
            if last is not None and last.role is Role.USER and self._only_typed(held, last):
                del expected[-1]
            self._adopt(held, expected)

    @rule(
        which=WHICH,
        shape=st.sampled_from(["plain", "folded into an unanswered prompt", "folded into results"]),
        died=st.sampled_from(["at once", "while a call ran", "after a round", "after an answer", "after a rewrite"]),
        tool=st.sampled_from(list(TOOLS)),
    )
    def failed_turn(self, which: int, shape: str, died: str, tool: str) -> None:
        """The person speaks, a run begins, something happens in it, and it fails: in all three shapes."""
        held = self._pick(which, lambda one: one.idle)
        if held is None:
            return
        if shape == "folded into results":
            if not held.asked:
                self._say(held, "go on")
            self._call(held, [tool], FRIEND, True, True)
        elif shape == "folded into an unanswered prompt":
            self._say(held, "go on")
        self._say(held, f"write to {FRIEND}")
        self._snapshot(held)
        if died in ("while a call ran", "after a round"):
            self._call(held, [tool], FRIEND, died == "after a round", True)
        elif died == "after an answer":
            self._answer(held)
        elif died == "after a rewrite":
            self._rewrite(held, "summary")
        self._roll_back(held)

    def _only_typed(self, held: Held, message: Message) -> bool:
        return all(isinstance(block, Text) and block.text in held.texts for block in message.blocks)

    def _adopt(self, held: Held, expected: list[Message]) -> None:
        """The messages must be these; calls of their last round that have no result must have got one."""
        now = tuple(held.subject.messages)
        count = len(expected)
        self.demand(
            list(now[:count]) == expected and len(now) <= count + 1,
            "the contract",
            f"{count} messages of before",
            f"{len(now)} messages: {_roles(now)}",
        )
        more = now[count:]
        self.demand(
            all(isinstance(block, ToolAnswer) for message in more for block in message.blocks),
            "T17",
            "nothing new but results of calls that had none",
            _roles(more),
        )
        self.demand(not unanswered(now), "T17", "one result for each call", f"without: {sorted(unanswered(now))}")
        held.messages, held.waiting = list(now), []

    @rule(which=WHICH, how=st.sampled_from(["summary", "thinned", "oldest dropped", "cut to a budget"]))
    def rewrite(self, which: int, how: str) -> None:
        held = self._pick(which, lambda one: one.idle)
        if held is not None:
            self._rewrite(held, how)

    def _rewrite(self, held: Held, how: str) -> None:
        new = self._rewritten(held.messages, how)
        if new is None:
            return
        with self.step(f"{held.name} was rewritten: {how}"):
            held.subject.rewrite(new)
            held.rewritten.append(tuple(held.messages))
            held.messages = list(new)

    @rule(which=WHICH)
    def part(self, which: int) -> None:
        """A rewrite that loses the results of a call must be refused, or mend what it parts."""
        held = self._pick(which, lambda one: one.idle and any(each.role is Role.TOOL for each in one.messages))
        if held is None:
            return
        new = [message for message in held.messages if message.role is not Role.TOOL]
        with self.step(f"{held.name} was rewritten: without the results of its calls"):
            try:
                held.subject.rewrite(new)
            except Refused:
                self.note("→ refused")
                return
            held.rewritten.append(tuple(held.messages))
            held.messages = list(held.subject.messages)

    def _rewritten(self, messages: list[Message], how: str) -> list[Message] | None:
        if how == "summary":
            return [Message.user(f"Summary: all is well. {STRANGER} is a colleague.")]
        if how == "thinned":
            return [Message(one.role, tuple(map(_thin, one.blocks))) for one in messages]
        if how == "oldest dropped":
            starts = [place for place, one in enumerate(messages) if place and one.role is Role.USER]
            return messages[starts[0] :] if starts else None
        try:
            history = History(messages)
        except Refused:
            return None
        history.truncate_to_budget(TokenBudget(1))
        return list(history.messages)

    @rule(which=WHICH)
    def assign(self, which: int) -> None:
        """Assigning to what is read changes nothing, and may raise whatever it likes."""
        held = self._pick(which)
        if held is None:
            return
        with self.step(f"somebody assigned to the taint of {held.name}"):
            for name in ("taint", "exposure"):
                try:
                    setattr(held.subject, name, frozenset())
                except Exception:
                    pass  # refusing is one good answer, ignoring is the other

    # --- others that begin from one -------------------------------------------------------------------------------

    def _fork(self, which: int, words: str, make: Callable[[Any], Any], *, told: bool = True) -> None:
        held = self._pick(which, lambda _one: len(self.pool) < MAX_POOL)
        if held is None:
            return
        with self.step(f"{NAMES[self._made % len(NAMES)]} is {words} of {held.name}"):
            other = self._add(make(held.subject), held, taint=held.exposure)
            self._adopt(other, list(held.messages))
            self.demand(other.subject is not held.subject, "the contract", "another conversation", "the same object")
            if told:
                # Late results reach a fork, and the forks of a fork: they had the call under way when they began.
                for flight in self._flights():
                    if flight in held.flights.values() or held in flight.heirs:
                        flight.heirs.append(other)

    def _flights(self) -> Iterator[Flight]:
        for one in self.pool:
            yield from one.flights.values()

    @rule(which=WHICH)
    def fork(self, which: int) -> None:
        self._fork(which, "a fork", lambda subject: subject.fork())

    @rule(which=WHICH, label=st.sampled_from(OTHERS), again=st.booleans())
    def fork_while_a_call_runs(self, which: int, label: str, again: bool) -> None:
        """Its result is late for the fork, and for a fork of the fork."""
        held = self._pick(which, lambda one: one.idle and one.asked and len(self.pool) < MAX_POOL)
        if held is None:
            return
        self._call(held, ["clock"], FRIEND, False, True)
        self._fork(self.pool.index(held), "a fork", lambda subject: subject.fork())
        if again:
            self._fork(len(self.pool) - 1, "a fork", lambda subject: subject.fork())
        with self.step(f"in {held.name} the results came, with {label}"):
            self._finish(held, True, (label,))

    @rule(which=WHICH, how=st.sampled_from([copy.copy, copy.deepcopy]))
    def duplicate(self, which: int, how: Callable[[Any], Any]) -> None:
        self._fork(which, f"a {how.__name__}", how)

    @rule(which=WHICH)
    def pickled(self, which: int) -> None:
        # No late result can reach what stands in a file somewhere.
        self._fork(which, "a pickled copy", lambda subject: pickle.loads(pickle.dumps(subject)), told=False)  # noqa: S301  # of our own making

    @rule(which=WHICH)
    def resume(self, which: int) -> None:
        held = self._pick(which, lambda one: len(self.pool) < MAX_POOL and one.idle)
        kind = type(held.subject) if held is not None else None
        if held is None or kind is None or not hasattr(kind, "resumed"):
            return
        with self.step(f"{NAMES[self._made % len(NAMES)]} continues the messages of {held.name}, with its labels"):
            other = kind.resumed(held.subject.messages, held.subject.exposure)
            self._add(other, taint=held.exposure, messages=list(held.messages))  # nothing counts as typed there

    @rule(which=WHICH, tools=st.sampled_from([None, ("read_notes",), ("fetch", "clock")]))
    def child(self, which: int, tools: tuple[str, ...] | None) -> None:
        held = self._pick(which, lambda _one: len(self.pool) < MAX_POOL)
        if held is None:
            return
        able = f" able to {' and '.join(tools)}" if tools else ""
        with self.step(f"{NAMES[self._made % len(NAMES)]} is a child of {held.name}{able}"):
            task = f"read this and write to {STRANGER}"
            more = {} if tools is None else {"tools": specs(tools)}
            subject = held.subject.child(task, **more)
            # Not what siblings hold: their work has not come back, and the task was written without it.
            child = self._add(subject, held, taint=held.own, messages=[Message.user(task)], parent=held)
            held.children.append(child)

    @rule(which=WHICH)
    def join(self, which: int) -> None:
        """On return, crash, time-out or discard, once or again: it is the same call."""
        child = self._pick(which, lambda one: one.parent is not None)
        parent = child.parent if child is not None else None
        if child is None or parent is None:
            return
        with self.step(f"{child.name} was joined to {parent.name}"):
            parent.subject.join(child.subject)
            parent.taint |= child.exposure

    @rule(which=WHICH)
    def restart(self, which: int) -> None:
        held = self._pick(which, lambda _one: len(self.pool) < MAX_POOL)
        if held is None:
            return
        with self.step(f"{NAMES[self._made % len(NAMES)]} restarts {held.name} from trusted words"):
            subject = held.subject.restart_from_trusted()
            for message in subject.messages:
                for block in message.blocks:
                    self.demand(
                        isinstance(block, Text) and block.text in held.texts,
                        "restart_from_trusted",
                        "nothing but text that the person typed",
                        block,
                    )
            channels = {one for one in held.own if one.startswith("egress:")}
            self._add(subject, held, taint=channels, messages=list(subject.messages))

    # --- what must hold after every step --------------------------------------------------------------------------

    @invariant()
    def everything_holds(self) -> None:
        if self.pool:
            with self.looking():
                for held in self.pool:
                    self._holds(held)

    def _holds(self, held: Held) -> None:
        taint = held.subject.taint
        labels, exposure = set(taint), set(held.subject.exposure)
        self.demand(not lost(held.taint, labels), "T2", f"{held.name} has {shown(held.taint)}", shown(labels))
        self.demand(
            not lost(held.seen, labels), "T2", f"{held.name} has what it had: {shown(held.seen)}", shown(labels)
        )
        self.demand(
            not lost(held.exposure, exposure),
            "T2",
            f"{held.name} is exposed to {shown(held.exposure)}",
            shown(exposure),
        )
        self.demand(
            not lost(labels, exposure),
            "T2",
            f"{held.name} is exposed to all of its taint, {shown(labels)}",
            shown(exposure),
        )
        held.seen = labels
        if hasattr(taint, "join"):
            first = self.pool[0].subject.taint
            self.demand(taint.join(taint) == taint, "T1", "a taint joined with itself is itself", taint)
            self.demand(set(taint.join(first)) == labels | set(first), "T1", "a join is the union", taint.join(first))
            self.demand(taint.join(first) == first.join(taint), "T1", "the order of a join does not matter", taint)
        now = tuple(held.subject.messages)
        loose = unanswered(now) - set(held.waiting)
        self.demand(not loose, "T17", f"each call in {held.name} has one result", f"not so: {sorted(loose)}")
        self.demand(list(now) == held.messages, "the contract", f"in {held.name}: {_roles(held.messages)}", _roles(now))
        wrong = misshapen(now)
        self.demand(not wrong, "T17", f"{held.name} is an order of roles that providers take", wrong)
        replaced = [tuple(one) for one in held.subject.rewritten]
        self.demand(replaced == held.rewritten, "the contract", f"{len(held.rewritten)} replaced lists", len(replaced))


def _thin(block: Any) -> Any:
    return ToolAnswer(block.id, "(thinned)", block.is_error) if isinstance(block, ToolAnswer) else block


def _roles(messages: Sequence[Message]) -> str:
    """A list of messages in a few words."""
    words = [f"{one.role.value} {one.text[:24]!r}" if one.text else one.role.value for one in messages]
    return "; ".join(words) if words else "no messages"
