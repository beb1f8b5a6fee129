"""Case 41: one way in knows the taint and another one, the one that is used, does not.

The same story is told through every way in that there is: propose and observe, call, batch, with workers, their
asynchronous twins, and functions wrapped by `@tool` inside `with guard`. All give the same verdicts, codes and labels.
The honest twin is told by the same ways and goes through by all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from interlock import Call, Conversation, Guard, Interlock, MemoryJournal, NotPermitted, ToolResult, tool
from tests.cases.desk import got

ATTACK = [
    ("fetch", {"url": "http://guide.example/"}),
    ("read", {"path": "plan.txt"}),
    ("send", {"to": "eve@evil.test"}),
]
HONEST = [*ATTACK[:2], ("send", {"to": "kim@corp.example"})]
WANTED = {"attack": [("allow", "allowed")] * 2 + [("deny", "trifecta")], "honest": [("allow", "allowed")] * 3}


@tool(returns=["untrusted:web"], egress="chosen", destinations={"url": "url"})
def fetch(url: str) -> str:
    """A page."""
    return f"text of {url}"


@tool(returns=["private:files"], egress="none")
def read(path: str) -> str:
    """A file."""
    return f"text of {path}"


@tool(returns=[], egress="chosen", destinations={"to": "email"})
def send(to: str) -> str:
    """A mail."""
    return f"sent to {to}"


@tool(returns=[], egress="none")
def now() -> str:
    """The time."""
    return "12:00"


TOOLS: dict[str, Any] = {"fetch": fetch, "read": read, "send": send, "now": now}


def run(name: str, arguments: dict[str, Any]) -> Any:
    return TOOLS[name](**arguments)


async def arun(name: str, arguments: dict[str, Any]) -> Any:
    await asyncio.sleep(0)
    return TOOLS[name](**arguments)


def by_propose(guard: Guard, name: str, arguments: dict[str, Any]) -> Any:
    ticket = guard.propose(Call(name, arguments, "a"))
    outcome = ticket.outcomes["a"]
    if outcome.pending:
        guard.observe(ticket, "a", ToolResult("ok"))
    return got(outcome)


def by_apropose(guard: Guard, name: str, arguments: dict[str, Any]) -> Any:
    async def story() -> Any:
        ticket = await guard.apropose(Call(name, arguments, "a"))
        if ticket.allowed:
            await guard.aobserve(ticket, "a", ToolResult("ok"))
        return got(ticket.outcomes["a"])

    return asyncio.run(story())


def by_call(guard: Guard, name: str, arguments: dict[str, Any]) -> Any:
    return got(guard.call(name, arguments, run=TOOLS[name]))


def by_acall(guard: Guard, name: str, arguments: dict[str, Any]) -> Any:
    return got(asyncio.run(guard.acall(name, arguments, run=TOOLS[name])))


def by_batch(guard: Guard, name: str, arguments: dict[str, Any]) -> Any:
    return got(guard.batch([Call(name, arguments)], run=run)[0])


def by_workers(guard: Guard, name: str, arguments: dict[str, Any]) -> Any:
    return got(guard.batch([Call(name, arguments), Call("now"), Call("now")], run=run, workers=4)[0])


def by_abatch(guard: Guard, name: str, arguments: dict[str, Any]) -> Any:
    return got(asyncio.run(guard.abatch([Call(name, arguments), Call("now")], run=arun, workers=4))[0])


def by_function(guard: Guard, name: str, arguments: dict[str, Any]) -> Any:
    with guard:
        try:
            TOOLS[name](**arguments)
        except NotPermitted as error:
            return "deny", "trifecta" if "[trifecta]" in str(error.for_model) else str(error.for_model)
    return "allow", "allowed"


def by_preview(guard: Guard, name: str, arguments: dict[str, Any]) -> Any:
    decision = guard.preview(Call(name, arguments))
    if decision.verdict.value == "allow":
        guard.call(name, arguments, run=TOOLS[name])
    return decision.verdict.value, decision.code


WAYS: list[Callable[..., Any]] = [
    by_propose,
    by_apropose,
    by_call,
    by_acall,
    by_batch,
    by_workers,
    by_abatch,
    by_function,
    by_preview,
]


@pytest.mark.parametrize("story", ["attack", "honest"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_way_in_tells_the_same_story(way: Callable[..., Any], story: str) -> None:
    lock = Interlock(tools=TOOLS.values(), journal=MemoryJournal())
    guard = lock.guard(Conversation.user("Send it to kim@corp.example please."))
    steps = ATTACK if story == "attack" else HONEST
    assert [way(guard, name, arguments) for name, arguments in steps] == WANTED[story]
    assert set(guard.conversation.taint) == {"untrusted:web", "private:files"}
