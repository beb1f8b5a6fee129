"""A pytest plugin, registered by entry point: ``--interlock-examples``, one fixture, and a summary of what was shown.

Loaded into each pytest run of everybody who has Interlock installed. So it loads nothing but the package that it is in
until its fixture is asked for, says nothing unless a check ran, and never fails a run that does not use it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from interlock.testing.traces import Report

# What the command line asked for. Checks look here, if this module is loaded.
EXAMPLES: Final[dict[str, int]] = {}


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("a check that draws no example shows nothing")
    return number


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("interlock", "checks of interlock.testing")
    group.addoption(
        "--interlock-examples",
        type=_at_least_one,
        metavar="N",
        help="examples that each check draws, instead of what the Hypothesis profile says",
    )


def pytest_configure(config: pytest.Config) -> None:
    wanted = config.getoption("--interlock-examples", default=None)
    if wanted is not None:
        EXAMPLES["examples"] = wanted


def pytest_unconfigure() -> None:
    EXAMPLES.clear()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line for each check that held, if any ran."""
    traces = sys.modules.get("interlock.testing.traces")
    reports: list[Report] = [] if traces is None else traces.REPORTS
    if reports:
        terminalreporter.section("what interlock.testing has shown")
        for report in reports:
            terminalreporter.line(str(report))


class Checks:
    """The checks of :mod:`interlock.testing`, with the test's own folder for what they store."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def conversation(self, factory: Any, **more: Any) -> Report:
        from interlock.testing import check_conversation

        return check_conversation(factory, **more)

    def session(self, create: Any, load: Any, **more: Any) -> Report:
        from interlock.testing import check_session

        return check_session(create, load, **{"folder": self._folder, **more})

    def engine(self, engine: Any, **more: Any) -> Report:
        from interlock.testing import check_engine

        return check_engine(engine, **more)

    def journal(self, factory: Any, **more: Any) -> Report:
        from interlock.testing import check_journal

        return check_journal(factory, **more)

    def integration(self, make: Any, **more: Any) -> Report:
        from interlock.testing import check_integration

        return check_integration(make, **{"folder": self._folder, **more})


@pytest.fixture
def interlock_checks(tmp_path: Path) -> Checks:
    """``conversation``, ``session``, ``engine``, ``journal`` and ``integration``: see ``docs/property-suite.md``."""
    return Checks(tmp_path)
