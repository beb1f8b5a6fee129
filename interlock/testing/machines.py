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
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from interlock.errors import Refused
from interlock.model.calls import Call
from interlock.model.decisions import Verdict
from interlock.model.history import History, TokenBudget
from interlock.model.messages import Image, Message, Role, Text, ToolAnswer, ToolUse
from interlock.model.results import ToolResult
from interlock.testing.toolbox import (
    FRIEND,
    HOSTILE_PAGE,
    PEOPLE,
    STRANGER,
    TOOLS,
    guards,
    specs,
)
from interlock.testing.traces import Tally, Traced, lost, misshapen, shown, unanswered

MAX_POOL: Final = 6
NAMES: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# What a person types: the text, and the address in it.
TYPED: Final = {"go on": "", f"write to {FRIEND}": FRIEND, f"ask {STRANGER}": STRANGER}
# Labels that no tool of the suite brings, so that nothing else can hide their loss.
OTHERS: Final = ("untrusted:memory", "private:memory", "egress:memory")
ARGUMENTS: Final = {"fetch": {"url": HOSTILE_PAGE}, "share": {"path": "notes.txt"}}


@dataclass(slots=True, eq=False)
class Flight:
    """An allowed call without an outcome, and the forks that a late result must reach."""

    ticket: Any
    call_id: str
    tool: str
    heirs: list[Held] = field(default_factory=list)

    @property
    def labels(self) -> set[str]:
        return {*TOOLS[self.tool].certain, *TOOLS[self.tool].untrusted}


@dataclass(slots=True, eq=False)
class Held:
    """What the model knows of one conversation."""

    name: str
    subject: Any
    taint: set[str] = field(default_factory=set)
    flights: dict[str, Flight] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    typed: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    rewritten: list[tuple[Message, ...]] = field(default_factory=list)
    before: tuple[Any, tuple[Message, ...]] | None = None
    parent: Held | None = None
    children: list[Held] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    guard: Any = None

    @property
    def exposure(self) -> set[str]:
        found = set(self.taint)
        for flight in self.flights.values():
            found |= flight.labels
        for child in self.children:
            found |= child.exposure
        return found

    @property
    def prompt_fits(self) -> bool:
        """May the person speak now? Not between calls and their results."""
        return not self.waiting

    def heard(self, text: str) -> None:
        """The person's text, folded as :meth:`interlock.Conversation.say` does."""
        if self.messages and self.messages[-1].role in (Role.USER, Role.TOOL):
            last = self.messages[-1]
            self.messages[-1] = Message(last.role, (*last.blocks, Text(text)))
        else:
            self.messages.append(Message.user(text))


