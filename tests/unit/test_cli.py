"""Proves what every command may rely on: lazy import, results alone on standard output, errors as a line.

Mutations that this file is shown to catch: `format_commands` left to click (help imports the commands), logging to
standard output, `except InterlockError` taken out of `Commands.invoke` (a traceback).
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType, ModuleType

import click
import pytest
import structlog
from click.testing import CliRunner

from interlock import cli as face
from interlock.cli import COMMANDS, Listed, cli
from interlock.errors import Bug, ManifestError

ROOT = Path(__file__).resolve().parents[2]


def started(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as people start it; with ``code``, that program instead."""
    command = [sys.executable, "-W", "error", *(["-c", code] if code else ["-m", "interlock.cli"])]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, env=environment, timeout=60, check=False
    )


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """The command configures logging for its process; here that process is pytest's."""
    root, own = logging.getLogger(), logging.getLogger("interlock")
    handlers, level, own_level = root.handlers[:], root.level, own.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    own.setLevel(own_level)
    structlog.reset_defaults()


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Adds one command, named ``extra``, the way others do it: a module, and a line in the table."""

    def add(body: Callable[[], None]) -> None:
        module = ModuleType("interlock_extra_command")
        module.extra = click.command("extra")(body)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        lines = {**COMMANDS, "extra": Listed("interlock_extra_command:extra", "One more.")}
        monkeypatch.setattr(face, "COMMANDS", MappingProxyType(lines))

    return add


def test_help_names_every_command_and_imports_none() -> None:
    code = """
import sys
from interlock.cli import COMMANDS, main
try:
    main(["--help"])
except SystemExit as done:
    assert done.code == 0
assert not [one.place for one in COMMANDS.values() if one.place.partition(":")[0] in sys.modules]
"""
    done = started(code=code)
    assert (done.returncode, done.stderr) == (0, "")
    for name, listed in COMMANDS.items():
        assert name in done.stdout
        assert listed.summary.split()[0] in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_is_there_and_explains_itself(name: str) -> None:
    printed = CliRunner().invoke(cli, [name, "--help"])
    assert printed.exit_code == 0, printed.output
    assert f"Usage: cli {name}" in printed.stdout


def test_version() -> None:
    done = started("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("interlock ")


def test_an_unknown_command_is_a_usage_error() -> None:
    done = started("nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert "No such command 'nonsense'" in done.stderr


def test_one_line_in_the_table_adds_a_command(added: Callable[[Callable[[], None]], None]) -> None:
    added(lambda: click.echo("a result"))
    assert "extra" in CliRunner().invoke(cli, ["--help"]).stdout
    assert CliRunner().invoke(cli, ["extra"]).stdout == "a result\n"


def test_an_error_of_interlock_is_a_line_and_exit_code_2(added: Callable[[Callable[[], None]], None]) -> None:
    def fails() -> None:
        raise ManifestError("bad.toml: tool 'x': missing returns")

    added(fails)
    printed = CliRunner().invoke(cli, ["extra"])
    assert (printed.exit_code, printed.stdout) == (2, "")
    assert printed.stderr == "interlock: bad.toml: tool 'x': missing returns\n"


def test_a_bug_is_never_made_a_line(added: Callable[[Callable[[], None]], None]) -> None:
    def breaks() -> None:
        raise Bug("an invariant")

    added(breaks)
    assert isinstance(CliRunner().invoke(cli, ["extra"]).exception, Bug)


def test_a_missing_extra_says_what_to_install_and_other_imports_fail_as_ever(
    added: Callable[[Callable[[], None]], None],
) -> None:
    code = "import sys; sys.modules['aiosmtpd'] = None; from interlock.cli import main; main({})"
    done = started(code=code.format(["demo"]))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "interlock: interlock.cli.demo.mail needs `pip install interlock[demo]`\n"
    assert started(code=code.format(["demo", "--help"])).returncode == 0

    def breaks() -> None:
        raise ImportError("no module of ours")

    added(breaks)
    assert isinstance(CliRunner().invoke(cli, ["extra"]).exception, ImportError)


def test_logs_go_to_standard_error(added: Callable[[Callable[[], None]], None]) -> None:
    def talks() -> None:
        logging.getLogger("any").warning("from logging")
        structlog.get_logger().warning("from structlog", tool="x")
        logging.getLogger("interlock.any").info("only when asked")
        click.echo("a result")

    added(talks)
    quiet = CliRunner().invoke(cli, ["extra"])
    assert quiet.stdout == "a result\n"
    assert "from logging" in quiet.stderr
    assert "from structlog" in quiet.stderr
    assert "only when asked" not in quiet.stderr
    assert "only when asked" in CliRunner().invoke(cli, ["--verbose", "extra"]).stderr


def test_verbose_shows_decisions_without_argument_values() -> None:
    done = started("-v", "demo", "--json", "--scenario", "mail")
    assert done.returncode == 0
    assert "code='trifecta'" in done.stderr
    assert "collector.example" not in done.stderr
