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
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final
from unicodedata import category, normalize
from urllib.parse import unquote

from interlock.model.tools import Effect, Egress, Kind, ToolSpec


class Control(StrEnum):
    """Whose rules a call would change."""

    NONE = "none"
    AGENT = "agent"
    INTERLOCK = "interlock"


# Each entry is a run of path segments. A path matches when the run stands in it, and what
# lies below a matched folder matches too.
_INTERLOCK: Final = ("interlock.toml", "interlock.yaml", "interlock.yml", ".interlock")
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
    ".git/config.worktree",
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
    ".config/environment.d",
    ".config/git",
    ".config/systemd",
    ".local/share/systemd",
    ".git/info",
    ".github/workflows",
    ".bash_aliases",
    ".zlogout",
    ".cursorrules",
    ".npmrc",
    ".pypirc",
    ".vimrc",
    ".pre-commit-config.yaml",
    "agents.md",
    "claude.md",
    "gemini.md",
    ".ssh/authorized_keys",
    ".ssh/authorized_keys2",
    ".ssh/config",
    ".ssh/rc",
    "library/launchagents",
    "library/launchdaemons",
    "etc/bash.bashrc",
    "etc/environment",
    "etc/ld.so.preload",
    "etc/sudoers",
    "etc/sudoers.d",
    "etc/profile",
    "etc/profile.d",
    "etc/crontab",
    "etc/cron.d",
    "etc/cron.daily",
    "etc/cron.hourly",
    "etc/init.d",
    "sitecustomize.py",
    "usercustomize.py",
    ".config/code/user",
    "code/user/settings.json",
    "copilot-instructions.md",
    "etc/systemd",
    "var/spool/cron",
)

# A command line names paths in the middle of text: cut it at everything that is not part of one.
_CUTS: Final = re.compile(r"[\s'\"`;|&<>()=,{}$]+")
_QUOTES: Final = str.maketrans("", "", "'\"\\")
MAX_PIECES: Final = 512
MAX_LENGTH: Final = 4096
MAX_TOGETHER: Final = 64 << 10


def _table(entries: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(entry.casefold().strip("/").split("/")) for entry in entries)


_INTERLOCK_RUNS: Final = _table(_INTERLOCK)
_AGENT_RUNS: Final = _table(_AGENT)


