"""Files that decide what an agent may do: writing them is never just "a file write".

Known attacks write an MCP configuration that the host starts at once, an auto-approve setting, a hook, a shell
start-up file, or the interlock's own policy. So the paths that a changing call names are compared, by segments and
without regard to case, with the tables below, both as written and as the file system resolves them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from interlock.model.tools import Effect, Egress, Kind, ToolSpec


class Control(StrEnum):
    """Whose rules a call would change."""

    NONE = "none"
    AGENT = "agent"
    INTERLOCK = "interlock"


# Each entry is a run of path segments. A path matches when the run stands in it, and what
# lies below a matched folder matches too.
_INTERLOCK: Final = ("interlock.toml", "interlock.yaml", ".interlock")
_AGENT: Final = (
    ".claude",
    ".claude.json",
    "claude_desktop_config.json",
    ".mcp.json",
    "mcp.json",
    ".cursor",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".vscode/launch.json",
    ".codex",
    ".gemini",
    ".windsurf",
    ".codeium",
    ".continue",
    ".config/amp",
    ".config/opencode",
    ".config/goose",
    ".git/hooks",
    ".git/config",
    ".gitconfig",
    ".husky",
    ".envrc",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    ".ssh/authorized_keys",
    ".ssh/config",
    ".ssh/rc",
    "library/launchagents",
    "etc/profile",
    "etc/profile.d",
    "etc/crontab",
    "etc/cron.d",
    "etc/systemd",
    "var/spool/cron",
)

# A command line names paths in the middle of text: cut it at everything that is not part of one.
_CUTS: Final = re.compile(r"[\s'\"`;|&<>()=,{}$]+")


def _table(entries: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(entry.casefold().strip("/").split("/")) for entry in entries)


_INTERLOCK_RUNS: Final = _table(_INTERLOCK)
_AGENT_RUNS: Final = _table(_AGENT)


def candidates(spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Texts of a changing call that may name a file, each once, sorted.

    A call can change files when it declares an effect, or when it is unknown, or when it is a sending tool with an
    argument that nobody classified (a command line). Payload (``content``) is left out: a letter about ``.bashrc``
    changes nothing.
    """
    named = dict(spec.destinations)
    changes = spec.effect is not Effect.NONE or not spec.known
    found: set[str] = set()
    for name, value in arguments.items():
        if name in spec.content:
            continue
        kind = named.get(name)
        if kind is None and (changes or spec.egress is not Egress.NONE):
            for text in _texts(value):
                found.add(text)
                found.update(_CUTS.split(text))
        elif kind in (Kind.PATH, Kind.ID, Kind.URL) and changes:
            found.update(_texts(value))
    found.discard("")
    return tuple(sorted(found))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)


def touched(paths: Iterable[str], protected: Iterable[str] = ()) -> Control:
    """The strongest control that any of these paths would change.

    Args:
        paths: as written in the call, and as the file system resolves them.
        protected: absolute paths of this installation's own files and folders.
    """
    own = [_segments(path) for path in protected]
    strongest = Control.NONE
    for path in paths:
        segments = _segments(path)
        if any(_holds(segments, run) for run in _INTERLOCK_RUNS) or any(segments[: len(o)] == o for o in own if o):
            return Control.INTERLOCK
        if any(_holds(segments, run) for run in _AGENT_RUNS):
            strongest = Control.AGENT
    return strongest


def _segments(path: str) -> tuple[str, ...]:
    plain = path.replace("\\", "/").casefold()
    plain = plain.removeprefix("file:")
    return tuple(part for part in posixpath.normpath(plain).split("/") if part not in ("", "."))


def _holds(segments: tuple[str, ...], run: tuple[str, ...]) -> bool:
    width = len(run)
    return any(segments[start : start + width] == run for start in range(len(segments) - width + 1))
