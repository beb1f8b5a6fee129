"""Proves T17 of a history that is cut: no call is parted from its result, and no beginning is left that is invalid.

What a truncation does is compared with a slow search over every place where a history could begin. T2 holds since there
are no labels here: that a truncation leaves a conversation's taint alone is shown once.

Mutations that this file is shown to catch: a cut across a call and its result; a cut at any message; a system message
that is cut; the latest turn cut; one turn too many or too few; a reservation without room, or none with room; a refused
push that stays; a budget that is overdrawn.
"""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from interlock import Conversation
from interlock.errors import Refused
from interlock.model.history import (
    IMAGE_TOKENS,
    MESSAGE_TOKENS,
    History,
    OutOfOrder,
    Request,
    TokenBudget,
    Truncation,
    estimated_tokens,
)
from interlock.model.messages import Block, Image, Message, Role, Text, ToolAnswer, ToolUse
from tests.integrations.provider_checks import transcripts, valid_for_all

ORDER: dict[Role | None, set[Role]] = {
    None: {Role.SYSTEM, Role.USER, Role.TOOL},
    Role.SYSTEM: {Role.USER},
    Role.USER: {Role.ASSISTANT},
    Role.ASSISTANT: {Role.USER, Role.TOOL},
    Role.TOOL: {Role.ASSISTANT, Role.TOOL},
}

ids = st.sampled_from("abc")  # few, so that they repeat and that results come late, twice, or for nobody
parts = {
    Role.SYSTEM: st.just([]),
    Role.USER: st.just([]) | st.builds(ToolAnswer, ids, st.text("x", max_size=30)).map(lambda one: [one]),
    Role.ASSISTANT: st.lists(st.builds(ToolUse, ids, st.just("now"), st.just({})), max_size=2),
    Role.TOOL: st.lists(st.builds(ToolAnswer, ids, st.text("x", max_size=30)), max_size=2),
}


