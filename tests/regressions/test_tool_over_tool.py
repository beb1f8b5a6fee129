"""A function wrapped by ``@tool`` could be entered without a permit, and could be declared as two tools at once.

``functools.update_wrapper`` left ``__wrapped__`` on the tool, one attribute away from the bare function, and
attributes of the function (``spec``, ``function``) were copied over those of the tool. ``@tool`` over ``@tool`` took
the looser declaration of the two, depending on who called. Now nothing of the function is copied but its name and
text, and a tool is declared once.
Mutations that this file catches: ``__wrapped__`` left in place; ``updated=()`` left out; the check for a tool left
out.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from interlock import Conversation, Interlock, MemoryJournal, NotPermitted, tool
from interlock.errors import ManifestError


def send(to: str) -> str:
    """Sends."""
    return f"sent to {to}"


def _tool() -> Any:
    return tool(returns=[], egress="chosen", destinations={"to": "email"})(send)


def test_the_bare_function_is_not_an_attribute_away() -> None:
    wrapped = _tool()
    assert not hasattr(wrapped, "__wrapped__")
    assert inspect.unwrap(wrapped) is wrapped
    public = [getattr(wrapped, name) for name in vars(wrapped) if not name.startswith("_")]
    assert send not in public
    with pytest.raises(NotPermitted):
        wrapped("eve@evil.example")


def test_an_asynchronous_tool_is_as_closed() -> None:
    async def later(to: str) -> str:
        return to

    wrapped: Any = tool(returns=[], egress="chosen", destinations={"to": "email"})(later)
    assert not hasattr(wrapped, "__wrapped__")
    waiting = wrapped("eve@evil.example")
    with pytest.raises(NotPermitted):
        waiting.send(None)


@pytest.mark.parametrize("name", ["spec", "function", "_function", "_signature", "name", "__wrapped__", "__call__"])
def test_attributes_of_the_function_do_not_become_those_of_the_tool(name: str) -> None:
    def mine(to: str) -> str:
        return "mine"

    def other(to: str) -> str:
        return "other"

    setattr(mine, name, other)
    wrapped: Any = tool(returns=[], egress="none", content=["to"])(mine)
    assert wrapped.spec.id.name == wrapped.name == "mine"
    guard = Interlock(tools=[wrapped], journal=MemoryJournal()).guard(Conversation.new())
    assert guard.call("mine", {"to": "x"}, run=wrapped).result == "mine"
    with pytest.raises(NotPermitted):
        wrapped("x")


def test_a_tool_is_declared_once() -> None:
    with pytest.raises(ManifestError, match="declare it once"):
        tool(returns=[], egress="none")(_tool())


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ManifestError, match="twice"):
        Interlock(tools=[_tool(), _tool()])


def test_honest_a_tool_still_looks_like_its_function() -> None:
    wrapped = _tool()
    assert (wrapped.__name__, wrapped.__doc__, wrapped.__module__) == ("send", "Sends.", __name__)
    assert inspect.signature(wrapped) == inspect.signature(send)
    guard = Interlock(tools=[wrapped], journal=MemoryJournal()).guard(Conversation.new())
    with guard:
        assert wrapped("bob@good.example") == "sent to bob@good.example"


def test_honest_one_function_may_be_two_tools_of_two_names() -> None:
    words = {"returns": [], "egress": "none", "content": ["to"]}
    one: Any = tool(name="one", **words)(send)  # type: ignore[arg-type]
    two: Any = tool(name="two", **words)(send)  # type: ignore[arg-type]
    guard = Interlock(tools=[one, two], journal=MemoryJournal()).guard(Conversation.new())
    with guard:
        assert one("a") == "sent to a"
        assert two("b") == "sent to b"
