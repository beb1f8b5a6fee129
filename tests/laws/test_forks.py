"""Proves T2 and T17 along a tree of conversations: forks, copies, children and new starts, mixed with everything else.

A machine grows a small tree and keeps a model of it in sets: what must be known where. A child's labels are in its
parent's exposure while it runs and after; a fork holds what stood when it was made, and learns of what was under way
then; no call is parted from its result. That the order of joins does not matter is shown as T15 is for batches.

Faults that the machine is shown to catch, each planted by a test below: a fork without what is in flight; late results
that stay with whoever called, or stop at the first fork; a child that keeps what nobody foresaw to itself; a parent
that takes what is only in flight for known; a join of what has landed only; a child with every tool that may bring
nothing; a rewrite that parts pairs; a copy that leaves calls open; a new start that takes what was typed along; a join
of a stranger.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from interlock import (
    Call,
    Conversation,
    Guard,
    Interlock,
    Manifest,
    MemoryJournal,
    Message,
    Ticket,
    ToolResult,
    ToolUse,
)
from interlock.errors import Refused
from interlock.gate import conversation as conversations
from interlock.gate.conversation import Child
from interlock.model import transcript as transcripts
from interlock.model.digests import NO_DIGEST, digest
from interlock.model.entries import Admitted, ChildJoined, decode
from interlock.model.labels import EVERY_LEG, Label, Leg, Taint, leg_of
from interlock.model.messages import Image, Role, ToolAnswer
from interlock.model.state import State, apply
from interlock.model.tools import ToolId
from interlock.model.transcript import Snapshot, open_uses, parted, unpaired
from tests.strategies import label_tuples

AT = "2026-11-29T12:00:00.000000Z"
TOOLS: dict[str, tuple[set[str], set[str]]] = {  # what stays whatever came of it, and what comes from outside
    "read_mail": ({"private:mail"}, {"untrusted:mail"}),
    "read_page": (set(), {"untrusted:web"}),
    "read_note": ({"private:notes"}, set()),
    "share": ({"egress:share"}, set()),
    "calc": (set(), set()),
}
MANIFEST = Manifest.parse(
    {
        "version": 1,
        "tools": {
            name: {
                "returns": sorted(one for one in stays | comes if not one.startswith("egress")),
                "opens": sorted(one for one in stays if one.startswith("egress")),
                "egress": "none",
            }
            for name, (stays, comes) in TOOLS.items()
        },
    }
)
JOURNAL = MemoryJournal()
# The tree is about conversations: a page that nobody named is read without a question.
LOCK = Interlock(manifest=MANIFEST, journal=JOURNAL, settings={"preset": "trifecta-only"})
EXTRA = st.sampled_from([(), ("private:late",), ("untrusted:late",), ("egress:late",)])
COPIES: dict[str, Callable[[Conversation], Conversation]] = {
    "fork": Conversation.fork,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
}
MOST = 6


def holds(taint: Taint, labels: Iterable[str]) -> bool:
    """Are all labels there? The unknown of a leg stands for every label of it."""
    return all(one in taint for one in labels)


def meaning(taint: Taint) -> set[str]:
    """The labels, without those that the unknown of their leg stands for anyway."""
    tops = {one for one in taint if one.endswith(":unknown")}
    return tops | {one for one in taint if f"{one.partition(':')[0]}:unknown" not in tops}


def legs(names: tuple[str, ...] | None) -> set[str]:
    """What a child with these tools may bring, by name."""
    if names is None:
        return set(EVERY_LEG)
    return {one for name in names for part in TOOLS[name] for one in part}


@dataclass(eq=False)
class Node:
    """A conversation, and what must be true of it.

    Attributes:
        must: labels that its exposure holds from now on.
        brought: those of them that entered it or its children; its parent holds them too.
        waits: calls and children that were under way in it, or in what it is a fork of when it was made.
        own: its own calls under way, with what they may bring.
    """

    conversation: Conversation
    parent: Node | None = None
    must: set[str] = field(default_factory=set)
    brought: set[str] = field(default_factory=set)
    waits: set[Any] = field(default_factory=set)
    own: dict[Any, set[str]] = field(default_factory=dict)
    tools: tuple[str, ...] | None = None
    guard: Guard | None = None
    snapshot: Snapshot | None = None
    seen: frozenset[str] = frozenset()
    folded: State = field(default_factory=State)
    read: int = 0

    @property
    def line(self) -> list[Node]:
        """This one, and everybody who delegated it, directly or not."""
        return [self, *(self.parent.line if self.parent is not None else [])]


class Tree(RuleBasedStateMachine):
    """A few conversations that come from each other."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[Node] = []
        self.calls: list[tuple[Node, int, Ticket, str]] = []
        self.made = 0
        self.ever: set[str] = set()

    # --- the model ----------------------------------------------------------------------------------------------------

    def entered(self, node: Node, labels: set[str]) -> None:
        """Labels enter a conversation: they are known there and to all who delegated it."""
        self.ever |= labels
        for one in node.line:
            one.must |= labels
            one.brought |= labels

    def landed(self, thing: Any, labels: set[str]) -> None:
        """Something that was under way came back: whoever waits for it holds its labels."""
        for node in self.nodes:
            if thing in node.waits:
                node.waits.discard(thing)
                node.own.pop(thing, None)
                self.entered(node, labels)

    def node(self, place: int) -> Node:
        return self.nodes[place % len(self.nodes)]

    def grown(self, node: Node) -> Node:
        self.nodes.append(node)
        return node

    # --- how they begin -----------------------------------------------------------------------------------------------

    @initialize(labels=label_tuples(max_size=1))
    def begin(self, labels: tuple[Label, ...]) -> None:
        root = self.grown(Node(Conversation(labels=labels)))
        self.entered(root, set(labels))

    @precondition(lambda self: len(self.nodes) < MOST)
    @rule(place=st.integers(0, 9), how=st.sampled_from(sorted(COPIES)), twice=st.sampled_from(["", "both", "newest"]))
    def forked(self, place: int, how: str, twice: str) -> None:
        source = self.node(place)
        self.fork(source, how)
        if twice and len(self.nodes) < MOST:
            self.worked(len(self.nodes) - 1, 2, 1)
            self.fork(self.nodes[-1], "fork")
            if twice == "newest" and self.nodes[-2].parent is None:
                del self.nodes[-2]  # as a host does that copies its state at each step

    def fork(self, source: Node, how: str) -> None:
        held = set(replace(source.conversation.state, children=MappingProxyType({})).exposure)
        fork = self.grown(Node(COPIES[how](source.conversation)))
        if how != "pickle":  # what was loaded elsewhere can't be told
            fork.parent, fork.waits = source.parent, set(source.waits)
        fork.must |= held | source.must
        assert holds(fork.conversation.taint, fork.must)
        assert fork.conversation.state.typed == source.conversation.state.typed
        assert fork.conversation.messages[: len(source.conversation)] == source.conversation.messages
        assert not open_uses(fork.conversation.messages)

    @precondition(lambda self: len(self.nodes) < MOST)
    @rule(
        place=st.integers(0, 9),
        tools=st.sampled_from([None, (), ("read_page",), ("read_mail",), ("read_note", "share"), ("calc",)]),
        busy=st.booleans(),
        given_up=st.booleans(),
    )
    def delegated(self, place: int, tools: tuple[str, ...] | None, busy: bool, given_up: bool) -> None:
        parent = self.node(place)
        # What other children may bring has not been brought, and need not come along.
        held = set(replace(parent.conversation.state, children=MappingProxyType({})).exposure)
        specs = None if tools is None else [MANIFEST.spec(ToolId("", name)) for name in tools]
        made = parent.conversation.child("a task", tools=specs)
        child = self.grown(Node(made, parent, tools=tools))
        child.must |= held
        self.ever |= legs(tools)
        parent.waits.add(made.id)
        assert holds(made.taint, held)
        assert holds(parent.conversation.exposure, legs(tools))
        if tools and busy:
            self.propose(child, tools[0])
            if given_up:
                self.joined(len(self.nodes) - 1)
        elif busy and tools is not None:  # both read the same, and only the child's page is there
            before = len(self.calls)
            self.propose(parent, "read_page")
            self.propose(child, "read_page")
            if len(self.calls) == before + 2:
                self.observe(before, False, (), False)

    @rule(place=st.integers(0, 9))
    def begun_anew(self, place: int) -> None:
        old = self.node(place).conversation
        held = set(old.exposure)
        new = old.restart_from_trusted()
        # A channel that a running child may open is not open yet; that it need not count is all that is left open here.
        stands = {
            one for one in replace(old.state, children=MappingProxyType({})).exposure if leg_of(one) is Leg.EGRESS
        }
        assert stands <= set(new.taint) <= {one for one in held if leg_of(one) is Leg.EGRESS}
        again = Conversation.new()
        for message in new:
            for block in message.blocks:
                again.say(block.text)  # type: ignore[union-attr]  # nothing but text is there
        assert new.state.typed == again.state.typed
        assert new.state.typed <= old.state.typed
        assert set(old.exposure) == held

    @precondition(lambda self: len(self.nodes) > 1)
    @rule(place=st.integers(0, 9))
    def dropped(self, place: int) -> None:
        """A host holds a fork no more. What began from it goes on."""
        node = self.node(place)
        busy = any(node is other for other, *_ in self.calls) or any(node is other.parent for other in self.nodes)
        if place % len(self.nodes) and node.parent is None and not busy:
            self.nodes.remove(node)

    # --- how they end -------------------------------------------------------------------------------------------------

    @rule(place=st.integers(0, 9))
    def joined(self, place: int) -> None:
        child = self.node(place)
        if child.parent is None:
            return
        coming = child.brought | {one for labels in child.own.values() for one in labels}
        child.parent.conversation.join(child.conversation)
        assert holds(child.parent.conversation.taint, child.conversation.exposure)
        child.parent.must |= coming
        for one in child.parent.line:
            one.must |= child.brought
            one.brought |= child.brought
        self.landed(child.conversation.id, set(child.brought))

    @rule(place=st.integers(0, 9), other=st.integers(0, 9))
    def joined_by_a_stranger(self, place: int, other: int) -> None:
        one, stranger = self.node(place), self.node(other)
        if stranger.parent is not one:
            with pytest.raises(Refused):
                one.conversation.join(stranger.conversation)

    # --- what they do -------------------------------------------------------------------------------------------------

    def guard(self, node: Node) -> Guard:
        node.guard = node.guard or LOCK.guard(node.conversation)
        return node.guard

    @rule(place=st.integers(0, 9))
    def bound(self, place: int) -> None:
        self.guard(self.node(place))

    @rule(place=st.integers(0, 9), labels=label_tuples(max_size=1), journal=st.booleans())
    def admitted(self, place: int, labels: tuple[Label, ...], journal: bool) -> None:
        node = self.node(place)
        if not labels:
            if open_uses(node.conversation.messages):
                return  # nobody speaks before they are answered
            node.conversation.push(Message(Role.ASSISTANT, (Image("image/png", b"x"),)))
            labels = (Label("private:image"),)
        elif journal:
            self.guard(node).admit("text", labels=labels, source="test")
        else:
            node.conversation.record(Admitted(AT, "test", labels, NO_DIGEST, 0))
        self.entered(node, set(labels))

    @rule(place=st.integers(0, 9), name=st.sampled_from(sorted(TOOLS)), foreseen=st.booleans())
    def proposed(self, place: int, name: str, foreseen: bool) -> None:
        node = self.node(place)
        self.propose(node, node.tools[0] if foreseen and node.tools else name)

    def propose(self, node: Node, name: str) -> None:
        ticket = self.guard(node).propose(Call(name, {}, "call_0"))
        if not ticket.allowed:
            return
        stays, comes = TOOLS[name]
        self.ever |= stays | comes
        self.made += 1
        node.own[self.made] = stays | comes
        node.waits.add(self.made)
        self.calls.append((node, self.made, ticket, name))
        for one in node.line:
            assert holds(one.conversation.exposure, stays | comes)

    @precondition(lambda self: self.calls)
    @rule(place=st.integers(0, 9), external=st.booleans(), extra=EXTRA, error=st.booleans())
    def observed(self, place: int, external: bool, extra: tuple[str, ...], error: bool) -> None:
        self.observe(place % len(self.calls), external, extra, error)

    @precondition(lambda self: len(self.nodes) < MOST)
    @rule(
        place=st.integers(0, 9),
        name=st.sampled_from(sorted(TOOLS)),
        how=st.sampled_from(sorted(COPIES)),
        twice=st.sampled_from(["", "both", "newest"]),
        extra=EXTRA,
    )
    def forked_while_it_runs(self, place: int, name: str, how: str, twice: str, extra: tuple[str, ...]) -> None:
        self.propose(self.node(place), name)
        self.forked(place, how, twice)
        if self.calls:
            self.observe(len(self.calls) - 1, True, extra, False)

    def observe(self, place: int, external: bool, extra: tuple[str, ...], error: bool) -> None:
        node, number, ticket, name = self.calls.pop(place)
        stays, comes = TOOLS[name]
        result: Any = OSError("x") if error else ToolResult("x", external=external, labels=extra)
        assert self.guard(node).observe(ticket, "call_0", result).executed
        self.landed(number, stays | (comes if external or error else set()) | (set() if error else set(extra)))

    @rule(place=st.integers(0, 9), text=st.sampled_from(["yes", "mail bob@corp.example", "see http://a.example/"]))
    def said(self, place: int, text: str) -> None:
        conversation = self.node(place).conversation
        if open_uses(conversation.messages):
            with pytest.raises(Refused):
                conversation.say(text)
        else:
            conversation.say(text)

    @rule(place=st.integers(0, 9), number=st.integers(1, 2), told=st.sampled_from([0, 1, 2, 2]))
    def worked(self, place: int, number: int, told: int) -> None:
        """The model asks for a round of calls, unless one is open; then some get their results.

        Its provider gives the same ids each time.
        """
        conversation = self.node(place).conversation
        if not open_uses(conversation.messages):
            conversation.push(Message.assistant("", *(ToolUse(f"call_{n}", "calc", {}) for n in range(number))))
        for use in open_uses(conversation.messages)[:told]:
            conversation.push(Message(Role.TOOL, (ToolAnswer(use.id, "4"),)))

    @rule(place=st.integers(0, 9), start=st.integers(0, 9), gap=st.integers(1, 3), summary=st.booleans())
    def rewritten(self, place: int, start: int, gap: int, summary: bool) -> None:
        """Some messages are left out from the front or the middle. If that parts a pair, it is refused."""
        conversation = self.node(place).conversation
        old = conversation.messages
        start %= len(old) + 1
        new = ([Message.user("<summary>")] if summary else []) + [*old[:start], *old[start + gap :]]
        try:
            conversation.rewrite(new)
        except Refused:
            assert conversation.messages == old
            assert parted(old, new)
        else:
            assert conversation.messages == tuple(new)
            assert conversation.rewritten[-1] == old

    @rule(place=st.integers(0, 9))
    def run_begun(self, place: int) -> None:
        node = self.node(place)
        node.snapshot = node.conversation.snapshot()

    @rule(place=st.integers(0, 9), other=st.integers(0, 9))
    def rolled_back(self, place: int, other: int) -> None:
        node, stranger = self.node(place), self.node(other)
        if stranger.snapshot is not None and stranger is not node:
            with pytest.raises(Refused):
                node.conversation.roll_back_failed_turn(stranger.snapshot)
        if node.snapshot is not None:
            replaced = node.conversation.rewritten
            node.conversation.roll_back_failed_turn(node.snapshot)
            assert node.conversation.rewritten == replaced
            assert not open_uses(node.conversation.messages)

    # --- what holds ---------------------------------------------------------------------------------------------------

    @invariant()
    def t2_nobody_holds_less_than_it_must(self) -> None:
        for node in self.nodes:
            exposure = node.conversation.exposure
            assert holds(exposure, node.must), f"lost: {[one for one in node.must if one not in exposure]}"
            for number, labels in node.own.items():
                assert holds(exposure, labels), f"call {number} is not in flight"

    @invariant()
    def t2_taint_only_grows(self) -> None:
        for node in self.nodes:
            now = node.conversation.taint.labels
            assert node.seen <= now
            node.seen = now

    @invariant()
    def t2_a_parent_holds_what_its_child_holds(self) -> None:
        for node in self.nodes:
            if node.parent is not None:
                assert holds(node.parent.conversation.exposure, node.conversation.exposure)

    @invariant()
    def nothing_is_invented(self) -> None:
        for node in self.nodes:
            assert set(node.conversation.exposure) <= self.ever | {"egress:channel"}

    @invariant()
    def t11_the_state_is_the_fold_of_the_journal(self) -> None:
        for node in self.nodes:
            if node.guard is not None:
                entries = JOURNAL.entries(node.conversation.id)
                for sealed in entries[node.read :]:
                    node.folded = apply(node.folded, decode(sealed.body))
                node.read = len(entries)
                assert node.folded == node.conversation.state

    @invariant()
    def t17_each_call_has_one_result_or_is_under_way(self) -> None:
        for node in self.nodes:
            messages = node.conversation.messages
            waiting = open_uses(messages)
            rest = tuple(ToolAnswer(use.id, "x") for use in waiting)
            assert not unpaired((*messages, Message(Role.TOOL, rest)) if rest else messages)
            assert len(node.conversation.transcript.covers) == len(messages)


