"""Settings of all tests: how many examples Hypothesis draws. Proves nothing by itself.

``INTERLOCK_PROFILE`` is ``dev`` (50 examples), ``ci`` (150, the same ones each time), ``deep`` (20,000) or ``mutants``
(``ci`` without shrinking, for scripts/mutate.py, which only wants to know whether anything fails). Without it the
profile is ``ci`` under ``INTERLOCK_CI`` and ``dev`` elsewhere.

``postgres_server`` is a real server, for the whole run, and ``opa_binary`` the OPA program; see ``servers.py``. When
tests had to be skipped for want of OPA, the last lines of the run say so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.servers import NO_OPA, Server, opa_program, server

# Machines are shared and slow at times: a slow example is no failure, and a slow strategy shows in the total.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.differing_executors]}
settings.register_profile("dev", max_examples=50, **_COMMON)
settings.register_profile("ci", max_examples=150, derandomize=True, print_blob=True, **_COMMON)
settings.register_profile(
    "mutants", max_examples=300, derandomize=True, phases=[Phase.explicit, Phase.generate], **_COMMON
)
settings.register_profile("deep", max_examples=20_000, **_COMMON)
settings.load_profile(os.environ.get("INTERLOCK_PROFILE") or ("ci" if os.environ.get("INTERLOCK_CI") else "dev"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture(scope="session")
def opa_binary() -> Path:
    return opa_program()


NO_MCP = "no MCP servers of others here"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    skipped = [one for one in terminalreporter.stats.get("skipped", ()) if NO_MCP in str(one.longrepr)]
    if skipped:
        terminalreporter.write_sep("!", f"{len(skipped)} TESTS AGAINST REAL MCP SERVERS DID NOT RUN", red=True)
        terminalreporter.write_line("`python3 scripts/mcp_servers.py` fetches them")
    skipped = [one for one in terminalreporter.stats.get("skipped", ()) if NO_OPA in str(one.longrepr)]
    if skipped:
        terminalreporter.write_sep("!", f"{len(skipped)} TESTS AGAINST A REAL OPA SERVER DID NOT RUN", red=True)
        terminalreporter.write_line(f"{NO_OPA}; then `python3 scripts/opa.py python3 scripts/run.py test`")