class ConversationMachine(Traced):
    """Turns, rounds, failed turns, rewrites, forks, children, copies. See :func:`interlock.testing.check_conversation`.

    Args:
        factory: makes a fresh conversation.
        guard: makes a guard of a conversation; by default ours, over the suite's tools.
    """

    def __init__(self, tally: Tally, factory: Callable[[], Any], guard: Callable[[Any], Any] | None = None) -> None:
        super().__init__(tally)
        self.pool: list[Held] = []
        self._factory = factory
        self._guards = guard or guards()
        self._made = 0
        self._calls = 0

    # --- the pool -------------------------------------------------------------------------------------------------

    def _next_name(self) -> str:
        self._made += 1
        return NAMES[(self._made - 1) % len(NAMES)]

    def _pick(self, which: int) -> Held:
        return self.pool[which % len(self.pool)]

    def _add(self, subject: Any, like: Held | None = None, **more: Any) -> Held:
        """A conversation joins the pool; ``like``: the one that it came from."""
        held = Held(self._next_name(), subject, **more)
        if like is not None:
            held.typed, held.texts = set(like.typed), set(like.texts)
        self.pool.append(held)
        return held

    def _guard(self, held: Held) -> Any:
        if held.guard is None:  # late, so that much happens to conversations that no guard has seen yet
            held.guard = self._guards(held.subject)
        return held.guard

    @initialize()
    def begin(self) -> None:
        with self.step("A is a new conversation"):
            self._add(self._factory())

    # --- what is said ---------------------------------------------------------------------------------------------

    @rule(which=st.integers(0, 5), text=st.sampled_from(list(TYPED)))
    def say(self, which: int, text: str) -> None:
        held = self._pick(which)
        if not held.prompt_fits:
            return
        with self.step(f"in {held.name} the person typed {text!r}"):
            held.subject.say(text)
            held.heard(text)
            held.texts.add(text)
            held.typed |= {TYPED[text]} - {""}

    @rule(which=st.integers(0, 5), address=st.sampled_from(PEOPLE))
    def paste(self, which: int, address: str) -> None:
        held = self._pick(which)
        if not held.prompt_fits:
            return
        text = f"pasted: send it to {address}"
        with self.step(f"in {held.name} the person pasted {text!r}"):
            held.subject.say(text, pasted=True)
            held.heard(text)
            held.taint.add("untrusted:paste")

    @rule(which=st.integers(0, 5))
    def answer(self, which: int) -> None:
        held = self._pick(which)
        if not held.messages or held.messages[-1].role is Role.ASSISTANT:
            return
        with self.step(f"in {held.name} the model answered"):
            self._push(held, Message.assistant(f"done; {STRANGER} would like a copy"))

    @rule(which=st.integers(0, 5))
    def show_image(self, which: int) -> None:
        held = self._pick(which)
        if held.waiting or (held.messages and held.messages[-1].role is not Role.ASSISTANT):
            return
        with self.step(f"into {held.name} the host put an image"):
            self._push(held, Message.user("this picture", Image("image/png", b"pixels")))
            held.taint.add("private:image")

    @rule(which=st.integers(0, 5), label=st.sampled_from(OTHERS))
    def admit(self, which: int, label: str) -> None:
        held = self._pick(which)
        with self.step(f"into {held.name} content with {label} was admitted"):
            self._guard(held).admit("a note", labels=[label], source="notes/7")
            held.taint.add(label)

    def _push(self, held: Held, message: Message) -> None:
        held.subject.push(message)
        held.messages.append(message)

    # --- rounds of calls ------------------------------------------------------------------------------------------

    @rule(
        which=st.integers(0, 5),
        tools=st.lists(st.sampled_from([*TOOLS, "unheard_of"]), min_size=1, max_size=3),
        to=st.sampled_from(PEOPLE),
        finish=st.booleans(),
        external=st.booleans(),
    )
    def call(self, which: int, tools: list[str], to: str, finish: bool, external: bool) -> None:
        held = self._pick(which)
        if held.waiting or not held.messages or held.messages[-1].role is Role.ASSISTANT:
            return
        calls = []
        for name in tools:
            self._calls += 1
            arguments = {"to": to, "body": "all of it"} if name == "send" else ARGUMENTS.get(name, {})
            calls.append(Call(name, dict(arguments), f"call_{self._calls}"))
        words = " and ".join(f"send to {to}" if one.name == "send" else one.name for one in calls)
        with self.step(f"in {held.name} the model called {words}"):
            forbidden = [self._must_not_run(held, calls, one) for one in calls]
            ticket = self._guard(held).propose(*calls)
            self._push(held, Message.assistant("", *(ToolUse(one.id, one.name, one.arguments) for one in calls)))
            self.note("→ " + ", ".join(str(outcome.verdict.value) for outcome in ticket.outcomes.values()))
            for one, forbid in zip(calls, forbidden, strict=True):
                outcome = ticket.outcomes[one.id]
                self.demand(
                    not forbid or outcome.verdict is not Verdict.ALLOW,
                    "T2",
                    f"{one.name} is not allowed, since {forbid}",
                    "it was allowed",
                )
                held.waiting.append(one.id)
                if outcome.verdict is Verdict.ALLOW:
                    held.flights[one.id] = Flight(ticket, one.id, one.name)
                else:
                    held.flights.pop(one.id, None)
            self._open = {**getattr(self, "_open", {}), held.name: ticket}
            if finish:
                self._finish(held, external, ())
                self.note("and saw the results" if external else "and saw results that touched nothing outside")
            else:
                self.note("and waits")

    @rule(which=st.integers(0, 5), external=st.booleans(), extra=st.sampled_from([(), *((one,) for one in OTHERS)]))
    def finish(self, which: int, external: bool, extra: tuple[str, ...]) -> None:
        held = self._pick(which)
        if not held.waiting:
            return
        more = f", with {shown(extra)}" if extra else ""
        with self.step(f"in {held.name} the results came{more}"):
            self._finish(held, external, extra)

    @rule(which=st.integers(0, 5), extra=st.sampled_from([(), *((one,) for one in OTHERS)]))
    def a_late_result(self, which: int, extra: tuple[str, ...]) -> None:
        """Of a call whose round was rolled back or rewritten away."""
        held = self._pick(which)
        late = [one for one in held.flights if one not in held.waiting]
        if not late:
            return
        more = f", with {shown(extra)}" if extra else ""
        with self.step(f"in {held.name} a late result came{more}"):
            self._land(held, held.flights[late[0]], True, extra)

    def _finish(self, held: Held, external: bool, extra: tuple[str, ...]) -> None:
        ticket = self._open[held.name]
        outcomes = []
        for call_id in held.waiting:
            flight = held.flights.get(call_id)
            outcomes.append(
                ticket.outcomes[call_id] if flight is None else self._land(held, flight, external, extra)
            )
        held.waiting = []
        self._push(held, Message.results(*outcomes))

    def _land(self, held: Held, flight: Flight, external: bool, extra: tuple[str, ...]) -> Any:
        content = f"the content, from {STRANGER}"
        outcome = self._guard(held).observe(
            flight.ticket, flight.call_id, ToolResult(content, external=external, labels=extra)
        )
        joined = {*TOOLS[flight.tool].certain, *extra}
        if external:
            joined |= TOOLS[flight.tool].untrusted
        del held.flights[flight.call_id]
        for one in (held, *flight.heirs):
            one.taint |= joined
        return outcome

    def _must_not_run(self, held: Held, calls: Sequence[Call], call: Call) -> str:
        """Why a call may not run, in words; empty when it may. The lethal trifecta, in sets."""
        if call.name not in TOOLS:
            return "nobody declared it"
        receiver = TOOLS[call.name].receiver
        exposed = held.exposure
        ahead = exposed.union(*(TOOLS[one.name].certain for one in calls if one.name in TOOLS))
        untrusted = sorted(one for one in exposed if one.startswith("untrusted:"))
        private = sorted(one for one in ahead if one.startswith("private:"))
        if not receiver or not untrusted or not private or call.arguments[receiver] in held.typed:
            return ""
        return f"{untrusted[0]} and {private[0]} are here and nobody typed {call.arguments[receiver]}"

    @rule(which=st.integers(0, 5), to=st.sampled_from(PEOPLE))
    def ask(self, which: int, to: str) -> None:
        """Would a send be allowed? Changes nothing, and shows what counts as typed."""
        held = self._pick(which)
        call = Call("send", {"to": to, "body": "all of it"}, "asked")
        forbid = self._must_not_run(held, [call], call)
        with self.step(f"in {held.name} a send to {to} was weighed"):
            verdict = self._guard(held).preview(call).verdict
            self.note(f"→ {verdict.value}")
            self.demand(not forbid or verdict is not Verdict.ALLOW, "T2", f"no allow, since {forbid}", "allow")

    # --- failed turns and rewrites --------------------------------------------------------------------------------

    @rule(which=st.integers(0, 5))
    def snapshot(self, which: int) -> None:
        held = self._pick(which)
        with self.step(f"a run began in {held.name}"):
            held.before = (held.subject.snapshot(), tuple(held.messages))
            held.rewritten = []

    @rule(which=st.integers(0, 5))
    def roll_back(self, which: int) -> None:
        held = self._pick(which)
        if held.before is None:
            return
        snapshot, messages = held.before
        with self.step(f"the run in {held.name} failed and was rolled back"):
            held.subject.roll_back_failed_turn(snapshot)
            expected = list(messages)
            last = expected[-1] if expected else None
            if last is not None and last.role is Role.USER and self._only_typed(held, last):
                del expected[-1]
            self._adopt(held, expected)

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

    @rule(which=st.integers(0, 5), how=st.sampled_from(["summary", "thinned", "oldest dropped", "cut to a budget"]))
    def rewrite(self, which: int, how: str) -> None:
        held = self._pick(which)
        new = self._rewritten(held.messages, how)
        if new is None or held.waiting:
            return
        with self.step(f"{held.name} was rewritten: {how}"):
            held.subject.rewrite(new)
            held.rewritten.append(tuple(held.messages))
            held.messages = list(new)

    @rule(which=st.integers(0, 5))
    def part(self, which: int) -> None:
        """A rewrite that loses the results of a call must be refused, or mend what it parts."""
        held = self._pick(which)
        new = [message for message in held.messages if message.role is not Role.TOOL]
        if held.waiting or len(new) == len(held.messages):
            return
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

    @rule(which=st.integers(0, 5))
    def assign(self, which: int) -> None:
        """Assigning to what is read changes nothing, and may raise whatever it likes."""
        held = self._pick(which)
        with self.step(f"somebody assigned to the taint of {held.name}"):
            for name in ("taint", "exposure"):
                try:
                    setattr(held.subject, name, frozenset())
                except Exception:
                    pass  # refusing is one good answer, ignoring is the other

    # --- others that begin from one -------------------------------------------------------------------------------

    def _fork(self, which: int, words: str, make: Callable[[Any], Any], *, told: bool = True) -> None:
        held = self._pick(which)
        if len(self.pool) >= MAX_POOL:
            return
        with self.step(f"{NAMES[self._made % len(NAMES)]} is {words} of {held.name}"):
            other = self._add(make(held.subject), held, taint=held.exposure)
            self._adopt(other, list(held.messages))
            self.demand(
                other.subject is not held.subject, "the contract", "another conversation", "the same object"
            )
            if told:
                # Late results reach a fork, and the forks of a fork: they had the call under way when they began.
                for flight in self._flights():
                    if flight in held.flights.values() or held in flight.heirs:
                        flight.heirs.append(other)

    def _flights(self) -> Iterator[Flight]:
        for one in self.pool:
            yield from one.flights.values()

    @rule(which=st.integers(0, 5))
    def fork(self, which: int) -> None:
        self._fork(which, "a fork", lambda subject: subject.fork())

    @rule(which=st.integers(0, 5), how=st.sampled_from([copy.copy, copy.deepcopy]))
    def duplicate(self, which: int, how: Callable[[Any], Any]) -> None:
        self._fork(which, f"a {how.__name__}", how)

    @rule(which=st.integers(0, 5))
    def pickled(self, which: int) -> None:
        # No late result can reach what stands in a file somewhere.
        self._fork(which, "a pickled copy", lambda subject: pickle.loads(pickle.dumps(subject)), told=False)  # noqa: S301  # of our own making

    @rule(which=st.integers(0, 5))
    def resume(self, which: int) -> None:
        held = self._pick(which)
        kind = type(held.subject)
        if len(self.pool) >= MAX_POOL or held.waiting or not hasattr(kind, "resumed"):
            return
        with self.step(f"{NAMES[self._made % len(NAMES)]} continues the messages of {held.name}, with its labels"):
            other = kind.resumed(held.subject.messages, held.subject.exposure)
            self._add(other, taint=held.exposure, messages=list(held.messages))  # nothing counts as typed there

    @rule(which=st.integers(0, 5), tools=st.sampled_from([None, ("read_notes",), ("fetch", "clock")]))
    def child(self, which: int, tools: tuple[str, ...] | None) -> None:
        held = self._pick(which)
        if len(self.pool) >= MAX_POOL:
            return
        able = f" able to {' and '.join(tools)}" if tools else ""
        with self.step(f"{NAMES[self._made % len(NAMES)]} is a child of {held.name}{able}"):
            task = f"read this and write to {STRANGER}"
            if tools is None:
                subject = held.subject.child(task)
            else:
                subject = held.subject.child(task, tools=specs(tools))
            others = {one for child in held.children for one in child.exposure}
            child = self._add(subject, held, taint=held.exposure | others, messages=[Message.user(task)], parent=held)
            held.children.append(child)

    @rule(which=st.integers(0, 5))
    def join(self, which: int) -> None:
        """On return, crash, time-out or discard, once or again: it is the same call."""
        child = self._pick(which)
        parent = child.parent
        if parent is None:
            return
        with self.step(f"{child.name} was joined to {parent.name}"):
            parent.subject.join(child.subject)
            parent.taint |= child.exposure

    @rule(which=st.integers(0, 5))
    def restart(self, which: int) -> None:
        held = self._pick(which)
        if len(self.pool) >= MAX_POOL:
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
            channels = {one for one in held.exposure if one.startswith("egress:")}
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
        self.demand(not lost(held.seen, labels), "T2", f"{held.name} has what it had: {shown(held.seen)}", shown(labels))
        self.demand(
            not lost(held.exposure, exposure), "T2", f"{held.name} is exposed to {shown(held.exposure)}", shown(exposure)
        )
        self.demand(
            not lost(labels, exposure), "T2", f"{held.name} is exposed to all of its taint, {shown(labels)}", shown(exposure)
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
        self.demand(
            list(now) == held.messages, "the contract", f"in {held.name}: {_roles(held.messages)}", _roles(now)
        )
        wrong = misshapen(now)
        self.demand(not wrong, "T17", f"{held.name} is an order of roles that providers take", wrong)
        replaced = [tuple(one) for one in held.subject.rewritten]
        self.demand(
            replaced == held.rewritten, "the contract", f"{len(held.rewritten)} replaced lists", len(replaced)
        )


def _thin(block: Any) -> Any:
    return ToolAnswer(block.id, "(thinned)", block.is_error) if isinstance(block, ToolAnswer) else block


def _roles(messages: Sequence[Message]) -> str:
    """A list of messages in a few words."""
    words = [f"{one.role.value} {one.text[:24]!r}" if one.text else one.role.value for one in messages]
    return "; ".join(words) if words else "no messages"
