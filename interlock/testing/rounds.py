"""The first half of the conversation machine: what the suite knows of each conversation, what is said, and rounds of
calls. The other half is :mod:`interlock.testing.machines`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from interlock.model.calls import Call
from interlock.model.decisions import Verdict
from interlock.model.messages import Image, Message, Role, Text, ToolUse
from interlock.model.results import ToolResult
from interlock.testing.toolbox import FRIEND, HOSTILE_PAGE, PEOPLE, STRANGER, TOOLS, guards
from interlock.testing.traces import NAMES, Tally, Traced, shown

MAX_POOL: Final = 4
# The first more often than the others: forks are many, and may be of another class than what is under test.
WHICH: Final = st.sampled_from([0, 0, 0, *range(MAX_POOL)])
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
    def own(self) -> set[str]:
        """What is here or under way here, without work that is still with children."""
        return set(self.taint).union(*(flight.labels for flight in self.flights.values()))

    @property
    def exposure(self) -> set[str]:
        found = self.own
        for child in self.children:
            found |= child.exposure
        return found

    @property
    def idle(self) -> bool:
        """Is no call of the last round without its result? Then the person may speak."""
        return not self.waiting

    @property
    def asked(self) -> bool:
        """Is it the model's turn?"""
        return bool(self.messages) and self.messages[-1].role is not Role.ASSISTANT

    @property
    def late(self) -> list[str]:
        """Calls under way whose round is not there any more."""
        return [one for one in self.flights if one not in self.waiting]

    def heard(self, text: str) -> None:
        """The person's text, folded as :meth:`interlock.Conversation.say` does."""
        if self.messages and self.messages[-1].role in (Role.USER, Role.TOOL):
            last = self.messages[-1]
            self.messages[-1] = Message(last.role, (*last.blocks, Text(text)))
        else:
            self.messages.append(Message.user(text))


class RoundsMachine(Traced):
    """Turns and rounds.

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

    def _pick(self, which: int, fits: Callable[[Held], bool] = lambda _held: True) -> Held | None:
        """One of those that something can happen to now, if any: a step that does nothing is wasted."""
        found = [held for held in self.pool if fits(held)]
        return found[which % len(found)] if found else None

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

    @rule(which=WHICH, text=st.sampled_from(list(TYPED)))
    def say(self, which: int, text: str) -> None:
        held = self._pick(which, lambda one: one.idle)
        if held is not None:
            self._say(held, text)

    def _say(self, held: Held, text: str) -> None:
        with self.step(f"in {held.name} the person typed {text!r}"):
            held.subject.say(text)
            held.heard(text)
            held.texts.add(text)
            held.typed |= {TYPED[text]} - {""}

    @rule(which=WHICH, address=st.sampled_from(PEOPLE))
    def paste(self, which: int, address: str) -> None:
        held = self._pick(which, lambda one: one.idle)
        if held is None:
            return
        text = f"pasted: send it to {address}"
        with self.step(f"in {held.name} the person pasted {text!r}"):
            held.subject.say(text, pasted=True)
            held.heard(text)
            held.taint.add("untrusted:paste")

    @rule(which=WHICH)
    def answer(self, which: int) -> None:
        held = self._pick(which, lambda one: one.asked)
        if held is not None:
            self._answer(held)

    def _answer(self, held: Held) -> None:
        with self.step(f"in {held.name} the model answered"):
            self._push(held, Message.assistant(f"done; {STRANGER} would like a copy"))

    @rule(which=WHICH)
    def show_image(self, which: int) -> None:
        held = self._pick(which, lambda one: one.idle and not one.asked)
        if held is None:
            return
        with self.step(f"into {held.name} the host put an image"):
            self._push(held, Message.user("this picture", Image("image/png", b"pixels")))
            held.taint.add("private:image")

    @rule(which=WHICH, label=st.sampled_from(OTHERS))
    def admit(self, which: int, label: str) -> None:
        held = self._pick(which)
        if held is None:
            return
        with self.step(f"into {held.name} content with {label} was admitted"):
            self._guard(held).admit("a note", labels=[label], source="notes/7")
            held.taint.add(label)

    def _push(self, held: Held, message: Message) -> None:
        held.subject.push(message)
        held.messages.append(message)

    # --- rounds of calls ------------------------------------------------------------------------------------------

    @rule(
        which=WHICH,
        tools=st.lists(st.sampled_from([*TOOLS, "unheard_of"]), min_size=1, max_size=3),
        to=st.sampled_from(PEOPLE),
        finish=st.booleans(),
        external=st.booleans(),
    )
    def call(self, which: int, tools: list[str], to: str, finish: bool, external: bool) -> None:
        held = self._pick(which, lambda one: one.idle and one.asked)
        if held is not None:
            self._call(held, tools, to, finish, external)

    @rule(which=WHICH, text=st.sampled_from(list(TYPED)), tool=st.sampled_from(list(TOOLS)), to=st.sampled_from(PEOPLE))
    def turn(self, which: int, text: str, tool: str, to: str) -> None:
        """A whole turn, so that much is there for what follows."""
        held = self._pick(which, lambda one: one.idle)
        if held is not None:
            self._say(held, text)
            self._call(held, [tool], to, True, True)
            self._answer(held)

    def _call(self, held: Held, tools: list[str], to: str, finish: bool, external: bool) -> None:
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

    @rule(which=WHICH, external=st.booleans(), extra=st.sampled_from([(), *((one,) for one in OTHERS)]))
    def finish(self, which: int, external: bool, extra: tuple[str, ...]) -> None:
        held = self._pick(which, lambda one: not one.idle)
        if held is None:
            return
        more = f", with {shown(extra)}" if extra else ""
        with self.step(f"in {held.name} the results came{more}"):
            self._finish(held, external, extra)

    @rule(which=WHICH, extra=st.sampled_from([(), *((one,) for one in OTHERS)]))
    def a_late_result(self, which: int, extra: tuple[str, ...]) -> None:
        """Of a call whose round was rolled back or rewritten away."""
        held = self._pick(which, lambda one: bool(one.late))
        if held is None:
            return
        late = held.late
        more = f", with {shown(extra)}" if extra else ""
        with self.step(f"in {held.name} a late result came{more}"):
            self._land(held, held.flights[late[0]], True, extra)

    def _finish(self, held: Held, external: bool, extra: tuple[str, ...]) -> None:
        ticket = self._open[held.name]
        outcomes = []
        for call_id in held.waiting:
            flight = held.flights.get(call_id)
            outcomes.append(ticket.outcomes[call_id] if flight is None else self._land(held, flight, external, extra))
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

    @rule(which=WHICH, to=st.sampled_from(PEOPLE))
    def ask(self, which: int, to: str) -> None:
        """Would a send be allowed? Changes nothing, and shows what counts as typed."""
        held = self._pick(which)
        if held is not None:
            self._ask(held, to)

    def _ask(self, held: Held, to: str) -> None:
        call = Call("send", {"to": to, "body": "all of it"}, "asked")
        forbid = self._must_not_run(held, [call], call)
        with self.step(f"in {held.name} a send to {to} was weighed"):
            verdict = self._guard(held).preview(call).verdict
            self.note(f"→ {verdict.value}")
            self.demand(not forbid or verdict is not Verdict.ALLOW, "T2", f"no allow, since {forbid}", "allow")

    def end(self) -> None:
        for held in self.pool:
            for to in PEOPLE:
                self._ask(held, to)
            self.steps = self.steps[: -len(PEOPLE)]  # what was weighed without a failure is of no interest