def candidates(spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Texts of a changing call that may name a file, each once, sorted.

    A call can change files when it declares an effect, or when it is unknown, or when it is a sending tool with an
    argument that nobody classified (a command line). Payload (``content``) is left out: a letter about ``.bashrc``
    changes nothing. What is too much to look at is not passed over: then :data:`TOO_MANY` is among them.
    """
    named = dict(spec.destinations)
    changes = spec.effect is not Effect.NONE or not spec.known
    found: set[str] = set()
    written: list[str] = []
    for name, value in arguments.items():
        if name in spec.content:
            continue
        kind = named.get(name)
        if kind is None and (changes or spec.egress is not Egress.NONE):
            found.add(name)
            for text in _texts(value):
                if len(text) <= MAX_LENGTH:
                    found.add(text)
                found.update(_pieces(text))
                written.append(text)
        elif kind in (Kind.PATH, Kind.ID, Kind.URL) and changes:
            for text in _texts(value):
                found.update((text, _decoded(text), *text.split(":")))
    if _answers_itself(written):
        found.add(OWN_ANSWER)
    found.discard("")
    kept = sorted(one for one in found if len(one) <= MAX_LENGTH)
    # Resolving a path costs a look at the disk for each of its segments, so all of them together are bounded too.
    if len(kept) > MAX_PIECES or len(kept) < len(found) or sum(map(len, kept)) > MAX_TOGETHER:
        return (*kept[:MAX_PIECES], TOO_MANY) if sum(map(len, kept)) <= MAX_TOGETHER else (TOO_MANY,)
    return tuple(kept)


# Stands for all that was not looked at; it is in the table of protected files, so the call is treated as one.
TOO_MANY: Final = ".interlock-too-many-paths"


# Stands for a command by which a person answers; it is in the table of our own files.
OWN_ANSWER: Final = ".interlock/answer"


def _answers_itself(texts: Iterable[str]) -> bool:
    """Is this a command line that runs our own command, by which questions are answered? Whoever is asked about is not
    who answers. Only what is written is seen, in one text or as a list of words: a script that runs it is a program
    like any other."""
    names: set[str] = set()
    for text in texts:
        for whole in (text, text.translate(_QUOTES)):
            names.update(posixpath.basename(piece).casefold() for piece in _CUTS.split(whole))
    return not _OWN_COMMANDS.isdisjoint(names) and not _ANSWERING.isdisjoint(names)


_OWN_COMMANDS: Final = frozenset({"interlock", "interlock.exe", "interlock.cli", "interlock.cli.__main__"})
_ANSWERING: Final = frozenset({"approvals", "outbox"})


def targets(spec: ToolSpec, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Paths that a destroying call may remove or move with all that lies below them.

    What is declared as a place counts as it is. Of a command line only absolute paths count: a dot or a bare word would
    make the current folder, and so nearly every command, a removal of what lies in it.
    """
    if spec.effect not in (Effect.DESTROY, Effect.CONTROL):
        return ()
    named = {name for name, kind in spec.destinations if kind in (Kind.PATH, Kind.ID, Kind.URL)}
    declared = {text for name in named for text in _texts(arguments.get(name))}
    written = {one for one in candidates(spec, arguments) if len(one) > 1 and _decoded(one).startswith(("/", "~/"))}
    found = {form for one in declared | written for form in (one, _decoded(one).replace("\\", "/"))}
    kept: list[str] = []
    room = MAX_TOGETHER
    for one in sorted(found, key=lambda text: (len(text), text)):
        room -= len(one)
        if room < 0 or len(one) > MAX_LENGTH or len(kept) >= MAX_PIECES:
            break  # `candidates` has more than it looks at too, and says so
        if one:
            kept.append(one)
    return tuple(kept)


def _pieces(text: str) -> Iterator[str]:
    """Parts of a command line, as written and as a shell reads them: quotes and backslashes gone, options opened."""
    for whole in (text, text.translate(_QUOTES)):
        for piece in _CUTS.split(whole):
            yield piece
            yield from piece.split(":")
            if piece.startswith("-"):
                yield piece[2:]  # -o.bashrc


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


def touched(paths: Iterable[str], protected: Iterable[str] = (), removed: Iterable[str] = ()) -> Control:
    """The strongest control that any of these paths would change.

    Args:
        paths: as written in the call, and as the file system resolves them.
        protected: absolute paths of this installation's own files and folders.
        removed: paths that go with everything below them: a folder above a protected file is protected too.
    """
    return _touched(tuple(paths), tuple(protected), tuple(removed))


@lru_cache(maxsize=256)
def _touched(paths: tuple[str, ...], protected: tuple[str, ...], removed: tuple[str, ...]) -> Control:
    own = [one for one in map(_segments, protected) if one]
    strongest = Control.NONE
    for path in removed:
        folder = _segments(path)
        if path.startswith("/") and any(_starts(one, folder, anything=True) for one in own):
            return Control.INTERLOCK  # a folder above a protected file, or that file
        if any(_ends_in_beginning(folder, run) for run in _AGENT_RUNS):
            strongest = Control.AGENT
    for path in paths:
        if path == TOO_MANY:
            strongest = Control.AGENT
        segments = _segments(path)
        if any(_holds(segments, run) for run in _INTERLOCK_RUNS) or any(_starts(segments, one) for one in own):
            return Control.INTERLOCK
        if any(_holds(segments, run) for run in _AGENT_RUNS):
            strongest = Control.AGENT
    return strongest


def _starts(long: tuple[str, ...], short: tuple[str, ...], *, anything: bool = False) -> bool:
    """Is the one the other, or below it? Wildcards on either side may stand for any name that they match; with
    ``anything`` also a segment of nothing but wildcards."""
    return len(long) >= len(short) and all(
        _matches(one, other, anything) or _matches(other, one, anything)
        for one, other in zip(long, short, strict=False)
    )


def _ends_in_beginning(segments: tuple[str, ...], run: tuple[str, ...]) -> bool:
    """Does the path name a hidden folder that a longer run begins with? (``.git`` for ``.git/hooks``)"""
    return run[0].startswith(".") and any(
        len(segments) >= width and all(map(_matches, run[:width], segments[-width:])) for width in range(1, len(run))
    )


def _decoded(path: str) -> str:
    """A ``file:`` URL as the path that it means; anything else as it is."""
    plain = path.strip()
    if not plain.casefold().startswith("file:"):
        return plain
    plain = unquote(plain[5:].partition("#")[0].partition("?")[0]).replace("\\", "/")
    return "/" + plain[2:].partition("/")[2] if plain.startswith("//") else plain  # file://host/path


def _segments(path: str) -> tuple[str, ...]:
    """Segments in the form that the least careful file system would give them."""
    plain = _decoded(path).replace("\\", "/")
    if not plain.isascii():
        plain = "".join(char for char in normalize("NFKC", plain) if category(char) != "Cf")
    parts = posixpath.normpath(plain.casefold()).split("/")
    # Windows drops dots and spaces at the end of a name, and reads `name:stream` as a part of the file `name`.
    trimmed = (part if part in ("..", ".") else _trimmed(part) for part in parts)
    return tuple(part for part in trimmed if part not in ("", "."))


def _trimmed(part: str) -> str:
    name = part.partition(":")[0] if len(part) > 2 else part
    return name.rstrip(". ") or part


def _holds(segments: tuple[str, ...], run: tuple[str, ...]) -> bool:
    width = len(run)
    return any(all(map(_matches, run, segments[start : start + width])) for start in range(len(segments) - width + 1))


def _matches(name: str, segment: str, anything: bool = False) -> bool:
    """A segment with wildcards may stand for any name that it matches, if it begins with a letter of that name:
    ``*.py`` in a command means somebody's programs, not the one that Python runs at start."""
    if name == segment:
        return True
    if not any(char in segment for char in "*?["):
        return False
    return (segment[0] not in "*?" or (anything and not segment.strip("*?"))) and fnmatchcase(name, segment)
