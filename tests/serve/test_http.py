"""Proves that the service answers nobody whom it does not know, nothing that it can't read, and no failure with an
allowance (T4, T8).

Mutations that it is shown to catch: a namespace out of the body; a body that is read before it is measured; a failure
whose answer has no verdict; an exception's text in an answer.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock.errors import EngineUnavailable, JournalUnavailable
from interlock.model.entries import Entry
from interlock.model.state import State
from interlock.serve import authzen, shapes
from interlock.serve.app import OPERATIONS
from interlock.serve.callers import new_token
from interlock.serve.desk import Desk
from interlock.serve.meters import Meters
from interlock.serve.problems import Problem
from interlock.serve.work import Limits, Work
from interlock.stores.memory_store import MemoryNamespace, MemoryStore
from tests.ids import stable
from tests.serve.stage import (
    ANA,
    BOB,
    CALLERS,
    FETCH,
    LEAK,
    QUIET,
    READ,
    READER,
    Asked,
    callers_file,
    desk_over,
    interlock_over,
    served,
)

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture(scope="module")
def address(store: MemoryStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(desk_over(store), tmp_path_factory.mktemp("served"), Limits(body=4096)) as found:
        yield found


@pytest.fixture
def ana(address: str) -> Asked:
    return Asked(address)


def is_denial(answer: httpx.Response, code: str = "gate_error") -> None:
    told = shapes.Failure.model_validate(answer.json())
    assert (told.verdict, told.run, told.decision, told.code) == ("deny", False, False, code)


# --- the whole way ----------------------------------------------------------------------------------------------------


def test_the_trifecta_over_http(ana: Asked) -> None:
    name = ana.tainted()
    (told,) = ana.propose(name, LEAK)
    shapes.DecidedCall.model_validate(told)
    assert (told["verdict"], told["code"], told["run"]) == ("deny", "trifecta", False)
    assert told["for_model"]
    assert {one["label"] for one in told["causes"]} == {"untrusted:web", "private:files"}
    held = ana.get(f"/v1/conversations/{name}")
    shapes.Inspected.model_validate(held)
    assert ana.labels(name) == ["private:files", "untrusted:web"]
    shapes.Recorded.model_validate(ana.get(f"/v1/conversations/{name}/calls/s1"))


def test_what_was_typed_vouches_and_who_may_say_so(address: str, ana: Asked) -> None:
    name = ana.tainted()
    send = {"id": "s", "name": "send_email", "arguments": {"to": "bob@example.com", "body": "x"}}
    assert ana.propose(name, send)[0]["run"] is False
    quiet = Asked(address, QUIET.token)
    quiet.post(f"/v1/conversations/{name}/typed", {"text": "mail bob@example.com"}, 403)
    quiet.post("/v1/conversations", {"text": "mail bob@example.com"}, 403)
    ana.post(f"/v1/conversations/{name}/typed", {"text": "mail bob@example.com"})
    assert ana.propose(name, {**send, "id": "s2"})[0]["run"] is True


def test_content_is_labelled_before_it_enters(ana: Asked) -> None:
    name = ana.begin()
    ana.post(f"/v1/conversations/{name}/admitted", {"text": "x", "labels": ["untrusted:memory"], "source": "notes"})
    ana.post(f"/v1/conversations/{name}/typed", {"text": "from a page", "pasted": True})
    assert ana.labels(name) == ["untrusted:memory", "untrusted:paste"]
    ana.post(f"/v1/conversations/{name}/admitted", {"text": "x", "labels": ["harmless"], "source": "notes"}, 422)


def test_a_preview_puts_nothing_in_flight(ana: Asked) -> None:
    name = ana.begin()
    told = ana.post(f"/v1/conversations/{name}/preview", {"calls": [FETCH, READ]})
    shapes.Proposed.model_validate(told)
    assert [(one["verdict"], one["run"], one["number"]) for one in told["calls"]] == [("allow", False, 0)] * 2
    assert ana.get(f"/v1/conversations/{name}")["calls"] == 0


def test_a_result_needs_its_own_call(ana: Asked) -> None:
    """The digest on record says which call was allowed; a result of another one is not taken."""
    name = ana.begin()
    ana.propose(name, FETCH)
    other = {**FETCH, "arguments": {"url": "https://elsewhere.example/"}}
    body = {"call": other, "result": {"content": "x"}}
    is_denial((ana.post(f"/v1/conversations/{name}/outcomes", body, 409), ana.last)[1])
    ana.post(f"/v1/conversations/{name}/outcomes", {"call": {**FETCH, "id": "never"}, "failed": True}, 404)
    ana.post(f"/v1/conversations/{name}/outcomes", {"call": FETCH, "failed": True, "result": {"content": ""}}, 422)
    told = ana.post(f"/v1/conversations/{name}/outcomes", {"call": FETCH, "failed": True})
    assert told["is_error"] is True
    assert ana.labels(name) == ["untrusted:web"]  # a failure may have carried anything


def test_a_call_in_doubt_runs_no_more(ana: Asked) -> None:
    name = ana.begin()
    ana.propose(name, FETCH)
    assert ana.post(f"/v1/conversations/{name}/resume", {"alone": True})["conversation"] == name
    (told,) = ana.propose(name, FETCH)
    assert (told["run"], told["outcome"]) == (False, "in_doubt")
    assert ana.labels(name) == ["untrusted:web"]


def test_what_is_damaged_goes_on_with_every_leg(ana: Asked, store: MemoryStore) -> None:
    name = ana.begin()
    ana.propose(name, READ)

    class Broken(MemoryStore):
        pass

    record = store.records["ana", name]
    sealed = record.entries[0]
    original = MemoryNamespace.state

    def state(self: MemoryNamespace, conversation: str) -> State:
        from interlock.errors import Tampered

        if conversation == name:
            raise Tampered(1, "was changed")
        return original(self, conversation)

    MemoryNamespace.state = state  # type: ignore[method-assign]
    try:
        is_denial((ana.post(f"/v1/conversations/{name}/calls", {"calls": [READ]}, 409), ana.last)[1])
        told = ana.post(f"/v1/conversations/{name}/resume", {})
    finally:
        MemoryNamespace.state = original  # type: ignore[method-assign]
    assert told["conversation"] != name
    assert told["damage"]
    assert ana.labels(told["conversation"]) == ["egress:unknown", "private:unknown", "untrusted:unknown"]
    assert sealed is record.entries[0]


# --- who may ask ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "credentials",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer nonsense"},
        {"Authorization": f"Bearer {new_token().token}"},
        {"Authorization": f"Basic {ANA.token}"},
        {"Authorization": f"Bearer {ANA.token}x"},
        {"Authorization": f"Bearer {ANA.digest}"},
        {"X-Namespace": "ana", "X-Forwarded-User": "ana"},
    ],
    # By words: tokens are random, and each worker of a parallel run must name a test alike.
    ids=["none", "empty", "nonsense", "another token", "another scheme", "longer", "the digest", "headers of a proxy"],
)
def test_nobody_unknown_is_answered(address: str, ana: Asked, credentials: dict[str, str]) -> None:
    name = ana.begin()
    with httpx.Client(base_url=address, headers=credentials, trust_env=False) as stranger:
        asked = [stranger.get(f"/v1/conversations/{name}"), stranger.get("/metrics")]
        asked += [
            stranger.request(one.method, one.path.format(**{"conversation": name, "call:path": "x"}), json={})
            for one in OPERATIONS
            if one.method == "POST"
        ]
    for answer in asked:
        assert answer.status_code == 401, answer.text
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        is_denial(answer)


def test_two_credentials_are_none(address: str) -> None:
    with httpx.Client(base_url=address, trust_env=False) as stranger:
        headers = [("Authorization", f"Bearer {ANA.token}"), ("Authorization", f"Bearer {BOB.token}")]
        assert stranger.get("/v1/conversations/x", headers=headers).status_code == 401


def test_another_namespace_is_not_there(address: str, ana: Asked) -> None:
    """Case 44: the same answer, to the byte, as for a conversation that never was, whatever is asked."""
    name = ana.tainted()
    bob = Asked(address, BOB.token)
    bodies: dict[str, Any] = {
        "propose": {"calls": [LEAK]},
        "preview": {"calls": [LEAK]},
        "observe": {"call": FETCH, "result": {"content": "x"}},
        "admit": {"text": "x", "labels": ["untrusted:x"], "source": "s"},
        "say": {"text": "x"},
    }
    checked = 0
    for one in OPERATIONS:
        if "{conversation}" not in one.path:
            continue
        told = []
        for meant in (name, "c-0123456789abcdef", "no such thing", "%00", "\N{GREEK SMALL LETTER ALPHA}"):
            path = one.path.replace("{conversation}", meant).replace("{call:path}", "f1")
            headers = {"X-Request-ID": "same"}
            answer = bob.http.request(one.method, path, json=bodies.get(one.name, {}), headers=headers)
            assert answer.status_code == 404, (one.name, answer.text)
            told.append(answer.content)
        assert len(set(told)) == 1
        checked += 1
    assert checked == 9
    assert ana.labels(name) == ["private:files", "untrusted:web"]


def test_a_namespace_can_not_be_asked_for(ana: Asked) -> None:
    for path, body in (("/v1/conversations", {"namespace": "bob"}), ("/v1/conversations", {"principal": "bob"})):
        is_denial((ana.post(path, body, 422), ana.last)[1])


def test_the_file_of_callers_is_read_again(tmp_path: Path) -> None:
    with served(desk_over(MemoryStore()), tmp_path) as address:
        ana, bob = Asked(address), Asked(address, BOB.token)
        name = ana.begin()
        path = callers_file(tmp_path, CALLERS.replace(ANA.digest, new_token().digest))
        ana.get(f"/v1/conversations/{name}", 401)
        bob.begin()
        path.write_text("version = 1\n[[callers]]\nprincipal =")
        is_denial((bob.get(f"/v1/conversations/{name}", 503), bob.last)[1])  # a file that is wrong names nobody
        assert bob.http.get("/ready").status_code == 503
        path.unlink()
        bob.get(f"/v1/conversations/{name}", 503)
        callers_file(tmp_path)
        ana.get(f"/v1/conversations/{name}")


# --- what can be read -------------------------------------------------------------------------------------------------

DEEP = b'{"a":' * 70 + b"1" + b"}" * 70


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 422),
        (b"null", 422),
        (b'{"calls": [], "calls": []}', 400),
        (b'{"calls": [{"id":"1","name":"fetch","arguments":{"a":1,"a":2}}]}', 400),
        (b'{"calls": []}', 422),
        (b'{"calls": [{"id":"1","name":"fetch"}]}', 422),
        (b'{"calls": [{"id":1,"name":"fetch","arguments":{}}]}', 422),
        (b'{"calls": [{"id":"","name":"fetch","arguments":{}}]}', 422),
        (b'{"calls": [{"id":"1","name":"fetch","arguments":[]}]}', 422),
        (b'{"calls": [{"id":"1","name":"fetch","arguments":{},"verdict":"allow"}]}', 422),
        (b'{"calls": [{"id":"1","name":"x","arguments":{}},{"id":"1","name":"y","arguments":{}}]}', 422),
        (b'{"calls": [{"id":"1","name":"x","arguments":{}}], "SECRET-KEY": 1}', 422),
        (b'{"calls": [{"id":"1","name":"x","arguments":{"n": NaN}}]}', 400),
        (b'{"calls": [{"id":"1","name":"x","arguments":{"n": 9007199254740993}}]}', 400),
        (b'{"calls": [{"id":"1","name":"x","arguments":{"n": "\\u0000"}}]}', 400),
        (b'{"calls": [{"id":"1","name":"x","arguments":{"n": "\\ud800"}}]}', 400),
        (b'{"calls": "\xff"}', 400),
        (b'{"calls": [{"id":"1","name":"x","arguments":{"SECRET_KEY": "\\u0000"}}]}', 400),
        (b'{"calls": [{"id":"1","name":"x","arguments":%s}]}' % DEEP, 400),
        (b'{"calls": "%s"}' % (b"x" * 5000), 413),
    ],
    ids=stable,
)
def test_what_can_not_be_read_is_refused(ana: Asked, body: bytes, status: int) -> None:
    name = ana.begin()
    answer = ana.http.post(f"/v1/conversations/{name}/calls", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    is_denial(answer)
    assert "SECRET" not in answer.text
    assert ana.get(f"/v1/conversations/{name}")["calls"] == 0


def test_a_body_is_measured_while_it_comes(ana: Asked) -> None:
    """A length that lies, or none: what is too much is not read to its end."""
    sent = []

    def endless() -> Iterator[bytes]:
        for number in range(100_000):
            sent.append(number)
            yield b" " * 1000

    try:
        answer = ana.http.post("/v1/conversations", content=endless(), headers=JSON)
    except (httpx.WriteError, httpx.ReadError):
        pass  # it closed while we were sending
    else:
        assert answer.status_code == 413
        is_denial(answer)
    assert len(sent) < 50_000


def test_only_json_is_json(ana: Asked) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "", "application/jsonp"):
        answer = ana.http.post("/v1/conversations", content=b"{}", headers={"content-type": kind})
        assert answer.status_code == 415
        is_denial(answer)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("GET", "/v1/conversations", 405), ("DELETE", "/health", 405), ("GET", "/docs", 404)],
    ids=stable,
)
def test_what_is_not_there_is_a_denial_too(ana: Asked, method: str, path: str, status: int) -> None:
    answer = ana.http.request(method, path)
    assert answer.status_code == status
    is_denial(answer)


# --- limits -----------------------------------------------------------------------------------------------------------


class Slow:
    """An engine that waits until it may go on."""

    name = "embedded"

    def __init__(self) -> None:
        self.inner = interlock_over(MemoryStore()).engine
        self.revision, self.controls, self.looks_at = self.inner.revision, self.inner.controls, None
        self.go = threading.Event()
        self.waiting = 0

    def evaluate(self, document: bytes) -> str | bytes:
        self.waiting += 1
        assert self.go.wait(20)
        return self.inner.evaluate(document)


def in_threads(asked: Sequence[Any]) -> list[threading.Thread]:
    threads = [threading.Thread(target=one) for one in asked]
    for one in threads:
        one.start()
    return threads


def until(true: Any) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_too_many_at_once_are_sent_away(tmp_path: Path) -> None:
    engine = Slow()
    limits = Limits(concurrency=1, queue=2, per_caller=2, deadline=20)
    with served(desk_over(MemoryStore(), engine=engine), tmp_path, limits) as address:
        ana, bob = Asked(address), Asked(address, BOB.token)
        mine, his = ana.begin(), bob.begin()
        statuses: list[int] = []

        def ask(asked: Asked, name: str, call: str) -> None:
            body = {"calls": [{**READ, "id": call}]}
            statuses.append(asked.http.post(f"/v1/conversations/{name}/calls", json=body).status_code)

        threads = in_threads([lambda: ask(Asked(address), mine, "1"), lambda: ask(Asked(address), mine, "2")])
        working = lambda: "interlock_working 2.0" in _metrics(address)  # noqa: E731
        until(working)
        third = ana.http.post(f"/v1/conversations/{mine}/calls", json={"calls": [READ]})
        assert (third.status_code, third.headers["Retry-After"]) == (429, "1")
        is_denial(third)
        threads += in_threads([lambda: ask(Asked(address, BOB.token), his, "1")])
        until(lambda: "interlock_working 3.0" in _metrics(address))
        fourth = bob.http.post(f"/v1/conversations/{his}/calls", json={"calls": [READ]})
        assert (fourth.status_code, fourth.headers["Retry-After"]) == (503, "1")
        is_denial(fourth)
        assert ana.http.get("/health").status_code == 200
        engine.go.set()
        for one in threads:
            one.join()
        assert statuses == [200] * 3
        ana.propose(mine, READ)


def _metrics(address: str) -> str:
    with httpx.Client(trust_env=False) as client:
        answer = client.get(f"{address}/metrics", headers={"Authorization": f"Bearer {READER.token}"})
    assert answer.status_code == 200
    return answer.text


def test_a_deadline_denies_and_what_was_begun_is_found_again(tmp_path: Path) -> None:
    engine = Slow()
    with served(desk_over(MemoryStore(), engine=engine), tmp_path, Limits(concurrency=1, deadline=0.3)) as address:
        ana = Asked(address)
        name = ana.begin()
        began = time.monotonic()
        late = ana.http.post(f"/v1/conversations/{name}/calls", json={"calls": [READ]})
        assert time.monotonic() - began < 5
        assert late.status_code == 503
        is_denial(late)
        # One that never began is never begun.
        ana.http.post(f"/v1/conversations/{name}/calls", json={"calls": [{**READ, "id": "r2"}]})
        engine.go.set()
        until(lambda: "interlock_working 0.0" in _metrics(address))
        (told,) = ana.propose(name, READ)
        assert (told["run"], told["repeated"], told["number"]) == (True, True, 1)
        ana.get(f"/v1/conversations/{name}/calls/r2", 404)


def test_what_is_late_is_not_begun() -> None:
    """Also when a thread is free the moment after."""
    work = Work(Limits(), Meters())
    ran: list[int] = []
    with pytest.raises(Problem) as told:
        asyncio.run(work.run("a", time.monotonic() - 1, lambda: ran.append(1)))
    work.close()
    assert (told.value.status, ran) == (503, [])


def test_a_slow_body_is_not_waited_for(tmp_path: Path) -> None:
    import socket

    with served(desk_over(MemoryStore()), tmp_path, Limits(deadline=0.3)) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=20) as slow:
            head = f"POST /v1/conversations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ANA.token}\r\n"
            slow.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
            assert slow.recv(4096).startswith(b"HTTP/1.1 503")


def test_a_conversation_has_so_many_calls(ana: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlock.serve.record.MAX_CALLS_OF_ONE", 2)
    name = ana.begin()
    ana.propose(name, READ, FETCH)
    is_denial((ana.post(f"/v1/conversations/{name}/calls", {"calls": [{**READ, "id": "r2"}]}, 429), ana.last)[1])
    assert ana.propose(name, READ, FETCH)[0]["repeated"] is True  # what was decided is known all the same


def test_a_namespace_has_so_many_conversations(tmp_path: Path) -> None:
    with served(desk_over(MemoryStore(), conversations=2), tmp_path) as address:
        ana, bob = Asked(address), Asked(address, BOB.token)
        names = [ana.begin(), ana.begin()]
        ana.post("/v1/conversations", {}, 429)
        assert ana.last.headers["Retry-After"] == "60"
        ana.post(f"/v1/conversations/{names[0]}/fork", {}, 429)
        bob.begin()


# --- failures ---------------------------------------------------------------------------------------------------------


class Failing(Slow):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def evaluate(self, document: bytes) -> str | bytes:
        raise self.error


@pytest.mark.parametrize(
    "error",
    [EngineUnavailable("SECRET"), RuntimeError("SECRET"), KeyError("SECRET"), ValueError("\ud800")],
    ids=lambda one: type(one).__name__,
)
def test_an_engine_that_fails_denies(tmp_path: Path, error: Exception) -> None:
    with served(desk_over(MemoryStore(), engine=Failing(error)), tmp_path) as address:
        ana = Asked(address)
        name = ana.begin()
        (told,) = ana.propose(name, READ)
        assert (told["verdict"], told["code"], told["run"], told["number"]) == ("deny", "engine_error", False, 1)
        (again,) = ana.propose(name, READ)
        assert (again["verdict"], again["code"], again["run"]) == ("deny", "engine_error", False)
        asked = evaluation(name, READ)
        assert ana.post("/access/v1/evaluation", asked)["decision"] is False
        assert ana.http.get("/ready").status_code == 503
        assert re.search(r'^interlock_engine_errors_total\{kind="\w+"\} [1-9]', _metrics(address), re.MULTILINE)


class Away(MemoryStore):
    """A store that can't be reached, as soon as it is told so."""

    away: str = ""

    def within(self, namespace: str) -> MemoryNamespace:
        outer = self

        class View(MemoryNamespace):
            def state(self, conversation: str) -> State:
                if outer.away == "reads":
                    raise JournalUnavailable("SECRET dsn")
                return super().state(conversation)

            def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
                if outer.away == "writes":
                    raise JournalUnavailable("SECRET dsn")
                if outer.away == "bugs":
                    raise ZeroDivisionError("SECRET dsn")
                return super().append(conversation, entries, expected=expected)

        return View(self, namespace)


