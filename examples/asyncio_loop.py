"""An asynchronous agent loop with parallel calls and several turns of the person.

Runs offline: ``python examples/asyncio_loop.py``. The calls of one turn of the model are decided together, before any
of them runs; those that are allowed then run at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from interlock import Call, Conversation, Guard, Interlock, Manifest, MemoryJournal, Message

BOTH = asyncio.Barrier(2)


async def fetch_page(url: str) -> str:
    await asyncio.wait_for(BOTH.wait(), timeout=10)  # passes only while another page is being fetched
    return f"what {url} says"


async def read_file(path: str) -> str:
    return f"what {path} says"


async def send_email(to: str, subject: str, body: str) -> str:
    return f"{subject} ({len(body)} characters) to {to}"


TOOLS: dict[str, Callable[..., Awaitable[str]]] = {
    "fetch_page": fetch_page,
    "read_file": read_file,
    "send_email": send_email,
}


async def dispatch(name: str, arguments: dict[str, Any]) -> str:
    return await TOOLS[name](**arguments)


async def turn(guard: Guard, calls: Sequence[Call]) -> None:
    outcomes = await guard.abatch(calls, run=dispatch, workers=4)
    guard.conversation.push(Message.results(*outcomes))
    for outcome in outcomes:
        print(f"{outcome.call_id:<9}{outcome.tool:<11} {outcome.verdict:<6} {outcome.decision.code}")


def mail(to: str, id: str) -> Call:
    return Call("send_email", {"to": to, "subject": "Ferry", "body": "…"}, id=id)


async def main() -> None:
    lock = Interlock(manifest=Manifest.load(Path(__file__).with_name("interlock.toml")), journal=MemoryJournal())
    conversation = Conversation.user("Compare https://news.example/ferry with https://port.example/plan.")
    guard = lock.guard(conversation)
    pages = ("https://news.example/ferry", "https://port.example/plan")
    await turn(guard, [Call("fetch_page", {"url": url}, id=f"page_{n}") for n, url in enumerate(pages)])

    conversation.say("Now look at private/plan.txt and mail what you think to ana@corp.example.")
    # One turn reads and sends. The file's label counts for the mails beside it, although nothing has been read yet.
    read = Call("read_file", {"path": "private/plan.txt"}, id="read")
    await turn(guard, [read, mail("ana@corp.example", "ana"), mail("drop@collector.example", "stranger")])


if __name__ == "__main__":
    asyncio.run(main())
