"""Proves that the hook costs little more than its interpreter: at most 60 ms of processor time, all in one run.

Mutation that it is shown to catch: anything heavy that the command imports.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys

from tests.hooks.hosts import Session, place

LIMIT = 0.060
HEAVY = {
    "pydantic",
    "pydantic_core",
    "click",
    "rich",
    "structlog",
    "orjson",
    "regorus",
    "sqlite3",
    "sqlalchemy",
    "asyncio",
}
HEAVY |= {"interlock.model", "interlock.gate", "interlock.policy", "interlock.stores", "interlock.assembly"}


def cost(command: list[str], body: bytes, environment: dict[str, str]) -> float:
    """Processor seconds of a command, the smallest of some runs: the rest is other people's."""
    best = 9.0
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, input=body, capture_output=True, check=False, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stderr
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def test_a_hook_costs_little_more_than_the_interpreter() -> None:
    session = Session("claude-code")
    with place() as here:
        here.run("claude-code", session.begin())  # the resident worker is there from the first event on
        body = json.dumps(session.before("Read", {"file_path": "/srv/a"})).encode()
        bare = cost([sys.executable, "-c", "pass"], b"", here.environment)
        hook = cost(here.command("claude-code"), body, here.environment)
    print(f"bare {bare * 1000:.1f} ms, hook {hook * 1000:.1f} ms, beyond {(hook - bare) * 1000:.1f} ms")
    assert hook - bare <= LIMIT


def test_the_command_loads_nothing_heavy() -> None:
    session = Session("claude-code")
    with place() as here:
        here.run("claude-code", session.begin())
        line = [sys.executable, "-X", "importtime", *here.command("claude-code")[1:]]
        body = json.dumps(session.before("Read", {"file_path": "/srv/a"})).encode()
        done = subprocess.run(line, input=body, capture_output=True, check=False, env=here.environment)
    loaded = {row.rpartition("|")[2].strip() for row in done.stderr.decode().splitlines() if "|" in row}
    assert done.returncode == 0
    assert "interlock" in loaded
    assert loaded.isdisjoint(HEAVY)
