"""A receiver that is a number went unseen.

Only text counted as a smuggled argument, so ``send_email(to=bob, chat_id=666)`` was grounded by its typed ``to``,
while the tool sent to chat 666 as well; ids of chats and accounts are ordinary integers. Now every argument of a
sending tool that carries anything and is classified by nobody counts, and only truth values do not.
Mutation that this file catches: ``_carries`` asking for text only.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Verdict
from tests.regressions.stage import BOTH, decided, says

TYPED = "mail bob@good.example"
MAIL = {"to": "bob@good.example", "body": "x"}


@pytest.mark.parametrize(
    "smuggled",
    [
        666,
        0,
        -1,
        6.66,
        0.0,
        "666",
        " ",
        [666],
        [[666]],
        [True, 666],
        {"id": 666},
        {"666": None},
        {"a": False},
        [{"a": 1}],
    ],
    ids=str,
)
def test_a_number_may_be_a_receiver(smuggled: Any) -> None:
    decision = decided("send_email", {**MAIL, "chat": smuggled}, typed=TYPED, labels=BOTH)
    assert says(decision) == "deny trifecta steered_destination unclassified_arguments"


@pytest.mark.parametrize("smuggled", [666, "666"])
def test_under_untrusted_content_alone_it_is_asked(smuggled: Any) -> None:
    decision = decided("send_email", {**MAIL, "chat": smuggled}, typed=TYPED, labels=["untrusted:web"])
    assert says(decision) == "ask steered_destination unclassified_arguments"


@pytest.mark.parametrize(
    "to", [666, [666], ["bob@good.example", 666], {"bob@good.example": 1}, [["bob@good.example"]], True]
)
def test_a_number_in_the_place_of_an_address_is_nobody_that_was_named(to: Any) -> None:
    assert decided("send_email", {**MAIL, "to": to}, typed=f"{TYPED}, 666", labels=BOTH).verdict is Verdict.DENY


@pytest.mark.parametrize("cc", [[[]], [None], [""], [[], "bob@good.example"], {}, False])
def test_nothing_in_a_list_of_receivers_is_somebody_unknown(cc: Any) -> None:
    assert decided("send_email", {**MAIL, "cc": cc}, typed=TYPED, labels=BOTH).verdict is Verdict.DENY


@pytest.mark.parametrize("empty", [None, "", [], {}, True, False, [None], [True, False], [""], [[]]], ids=str)
def test_honest_switches_and_nothing_carry_nothing(empty: Any) -> None:
    assert decided("send_email", {**MAIL, "urgent": empty}, typed=TYPED, labels=BOTH).verdict is Verdict.ALLOW


@pytest.mark.parametrize("cc", [None, "", []], ids=str)
def test_honest_an_absent_receiver_is_nobody(cc: Any) -> None:
    assert decided("send_email", {**MAIL, "cc": cc}, typed=TYPED, labels=BOTH).verdict is Verdict.ALLOW


def test_honest_numbers_in_what_the_manifest_calls_content_are_content() -> None:
    mail = {**MAIL, "body": {"total": 666}, "subject": 7}
    assert decided("send_email", mail, typed=TYPED, labels=BOTH).verdict is Verdict.ALLOW
