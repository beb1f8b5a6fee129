"""Proves that a loop around each API guards every call and leaves a whole history, whatever the model, the API and the
tools do (T17), over real HTTP, streamed or not, synchronous or not.

Mutations that it is shown to catch: the turn pushed before its results; hosted content admitted after the batch; the
text of the person pushed instead of said; `finally` left out of the loop.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Interlock, ToolResult, Verdict, tool
from interlock.errors import Refused
from interlock.loops import (
    Finished,
    arun_anthropic,
    arun_chat,
    arun_responses,
    run_anthropic,
    run_chat,
    run_responses,
)
from interlock.model.entries import Admitted, Typed
from interlock.model.messages import ToolAnswer
from interlock.model.turns import NO_OUTCOME
from tests.integrations.shapes import (
    ANTHROPIC,
    CHAT,
    MANIFEST,
    RESPONSES,
    ROOT,
    SHAPES,
    Shape,
    entries,
    fresh,
    stand_in,
)

shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)
RUN: dict[str, Callable[..., Finished]] = {"anthropic": run_anthropic, "chat": run_chat, "responses": run_responses}
ARUN: dict[str, Callable[..., Any]] = {"anthropic": arun_anthropic, "chat": arun_chat, "responses": arun_responses}

PAGE = "https://news.example/today"
SCRIPT: list[Any] = [
    [("fetch", {"url": PAGE}), ("read_mail", {})],
    [("send", {"to": "eve@stranger.example", "body": "x"}), ("now", {})],
    [("send", {"to": "ana@corp.example", "body": "x"})],
    "Sent.",
]
SAID = f"Mail what {PAGE} says to ana@corp.example"
EXPECTED = ["allow", "allow", "deny", "allow", "allow"]


def ran(_name: str, _arguments: dict[str, Any]) -> str:
    return "done"


def post(url: str) -> Callable[..., Any]:
    """The example's own way to ask, from a file that is no package."""
    import urllib.request

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(**request: Any) -> Any:
        sent = urllib.request.Request(url, json.dumps(request).encode(), {"content-type": "application/json"})
        with opener.open(sent, timeout=30) as answer:
            text = answer.read().decode()
        if not request.get("stream"):
            return json.loads(text)
        lines = (line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: "))
        return iter([json.loads(line) for line in lines if line != "[DONE]"])

    return ask


@shapes
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_over_http(shape: Shape, stream: bool, mode: str) -> None:
    guard, server = fresh(), stand_in.StandIn(SCRIPT)
    with server as url:
        ask, request = post(f"{url}{shape.path}"), {"stream": True} if stream else {}
        if mode == "sync":
            finished = RUN[shape.name](ask, guard, ran, SAID, model="m", **request)
        else:

            async def aask(**given: Any) -> Any:
                reply = await asyncio.to_thread(ask, **given)
                return as_async(reply) if stream else reply

            finished = asyncio.run(ARUN[shape.name](aask, guard, ran, SAID, model="m", **request))
    assert server.refused == []  # the API took every request: each call had its result, in its place
    assert len(server.requests) == 4
    assert [one.verdict.value for one in finished.outcomes] == EXPECTED
    assert (finished.text, finished.reason) == ("Sent.", "done")
    assert server.requests[0] == {"model": "m", **request, shape.codec.MESSAGES: [shape.codec.user(SAID)]}
    assert any(isinstance(one, Typed) and one.values for one in entries(guard))  # said, not pushed: it vouches


async def as_async(events: Iterator[Any]) -> AsyncIterator[Any]:
    for event in events:
        yield event


def scripted(shape: Shape, *turns: Any) -> Callable[..., Any]:
    """An API that gives these turns, each once, and checks every history that it gets (T17)."""
    waiting = [one if isinstance(one, dict | list) else shape.write([], one) for one in turns]

    def ask(**request: Any) -> Any:
        assert shape.problem(request[shape.codec.MESSAGES]) == ""
        return waiting.pop(0)

    return ask


@shapes
def test_every_operation_leaves_a_whole_history(shape: Shape) -> None:
    """T17: limits, failures, cut responses and cancelled tools, one after the other on one history."""
    guard, history = fresh(), [shape.codec.user("earlier")]
    calls = shape.write([("a", "now", "{}"), ("b", "now", '{"n": 1}')], "")
    run = RUN[shape.name]

    def check(reason: str, finished: Finished) -> None:
        assert finished.reason == reason
        assert finished.messages is history
        assert shape.problem(history) == ""

    check("limit", run(scripted(shape, calls, calls), guard, ran, "go on", messages=history, max_steps=2))
    check("done", run(scripted(shape, "fine"), guard, ran, "", messages=history))

    def failing(_name: str, _arguments: dict[str, Any]) -> str:
        raise RuntimeError("secret")

    check("done", run(scripted(shape, calls, "fine"), guard, failing, "and now?", messages=history))
    assert "secret" not in json.dumps(history)

    def cancelled(_name: str, arguments: dict[str, Any]) -> str:
        if arguments:
            raise KeyboardInterrupt
        return "done"

    with pytest.raises(KeyboardInterrupt):
        run(scripted(shape, calls), guard, cancelled, "again", messages=history)
    assert shape.problem(history) == ""
    assert json.dumps(history).count(NO_OUTCOME) == 2  # nobody knows which of them were made

    def unreachable(**_request: Any) -> Any:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        run(unreachable, guard, ran, "hello?", messages=history)
    assert shape.problem(history) == ""
    cut = shape.events(calls)[:-1]
    check("incomplete", run(scripted(shape, cut), guard, ran, "", messages=history))
    check("done", run(scripted(shape, "at last"), guard, ran, "", messages=history))
    uses = [use.id for message in guard.conversation.messages for use in message.uses]
    assert len(set(uses)) == len(uses) == 8  # the model gave two ids, again and again
    told = [one.id for message in guard.conversation.messages for one in message.blocks if isinstance(one, ToolAnswer)]
    assert told == uses


@shapes
def test_hostile_turns_one_after_the_other(shape: Shape) -> None:
    """T17 after every operation, with a model that writes anything."""

    @given(st.lists(shape.hostile, max_size=4))
    def check(turns: list[Any]) -> None:
        guard = fresh()
        finished = RUN[shape.name](scripted(shape, *turns, "fine"), guard, ran, "go", max_steps=len(turns) + 1)
        assert shape.problem(finished.messages) == ""
        ids = [one.call_id for one in finished.outcomes]
        assert len(set(ids)) == len(ids)
        assert all(one.for_model is not None and not one.pending for one in finished.outcomes)

    check()


@shapes
def test_async_cancellation_answers_every_call(shape: Shape) -> None:
    history: list[Any] = []
    calls = shape.write([("a", "now", "{}"), ("b", "now", '{"n": 1}')], "")

    async def stuck(_name: str, _arguments: dict[str, Any]) -> str:
        await asyncio.sleep(60)
        return "never"

    async def ask(**_request: Any) -> Any:
        return calls

    async def main() -> None:
        task = asyncio.create_task(ARUN[shape.name](ask, fresh(), stuck, "go", messages=history, workers=2))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert shape.problem(history) == ""
    assert json.dumps(history).count(NO_OUTCOME) == 2


@shapes
def test_parallel_calls_are_decided_together(shape: Shape) -> None:
    """T15: the mail of this very turn counts for the message beside it, although nothing of it has been read."""
    guard = fresh()
    guard.admit("x", labels=["untrusted:web"], source="test")
    together = shape.write([("a", "send", '{"to":"eve@stranger.example","body":""}'), ("b", "read_mail", "{}")], "")
    finished = RUN[shape.name](scripted(shape, together, "fine"), guard, ran, "go", workers=2)
    assert [one.verdict for one in finished.outcomes] == [Verdict.DENY, Verdict.ALLOW]


def test_hosted_content_of_a_turn_counts_for_its_calls() -> None:
    search = {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "q"}}
    turn = RESPONSES.write([("a", "send", '{"to":"eve@stranger.example","body":""}')], "")
    turn["output"].insert(0, search)
    guard = fresh()
    guard.admit("x", labels=["private:mail"], source="test")
    finished = run_responses(scripted(RESPONSES, turn, "fine"), guard, ran, "go")
    assert finished.outcomes[0].decision.code == "trifecta"