@pytest.mark.parametrize("how", ["reads", "writes", "bugs"])
def test_a_store_that_fails_denies(tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture) -> None:
    store = Away()
    with served(desk_over(store), tmp_path) as address, caplog.at_level(logging.INFO):
        ana = Asked(address)
        name = ana.begin()
        (allowed,) = ana.propose(name, {**LEAK, "id": "before"})
        assert allowed["run"] is True
        store.away = how
        for path, body in (
            ("calls", {"calls": [LEAK]}),
            ("outcomes", {"call": {**LEAK, "id": "before"}, "result": {"content": "SECRET"}}),
            ("admitted", {"text": "SECRET", "labels": ["untrusted:x"], "source": "s"}),
            ("typed", {"text": "SECRET"}),
        )[: 2 if how == "reads" else 4]:  # what is only written needs no reading
            answer = ana.http.post(f"/v1/conversations/{name}/{path}", json=body)
            assert answer.status_code >= 500, answer.text
            is_denial(answer)
            assert "SECRET" not in answer.text
        answer = ana.http.post("/access/v1/evaluation", json=evaluation(name, LEAK))
        assert answer.status_code >= 500
        is_denial(answer)
        store.away = ""
        assert ana.labels(name) == []
    written = "\n".join(record.getMessage() for record in caplog.records)
    assert written
    assert "SECRET" not in written
    assert not any(record.exc_info for record in caplog.records)


