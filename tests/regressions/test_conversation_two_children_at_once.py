"""Two children at once locked their parent for ever, although neither of them had done anything.

A child begins with its parent's exposure, in which all that another child may bring is in flight: open channels too,
for a child that can send. So the second child began with an open channel, and brought it back at its join. From then on
the parent could read nothing private, and a new start from trusted words took the channel along.
"""

from __future__ import annotations

import pytest

from interlock import Conversation
from interlock.model.tools import ToolId
from tests.regressions.stage import MANIFEST, call, interlock, says

FETCH = [MANIFEST.spec(ToolId("", "fetch"))]


@pytest.mark.parametrize("tools", [FETCH, None])
@pytest.mark.parametrize("number", [2, 5])
def test_the_honest_children_that_did_nothing(tools: object, number: int) -> None:
    parent = interlock().guard(Conversation.new())
    children = [parent.conversation.child("task", tools=tools) for _ in range(number)]  # type: ignore[arg-type]
    for child in children:
        assert says(call(interlock().guard(child), "read_file", path="plan.txt").decision) == "allow"
        parent.conversation.join(child)
    assert set(parent.conversation.taint) == {"private:files"}
    assert says(call(parent, "read_file", path="plan.txt").decision) == "allow"
    assert not parent.conversation.restart_from_trusted().taint


def test_t2_what_one_of_them_brings_is_in_the_parent_while_the_other_runs() -> None:
    parent = interlock().guard(Conversation.new())
    reader, other = (parent.conversation.child("task", tools=FETCH) for _ in range(2))
    call(interlock().guard(reader), "fetch", url="http://guide.example/")
    assert "untrusted:web" in parent.conversation.exposure
    parent.conversation.join(reader)
    assert "untrusted:web" in parent.conversation.taint
    parent.conversation.join(other)
    assert "untrusted:web" in parent.conversation.taint
    # One that begins now has it, too.
    assert "untrusted:web" in parent.conversation.child("task", tools=[]).taint