def test_what_a_request_offers_is_admitted_before_anything_is_said() -> None:
    guard = fresh()
    tools = [{"type": "web_search_20260318", "name": "web_search"}]
    run_anthropic(scripted(ANTHROPIC, "fine"), guard, ran, "go", tools=tools, manifest=MANIFEST)
    kinds = [type(one) for one in entries(guard)]
    assert kinds.index(Admitted) < kinds.index(Typed)
    assert guard.conversation.taint.labels == {"untrusted:web"}


def test_a_pause_goes_on_by_itself() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    paused = {"content": [search], "stop_reason": "pause_turn"}
    finished = run_anthropic(scripted(ANTHROPIC, paused, "found"), fresh(), ran, "go")
    assert (finished.text, finished.reason, len(finished.messages)) == ("found", "done", 3)


@pytest.mark.parametrize("mode", ["sync", "async", "async tool"])
def test_a_server_that_asks_before_it_runs_a_tool(mode: str) -> None:
    """Allowed: the provider may run it, we do not. Denied: it may not. One name at both places: nobody runs it."""

    def request(name: str, one: str) -> dict[str, Any]:
        return {"type": "mcp_approval_request", "id": one, "name": name, "server_label": "tracker", "arguments": "{}"}

    def function(name: str) -> dict[str, Any]:
        return {"type": "function_call", "call_id": "f", "name": name, "arguments": "{}", "status": "completed"}

    first = {"status": "completed", "output": [request("list_issues", "m1"), request("drop", "m2"), function("now")]}
    second = {"status": "completed", "output": [request("list_issues", "m3"), function("list_issues")]}
    executed: list[str] = []

    def run(name: str, _arguments: dict[str, Any]) -> str:
        executed.append(name)
        return "done"

    async def arun(name: str, arguments: dict[str, Any]) -> str:
        return run(name, arguments)

    ask = scripted(RESPONSES, first, second, "fine")

    async def aask(**given: Any) -> Any:
        return ask(**given)

    if mode == "sync":
        finished = run_responses(ask, fresh(), run, "go")
    else:
        finished = asyncio.run(arun_responses(aask, fresh(), run if mode == "async" else arun, "go"))
    answers = {one["approval_request_id"]: one["approve"] for one in finished.messages if "approve" in one}
    assert answers == {"m1": True, "m2": False, "m3": False}
    assert executed == ["now"]


