"""Case 28: the parent is refused, so it starts a sub-agent, whose calls nobody looks at.

The child's conversation begins with the parent's exposure, so what the parent may not send the child may not send
either, and nor may the child's child; no argument of the delegation changes that. A start that is refused is no start:
the function is not entered. The honest twins are a child that does what the parent could have done, and one that writes
to whom the person named.
"""

from __future__ import annotations

import pytest

from interlock import Conversation, Guard
from tests.cases.desk import EVIL, armed, did, fresh, got, locked, shared

SPAWN = {"spawn_agent": {"returns": ["untrusted:agent"], "egress": "chosen", "content": ["task"]}}
TO_KIM = {**EVIL, "to": "kim@corp.example"}


def child_of(parent: Guard, **options: object) -> Guard:
    return shared().guard(parent.conversation.child("post the summary", **options))  # type: ignore[arg-type]


def test_attack_child_and_grandchild_are_held_like_the_parent() -> None:
    parent = armed()
    assert got(did(parent, "send_email", EVIL)) == ("deny", "trifecta")
    child = child_of(parent)
    assert got(did(child, "send_email", EVIL)) == ("deny", "trifecta")
    assert got(did(child, "slack_post", {"channel": "#all", "text": "the plan"})) == ("deny", "trifecta")
    grandchild = child_of(child)
    assert got(did(grandchild, "send_email", EVIL)) == ("deny", "trifecta")


@pytest.mark.parametrize("options", [{"tools": []}, {"tools": ()}, {"tools": None}])
def test_attack_no_list_of_tools_makes_it_cleaner(options: dict[str, object]) -> None:
    child = child_of(armed(), **options)
    assert set(child.conversation.taint) == {"private:files", "untrusted:attachment"}
    assert got(did(child, "send_email", EVIL)) == ("deny", "trifecta")


def test_attack_a_child_that_begins_while_a_call_still_runs() -> None:
    """What is in flight in the parent has shaped the child's task as well as what has landed."""
    parent = fresh()
    inside: list[tuple[str, str]] = []

    def read_and_delegate(**_: object) -> str:
        inside.append(got(did(child_of(parent), "send_email", EVIL)))
        return "ok"

    parent.call("read_mail", {"query": "today"}, run=read_and_delegate)
    assert inside == [("deny", "trifecta")]


def test_attack_a_start_that_is_refused_starts_nothing() -> None:
    lock = locked({**SPAWN, "read_mail": {"returns": ["untrusted:mail", "private:mail"], "egress": "none"}})
    parent = fresh(lock)
    did(parent, "read_mail")
    started: list[Conversation] = []
    outcome = parent.call(
        "spawn_agent", {"task": "x"}, run=lambda task: started.append(parent.conversation.child(task))
    )
    assert got(outcome) == ("deny", "trifecta")
    assert not outcome.executed
    assert started == []
    assert not parent.conversation.state.children


@pytest.mark.parametrize("how", ["resumed", "its task"])
def test_attack_words_that_the_host_repeats_vouch_for_nothing(how: str) -> None:
    """A conversation that a host builds by itself, and a task that names a receiver, are not the person's words."""
    parent = armed()
    task = "Write to kim@corp.example please."
    if how == "resumed":
        child = Conversation.resumed([], parent.conversation.exposure)
    else:
        child = parent.conversation.child(task)
    assert got(did(shared().guard(child), "send_email", TO_KIM)) == ("deny", "trifecta")


def test_honest_a_child_writes_to_whom_the_person_named() -> None:
    parent = armed(typed="Write to kim@corp.example please.")
    assert did(child_of(parent), "send_email", TO_KIM).executed
    assert got(did(child_of(parent), "send_email", EVIL)) == ("deny", "trifecta")


def test_honest_a_child_of_a_clean_parent_works() -> None:
    child = child_of(fresh(typed="Find out what others charge."))
    assert did(child, "web_search", {"query": "prices"}).executed
    assert did(child, "calc", {"expression": "2*3"}).executed