@st.composite
def bodies(draw: st.DrawFn, role: Role) -> Message:
    blocks: list[Block] = [Text(draw(st.text("xé", max_size=30))), *draw(parts[role])]
    return Message(role, tuple(blocks))


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Any history that can be pushed: the order of roles is right, and nothing else needs to be."""
    found = History()
    previous: Role | None = None
    for _ in range(draw(st.integers(0, 12))):
        previous = draw(st.sampled_from(sorted(ORDER[previous])))
        found.push(draw(bodies(previous)))
    return found


def parted(before: list[Message], start: int) -> bool:
    """Would a call before this place have its result behind it? Slow, and by the words of the rule."""
    for place, message in enumerate(before[start:], start):
        for answer in message.blocks:
            if isinstance(answer, ToolAnswer):
                calls = [
                    earlier for earlier in range(place) if any(use.id == answer.id for use in before[earlier].uses)
                ]
                if calls and calls[-1] < start:
                    return True
    return False


def expected(before: list[Message], room: int) -> tuple[list[Message], bool]:
    """What should be left, and does it fit? The longest rest that may stand and fits, else the shortest that may."""
    system = before[:1] if before and before[0].role is Role.SYSTEM else []
    body = before[len(system) :]
    rests = [body] + [
        body[start:]
        for start in range(1, len(body))
        if body[start].role is Role.USER and not parted(before, start + len(system))
    ]
    for rest in rests:
        if sum(map(estimated_tokens, [*system, *rest])) <= room:
            return [*system, *rest], True
    return [*system, *rests[-1]], False


# --- truncation -------------------------------------------------------------------------------------------------------


@given(history=histories(), limit=st.integers(0, 250), used=st.integers(0, 60), needed=st.integers(0, 60))
def test_t17_a_truncation_removes_the_fewest_turns_that_do(
    history: History, limit: int, used: int, needed: int
) -> None:
    before = list(history)
    budget = TokenBudget(limit)
    spent = used if budget.try_reserve(used) else 0
    done = history.truncate_to_budget(budget, needed=needed)
    wanted, fits = expected(before, limit - spent - needed)
    assert list(history) == wanted
    assert done == Truncation(len(before) - len(wanted), fits, history.token_count())
    assert budget.used == spent + (needed if fits else 0)


@given(history=histories(), limit=st.integers(0, 250), needed=st.integers(0, 60))
def test_t17_no_call_without_its_result_and_no_invalid_beginning(history: History, limit: int, needed: int) -> None:
    before = list(history)
    done = history.truncate_to_budget(TokenBudget(limit), needed=needed)
    left = list(history)
    assert bool(left) == bool(before)
    assert left[-1:] == before[-1:]
    if before and before[0].role is Role.SYSTEM:
        assert left[0] == before[0]
    if done.removed:
        first = left[1] if left[0].role is Role.SYSTEM else left[0]
        assert first.role is Role.USER
        assert not parted(before, len(before) - len(left) + (left[0].role is Role.SYSTEM))
    assert History(left).messages == history.messages  # every push would be taken


@given(history=histories(), limit=st.integers(0, 250), needed=st.integers(0, 60))
def test_what_fits_is_left_alone_and_a_second_truncation_finds_nothing(
    history: History, limit: int, needed: int
) -> None:
    first = history.truncate_to_budget(TokenBudget(limit), needed=needed)
    again = history.truncate_to_budget(TokenBudget(limit), needed=needed)
    assert again == dataclasses.replace(first, removed=0)


@given(messages=transcripts(rounds=6), limit=st.integers(0, 300), system=st.sampled_from(["", "s"]))
def test_t17_what_is_left_of_a_transcript_is_a_request_for_all_three(
    messages: list[Message], limit: int, system: str
) -> None:
    history = History(_pushable(messages))
    history.truncate_to_budget(TokenBudget(limit), needed=10)
    request = history.into_request(system)
    assert valid_for_all(request.messages, system=request.system)


def _pushable(messages: list[Message]) -> list[Message]:
    """A transcript with one message where two of a role stand in a row, which a history does not take."""
    found: list[Message] = []
    for message in messages:
        if found and message.role is found[-1].role and message.role is not Role.TOOL:
            found[-1] = Message(message.role, found[-1].blocks + message.blocks)
        elif found and message.role is Role.USER and found[-1].role is Role.TOOL:
            found[-1] = Message(Role.TOOL, found[-1].blocks + message.blocks)
        else:
            found.append(message)
    return found


def words(role: Role, tokens: int, *blocks: Block) -> Message:
    """A message that is estimated at this many tokens."""
    found = Message(role, (Text("x" * 3 * (tokens - MESSAGE_TOKENS)), *blocks))
    assert estimated_tokens(found) == tokens
    return found


USER, ASSISTANT = words(Role.USER, 10), words(Role.ASSISTANT, 10)
SYSTEM = words(Role.SYSTEM, 10)
CALLS = Message.assistant("", ToolUse("a", "now", {}), ToolUse("b", "now", {}))


def results(*names: str) -> Message:
    return Message(Role.TOOL, tuple(ToolAnswer(name, "r") for name in names))


PARALLEL = [USER, CALLS, results("a", "b"), ASSISTANT, USER]
SEPARATE = [USER, CALLS, results("b"), results("a"), ASSISTANT, USER]
UNDER_WAY = [USER, CALLS, results("a"), results("b")]
LATE = [USER, CALLS, USER, ASSISTANT, results("a", "b"), ASSISTANT, USER, ASSISTANT]
HELD_ELSEWHERE = [results("a"), ASSISTANT, USER]
TURNS = [SYSTEM, USER, ASSISTANT, USER]
HUGE = words(Role.USER, 99)

EDGES: dict[str, tuple[list[Message], int, int, bool]] = {  # a history, the room for it, how many go, does it fit then
    "it fits exactly": (TURNS, 40, 0, True),
    "one token too many": (TURNS, 39, 2, True),
    "less than the system message": (TURNS, 5, 2, False),
    "a system message alone": ([SYSTEM], 1, 0, False),
    "a last message that is too big": ([USER, ASSISTANT, HUGE], 50, 2, False),
    "an only message that is too big": ([HUGE], 0, 0, False),
    "a round under way": (UNDER_WAY, 1, 0, False),
    "parallel calls with results in one message": (PARALLEL, 40, 4, True),
    "parallel calls with results in two": (SEPARATE, 40, 5, True),
    "results that come after another user message, which would fit": (LATE, 55, 6, True),
    "late results and no other place": (LATE[:5], 1, 0, False),
    "results of calls that are held elsewhere": (HELD_ELSEWHERE, 99, 0, True),
    "too many of those": (HELD_ELSEWHERE, 20, 2, True),
    "nobody to begin with": (HELD_ELSEWHERE[:2], 1, 0, False),
    "nothing": ([], 0, 0, True),
}


@pytest.mark.parametrize(("before", "room", "removed", "fits"), EDGES.values(), ids=EDGES)
def test_t17_the_edges(before: list[Message], room: int, removed: int, fits: bool) -> None:
    history, budget = History(before), TokenBudget(room + 7)
    head = before[:1] if before[:1] == [SYSTEM] else []
    left = [*head, *before[len(head) + removed :]]
    done = history.truncate_to_budget(budget, needed=7)
    assert done == Truncation(removed, fits, sum(map(estimated_tokens, left)))
    assert list(history) == left
    assert budget.used == (7 if fits else 0)


def test_a_counter_that_fails_changes_nothing() -> None:
    history, budget = History([USER, ASSISTANT, USER]), TokenBudget(1)

    def fails(_message: Message) -> int:
        raise ConnectionError("the tokenizer is away")

    with pytest.raises(ConnectionError):
        history.token_count(fails)
    with pytest.raises(ConnectionError):
        history.truncate_to_budget(budget, needed=1, counter=fails)
    for wrong in (-1, True, 1.5, None):
        with pytest.raises(Refused, match="a count of tokens"):
            history.truncate_to_budget(budget, counter=lambda _message, wrong=wrong: wrong)  # type: ignore[misc]
        with pytest.raises(Refused, match="needed"):
            history.truncate_to_budget(budget, needed=wrong)  # type: ignore[arg-type]
    assert (list(history), budget.used) == ([USER, ASSISTANT, USER], 0)


def test_a_counter_decides_what_is_cut() -> None:
    history = History([USER, ASSISTANT, USER])
    assert history.token_count(lambda _message: 3) == 9
    assert history.truncate_to_budget(TokenBudget(9), counter=lambda _message: 3) == Truncation(0, True, 9)
    assert history.truncate_to_budget(TokenBudget(8), counter=lambda _message: 3) == Truncation(2, True, 3)


def test_t2_a_truncation_takes_no_label() -> None:
    conversation = Conversation.user("hi")
    conversation.push(Message.user("look", Image("image/png", b"x")))
    before = conversation.taint
    history = History([Message.user("look", Image("image/png", b"x")), ASSISTANT, USER])
    assert history.truncate_to_budget(TokenBudget(10)).removed == 2
    assert before
    assert conversation.taint == before


# --- the order of roles -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("previous", [None, *Role])
@pytest.mark.parametrize("attempted", list(Role))
def test_every_pair_of_roles(previous: Role | None, attempted: Role) -> None:
    ways: dict[Role | None, list[Role]] = {None: [], Role.ASSISTANT: [Role.USER, Role.ASSISTANT]}
    before = [Message(role, ()) for role in ways.get(previous, [previous] if previous else [])]
    history = History(before)
    if attempted in ORDER[previous]:
        history.push(Message(attempted, ()))
        assert history.messages == (*before, Message(attempted, ()))
        return
    with pytest.raises(OutOfOrder) as caught:
        history.push(Message(attempted, ()))
    assert (caught.value.attempted, caught.value.previous) == (attempted, previous)
    assert attempted.value in str(caught.value)
    assert previous is None or previous.value in str(caught.value)
    assert isinstance(caught.value, Refused)
    assert list(history) == before
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), again.args, again.previous) == (OutOfOrder, caught.value.args, previous)


def test_a_history_is_not_made_of_what_is_out_of_order() -> None:
    with pytest.raises(OutOfOrder, match="'assistant' can't be the first message; push system or tool or user instead"):
        History([ASSISTANT])


# --- budgets ----------------------------------------------------------------------------------------------------------


@given(limit=st.integers(0, 100), asked=st.lists(st.integers(0, 60), max_size=8))
def test_a_budget_is_never_overdrawn_and_never_mean(limit: int, asked: list[int]) -> None:
    budget = TokenBudget(limit)
    for tokens in asked:
        used = budget.used
        assert budget.try_reserve(tokens) == (used + tokens <= limit)
        assert budget.used == (used + tokens if used + tokens <= limit else used)
        assert budget.used + budget.remaining == budget.limit == limit


@pytest.mark.parametrize("wrong", [-1, True, 1.0, "1", None])
def test_amounts_that_are_none(wrong: Any) -> None:
    with pytest.raises(Refused, match="limit must be an integer of at least 0"):
        TokenBudget(wrong)
    budget = TokenBudget(5)
    with pytest.raises(Refused, match="tokens must be an integer of at least 0"):
        budget.try_reserve(wrong)
    assert budget.used == 0
    with pytest.raises(AttributeError):
        budget.limit = 9  # type: ignore[misc]


# --- estimates and requests -------------------------------------------------------------------------------------------


def test_the_estimate_is_documented() -> None:
    assert estimated_tokens(Message.user("")) == MESSAGE_TOKENS
    assert estimated_tokens(Message.user("xxxx")) == MESSAGE_TOKENS + 2
    assert estimated_tokens(Message.user("漢字")) == MESSAGE_TOKENS + 2
    assert estimated_tokens(Message.user("", Image("image/png", b"x" * 10**6))) == MESSAGE_TOKENS + IMAGE_TOKENS
    assert History([USER, ASSISTANT]).token_count() == 20


@given(history=histories())
def test_a_request_is_the_history_without_its_system_message(history: History) -> None:
    before = history.messages
    request = history.into_request("prompt")
    assert request == Request("prompt", tuple(one for one in before if one.role is not Role.SYSTEM), 0.7)
    assert history.into_request("prompt", temperature=0.0).temperature == 0.0
    assert history.messages == before
    with pytest.raises(dataclasses.FrozenInstanceError):
        request.system = ""  # type: ignore[misc]


def test_the_names_work_as_they_are_written() -> None:
    h = History()
    h.push(Message.system("…"))
    h.push(Message.user("…"))
    assert h.token_count() == 2 * (MESSAGE_TOKENS + 1)
    assert h.truncate_to_budget(TokenBudget(8000), needed=500) == Truncation(0, True, 10)
    assert h.into_request("system prompt") == Request("system prompt", (Message.user("…"),), 0.7)
    assert len(h) == 2
    assert list(copy.deepcopy(h)) == list(h)
    assert "…" not in repr(h)
    assert repr(TokenBudget(3)) == "<TokenBudget 0 of 3>"


# --- any order of operations ------------------------------------------------------------------------------------------


class HistoryMachine(RuleBasedStateMachine):
    """A history is a list of messages: pushes that may be, and truncations of a slow search."""

    def __init__(self) -> None:
        super().__init__()
        self.history = History()
        self.model: list[Message] = []
        self.removed = 0
        self.pushed = 0

    @property
    def allowed(self) -> set[Role]:
        return ORDER[self.model[-1].role if self.model else None]

    @rule(data=st.data())
    def push(self, data: st.DataObject) -> None:
        message = data.draw(bodies(data.draw(st.sampled_from(sorted(self.allowed)))))
        self.history.push(message)
        self.model.append(message)
        self.pushed += 1

    @rule(data=st.data())
    def push_out_of_order(self, data: st.DataObject) -> None:
        role = data.draw(st.sampled_from(sorted(set(Role) - self.allowed)))
        with pytest.raises(OutOfOrder):
            self.history.push(data.draw(bodies(role)))

    @precondition(lambda self: self.model)
    @rule(limit=st.integers(0, 200), needed=st.integers(0, 30))
    def truncate(self, limit: int, needed: int) -> None:
        budget = TokenBudget(limit)
        done = self.history.truncate_to_budget(budget, needed=needed)
        before, (self.model, fits) = self.model, expected(self.model, limit - needed)
        assert (done.removed, done.reserved, budget.used) == (len(before) - len(self.model), fits, needed * fits)
        assert not done.reserved or self.history.token_count() <= budget.remaining
        self.removed += done.removed

    @rule()
    def copied(self) -> None:
        self.history = pickle.loads(pickle.dumps(self.history))

    @invariant()
    def is_its_model(self) -> None:
        assert list(self.history) == self.model
        assert len(self.history) == len(self.model) == self.pushed - self.removed
        assert self.history.token_count() == sum(map(estimated_tokens, self.model))
        assert not self.model or self.model[0].role is not Role.ASSISTANT


TestHistory = HistoryMachine.TestCase
