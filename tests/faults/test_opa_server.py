"""T4, T8 and T13 against the real OPA: killed, restarted, its policies replaced under load, taken away.

Mutation that it is shown to catch: a fallback that also speaks after a wrong revision, a revision that is not compared.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opa_client")

from interlock.model.answers import parse_answers
from interlock.model.canonical import pack
from interlock.model.decisions import ENGINE_ERROR, Verdict
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.fallback import FallbackEngine
from interlock.policy.opa import Contract, Limits
from interlock.policy.resilience import BreakerState
from interlock.policy.revisions import Demand
from interlock.policy.samples import SAMPLES
from tests.opa_worlds import BUNDLE, REVISION, Agent, engine_for, in_time, kinds, until, written
from tests.servers import opa

pytestmark = pytest.mark.opa
DRIVERS = ["sync", "async"]
ANSWERS = "/v1/data/interlock/entrypoint/answers"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(BUNDLE, tmp_path / "bundle")


@pytest.fixture
def server(folder: Path) -> Iterator[Any]:
    with opa("-b", str(folder), "--set", "decision_logs.console=true") as running:
        yield running


def sent(server: Any, method: str, path: str, body: str) -> None:
    request = urllib.request.Request(server.url + path, body.encode(), method=method)
    request.add_header("Content-Type", "text/plain")
    urllib.request.urlopen(request, timeout=5).read()


def test_answers_like_the_embedded_engine(server: Any) -> None:
    """T13 on the samples; the agreement suite asks far more. And the laws of engines hold for a few drawn ones."""
    embedded = EmbeddedEngine(BUNDLE)
    with engine_for(server.url, limits=Limits(5.0)) as engine:
        for name, sample in SAMPLES.items():
            raw = pack(sample)
            ours = parse_answers(embedded.evaluate(raw), BUNDLE.controls)
            assert parse_answers(engine.evaluate(raw), BUNDLE.controls) == ours, name
            assert parse_answers(asyncio.run(engine.aevaluate(raw)), BUNDLE.controls) == ours, name


def test_the_decision_says_who_answered(server: Any) -> None:
    with engine_for(server.url, contract=Contract(Demand(exact=REVISION), decision_log=True)) as engine:
        for driver in DRIVERS:
            decision = Agent(engine, driver).call().decision
            assert (decision.engine, decision.revision) == ("opa", REVISION)
            logged = [json.loads(line) for line in server.log().splitlines() if "Decision Log" in line]
            mine = [one for one in logged if one["decision_id"] == decision.decision_id]
            assert [one["path"] for one in mine] == ["interlock/entrypoint/answers"]
            assert len(mine[0]["result"]) == len(BUNDLE.controls)


def test_no_log_where_one_is_demanded(folder: Path) -> None:
    contract = Contract(Demand(exact=REVISION), decision_log=True)
    with opa("-b", str(folder)) as server, engine_for(server.url, contract=contract) as engine:
        assert Agent(engine, "sync").call().decision.code == ENGINE_ERROR
        assert kinds(engine) == {"no_decision_id": 1}


@pytest.mark.parametrize("driver", DRIVERS)
def test_killed_and_started_again(driver: str, server: Any) -> None:
    """Denied while it is away, by the breaker soon; allowed when it is back, on new connections."""
    limits = Limits(deadline=2.0, breaker_failures=3, breaker_seconds=0.3)
    with engine_for(server.url, limits=limits) as engine:
        agent = Agent(engine, driver)
        assert agent.call().verdict is Verdict.ALLOW
        server.kill()
        for _ in range(6):
            assert agent.call().decision.code == ENGINE_ERROR
            assert in_time(agent.took, 2.0)
        assert agent.ran == 1
        assert set(kinds(engine)) <= {"refused", "reset", "breaker_open"}
        assert kinds(engine)["breaker_open"]
        assert engine.breaker is BreakerState.OPEN
        server.start()
        until(lambda: agent.call().verdict is Verdict.ALLOW)
        assert engine.breaker is BreakerState.CLOSED


def test_killed_under_load(server: Any) -> None:
    """Four agents call without pause while it dies and comes back: each call is answered or refused, none is lost."""
    limits = Limits(deadline=2.0, breaker_failures=3, breaker_seconds=0.05)
    ended = threading.Event()
    found: list[tuple[str, float]] = []
    problems: list[BaseException] = []
    with engine_for(server.url, limits=limits) as engine:

        def work(driver: str) -> None:
            agent = Agent(engine, driver)
            try:
                while not ended.is_set():
                    before = agent.ran
                    outcome = agent.call()
                    found.append((outcome.decision.code, agent.took))
                    assert (agent.ran - before) == (outcome.verdict is Verdict.ALLOW)
                    time.sleep(0.005)
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=work, args=(DRIVERS[n % 2],)) for n in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            time.sleep(0.15)
            server.kill()
            time.sleep(0.15)
            server.start()
        time.sleep(0.3)
        ended.set()
        for thread in threads:
            thread.join(10)
        assert not problems
        assert {code for code, _ in found} == {"allowed", ENGINE_ERROR}
        assert all(in_time(took, 2.0) for _, took in found)


def test_the_policy_is_taken_away(tmp_path: Path) -> None:
    """Of a policy that was pushed, not bundled, nothing is left: undefined is a denial, and so is a control less."""
    with opa() as server:
        for source in BUNDLE.sources:
            sent(server, "PUT", f"/v1/policies/{source.path}", source.text)
        sent(server, "PUT", "/v1/data/settings", json.dumps(json.loads(BUNDLE.data)["settings"]))
        with engine_for(server.url, contract=Contract(Demand())) as engine:
            agent = Agent(engine, "sync")
            outcome = agent.call()
            assert (outcome.verdict, outcome.decision.revision) == (Verdict.ALLOW, "")
            [control] = [one.path for one in BUNDLE.sources if one.path.endswith("trifecta.rego")]
            [entrypoint] = [one.path for one in BUNDLE.sources if one.path.endswith("entrypoint.rego")]
            sent(server, "DELETE", f"/v1/policies/{control}", "")
            assert agent.call().decision.code == ENGINE_ERROR
            sent(server, "DELETE", f"/v1/policies/{entrypoint}", "")
            assert agent.call().decision.code == ENGINE_ERROR
            assert (kinds(engine), agent.ran) == ({"malformed_answer": 1, "undefined": 1}, 1)


def test_a_policy_that_fails_there(tmp_path: Path) -> None:
    """Strict builtin errors: what a builtin can't do is an error of the whole query, not one control's silence."""
    [broken] = [one for one in BUNDLE.sources if one.path.endswith("trifecta.rego")]
    text = broken.text.replace("if lifted\n", "if {\n\tto_number(input.tool.name) == 1\n\tlifted\n}\n", 1)
    assert text != broken.text
    sources = tuple(replace(one, text=text) if one is broken else one for one in BUNDLE.sources)
    folder = written(replace(BUNDLE, sources=sources), tmp_path / "b")
    with opa("-b", str(folder)) as server, engine_for(server.url) as engine:
        agent = Agent(engine, "sync")
        assert (agent.call().decision.code, agent.ran) == (ENGINE_ERROR, 0)
        assert kinds(engine) == {"server_error": 1}


def test_a_bundle_replaced_under_load(folder: Path) -> None:
    """The server follows its bundle, the gate demands a revision: while another one answers, every call is denied."""
    ended = threading.Event()
    seen: list[tuple[Verdict, str]] = []
    with opa("-b", str(folder), "--watch") as server, engine_for(server.url, limits=Limits(5.0)) as engine:

        def work() -> None:
            agent = Agent(engine, "sync")
            while not ended.is_set():
                outcome = agent.call()
                seen.append((outcome.verdict, outcome.decision.revision))
                time.sleep(0.005)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        until(lambda: any(verdict is Verdict.ALLOW for verdict, _ in seen))
        manifest = folder / ".manifest"
        manifest.write_text(manifest.read_text().replace(REVISION, "r-next"))
        until(lambda: kinds(engine).get("wrong_revision", 0) > 2)
        since = len(seen)
        time.sleep(0.1)
        assert {verdict for verdict, _ in seen[since:]} == {Verdict.DENY}
        manifest.write_text(manifest.read_text().replace("r-next", REVISION))
        until(lambda: seen[-1][0] is Verdict.ALLOW)
        ended.set()
        for thread in threads:
            thread.join(10)
        assert set(kinds(engine)) == {"wrong_revision"}


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_fallback_speaks_while_the_server_is_out(driver: str, folder: Path) -> None:
    """And says so; and is silent from the first word of the server's that does not count, even when it is killed."""
    limits = Limits(deadline=5.0, breaker_failures=2, breaker_seconds=0.05)
    with opa("-b", str(folder)) as server, engine_for(server.url, limits=limits) as first:
        agent = Agent(FallbackEngine(first, EmbeddedEngine(BUNDLE)), driver)
        assert agent.call().decision.engine == "opa"
        server.kill()
        decision = agent.call().decision
        assert (decision.verdict, decision.revision) == (Verdict.ALLOW, REVISION)
        assert decision.engine in ("embedded (refused)", "embedded (reset)")
        until(lambda: first.counts.get("fallback", 0) == 1)
        written(BUNDLE, folder, revision="r-next")
        server.start()
        until(lambda: agent.call().decision.code == ENGINE_ERROR)  # another revision: a denial, not a fallback
        server.kill()
        for _ in range(4):
            assert agent.call().decision.code == ENGINE_ERROR  # and it stays one
        written(BUNDLE, folder)
        server.start()
        until(lambda: agent.call().decision.engine == "opa")
        server.kill()
        assert agent.call().decision.engine.startswith("embedded (")