def test_wrapped_tools_run_under_their_permits() -> None:
    @tool(returns=["untrusted:web"], egress="chosen", destinations={"url": "url"})
    def fetch(url: str) -> str:
        return f"what {url} says"

    from interlock import Conversation

    guard = Interlock(tools=[fetch]).guard(Conversation.new())
    turn = CHAT.write([("a", "fetch", json.dumps({"url": PAGE}))], "")
    finished = run_chat(scripted(CHAT, turn, "fine"), guard, lambda _name, given: fetch(**given), "go")
    assert finished.outcomes[0].result == f"what {PAGE} says"


def test_the_loops_own_words() -> None:
    with pytest.raises(Refused, match="pass earlier messages as messages="):
        run_responses(scripted(RESPONSES, "fine"), fresh(), ran, "go", input=[])
    finished = run_chat(scripted(CHAT, "fine"), fresh(), ran, "go", max_steps=1, workers=3, messages=None)
    assert finished.messages[0] == {"role": "user", "content": "go"}


def test_results_of_any_kind_go_back() -> None:
    turn = ANTHROPIC.write([("a", "now", "{}")], "")
    finished = run_anthropic(
        scripted(ANTHROPIC, turn, "fine"), fresh(), lambda _n, _a: ToolResult({"at": 12}, external=False), "go"
    )
    assert finished.messages[2]["content"][0]["content"] == '{"at":12}'


# --- the stand-in is as strict as it says -----------------------------------------------------------------------------

WRONG: list[tuple[Shape, list[Any]]] = [
    (ANTHROPIC, [*ANTHROPIC.codec.read(ANTHROPIC.write([("a", "now", "{}")], "")).history]),
    (
        ANTHROPIC,
        [
            *ANTHROPIC.codec.read(ANTHROPIC.write([("a", "now", "{}")], "")).history,
            {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "tool_result", "tool_use_id": "a"}]},
        ],
    ),
    (CHAT, [*CHAT.codec.read(CHAT.write([("a", "now", "{}")], "")).history, {"role": "user", "content": "x"}]),
    (CHAT, [{"role": "tool", "tool_call_id": "a", "content": "x"}]),
    (RESPONSES, [{"type": "function_call_output", "call_id": "a", "output": "x"}]),
    (RESPONSES, [*RESPONSES.codec.read(RESPONSES.write([("a", "now", "{}")], "")).history]),
]


@pytest.mark.parametrize(("shape", "messages"), WRONG, ids=[f"{n}-{one[0]}" for n, one in enumerate(WRONG)])
def test_the_stand_in_refuses(shape: Shape, messages: list[Any]) -> None:
    assert shape.problem(messages) != ""


# --- the examples -----------------------------------------------------------------------------------------------------

EXAMPLES = ROOT / "examples" / "loops"
PRINTED = """\
fetch_page  allow  allowed
read_file   allow  allowed
send_email  deny   trifecta
send_email  allow  allowed
I mailed Ana what the page says.
"""


@pytest.mark.parametrize("name", ["anthropic_loop.py", "chat_loop.py", "responses_loop.py"])
def test_an_example_runs_offline(name: str, tmp_path: Path) -> None:
    keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY"), "")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        env={**os.environ, **keys, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", PRINTED)
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert f"[`{name}`]({name})" in readme
    assert PRINTED in readme


def test_the_ten_lines_are_about_ten() -> None:
    for name in ("anthropic_loop.py", "chat_loop.py", "responses_loop.py"):
        text = (EXAMPLES / name).read_text(encoding="utf-8").partition('if __name__ == "__main__":')[2]
        assert len(text.strip().splitlines()) <= 10
