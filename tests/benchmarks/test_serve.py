"""Proves that the benchmark of the service finds what it looks for, and that a short run finds nothing wrong (T2, T8).

The whole run, 60 s at 200 requests per second, is `python -m benchmarks.serve`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.servers import Server

PLACE = Path(__file__).resolve().parents[2] / "benchmarks"


def module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"interlock_benchmarks_{name}", PLACE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


class StandIn:
    """A service that plays by the rules, or by all rules but one."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.lives: dict[str, dict[str, Any]] = {}

    def app(self) -> web.Application:
        app = web.Application()
        at = "/v1/conversations/{name}"
        app.router.add_post("/v1/conversations", self.begin)
        app.router.add_get(at, self.inspect)
        app.router.add_post(f"{at}/calls", self.propose)
        app.router.add_post(f"{at}/outcomes", self.observe)
        app.router.add_post("/opa", self.opa)
        return app

    async def begin(self, _request: web.Request) -> web.Response:
        name = f"c-{len(self.lives)}"
        self.lives[name] = {"flying": {}, "taint": set(), "decided": {}, "landed": {}}
        return web.json_response({"conversation": name})

    def life(self, request: web.Request) -> dict[str, Any]:
        return self.lives[request.match_info["name"]]

    async def inspect(self, request: web.Request) -> web.Response:
        life = self.life(request)
        taint = set(life["taint"])
        if self.fault == "loses":
            taint.discard("private:files")
        flying = set().union(*life["flying"].values()) if self.fault != "loses in flight" else set()
        return web.json_response({"taint": [{"label": one} for one in taint], "exposure": sorted(taint | flying)})

    async def propose(self, request: web.Request) -> web.Response:
        life, (call,) = self.life(request), (await request.json())["calls"]
        known = life["decided"].get(call["id"])
        if known is not None and self.fault != "decides twice":
            return web.json_response({"calls": [{**known, "repeated": True}]})
        exposure = life["taint"].union(*life["flying"].values())
        both = {"untrusted:web", "private:files"} <= exposure
        denied = both and call["arguments"].get("to") == "eve@evil.example"
        if self.fault == "allows":
            denied = False
        if self.fault == "forgets what flies":
            denied = denied and {"untrusted:web", "private:files"} <= life["taint"]
        told = {"verdict": "deny" if denied else "allow", "code": "trifecta", "run": not denied, "repeated": False}
        if self.fault == "fails":
            told |= {"verdict": "deny", "code": "engine_error", "run": False}
        life["decided"][call["id"]] = told
        brings = {"fetch": {"untrusted:web"}, "read_file": {"private:files"}}.get(call["name"], set())
        if told["run"]:
            life["flying"][call["id"]] = brings
        return web.json_response({"calls": [told]})

    async def observe(self, request: web.Request) -> web.Response:
        life, body = self.life(request), await request.json()
        name, content = body["call"]["id"], body["result"]["content"]
        repeated = name in life["landed"]
        life["landed"][name] = content
        life["taint"] |= life["flying"].pop(name, set())
        return web.json_response({"withheld": False, "for_model": content, "repeated": repeated})

    async def opa(self, _request: web.Request) -> web.Response:
        return web.json_response({"result": {}})


async def loaded(stand_in: StandIn, seconds: float, rate: float) -> dict[str, Any]:
    runner = web.AppRunner(stand_in.app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    spec = {"services": [base], "token": "t", "opa": f"{base}/opa", "document": {}, "seconds": seconds, "rate": rate}
    make: Callable[..., Any] = module("serve_load").Load
    try:
        async with aiohttp.ClientSession() as session:
            found: dict[str, Any] = await make(spec, session).run()
            return found
    finally:
        await runner.cleanup()


COUNTS = ("lost_labels", "wrong_verdicts", "denied_by_failure", "failed")


@pytest.mark.parametrize(
    ("fault", "shows"),
    [
        ("", ()),
        ("loses", ("lost_labels",)),
        ("loses in flight", ("lost_labels",)),
        ("allows", ("wrong_verdicts",)),
        ("forgets what flies", ("wrong_verdicts",)),
        ("decides twice", ("wrong_verdicts",)),
        ("fails", ("denied_by_failure",)),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_the_load_generator_knows_what_is_right(fault: str, shows: tuple[str, ...]) -> None:
    for seconds in (0.5, 2, 8):  # where the processor is shared: a run that starts late gets to the end of no story
        found = asyncio.run(loaded(StandIn(fault), seconds, 200 / seconds))
        shown = tuple(one for one in COUNTS if found[one])
        if shown == shows and found["requests"] >= 150:
            break
    assert found["requests"] >= 150
    assert shown == shows, found["examples"]


@pytest.mark.parametrize("bad", [*COUNTS, "journals_broken", ""])
def test_a_run_that_failed_ends_so(
    bad: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Denials for a failure did not count at first, and a run in which OPA was late would have passed."""
    run = module("serve")
    found = {**dict.fromkeys((*COUNTS, "journals_broken"), 0), "latency_ms": {}}
    monkeypatch.setattr(run, "measured", lambda *_: found | ({bad: 1} if bad else {}))
    monkeypatch.setattr(sys, "argv", ["serve"])
    if not bad:
        run.main()
        return
    with pytest.raises(SystemExit) as ended:
        run.main()
    assert ended.value.code == 1
    assert f"{bad}: 1" in capsys.readouterr().err


@pytest.mark.opa
@pytest.mark.postgres
def test_a_short_run(postgres_server: Server, opa_binary: Path) -> None:
    """Two processes, a real OPA, a real PostgreSQL, 5 seconds at a rate that any machine bears."""
    for seconds, rate in ((5, 30), (20, 8)):
        found = module("serve").measured(seconds, rate, "full", postgres_server.empty())
        if found["finished"] >= 5:
            break
    assert {one: found[one] for one in COUNTS} == dict.fromkeys(COUNTS, 0), found["examples"]
    assert found["journals_broken"] == 0
    assert found["finished"] >= 5
    assert found["decisions_logged_by_opa"] >= found["latency_ms"]["propose"]["count"]
