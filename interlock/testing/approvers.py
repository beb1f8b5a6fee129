"""What every approver must do, as functions that anybody can run against theirs.

    from interlock.testing.approvers import check_approver
    check_approver(MyBench())

A :class:`Bench` is your approver with a person beside it whom the checks tell what to answer. Each check raises
``AssertionError`` with what was violated; :data:`CHECKS` lists them for parametrised tests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from interlock.assembly import Interlock, Manifest
from interlock.gate.approval_steps import ApprovalRules
from interlock.gate.conversation import Conversation
from interlock.gate.guard import Guard
from interlock.model.decisions import Who
from interlock.model.escaping import escaped
from interlock.model.results import Outcome
from interlock.ports import Approver, Store
from interlock.stores.memory_store import MemoryStore

SECONDS: Final = 3.0


class Bench(Protocol):
    """An approver and its person."""

    @property
    def store(self) -> Store | None:
        """The store that the approver hears answers from; None for one that returns them."""

    @property
    def approver(self) -> Approver:
        """The approver."""

    def will(self, *answers: str) -> None:
        """The person's next answers, in order: ``approve``, ``refuse``, or ``nothing`` for no answer at all."""

    def saw(self) -> str:
        """All that the person was shown so far."""


TOOLS: Final = {
    "read": {"returns": ["private:mail"], "egress": "none"},
    "send": {"returns": [], "egress": "chosen", "destinations": {"to": "email"}, "content": ["body", "more"]},
}
CALL: Final = {"to": "eve@evil.test", "body": "the plan"}


def _guard(bench: Bench) -> Guard:
    lock = Interlock(
        manifest=Manifest.parse({"version": 1, "tools": TOOLS}),
        journal=bench.store or MemoryStore(),
        settings={"leak_guard": "ask"},
        approver=bench.approver,
        approvals=ApprovalRules(seconds=SECONDS, expiry=600),
    )
    guard = lock.guard(Conversation())
    assert guard.call("read", {}, run=lambda: "mail").executed
    return guard


def _sent(guard: Guard, arguments: dict[str, Any], ran: list[dict[str, Any]]) -> Outcome:
    def send(**given: Any) -> str:
        ran.append(given)
        return "sent"

    return guard.call("send", arguments, run=send)


def check_a_yes_is_for_one_call(bench: Bench) -> None:
    """It runs the call that was asked about, once; the same call again is another question."""
    guard, ran = _guard(bench), list[dict[str, Any]]()
    bench.will("approve", "refuse")
    outcome = _sent(guard, CALL, ran)
    assert outcome.executed, f"the person approved, and the call did not run: {outcome.decision.reasons}"
    again = _sent(guard, CALL, ran)
    assert ran == [CALL], f"one yes ran {len(ran)} calls"
    assert again.decision.who is Who.PERSON, f"the second question was not answered by the person: {again.decision}"


def check_a_no_denies(bench: Bench) -> None:
    """The call does not run, and the outcome says that a person refused it."""
    guard, ran = _guard(bench), list[dict[str, Any]]()
    bench.will("refuse")
    outcome = _sent(guard, CALL, ran)
    assert not ran, "the person refused, and the call ran"
    assert outcome.decision.who is Who.PERSON, f"a refusal is told as {outcome.decision.who.value}"


def check_silence_denies(bench: Bench) -> None:
    """No answer is none, within the time that is given, and the outcome says that nobody answered."""
    guard, ran = _guard(bench), list[dict[str, Any]]()
    bench.will("nothing")
    came: list[Outcome] = []
    thread = threading.Thread(target=lambda: came.append(_sent(guard, CALL, ran)), daemon=True)
    thread.start()
    thread.join(SECONDS + 10)
    assert came, f"the approver did not come back within {SECONDS} seconds and ten"
    assert not ran, "nobody answered, and the call ran"
    assert came[0].decision.who is Who.NOBODY, f"silence is told as {came[0].decision.who.value}"


HIDING: Final = "a\u202eb\x1b[2Jc\u200bd"


def check_everything_is_shown(bench: Bench) -> None:
    """Every value of the call, whole, and nothing that could hide or move it."""
    guard, ran = _guard(bench), list[dict[str, Any]]()
    bench.will("refuse")
    # The last word is what someone would hide behind a long text.
    long = "\n".join(f"line {number}" for number in range(200)) + "\nthe last word"
    _sent(guard, {**CALL, "body": HIDING, "more": long}, ran)
    saw = bench.saw()
    missing = [one for one in ("eve@evil.test", escaped(HIDING), "line 100", "the last word") if one not in saw]
    assert not missing, f"the person was not shown {missing}"
    acting = [one for one in "\u202e\u200b" if one in saw] + (["ESC"] if "\x1b[2J" in saw else [])
    assert not acting, f"characters that act or hide reached the person: {acting!r}"


def check_questions_keep_their_answers(bench: Bench) -> None:
    """Two questions of two conversations at once: each answer belongs to one of them."""
    guards, ran = [_guard(bench) for _ in range(2)], list[dict[str, Any]]()
    bench.will("approve", "refuse")
    came: list[Outcome] = []
    threads = [
        threading.Thread(target=lambda one=guard: came.append(_sent(one, CALL, ran)), daemon=True) for guard in guards
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join(2 * SECONDS + 10)
    assert len(came) == 2, "an approver that was asked twice at once did not come back"
    assert len(ran) <= 1, f"one yes and one no ran {len(ran)} calls"


CHECKS: Final[Sequence[Callable[[Bench], None]]] = (
    check_a_yes_is_for_one_call,
    check_a_no_denies,
    check_silence_denies,
    check_everything_is_shown,
    check_questions_keep_their_answers,
)


def check_approver(bench: Bench) -> None:
    """All of :data:`CHECKS`."""
    for check in CHECKS:
        check(bench)