# --- AuthZEN ----------------------------------------------------------------------------------------------------------


def evaluation(name: str, proposed: dict[str, Any], **context: Any) -> dict[str, Any]:
    return {
        "subject": {"type": "agent", "id": "a"},
        "action": {"name": "call"},
        "resource": {"type": "tool", "id": proposed["name"], "properties": {"arguments": proposed["arguments"]}},
        "context": {"conversation": name, **context},
    }


def test_an_evaluation_proposes(ana: Asked) -> None:
    name = ana.begin()
    told = ana.post("/access/v1/evaluation", evaluation(name, READ, call="r1"))
    authzen.EvaluationAnswer.model_validate(told)
    assert told["decision"] is True
    assert ana.get(f"/v1/conversations/{name}")["exposure"] == ["private:files"]  # in flight, like any call
    ana.observe(name, READ)
    again = ana.post("/access/v1/evaluation", evaluation(name, READ, call="r1"))
    assert (again["decision"], again["context"]["repeated"]) == (False, True)
    leak = ana.post("/access/v1/evaluation", evaluation(ana.tainted(), LEAK))
    assert (leak["decision"], leak["context"]["code"]) == (False, "trifecta")
    assert "SECRET" not in json.dumps(leak)


def test_an_evaluation_of_nothing_is_false(address: str, ana: Asked) -> None:
    assert ana.post("/access/v1/evaluation", evaluation("c-none", READ))["decision"] is False
    assert Asked(address, BOB.token).post("/access/v1/evaluation", evaluation(ana.begin(), READ))["decision"] is False
    whole = evaluation(ana.begin(), READ)
    for part in ("subject", "action", "resource", "context"):
        is_denial((ana.post("/access/v1/evaluation", {k: v for k, v in whole.items() if k != part}, 422), ana.last)[1])
    for changed in ({"action": {"name": "read"}}, {"resource": {**whole["resource"], "type": "file"}}):
        is_denial((ana.post("/access/v1/evaluation", {**whole, **changed}, 422), ana.last)[1])


