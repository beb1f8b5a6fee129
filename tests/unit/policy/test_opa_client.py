"""Proves what is no address, token or path; and that every exception of the client's becomes a fault with a name (T4).

Mutation that it is shown to catch: a path that is passed on as it is written, a translation that lets one through.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opa_client")

import aiohttp

from interlock.errors import EngineUnavailable, Misconfigured
from interlock.model.canonical import pack
from interlock.model.decisions import Verdict
from interlock.policy import opa_client
from interlock.policy.courier import courier
from interlock.policy.opa import Contract, Limits, OpaEngine
from interlock.policy.opa_client import OpaServer, read_token
from interlock.policy.opa_faults import Fault, of_exception
from interlock.policy.resilience import BreakerState
from interlock.policy.revisions import Demand
from interlock.policy.samples import SAMPLES
from tests.ids import stable
from tests.opa_worlds import DEADLINE, GOOD, Agent, Connection, StandIn, answer, engine_for, in_time, kinds, said, until

DOCUMENT = pack(SAMPLES["clean send"])
BRIEF = Limits(DEADLINE, breaker_failures=1000)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "opa",
        "opa:8181",
        "ftp://localhost:21",
        "unix:///run/opa.sock",
        "https://",
        "https://:8181",
        "https://user:secret@opa:8181",
        "https://opa:8181/prefix",
        "https://opa:8181?x",
        "https://opa:8181#x",
        "https://opa:port",
        "https://opa:99999",
        "https://opa\\@evil:8181",
        "https://opa evil:8181",
        "https://opa\r\nX: y:8181",
        "https://öpa:8181",
        "https://[::1",
    ],
    ids=stable,
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(Misconfigured, match=r"engine\.url"):
        OpaServer(url)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://localhost:8181", ("http", "localhost", 8181)),
        ("http://127.0.0.1", ("http", "127.0.0.1", 8181)),
        ("http://[::1]:9/", ("http", "::1", 9)),
        ("https://opa.corp.example:443", ("https", "opa.corp.example", 443)),
    ],
    ids=stable,
)
def test_addresses(url: str, address: tuple[str, str, int]) -> None:
    assert OpaServer(url).address == address


def test_another_machine_without_tls() -> None:
    with pytest.raises(Misconfigured, match="plain text"):
        OpaServer("http://opa.corp.example:8181")
    assert OpaServer("http://opa.corp.example:8181", plaintext=True).context() is None


@pytest.mark.parametrize(
    "path", ["", "answers", "a/b", "a.b?x=1", "a..b", ".a.b", "a.b.", "a.b#", "a.%2e%2e", "a.1b", "a.b c"], ids=stable
)
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(Misconfigured, match=r"engine\.entrypoint"):
        OpaServer("http://localhost:8181", entrypoint=path)


@pytest.mark.parametrize("content", [b"", b" \n", b"two words", b"a\nX: y", b"\xff", b"x" * 20_000], ids=stable)
def test_what_is_no_token(content: bytes, tmp_path: Path) -> None:
    """A line end in it would be another header."""
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(EngineUnavailable, match="holds no token"):
        read_token(file)
    with pytest.raises(Misconfigured, match=r"engine\.token_file"):
        OpaServer("http://localhost:8181", token_file=file)


def _every_error_of(module: Any) -> list[type[BaseException]]:
    return [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, Exception)]


def test_every_exception_has_a_name() -> None:
    """Of the client, of what it uses, and of Python; made without their arguments, since many of them need some."""
    from opa_client import errors

    known = [*_every_error_of(aiohttp), *_every_error_of(errors), *_every_error_of(ssl), ConnectionResetError]
    known += [socket.gaierror, OSError, ValueError, RuntimeError, KeyError, RecursionError, MemoryError]
    assert len(known) > 40
    for one in known:
        made: Any = one.__new__(one)
        try:
            fault = of_exception(made)
        except AttributeError:  # it can't say what it is about without its arguments
            continue
        assert isinstance(fault.fault, Fault), one
    assert of_exception(RuntimeError("secret")).fault is Fault.CLIENT
    assert "secret" not in str(of_exception(RuntimeError("secret")))


def test_what_is_no_json_is_not_asked() -> None:
    """Bytes that would close the document and say something else never reach the server."""
    with StandIn() as server, engine_for(server.url()) as engine:
        for raw in (b"", b"{", b'{"a":1},"x":{}', b"NaN", b"\xff"):
            with pytest.raises(EngineUnavailable) as caught:
                engine.evaluate(raw)
            assert caught.value.kind == "document"
        assert server.asked == 0


def test_one_connection_for_many_questions() -> None:
    with StandIn() as server, engine_for(server.url()) as engine:
        for _ in range(20):
            engine.evaluate(DOCUMENT)
        assert server.asked == 1
        engine.close()
        engine.evaluate(DOCUMENT)
        assert server.asked == 2


def test_again_within_the_deadline_only() -> None:
    """A connection that breaks is tried again; the number of tries and the time are bounded."""
    times = [0]

    def at_the_third(connection: Connection) -> None:
        times[0] += 1
        if connection.request():
            connection.send(GOOD if times[0] == 3 else b"")

    with StandIn(at_the_third) as server, engine_for(server.url(), limits=Limits(2.0, retries=2)) as engine:
        assert engine.evaluate(DOCUMENT).engine == "opa"
        assert (engine.counts["retried"], times[0]) == (2, 3)
    times[0] = 10
    with StandIn(at_the_third) as server, engine_for(server.url(), limits=Limits(2.0, retries=1)) as engine:
        with pytest.raises(EngineUnavailable):
            engine.evaluate(DOCUMENT)
        assert times[0] == 12


def test_the_server_may_ask_for_a_pause() -> None:
    times: list[float] = []

    def busy_once(connection: Connection) -> None:
        while connection.request():
            times.append(time.monotonic())
            busy = answer(b"", "Retry-After: 1", status="429 Too Many Requests")
            connection.send(busy if len(times) == 1 else GOOD)

    with StandIn(busy_once) as server, engine_for(server.url()) as engine:
        assert engine.evaluate(DOCUMENT).engine == "opa"
        assert times[1] - times[0] >= 1


def test_of_several_bundles_the_named_one_counts() -> None:
    bundles = {"ours": {"revision": "r2"}, "theirs": {"revision": "r1"}}
    with StandIn(
        lambda c: [c.send(answer(said(provenance={"bundles": bundles}))) for _ in iter(c.request, b"")]
    ) as server:
        for name, revision, kind in (
            ("ours", "r2", ""),
            ("theirs", "r2", "wrong_revision"),
            ("x", "r2", "no_revision"),
        ):
            with engine_for(server.url(), contract=Contract(Demand(exact=revision), bundle=name)) as engine:
                if kind:
                    with pytest.raises(EngineUnavailable) as caught:
                        engine.evaluate(DOCUMENT)
                    assert caught.value.kind == kind
                else:
                    assert engine.evaluate(DOCUMENT).revision == revision
        with (
            engine_for(server.url(), contract=Contract(Demand(), bundle="x")) as engine,
            pytest.raises(EngineUnavailable, match="reports no revision"),  # named, so it must be there
        ):
            engine.evaluate(DOCUMENT)


def test_without_the_seam_every_question_has_its_own_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opa_client, "REUSES", False)
    with StandIn() as server, engine_for(server.url()) as engine:
        for _ in range(3):
            engine.evaluate(DOCUMENT)
        assert server.asked == 3


def test_a_failing_server_is_not_buried_in_retries() -> None:
    with StandIn(lambda connection: connection.request() and None) as server:
        limits = Limits(3.0, retries=5, breaker_failures=1000)
        with engine_for(server.url(), limits=limits) as engine:
            for _ in range(30):
                with pytest.raises(EngineUnavailable):
                    engine.evaluate(DOCUMENT)
            assert server.asked < 30 + 10


def test_many_at_once_wait_no_longer_than_one() -> None:
    with StandIn(Connection.hang) as server, engine_for(server.url(), limits=BRIEF, connections=4) as engine:

        async def all_of_them() -> list[float]:
            loop = asyncio.get_running_loop()

            async def one() -> float:
                begun = loop.time()
                with pytest.raises(EngineUnavailable):
                    await engine.aevaluate(DOCUMENT)
                return loop.time() - begun

            return await asyncio.gather(*(one() for _ in range(40)))

        assert all(in_time(took) for took in asyncio.run(all_of_them()))
        assert set(kinds(engine)) == {"deadline"}


def test_the_breaker_opens_and_closes() -> None:
    limits = Limits(DEADLINE, retries=0, breaker_failures=2, breaker_seconds=0.5)
    with StandIn(Connection.hang) as server, engine_for(server.url(), limits=limits) as engine:
        agent = Agent(engine, "sync")
        for _ in range(2):
            agent.call()
        assert engine.breaker is BreakerState.OPEN
        assert agent.call().decision.reasons[0].for_person.endswith("is left alone for a while")
        server.behaviour = lambda connection: [connection.send(GOOD) for _ in iter(connection.request, b"")] and None
        until(lambda: agent.call().verdict is Verdict.ALLOW)
        assert engine.counts["opened"] == 1


def test_a_cancelled_call_gives_its_question_up() -> None:
    """Also as the probe: the next one may ask."""
    limits = Limits(5.0, retries=0, breaker_failures=1, breaker_seconds=0.01)
    gone = threading.Event()

    def waits(connection: Connection) -> None:
        connection.request()
        if not connection.raw.recv(1):
            gone.set()

    with StandIn(waits) as server, engine_for(server.url(), limits=limits) as engine:

        async def cancelled() -> None:
            task = asyncio.create_task(engine.aevaluate(DOCUMENT))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancelled())
        assert gone.wait(2)
        assert kinds(engine) == {}
        server.behaviour = lambda connection: [connection.send(GOOD) for _ in iter(connection.request, b"")] and None
        assert engine.evaluate(DOCUMENT)


def test_a_held_up_courier_holds_up_nobody() -> None:
    """Whatever blocks its loop, callers are told in time."""
    with StandIn() as server, engine_for(server.url(), limits=BRIEF) as engine:
        engine.evaluate(DOCUMENT)
        free = threading.Event()
        courier().loop.call_soon_threadsafe(free.wait, 5)
        for driver in ("sync", "async"):
            agent = Agent(engine, driver)
            assert agent.call().verdict is Verdict.DENY
            assert in_time(agent.took, DEADLINE)
        free.set()
        until(lambda: Agent(engine, "sync").call().verdict is Verdict.ALLOW)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_asks_on_connections_of_its_own() -> None:
    with StandIn() as server, engine_for(server.url()) as engine:
        engine.evaluate(DOCUMENT)
        child = os.fork()
        if not child:
            try:
                os._exit(0 if engine.evaluate(DOCUMENT) and engine.evaluate(DOCUMENT) else 1)
            except BaseException:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        engine.evaluate(DOCUMENT)
        assert server.asked == 2  # one of the parent's, one of the child's


def test_the_seams_of_the_client_are_there() -> None:
    """Were one renamed, ours would be reached by nobody: a session with the client's own habits would be made."""
    from opa_client.opa_async import AsyncOpaClient

    assert {"_init_session", "_request", "query_rule", "close_connection"} <= set(dir(AsyncOpaClient))
    assert opa_client.REUSES


def test_nothing_is_left_open(recwarn: pytest.WarningsRecorder) -> None:
    """An engine that nobody holds any more closes what it had open, as after a reload."""
    import gc

    ended = threading.Event()

    def noting(connection: Connection) -> None:
        while connection.request():
            connection.send(GOOD)
        ended.set()

    with StandIn(noting) as server, engine_for(server.url()) as engine:
        other = OpaEngine(engine.bundle, engine.server)
        with pytest.raises(EngineUnavailable):
            other.evaluate(b"")
        other.evaluate(DOCUMENT)
        del other
        gc.collect()
        assert ended.wait(2)
    assert not recwarn.list
