"""The ``interlock`` command.

Standard output is for results alone, because hooks and scripts read it; everything else goes to standard error. A
command's module is imported when the command runs and not before, so that a hook pays for itself only.
"""

from __future__ import annotations

import importlib.metadata
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import IO, Any, Final

import click
import structlog

from interlock.errors import InterlockError


@dataclass(frozen=True, slots=True)
class Listed:
    """A command that is not imported yet: where it is (``module:attribute``), and what ``--help`` says of it."""

    place: str
    summary: str


# To add a command, add a line.
COMMANDS: Final[Mapping[str, Listed]] = MappingProxyType(
    {
        "approvals": Listed(
            "interlock.cli.approvals:approvals", "Show the calls that wait for a person, and approve or refuse them."
        ),
        "bundle": Listed(
            "interlock.cli.bundle:bundle", "Build, sign, verify, push and look into bundles, which OPA serves."
        ),
        "check": Listed(
            "interlock.cli.check:check", "Check a configuration: what would not load, and what looks wrong."
        ),
        "classify": Listed(
            "interlock.cli.classify:command", "Propose a manifest for the tools of an MCP server, from its list."
        ),
        "doctor": Listed(
            "interlock.cli.doctor:doctor", "Check package, configuration, store, clock and the hooks of coding agents."
        ),
        "explain": Listed(
            "interlock.cli.explain:explain", "Say why a call was decided as it was, and what would lift it."
        ),
        "init": Listed("interlock.cli.init:init", "Write a starter: configuration, a control, its test, a scenario."),
        "hook": Listed("interlock.cli.hook:hook", "Answer one event of a coding agent, as its hook."),
        "install": Listed(
            "interlock.cli.install:install", "Put Interlock in front of a coding agent, and prove that it holds."
        ),
        "journal": Listed(
            "interlock.cli.journal:journal",
            "Verify journals, keep their heads, shorten them, export decisions and spans.",
        ),
        "learn": Listed(
            "interlock.cli.learn:command", "Propose what could be vouched for or declared, as a diff, from records."
        ),
        "mcp": Listed("interlock.cli.mcp:mcp", "Stand in front of MCP servers; see what they say, and pin it."),
        "outbox": Listed("interlock.cli.outbox:outbox", "Show what is drafted instead of sent, release or reject it."),
        "prove": Listed("interlock.cli.prove:prove", "Prove laws of the controls on every abstract document."),
        "replay": Listed(
            "interlock.cli.replay:command", "Replay recorded conversations: what would have been decided, and why."
        ),
        "serve": Listed("interlock.cli.serve:serve", "Decide calls over HTTP, for agents that are not in Python."),
        "session": Listed("interlock.cli.session:session", "Show what a session file holds, message by message."),
        "store": Listed(
            "interlock.cli.store:store", "Migrate a store, look at it, export, verify and purge conversations."
        ),
        "test": Listed("interlock.cli.test:test", "Run Rego tests and scenarios; with --mutate, mutants too."),
        "demo": Listed(
            "interlock.cli.demo:demo", "Attack an agent that has real tools, without Interlock and with it."
        ),
    }
)


class Failure(click.ClickException):
    """An error that a person can act on: ``interlock: <message>`` on standard error, and exit code 2."""

    exit_code = 2

    def show(self, file: IO[str] | None = None) -> None:
        click.echo(f"interlock: {self.format_message()}", file=file, err=file is None)


class Commands(click.Group):
    """The commands of :data:`COMMANDS`, imported one at a time."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        listed = COMMANDS.get(cmd_name)
        if listed is None:
            return None
        module, _, attribute = listed.place.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """The table as it stands: click's own way would import every command in order to ask it for its summary."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].summary) for name in sorted(COMMANDS)])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Errors that Interlock raises on purpose are for people: a line, never a traceback."""
        try:
            return super().invoke(ctx)
        except InterlockError as error:
            raise Failure(str(error)) from error
        except ImportError as error:
            if "pip install interlock[" not in str(error):
                raise
            raise Failure(str(error)) from error  # an extra that the command needs is not installed


def _version() -> str:
    try:
        return importlib.metadata.version("interlock")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"  # run from a checkout, which has no metadata


def _log_to_stderr(verbose: bool) -> None:
    """Send every log line to standard error: those of the standard library, and structlog's, which prefers stdout.

    ``verbose`` is about our own lines: those of others may hold addresses and other values of calls.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="interlock: %(message)s", force=True)
    logging.getLogger("interlock").setLevel(logging.INFO if verbose else logging.NOTSET)
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.KeyValueRenderer(key_order=["event"])],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="interlock", message="%(prog)s %(version)s")
@click.option("-v", "--verbose", is_flag=True, help="Log every decision to standard error.")
def cli(verbose: bool) -> None:
    """Interlock: a security interlock for the tool calls of LLM agents."""
    _log_to_stderr(verbose)


def main(arguments: Sequence[str] | None = None) -> None:
    """The console entry point. Ends the process: 0 as promised, 1 a promise was broken, 2 nothing could be done."""
    cli.main(args=None if arguments is None else list(arguments), prog_name="interlock")