TestTree = Tree.TestCase
TestTree.settings = settings(stateful_step_count=25)


# --- the machine catches what it should -------------------------------------------------------------------------------


def forgets_what_is_in_flight(patch: pytest.MonkeyPatch) -> None:
    real = conversations.inherited

    def inherited(state: State, *args: Any, **options: Any) -> Any:
        return real(replace(state, in_flight=MappingProxyType({})), *args, **options)

    patch.setattr(conversations, "inherited", inherited)


def keeps_late_results(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Conversation, "_told", lambda self, entries: None)


def keeps_late_results_from_forks_of_forks(patch: pytest.MonkeyPatch) -> None:
    real = Conversation._expected_by

    def alone(self: Conversation, fork: Conversation, **known: Any) -> Any:
        held, self._expects = self._expects, ()
        try:
            return real(self, fork, **known)
        finally:
            self._expects = held

    patch.setattr(Conversation, "_expected_by", alone)


def keeps_what_nobody_foresaw(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Child, "_told", Conversation._told)


def believes_what_is_only_in_flight(patch: pytest.MonkeyPatch) -> None:
    real = Conversation._take

    def take(self: Conversation, source: str, labels: Iterable[str], *args: Any, **options: Any) -> None:
        real(self, source, [one for one in labels if one not in self.exposure], *args, **options)  # type: ignore[misc]

    patch.setattr(Conversation, "_take", take)


