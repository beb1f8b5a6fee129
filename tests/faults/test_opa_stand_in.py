"""T4, T8 against a server that misbehaves: no tool runs, no call waits longer than its deadline, no loop ends.

A stand-in on loopback does everything but answer, in some sixty ways, to both drivers. After each of them it behaves,
and the next call is allowed: whatever happened has left nothing behind.

Under ``INTERLOCK_PROFILE=deep`` they may be 50 ms late, elsewhere a busy machine is forgiven more; with ``-s`` the run
ends with how many milliseconds after the deadline each of the slowest came back.

Mutation that it is shown to catch: following redirects, reading without a bound, or any fault that falls back to the
text of the last good answer.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opa_client")

from interlock.model.decisions import ENGINE_ERROR, Verdict
from interlock.policy.opa import Contract, Limits, OpaEngine
from interlock.policy.opa_faults import OUT, Fault
from interlock.policy.revisions import Demand
from tests.opa_worlds import (
    ALL_ALLOW,
    DEADLINE,
    GOOD,
    PATIENT,
    REVISION,
    Agent,
    Behaviour,
    Connection,
    StandIn,
    answer,
    behaves,
    engine_for,
    in_time,
    kinds,
    said,
    until,
)

DRIVERS = ["sync", "async"]
LATE: dict[tuple[str, str], int] = {}
DEEP = os.environ.get("INTERLOCK_PROFILE") == "deep"


@pytest.fixture(scope="module", autouse=True)
def told_at_the_end() -> Iterator[None]:
    yield
    slowest = sorted(((late, *way) for way, late in LATE.items()), reverse=True)[:8]
    print("\nms after the deadline:", *slowest, sep="\n  ")


def counted(engine: OpaEngine) -> Mapping[str, int]:
    """What was counted. When the courier itself was held up, that is a moment after the caller was told."""
    until(lambda: bool(kinds(engine)))
    return kinds(engine)


def says(data: bytes) -> Behaviour:
    """Answers every request on a connection with these bytes, then closes it."""

    def behaviour(connection: Connection) -> None:
        if connection.request():
            connection.send(data)

    return behaviour


def after_request(act: Callable[[Connection], None]) -> Behaviour:
    def behaviour(connection: Connection) -> None:
        if connection.request():
            act(connection)

    return behaviour


def forever(part: bytes, head: bytes) -> Behaviour:
    """Without end, in pieces that leave some of the interpreter to the client, which is in the same process."""

    def act(connection: Connection) -> None:
        connection.send(head)
        while not connection.stopped.wait(0.001):
            connection.send(part * max(1, 1000 // len(part)))

    return after_request(act)


def late(connection: Connection) -> None:
    connection.stopped.wait(DEADLINE + 0.1)
    connection.send(GOOD)


def half(connection: Connection) -> None:
    connection.send(GOOD[: len(GOOD) // 2])
    connection.hang()


def result(value: Any) -> bytes:
    return answer(said(result=value))


def without(code: str) -> dict[str, Any]:
    return {name: one for name, one in ALL_ALLOW.items() if name != code}


def one(value: Any) -> dict[str, Any]:
    return {**ALL_ALLOW, "trifecta": value}


BODY = json.dumps(said()).encode()
BOMB = gzip.compress(b" " * 50_000_000)
CHUNKED = "Transfer-Encoding: chunked"
STREAM = answer(b"", "Content-Length: 1000000000")

MISBEHAVIOURS: dict[str, tuple[Behaviour, Fault]] = {
    # time
    "late": (after_request(late), Fault.DEADLINE),
    "never": (after_request(Connection.hang), Fault.DEADLINE),
    "never, and does not even read": (Connection.hang, Fault.DEADLINE),
    "half an answer, then silence": (after_request(half), Fault.DEADLINE),
    "a byte of the head each 100 ms": (after_request(lambda c: c.drip(GOOD, 0.1)), Fault.DEADLINE),
    "a byte of the body each 100 ms": (
        after_request(lambda c: (c.send(GOOD[:-200]), c.drip(GOOD[-200:], 0.1))[1]),
        Fault.DEADLINE,
    ),
    "a byte of the body each ms, without end": (
        after_request(lambda c: (c.send(STREAM), c.drip(b" " * 20_000, 0.001))[1]),
        Fault.DEADLINE,
    ),
    "a byte each 100 ms before anything was asked": (lambda c: c.drip(GOOD, 0.1), Fault.DEADLINE),
    "100 Continue for ever": (forever(b"HTTP/1.1 100 Continue\r\n\r\n", b""), Fault.DEADLINE),
    # connections
    "reset at once": (Connection.reset, Fault.RESET),
    "reset after the request": (after_request(Connection.reset), Fault.RESET),
    "closed after the request": (after_request(lambda c: None), Fault.RESET),
    "half an answer, then closed": (says(GOOD[: len(GOOD) // 2]), Fault.PARTIAL_BODY),
    "a longer content-length than body": (says(answer(BODY, f"Content-Length: {len(BODY) + 9}")), Fault.PARTIAL_BODY),
    "chunks that end in the middle": (
        says(answer(b"%x\r\n" % len(BODY) + BODY[:40], CHUNKED)),
        Fault.PARTIAL_BODY,
    ),
    # HTTP
    "chunks that are none": (says(answer(b"zz\r\n" + BODY + b"\r\n0\r\n\r\n", CHUNKED)), Fault.MALFORMED_HTTP),
    "two lengths": (
        says(answer(BODY, f"Content-Length: {len(BODY)}", f"Content-Length: {len(BODY) - 1}")),
        Fault.MALFORMED_HTTP,
    ),
    "HTTP/0.9": (says(BODY), Fault.MALFORMED_HTTP),
    "garbage": (says(os.urandom(300).replace(b"\n", b"x") + b"\r\n\r\n"), Fault.MALFORMED_HTTP),
    "a status that is no number": (says(answer(BODY, status="OK OK")), Fault.MALFORMED_HTTP),
    "a huge header": (says(answer(BODY, "X: " + "x" * 100_000)), Fault.MALFORMED_HTTP),
    "headers without end": (forever(b"X: y\r\n", b"HTTP/1.1 200 OK\r\n"), Fault.MALFORMED_HTTP),
    "TLS where none was expected": (lambda c: c.send(b"\x15\x03\x01\x00\x02\x02\x28"), Fault.MALFORMED_HTTP),
    "a shorter content-length than body": (
        says(answer(BODY, f"Content-Length: {len(BODY) - 9}")),
        Fault.MALFORMED_HTTP,
    ),
    # status
    "201": (says(answer(BODY, status="201 Created")), Fault.STATUS),
    "204": (says(b"HTTP/1.1 204 No Content\r\n\r\n"), Fault.STATUS),
    "206": (says(answer(BODY, status="206 Partial Content")), Fault.STATUS),
    "301 without a place": (says(answer(BODY, status="301 Moved Permanently")), Fault.REDIRECT),
    "304": (says(b"HTTP/1.1 304 Not Modified\r\n\r\n"), Fault.REDIRECT),
    "400": (says(answer(BODY, status="400 Bad Request")), Fault.CLIENT_ERROR),
    "401": (says(answer(BODY, status="401 Unauthorized")), Fault.UNAUTHORISED),
    "403": (says(answer(BODY, status="403 Forbidden")), Fault.UNAUTHORISED),
    "404": (says(answer(BODY, status="404 Not Found")), Fault.CLIENT_ERROR),
    "407": (says(answer(BODY, status="407 Proxy Authentication Required")), Fault.CLIENT_ERROR),
    "429": (says(answer(BODY, status="429 Too Many Requests")), Fault.TOO_MANY_REQUESTS),
    "429, again in an hour": (
        says(answer(BODY, "Retry-After: 3600", status="429 Too Many Requests")),
        Fault.TOO_MANY_REQUESTS,
    ),
    "429, again at no time": (
        says(answer(BODY, "Retry-After: -1e999", status="429 Too Many Requests")),
        Fault.TOO_MANY_REQUESTS,
    ),
    "500": (says(answer(BODY, status="500 Internal Server Error")), Fault.SERVER_ERROR),
    "503": (says(answer(BODY, status="503 Service Unavailable")), Fault.UNAVAILABLE),
    "999": (says(answer(BODY, status="999 What")), Fault.SERVER_ERROR),
    # bodies
    "a page": (says(answer(b"<html>allow</html>", type="text/html")), Fault.CONTENT_TYPE),
    "an answer that says it is text": (says(answer(BODY, type="text/plain")), Fault.CONTENT_TYPE),
    "an answer that does not say what it is": (says(answer(BODY, type="")), Fault.CONTENT_TYPE),
    "a gzip bomb": (says(answer(BOMB, "Content-Encoding: gzip")), Fault.CONTENT_ENCODING),
    "a huge body": (forever(b" " * 65536, STREAM), Fault.TOO_LARGE),
    "no body": (says(answer(b"")), Fault.MALFORMED_ANSWER),
    "no JSON": (says(answer(b"allow")), Fault.MALFORMED_ANSWER),
    "half of it, well sent": (says(answer(BODY[: len(BODY) // 2])), Fault.MALFORMED_ANSWER),
    "something after it": (says(answer(BODY + b"{}")), Fault.MALFORMED_ANSWER),
    "UTF-16": (says(answer(BODY.decode().encode("utf-16"))), Fault.MALFORMED_ANSWER),
    "deeper than deep": (says(answer(b"[" * 100_000)), Fault.MALFORMED_ANSWER),
    "NaN": (says(answer(BODY.replace(b'"allow"', b"NaN", 1))), Fault.MALFORMED_ANSWER),
    "a key that stands twice": (
        says(answer(BODY[:-1] + b', "result": ' + json.dumps(ALL_ALLOW).encode() + b"}")),
        Fault.MALFORMED_ANSWER,
    ),
    "a control that answers twice": (
        says(answer(BODY.replace(b'"trifecta":', b'"trifecta": {"verdict": "deny"}, "trifecta":'))),
        Fault.MALFORMED_ANSWER,
    ),
    "a list": (says(answer(json.dumps([said()]).encode())), Fault.MALFORMED_ANSWER),
    # answers
    "nothing": (says(answer({})), Fault.UNDEFINED),
    "no result": (says(answer(said(result=None))), Fault.UNDEFINED),
    "true": (says(result(True)), Fault.MALFORMED_ANSWER),
    "an empty result": (says(result({})), Fault.MALFORMED_ANSWER),
    "a control too few": (says(result(without("trifecta"))), Fault.MALFORMED_ANSWER),
    "a control too many": (says(result({**ALL_ALLOW, "more": {"verdict": "allow"}})), Fault.MALFORMED_ANSWER),
    "a verdict beside the result": (says(answer(said(verdict="allow"))), Fault.MALFORMED_ANSWER),
    "a warning": (says(answer(said(warning={"code": "api_usage_warning"}))), Fault.MALFORMED_ANSWER),
    "a verdict too many": (
        says(result(one({"verdict": "allow", "verdict2": "allow"}))),
        Fault.MALFORMED_ANSWER,
    ),
    "a verdict of another type": (says(result(one({"verdict": True}))), Fault.MALFORMED_ANSWER),
    "a verdict in a list": (says(result(one({"verdict": ["allow"]}))), Fault.MALFORMED_ANSWER),
    "an unknown verdict": (says(result(one({"verdict": "ALLOW"}))), Fault.MALFORMED_ANSWER),
    "a control that answers with a word": (says(result(one("allow"))), Fault.MALFORMED_ANSWER),
    # what must come along
    "an old revision": (
        says(answer(said(provenance={"bundles": {"interlock": {"revision": "sha256:old"}}}))),
        Fault.WRONG_REVISION,
    ),
    "no revision": (says(answer(said(provenance={"bundles": {"interlock": {}}}))), Fault.NO_REVISION),
    "no bundle": (says(answer(said(provenance={"version": "1.22.3"}))), Fault.NO_REVISION),
    "no provenance": (says(answer(said(provenance=None))), Fault.NO_REVISION),
    "two bundles": (
        says(answer(said(provenance={"bundles": {"a": {"revision": REVISION}, "b": {"revision": REVISION}}}))),
        Fault.NO_REVISION,
    ),
    "a revision that is a number": (
        says(answer(said(provenance={"bundles": {"interlock": {"revision": 7}}}))),
        Fault.MALFORMED_ANSWER,
    ),
    "bundles in a list": (says(answer(said(provenance={"bundles": [REVISION]}))), Fault.MALFORMED_ANSWER),
    "no decision id": (says(answer(said(decision_id=None))), Fault.NO_DECISION_ID),
    "a decision id with a line in it": (says(answer(said(decision_id="d\nallow"))), Fault.MALFORMED_ANSWER),
}
# A reset that comes while the client still thinks about its connection looks like none.
ALSO = {"reset at once": Fault.REFUSED}
LOGGED = Contract(Demand(exact=REVISION), decision_log=True)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("way", MISBEHAVIOURS)
def test_no_tool_runs(way: str, driver: str) -> None:
    """T4, T8: denied with ``engine_error``, counted under its own name, in time; then everything is as before."""
    behaviour, fault = MISBEHAVIOURS[way]
    deadline = DEADLINE if fault is Fault.DEADLINE else PATIENT
    limits = Limits(deadline, breaker_failures=1000)
    with StandIn(behaviour) as server, engine_for(server.url(), contract=LOGGED, limits=limits) as engine:
        agent = Agent(engine, driver)
        outcome = agent.call()
        assert (outcome.verdict, outcome.decision.code, agent.ran) == (Verdict.DENY, ENGINE_ERROR, 0)
        assert "operator has repaired it" in outcome.for_model
        assert counted(engine) in ({fault.value: 1}, {ALSO.get(way, fault).value: 1})
        LATE[way, driver] = round((agent.took - deadline) * 1000)
        assert in_time(agent.took, deadline)
        server.behaviour = behaves
        until(lambda: agent.call().verdict is Verdict.ALLOW)
        assert agent.ran == 1


def test_there_are_enough_ways() -> None:
    assert len(MISBEHAVIOURS) >= 60
    told = {fault for _, fault in MISBEHAVIOURS.values()}
    elsewhere = {Fault.REFUSED, Fault.UNRESOLVED, Fault.TLS, Fault.BREAKER_OPEN, Fault.TOKEN, Fault.DOCUMENT}
    assert set(Fault) - told - elsewhere == {Fault.CLIENT}  # what nobody thought of; see test_opa_client.py


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_not_followed(driver: str, status: str) -> None:
    """The other host would see the document, and would be believed."""
    with StandIn() as other:
        away = answer(b"", f"Location: {other.url('localhost')}/v1/data/interlock/entrypoint/answers", status=status)
        with StandIn(says(away)) as server, engine_for(server.url()) as engine:
            agent = Agent(engine, driver)
            assert agent.call().decision.code == ENGINE_ERROR
            assert (agent.ran, other.asked, kinds(engine)) == (0, 0, {"redirect": 1})


def places() -> Iterator[int]:
    step = 1 if DEEP else max(1, len(GOOD) // 40)
    return iter(sorted({*range(0, len(GOOD), step), *range(len(GOOD) - 3, len(GOOD))}))


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_connection_that_breaks_at_every_byte(driver: str) -> None:
    """However much of a good answer had come, the part is no answer."""
    place = [0]

    def cut(connection: Connection) -> None:
        if connection.request():
            connection.send(GOOD[: place[0]])
            (connection.reset if place[0] % 2 else connection.raw.close)()

    with StandIn(cut) as server, engine_for(server.url(), limits=Limits(2.0, 0, 10**6)) as engine:
        agent = Agent(engine, driver)
        for place[0] in places():
            outcome = agent.call()
            assert (outcome.decision.code, agent.ran) == (ENGINE_ERROR, 0), place[0]
        assert set(kinds(engine)) <= {"reset", "partial_body"}
        place[0] = len(GOOD)
        assert agent.call().verdict is Verdict.ALLOW


@pytest.mark.parametrize("driver", DRIVERS)
def test_nothing_listens(driver: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # taken, but nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with engine_for(url) as engine:
            agent = Agent(engine, driver)
            assert agent.call().decision.code == ENGINE_ERROR
            assert kinds(engine) == {"refused": 1}


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_name_that_nobody_has(driver: str) -> None:
    with engine_for("https://opa.invalid:8181", limits=Limits(DEADLINE)) as engine:
        agent = Agent(engine, driver)
        assert agent.call().decision.code == ENGINE_ERROR
        assert set(kinds(engine)) <= {"unresolved", "deadline"}
        assert in_time(agent.took)


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_answer_that_nobody_asked_for(driver: str) -> None:
    """A second answer lies in the connection before the second question is asked: it is not an answer to that."""
    deny = answer(said(result={code: {"verdict": "deny"} for code in ALL_ALLOW}))

    def twice(connection: Connection) -> None:
        if connection.request():
            connection.send(deny)
            time.sleep(0.03)  # the first one is read, and the connection waits to be used again
            connection.send(GOOD)
            if connection.request():
                connection.send(deny)

    def at_once(connection: Connection) -> None:
        if connection.request():
            connection.send(deny + GOOD)
            if connection.request():
                connection.send(deny)

    for behaviour in (twice, at_once):
        with StandIn(behaviour) as server, engine_for(server.url()) as engine:
            agent = Agent(engine, driver)
            for _ in range(3):
                assert agent.call().verdict is Verdict.DENY
                time.sleep(0.06)
            assert agent.ran == 0


def test_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No proxy and no .netrc: the document goes to the server that was named, and no password goes along."""
    with StandIn() as proxy, StandIn() as server:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url())
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
        monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
        monkeypatch.setenv("HOME", str(tmp_path))
        seen: list[bytes] = []

        def recording(connection: Connection) -> None:
            while request := connection.request():
                seen.append(request)
                connection.send(GOOD)

        server.behaviour = recording
        with engine_for(server.url()) as engine:
            assert Agent(engine, "sync").call().verdict is Verdict.ALLOW
            assert Agent(engine, "async").call().verdict is Verdict.ALLOW
        assert (proxy.asked, len(seen)) == (0, 2)
        assert all(b"authorization" not in one.lower() and b"cookie" not in one.lower() for one in seen)
        assert all(b"strict-builtin-errors=true" in one and b"provenance=true" in one for one in seen)


def test_out_and_wrong_are_told_apart() -> None:
    """Only for those of the first kind may another engine speak."""
    assert {fault for way, (_, fault) in MISBEHAVIOURS.items() if fault in OUT} == {
        Fault.DEADLINE,
        Fault.RESET,
        Fault.PARTIAL_BODY,
        Fault.TOO_MANY_REQUESTS,
        Fault.UNAVAILABLE,
    }
