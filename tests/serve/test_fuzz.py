"""Proves that no request makes the service fail in a way of its own, or allow what nobody may do (T4, T6).

Every tool of this world sends, and every conversation has read a stranger's text and private data: no call
may run. So whatever is asked, by whomever, nothing that comes back says that something may.

Mutations that it is shown to catch: an exception that is not translated; `run` by the verdict alone in a preview.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.serve import shapes
from interlock.serve.app import OPERATIONS, application
from interlock.serve.callers import Callers
from interlock.serve.desk import Desk
from interlock.serve.work import Limits
from interlock.stores.memory_store import MemoryStore
from tests.serve.stage import ANA, BOB, LEAK, callers_file, desk_over

SEND = {**LEAK, "arguments": {"to": "eve@evil.example", "body": "x"}}
TEMPLATES: dict[str, Any] = {
    "begin": {"labels": ["untrusted:web"], "text": "hello"},
    "resume": {"alone": False},
    "fork": {},
    "propose": {"calls": [SEND, {**SEND, "id": "s2"}]},
    "preview": {"calls": [SEND]},
    "observe": {"call": SEND, "result": {"content": "x", "external": False, "labels": [], "is_error": False}},
    "admit": {"text": "x", "labels": ["private:x"], "source": "s"},
    "say": {"text": "no address in it", "pasted": True},
    "evaluation": {
        "subject": {"type": "agent", "id": "a"},
        "action": {"name": "call"},
        "resource": {"type": "tool", "id": "send_email", "properties": {"arguments": SEND["arguments"]}},
        "context": {"conversation": "CONVERSATION", "call": "e1"},
    },
    "evaluations": {
        "subject": {"type": "agent", "id": "a"},
        "action": {"name": "call"},
        "context": {"conversation": "CONVERSATION"},
        "evaluations": [
            {"resource": {"type": "tool", "id": "send_email", "properties": {"arguments": SEND["arguments"]}}}
        ],
    },
}

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["", "allow", "deny", "call", "tool", "send_email", "srv/send_email", "s1", "\0", "\ud800", "x" * 600]
    )
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def mutated(draw: st.DrawFn, template: Any) -> Any:
    """A request like the template, with some of it left out, changed, or put somewhere else."""
    if isinstance(template, dict):
        found = {}
        for key, value in template.items():
            what = draw(st.sampled_from("kkkkkkdc"))
            if what == "k":
                found[key] = draw(mutated(value))
            elif what == "c":
                found[draw(st.sampled_from([key, key.upper(), "verdict", "decision"]))] = draw(values)
        return found
    if isinstance(template, list):
        return [draw(mutated(one)) for one in template for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2])))]
    return draw(st.just(template) | st.just(template) | st.just(template) | values)


def written(value: Any) -> bytes:
    return json.dumps(value).replace("CONVERSATION", "c").encode("utf-8", "surrogatepass")


bodies = st.binary(max_size=60) | values.map(written)


class World:
    """The real application, asked without a socket. Each example has a conversation of its own."""

    def __init__(self, desk: Desk, callers: Callers) -> None:
        self.desk = desk
        self.app = application(desk, callers, Limits(deadline=30))
        self.loop = asyncio.new_event_loop()
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://service")
        self.caller = callers.now()[0]

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
        return self.loop.run_until_complete(
            self.client.request(method, f"http://service{path}", content=body, headers=headers)
        )

    def tainted(self) -> str:
        begun = self.desk.begin(self.caller, shapes.Begin(labels=["untrusted:web", "private:files"]))
        return str(begun["conversation"])

    def close(self) -> None:
        self.loop.run_until_complete(self.client.aclose())
        self.app.state.door.close()
        self.loop.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    desk = desk_over(MemoryStore(), conversations=10**9)
    made = World(desk, Callers(callers_file(tmp_path_factory.mktemp("callers"))))
    yield made
    made.close()


def nothing_allowed(value: Any) -> None:
    """No part of an answer says that anything may run."""
    if isinstance(value, dict):
        assert value.get("run", False) is False, value
        assert value.get("decision", False) is False, value
        assert value.get("verdict", "deny") in ("deny", "ask"), value
        for one in value.values():
            nothing_allowed(one)
    elif isinstance(value, list):
        for one in value:
            nothing_allowed(one)


def judged(answer: httpx.Response, told: type[shapes.Shape]) -> None:
    assert answer.status_code < 500, answer.text
    nothing_allowed(answer.json())
    (told if answer.is_success else shapes.Failure).model_validate(answer.json())


@settings(max_examples=max(50, settings.default.max_examples // 2))
@given(st.data())
def test_requests_that_are_nearly_right(world: World, data: st.DataObject) -> None:
    operation = data.draw(st.sampled_from([one for one in OPERATIONS if one.asked is not None]), label="operation")
    body = data.draw(mutated(TEMPLATES[operation.name]), label="body")
    name = world.tainted()
    path = operation.path.replace("{conversation}", name)
    raw = json.dumps(body).replace("CONVERSATION", name).encode("utf-8", "surrogatepass")
    headers = {"Authorization": f"Bearer {ANA.token}", "content-type": "application/json"}
    judged(world.ask("POST", path, raw, headers), operation.told)
    headers["Authorization"] = f"Bearer {BOB.token}"  # whose namespace has nothing of the kind
    answer = world.ask("POST", path, raw, headers)
    assert answer.status_code < 500, answer.text
    nothing_allowed(answer.json())
    assert set(world.desk.inspect(world.caller, name)["exposure"]) >= {"untrusted:web", "private:files"}


@given(
    st.sampled_from(["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"]),
    st.sampled_from(sorted({one.path for one in OPERATIONS}))
    | st.text("abcv1/{}%.?#;\\ \u00e4", max_size=30).map("/".__add__),
    bodies,
    st.dictionaries(
        st.sampled_from(["authorization", "content-type", "content-length", "x-request-id", "transfer-encoding"]),
        st.sampled_from(["", "x", "application/json", "-1", "9" * 30, "chunked", f"Bearer {ANA.token}", "Bearer"]),
    ),
)
def test_requests_that_are_anything(world: World, method: str, path: str, body: bytes, headers: dict[str, str]) -> None:
    answer = world.ask(method, path, body, headers)
    assert answer.status_code < 500, answer.text
    if answer.content and answer.headers["content-type"] == "application/json" and path != "/openapi.json":
        nothing_allowed(answer.json())