def brings_only_what_has_landed(patch: pytest.MonkeyPatch) -> None:
    def join(self: Conversation, child: Conversation) -> None:
        if not child._began_from(self):
            raise Refused("a stranger")
        self.record(ChildJoined(AT, child.id, tuple(child.taint)))

    patch.setattr(Conversation, "join", join)


def may_bring_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conversations, "_may_bring", lambda tools: ())


def parts_pairs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conversations, "parted", lambda old, new: ())


def leaves_calls_open(patch: pytest.MonkeyPatch) -> None:
    for module in (transcripts, conversations):
        patch.setattr(module, "answered", lambda messages, covers, cover: (messages, covers))


def takes_what_was_typed_along(patch: pytest.MonkeyPatch) -> None:
    real = conversations.inherited
    patch.setattr(
        conversations,
        "inherited",
        lambda state, at, name, *, restart=False: replace(
            real(state, at, name, restart=restart), typed=tuple(sorted(state.typed))
        ),
    )


def joins_whoever_comes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Conversation, "_began_from", lambda self, other: True)


FAULTS = [
    forgets_what_is_in_flight,
    keeps_late_results,
    keeps_late_results_from_forks_of_forks,
    keeps_what_nobody_foresaw,
    believes_what_is_only_in_flight,
    brings_only_what_has_landed,
    may_bring_nothing,
    parts_pairs,
    leaves_calls_open,
    takes_what_was_typed_along,
    joins_whoever_comes,
]
# It stops at the first failure, which comes within a few examples.
QUICK = settings(
    max_examples=500, stateful_step_count=25, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_machine_catches_a_tree_that(fault: Callable[[pytest.MonkeyPatch], None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            run_state_machine_as_test(Tree, settings=QUICK)


# --- order ------------------------------------------------------------------------------------------------------------


DIGESTS = [digest("voice", bytes([number])) for number in range(3)]
children = st.tuples(label_tuples(max_size=2), st.lists(st.sampled_from(DIGESTS), max_size=2, unique=True))


@given(
    work=st.lists(children, min_size=2, max_size=5), seed=st.randoms(use_true_random=False), forked=st.integers(0, 5)
)
def test_t15_the_order_of_joins_does_not_matter(work: list[Any], seed: Any, forked: int) -> None:
    """Nor when a fork is made in between: it and its source hold the same as without it, each in the end."""
    found = []
    for shuffled in (False, True):
        parent = Conversation.new()
        begun = [parent.child("task", tools=[]) for _ in work]
        fork: Conversation | None = None
        order = list(range(len(work)))
        if shuffled:
            seed.shuffle(order)
        for count, place in enumerate(order):
            if count == forked and shuffled:
                fork = parent.fork()
            labels, voices = work[place]
            if labels:
                begun[place].record(Admitted(AT, "test", labels, NO_DIGEST, 0, tuple(sorted(voices))))
            parent.join(begun[place])
        state = parent.state
        found.append((meaning(state.taint), state.deafening or state.voices, dict(state.children)))
        if fork is not None:
            assert holds(fork.taint, parent.taint)
    assert found[0] == found[1]


@given(work=st.lists(label_tuples(max_size=2), max_size=4), cut=st.integers(0, 4))
def test_t15_a_child_that_is_joined_early_brings_the_same(work: list[tuple[Label, ...]], cut: int) -> None:
    """Joined before, between or after what it does, and however often: the parent ends with the same labels."""
    found = []
    for joins in ({len(work)}, {cut}, {0, cut, len(work)}):
        parent = Conversation.new()
        child = parent.child("task", tools=[])
        for place, labels in enumerate([*work, ()]):
            if place in joins:
                parent.join(child)
            if labels:
                child.record(Admitted(AT, "test", labels, NO_DIGEST, 0))
        assert holds(parent.exposure, child.exposure)
        found.append(meaning(parent.exposure))
    assert found[0] == found[1] == found[2]
