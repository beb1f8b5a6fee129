"""What hosts do with what a hook does: which endings stop the call, and where nothing that a hook does can.

Tried out with each program, but for Cursor, whose own documentation says it (``docs/hooks.md`` names the versions).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Ending(StrEnum):
    """How a hook process can end, as a host sees it."""

    DENIED = "a JSON denial with a reason, exit code 0"
    REFUSED = "exit code 2, a reason on standard error"
    OTHER = "any other exit code"
    GARBAGE = "exit code 0, no JSON on standard output"
    KILLED = "no end in the host's time"
    ABSENT = "the host does not start it: hooks are off, or not trusted"


class Reaction(StrEnum):
    BLOCKED = "blocked"
    RUNS = "**runs**"


_B, _R = Reaction.BLOCKED, Reaction.RUNS

REACTIONS: Final[Mapping[str, Mapping[Ending, Reaction]]] = MappingProxyType(
    {
        # With "onFailure": "block", as `interlock install` writes it.
        "claude-code": {
            Ending.DENIED: _B,
            Ending.REFUSED: _B,
            Ending.OTHER: _B,
            Ending.GARBAGE: _R,
            Ending.KILLED: _B,
            Ending.ABSENT: _R,
        },
        "codex": {
            Ending.DENIED: _B,
            Ending.REFUSED: _B,
            Ending.OTHER: _R,
            Ending.GARBAGE: _R,
            Ending.KILLED: _R,
            Ending.ABSENT: _R,
        },
        "gemini": {
            Ending.DENIED: _B,
            Ending.REFUSED: _B,
            Ending.OTHER: _R,
            Ending.GARBAGE: _R,
            Ending.KILLED: _R,
            Ending.ABSENT: _R,
        },
        # With "failClosed": true.
        "cursor": {
            Ending.DENIED: _B,
            Ending.REFUSED: _B,
            Ending.OTHER: _B,
            Ending.GARBAGE: _B,
            Ending.KILLED: _B,
            Ending.ABSENT: _R,
        },
    }
)

# What can go wrong, and how the installed command ends then; `tests/hooks/test_hook_faults.py` makes each happen.
FAULTS: Final[Mapping[str, Ending]] = MappingProxyType(
    {
        "the policy denies": Ending.DENIED,
        "an exception": Ending.REFUSED,
        "no decision before the deadline": Ending.REFUSED,
        "the worker is killed while it decides": Ending.REFUSED,
        "the hook's own process is killed": Ending.REFUSED,
        "the interpreter is missing": Ending.REFUSED,
        "the package is missing": Ending.REFUSED,
        "a policy that can't be read": Ending.REFUSED,
        "a configuration that can't be read": Ending.REFUSED,
        "the store is locked": Ending.REFUSED,
        "standard input is closed": Ending.REFUSED,
        "standard input is empty": Ending.REFUSED,
        "standard input never ends": Ending.REFUSED,
        "garbage on standard input": Ending.REFUSED,
        "an event that is too large": Ending.REFUSED,
        "an event that nobody knows": Ending.REFUSED,
        "wrong names of fields": Ending.REFUSED,
        "standard output is closed": Ending.REFUSED,
        "the shell is killed, or the machine stalls past the host's time": Ending.KILLED,
        "hooks are switched off, or not trusted": Ending.ABSENT,
    }
)
UNENFORCEABLE: Final = "not enforceable by a hook: use the proxy"


def reaction(host: str, fault: str) -> Reaction:
    """Does the call run all the same?"""
    return REACTIONS[host][FAULTS[fault]]


def unenforceable(host: str) -> tuple[str, ...]:
    """The faults after which a host runs the tool although its hook is dead."""
    return tuple(fault for fault in FAULTS if reaction(host, fault) is Reaction.RUNS)


def command_line(python: str, host: str, config: str, *, isolated: bool = True) -> str:
    """The command for a host's configuration, which hosts hand to a shell.

    Whatever becomes of the interpreter (missing, killed, out of memory), the shell turns it into a refusal with a
    reason: most hosts run the tool after any other exit code, and some after a silent one.
    """
    flags = "-I" if isolated else "-E"
    run = f"{_quoted(python)} {flags} -m interlock.hook {host} --config {_quoted(config)}"
    return f"{run} || {{ echo 'interlock: refused, the hook gave no decision' >&2; exit 2; }}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
