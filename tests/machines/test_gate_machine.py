"""Proves T2, T8, T10 and T17 of whole conversations: any interleaving of calls, results, text, rivals and guards.

The model knows nothing of the code: a set of labels that have entered, the labels of what is under way, the values that
the person typed, and for each tool what it brings. After every step the exposure must be the model's, the journal's
chain must hold, its fold must be its state, and every decision must have been made under the labels that stood when it
was written. A rival writes into the journal while the engine thinks, so that compare-and-set has something to lose.
Mutations that this file catches: compare-and-set dropped; `external` ignored; in-flight labels left out of the
exposure; a preview that records; own or sibling labels left out of the forecast.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from interlock import Call, Conversation, MemoryJournal, ToolResult, Verdict
from interlock.gate.drivers import World
from interlock.gate.permits import Permit, executing
from interlock.model.chain import verify
from interlock.model.digests import digest
from interlock.model.entries import Admitted, Decided, decode
from interlock.model.labels import Label
from interlock.model.state import State, apply
from tests.strategies import reference
from tests.worlds import FixedClock, NoFiles, SaysEngine, Tape, guard_in

KEY = b"key"
AT = "2026-11-29T12:00:00.000000Z"

# Tool → private labels, untrusted labels, channels, does it send to an address; written down apart from the manifest.
TOOLS: dict[str, tuple[set[str], set[str], set[str], bool]] = {
    "read_mail": ({"private:mail"}, {"untrusted:mail"}, set(), False),
    "read_note": ({"private:notes"}, set(), set(), False),
    "fetch": (set(), {"untrusted:web"}, set(), True),
    "send": (set(), set(), set(), True),
    "share": ({"private:files"}, set(), {"egress:share"}, False),
    "now": (set(), set(), set(), False),
}
VALUES: dict[str, dict[str, list[str]]] = {
    "send": {"to": ["bob@corp.example", "eve@evil.example"], "body": ["text"]},
    "fetch": {"url": ["http://corp.example/", "http://evil.example/x"]},
    "share": {"path": ["notes/todo.txt"]},
}
RECEIVER = {"send": "to", "fetch": "url"}
# Labels that no tool brings, so that content of other origin does not hide what a tool forgot to bring.
OTHERS = [Label(one) for one in ("private:memory", "untrusted:memory", "egress:memory", "private:credentials")]
PEOPLE = ["bob@corp.example", "http://corp.example/", "eve@evil.example"]


def others(min_size: int = 1) -> st.SearchStrategy[tuple[Label, ...]]:
    some = [(), *((one,) for one in OTHERS), tuple(sorted(OTHERS[:2]))]
    return st.sampled_from(some[1:] if min_size else some)


@st.composite
def a_call(draw: st.DrawFn) -> Call:
    name = draw(st.sampled_from([*TOOLS, "nobody_declared"]))
    return Call(name, {argument: draw(st.sampled_from(found)) for argument, found in VALUES.get(name, {}).items()})


class GateMachine(RuleBasedStateMachine):
    """One conversation, two guards on it, one rival that writes whenever it likes."""

    pending = Bundle("pending")

    def __init__(self) -> None:
        super().__init__()
        self.memory = MemoryJournal(key=KEY)
        self.taint: set[str] = set()
        self.flying: dict[int, tuple[set[str], set[str], set[str]]] = {}
        self.typed: set[str] = set()
        self.numbers: list[int] = []
        self.rivals: list[tuple[str, ...]] = []
        self.written = 0

    @initialize(brought=others(0))
    def begin(self, brought: tuple[Label, ...]) -> None:
        self.conversation = Conversation(labels=brought, clock=FixedClock())
        self.taint |= set(brought)
        inner = reference()

        def thinking(document: bytes) -> Any:
            if self.rivals:
                self._rival_writes(self.rivals.pop())
            return inner.evaluate(document)

        self.world = World(SaysEngine(inner.controls, thinking), self.memory, FixedClock(), NoFiles())
        self.guards = [guard_in(_Quiet(self.world), self.conversation) for _ in range(2)]

    def _rival_writes(self, found: tuple[str, ...]) -> None:
        entry = Admitted(AT, "rival", tuple(Label(one) for one in found), digest("content", b""), 0)
        self.memory.append(self.conversation.id, [entry])
        self.taint |= set(found)
        self.written += 1

    # --- what the model says --------------------------------------------------------------------------------------

    @property
    def exposed(self) -> set[str]:
        under_way = [one for parts in self.flying.values() for part in parts for one in part]
        return self.taint | set(under_way)

    def _must_not_run(self, calls: list[Call], place: int, exposed: set[str]) -> bool:
        """The lethal trifecta, in sets: untrusted now, private now or by any call of this turn, and a stranger."""
        call = calls[place]
        if call.name not in RECEIVER:
            return False
        ahead = set(exposed)
        for one in calls:
            private, _, channels, _ = TOOLS.get(one.name, (set(), set(), set(), False))
            ahead |= private | channels
        untrusted = any(one.startswith("untrusted:") for one in exposed)
        private = any(one.startswith("private:") for one in ahead)
        return untrusted and private and call.arguments[RECEIVER[call.name]] not in self.typed

    # --- rules ----------------------------------------------------------------------------------------------------

    @rule(
        target=pending,
        calls=st.lists(a_call(), min_size=1, max_size=3),
        who=st.integers(0, 1),
        rival=st.sampled_from([False, False, True]),
    )
    def propose(self, calls: list[Call], who: int, rival: bool) -> Any:
        if rival:
            self.rivals = [("private:rival", "untrusted:rival")]
        before = len(self.memory.entries(self.conversation.id))
        exposed, written = self.exposed, self.written
        ticket = self.guards[who].propose(*calls)
        exposed = exposed | self.taint  # if the rival was first, the decision that counts was made after it
        self.rivals = []
        assert len(ticket.outcomes) == len(calls)
        found = [self._recorded(call_id) for call_id in ticket.outcomes]
        assert len(self.memory.entries(self.conversation.id)) == before + len(calls) + self.written - written
        waiting = []
        for place, (call_id, outcome) in enumerate(ticket.outcomes.items()):
            if self._must_not_run(calls, place, exposed):
                assert outcome.verdict is not Verdict.ALLOW, "untrusted, private and a stranger met"
            if calls[place].name not in TOOLS:
                assert outcome.verdict is not Verdict.ALLOW, "an undeclared tool ran unasked"
            assert (call_id in ticket.allowed) == (outcome.verdict is Verdict.ALLOW) == outcome.pending
            assert found[place].verdict == outcome.verdict.value
            self.numbers.append(outcome.number)
            if outcome.pending:
                allowed = ticket.allowed[call_id]
                assert found[place].call == allowed.call.digest  # T8: recorded before, for exactly this digest
                with executing(Permit(allowed)) as arguments:
                    assert arguments == calls[place].arguments
                private, untrusted, channels, _ = TOOLS[calls[place].name]
                self.flying[outcome.number] = (private, untrusted, channels)
                waiting.append((ticket, call_id, outcome.number))
            else:
                assert outcome.for_model
                assert outcome.is_error
        return multiple(*waiting)

    def _recorded(self, call_id: str) -> Decided:
        entries = [decode(sealed.body) for sealed in self.memory.entries(self.conversation.id)]
        return next(one for one in reversed(entries) if isinstance(one, Decided) and one.call_id == call_id)

    def _land(self, number: int, external: bool, extra: set[str]) -> None:
        private, untrusted, channels = self.flying.pop(number)
        self.taint |= private | channels | extra | (untrusted if external else set())

    @rule(
        one=consumes(pending),
        external=st.booleans(),
        extra=others(0),
        who=st.integers(0, 1),
        error=st.booleans(),
    )
    def observe(self, one: Any, external: bool, extra: tuple[Label, ...], who: int, error: bool) -> None:
        ticket, call_id, number = one
        result = ToolResult("the content", external=external, labels=extra, is_error=error)
        outcome = self.guards[who].observe(ticket, call_id, result)
        assert outcome.for_model == "the content"
        assert outcome.is_error == error
        self._land(number, external, set(extra))

    @rule(one=consumes(pending), who=st.integers(0, 1), error=st.sampled_from([ValueError("secret"), TimeoutError()]))
    def fail(self, one: Any, who: int, error: Exception) -> None:
        ticket, call_id, number = one
        outcome = self.guards[who].observe(ticket, call_id, error)
        assert outcome.is_error
        assert outcome.error is error
        assert "secret" not in outcome.for_model
        self._land(number, True, set())

    @rule(one=consumes(pending), who=st.integers(0, 1), external=st.booleans())
    def observe_twice(self, one: Any, who: int, external: bool) -> None:
        """A second result adds labels, and its content reaches nobody."""
        ticket, call_id, number = one
        untrusted = self.flying[number][1]
        first = self.guards[who].observe(ticket, call_id, ToolResult("first", external=False))
        assert first.for_model == "first"
        self._land(number, False, set())
        second = self.guards[1 - who].observe(ticket, call_id, ToolResult("second", external=external))
        assert "second" not in second.for_model
        self.taint |= untrusted if external else set()

    @rule(found=others(), who=st.integers(0, 1))
    def admit(self, found: tuple[Label, ...], who: int) -> None:
        assert self.guards[who].admit("text", labels=found, source="notes/7") == "text"
        self.taint |= set(found)

    @rule(value=st.sampled_from(PEOPLE))
    def say(self, value: str) -> None:
        self.conversation.say(f"please use {value}.")
        self.typed.add(value)

    @rule(value=st.sampled_from(PEOPLE))
    def paste(self, value: str) -> None:
        self.conversation.say(f"look: {value}", pasted=True)
        self.taint.add("untrusted:paste")

    @rule(found=others())
    def a_rival_writes(self, found: tuple[str, ...]) -> None:
        self._rival_writes(found)

    @rule(calls=st.lists(a_call(), min_size=1, max_size=2), who=st.integers(0, 1))
    def preview(self, calls: list[Call], who: int) -> None:
        """Changes nothing, and says what a proposal would say now."""
        before = self.memory.entries(self.conversation.id)
        said = self.guards[who].preview(*calls)
        assert self.memory.entries(self.conversation.id) == before
        assert not (self._must_not_run(calls, 0, self.exposed) and said.verdict is Verdict.ALLOW)

    # --- invariants -----------------------------------------------------------------------------------------------

    @invariant()
    def t2_the_exposure_is_what_entered_and_what_is_under_way(self) -> None:
        if not hasattr(self, "conversation"):
            return
        assert self.taint <= set(self.conversation.taint)
        assert self.exposed <= set(self.conversation.exposure)
        # Nothing is invented either: a denied call, a preview and typed text add no label.
        assert set(self.conversation.taint) == self.taint
        assert set(self.conversation.exposure) == self.exposed

    @invariant()
    def t10_the_chain_holds(self) -> None:
        if hasattr(self, "conversation"):
            verify(self.memory.entries(self.conversation.id), self.memory.head(self.conversation.id), KEY)

    @invariant()
    def t8_t11_decisions_were_made_under_the_labels_that_stood(self) -> None:
        if not hasattr(self, "conversation"):
            return
        state, made_under = State(), -1
        for sealed in self.memory.entries(self.conversation.id):
            entry = decode(sealed.body)
            if not isinstance(entry, Decided):
                made_under = -1
            elif entry.version != made_under:
                assert entry.version == state.version, "a decision was written under other labels than it was made"
                made_under = entry.version
            state = apply(state, entry)
        assert state == self.conversation.state

    @invariant()
    def no_number_is_given_twice(self) -> None:
        assert len(self.numbers) == len(set(self.numbers))


class _Quiet:
    """A world for `guard_in`, which asks for a tape."""

    def __init__(self, world: World) -> None:
        self._world, self.tape = world, Tape()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)


TestGate = GateMachine.TestCase
TestGate.settings = settings(stateful_step_count=20)
