"""What a host's own record of a session tells: ids of calls that were answered in it, and sessions that it came from.

Only keys are read, and only to learn that something was there: a stranger's text inside a result is escaped in the
file, and if a stranger could write one of these keys he would only add labels.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

MAX_TRANSCRIPT: Final = 256 << 20
MAX_IDS: Final = 100_000
PROVIDERS: Final = "srvtoolu_"  # calls that the provider runs itself; no hook sees them

_ANSWERED: Final = re.compile(rb'(?<!\\)"tool_use_id"\s*:\s*"([^"\\]{1,256})"')
# Where a call and its result both say `call_id`, those of results count: the call that is asked about stands there too.
_OUTPUT: Final = re.compile(rb'^.*(?<!\\)"type"\s*:\s*"[a-z_]+_call_output".*$', re.MULTILINE)
_ITS_CALL: Final = re.compile(rb'(?<!\\)"call_id"\s*:\s*"([^"\\]{1,256})"')
_SESSION: Final = re.compile(rb'(?<!\\)"(?:sessionId|session_id)"\s*:\s*"([^"\\]{1,400})"')
_SPOKEN: Final = re.compile(
    rb'(?<!\\)"type"\s*:\s*"(?:assistant|tool_result|function_call_output|gemini)"'
    rb'|(?<!\\)"role"\s*:\s*"(?:assistant|model)"|(?<!\\)"isCompactSummary"\s*:\s*true|(?<!\\)"toolCalls"\s*:'
)


@dataclass(frozen=True, slots=True)
class Trace:
    """What a transcript tells.

    Attributes:
        there: is there one at all?
        whole: could all of it be read?
        calls: ids of calls that have a result in it.
        sessions: names of the sessions that its lines came from.
        spoken: does anybody but the person say something in it?
        end: where its last whole line ends.
    """

    there: bool = False
    whole: bool = True
    calls: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()
    spoken: bool = False
    end: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """How far a transcript was read. Hosts only add to them; one that was replaced is read from its beginning."""

    inode: int = 0
    offset: int = 0


def read_on(path: str, known: Place) -> tuple[Trace, Place]:
    """What is new in a transcript. Never raises: what can't be read is a transcript of which nothing is known."""
    try:
        found = os.stat(path) if path else None
    except (OSError, ValueError):
        found = None
    if found is None:
        return trace(path), Place()
    start = known.offset if found.st_ino == known.inode and found.st_size >= known.offset else 0
    if start and start == found.st_size:
        return Trace(there=True), known
    seen = trace(path, start)
    return seen, Place(found.st_ino, seen.end) if seen.whole else Place()


def trace(path: str, start: int = 0) -> Trace:
    """Read a transcript. Never raises: what can't be read is a transcript of which nothing is known."""
    if not path:
        return Trace()
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        return Trace()
    except (OSError, ValueError):
        return Trace(there=True, whole=False)
    try:
        with os.fdopen(descriptor, "rb") as file:
            if not os.path.isfile(path) or os.fstat(descriptor).st_size > MAX_TRANSCRIPT:
                return Trace(there=True, whole=False)
            file.seek(start)
            data = file.read(MAX_TRANSCRIPT + 1)
    except (OSError, ValueError):
        return Trace(there=True, whole=False)
    found = _ANSWERED.findall(data)
    for line in _OUTPUT.findall(data) if b"_call_output" in data else ():
        found += _ITS_CALL.findall(line)
    calls = frozenset(map(_said, found))
    sessions = frozenset(map(_said, _SESSION.findall(data)))
    few = len(data) <= MAX_TRANSCRIPT and len(calls) + len(sessions) <= MAX_IDS
    end = start + data.rfind(b"\n") + 1
    return Trace(True, few, calls, sessions, bool(_SPOKEN.search(data)), end)


def _said(data: bytes) -> str:
    return data.decode("utf-8", "replace")