def test_evaluations_of_one_conversation_are_one_turn(ana: Asked) -> None:
    """T15: reading private data and a stranger's page beside each other counts for the send beside them."""
    name = ana.begin()
    one = evaluation(name, READ, call="a")
    parts = [
        {"resource": one["resource"], "context": {"conversation": name, "call": "a"}},
        {"resource": evaluation(name, LEAK)["resource"], "context": {"conversation": name, "call": "b"}},
        {"resource": {"type": "tool"}},
        {"context": {"conversation": "c-none"}},
    ]
    whole = {"subject": one["subject"], "action": one["action"], "resource": one["resource"], "evaluations": parts}
    told = ana.post("/access/v1/evaluations", whole)
    authzen.EvaluationsAnswer.model_validate(told)
    assert [answer["decision"] for answer in told["evaluations"]] == [True, True, False, False]
    single = ana.post("/access/v1/evaluations", evaluation(name, READ))
    assert single["decision"] is True
    ana.post("/access/v1/evaluations", {**whole, "options": {"evaluations_semantic": "permit_on_first_permit"}}, 422)


def test_a_request_keeps_its_id(ana: Asked) -> None:
    answer = ana.http.get("/v1/conversations/x", headers={"X-Request-ID": "bfe9eb29-ab87"})
    assert answer.headers["X-Request-ID"] == answer.json()["request"] == "bfe9eb29-ab87"
    answer = ana.http.get("/v1/conversations/x", headers={"X-Request-ID": "a=b, level=error"})
    assert answer.headers["X-Request-ID"].startswith("r-")


# --- metrics ----------------------------------------------------------------------------------------------------------


def test_metrics_name_nobody(address: str, ana: Asked) -> None:
    name = ana.tainted()
    ana.propose(name, LEAK)
    ana.get("/metrics", 403)
    told = _metrics(address)
    assert 'interlock_decisions_total{code="trifecta",engine="embedded",verdict="deny"}' in told
    assert 'interlock_labels_total{leg="untrusted"}' in told
    for private in (name, "ana", "anas-agent", "news.example", "fetch", "SECRET"):
        assert private not in told


def test_ready(ana: Asked) -> None:
    assert ana.http.get("/health").json() == {"status": "ok"}
    told = shapes.Ready.model_validate(ana.http.get("/ready").json())
    assert told.ready


def test_a_journal_is_no_store() -> None:
    from interlock import Interlock
    from interlock.errors import Misconfigured
    from interlock.stores.memory import MemoryJournal
    from tests.serve.stage import MANIFEST

    with pytest.raises(Misconfigured, match="needs a store"):
        Desk(Interlock(manifest=MANIFEST, journal=MemoryJournal()), Meters())
