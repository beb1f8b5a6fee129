"""Coding agents as the hook sees them: events in their words, and the command run as they run it. Proves nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from interlock.hooks import Desk
from interlock.stores.sql_artifacts import SqlArtifacts
from interlock.stores.sqlite import SqliteStore

HOSTS = ("claude-code", "codex", "cursor", "gemini")
CONFIG = 'version = 1\n[journal]\nkind = "sqlite"\npath = "interlock.db"\ndurability = "process"\n'

NAMES = {
    "claude-code": ("PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart"),
    "codex": ("PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart"),
    "gemini": ("BeforeTool", "AfterTool", "BeforeAgent", "SessionStart"),
    "cursor": ("preToolUse", "postToolUse", "beforeSubmitPrompt", "sessionStart"),
}


@dataclass(frozen=True)
class Ran:
    """What a hook process did."""

    code: int
    out: str
    err: str

    @property
    def verdict(self) -> str:
        """What a host makes of it, if it is one that we know: allow, ask or deny."""
        if self.code == 2 and not self.out and self.err.strip():
            return "deny"
        if self.code != 0:
            return "broken"  # the hosts run the tool
        said = json.loads(self.out)
        if said == {}:
            return "allow"
        inner = said.get("hookSpecificOutput", said)
        found = inner.get("permissionDecision") or inner.get("permission") or inner.get("decision")
        reason = inner.get("permissionDecisionReason") or inner.get("agent_message") or inner.get("reason")
        return str(found) if reason else "broken"


_NUMBERS = count(1)


@dataclass
class Session:
    """One session of a host, which makes its events."""

    host: str
    name: str = field(default_factory=lambda: f"new-{next(_NUMBERS)}")
    transcript: str = ""
    calls: int = 0
    extra: dict[str, Any] = field(default_factory=dict)

    def event(self, name: str, **more: Any) -> dict[str, Any]:
        key = "conversation_id" if self.host == "cursor" else "session_id"
        said = {key: self.name, "hook_event_name": name, "cwd": "/srv/project", **self.extra, **more}
        if self.transcript:
            said["transcript_path"] = self.transcript
        return said

    def begin(self, source: str = "startup") -> dict[str, Any]:
        return self.event(NAMES[self.host][3], source=source)

    def prompt(self, text: str) -> dict[str, Any]:
        return self.event(NAMES[self.host][2], prompt=text)

    def before(self, tool: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
        self.calls += 1
        return self.event(NAMES[self.host][0], tool_name=tool, tool_input=arguments, **self._id(), **more)

    def after(self, tool: str, arguments: dict[str, Any], result: Any, **more: Any) -> dict[str, Any]:
        key = "tool_output" if self.host == "cursor" else "tool_response"
        said = {"tool_name": tool, "tool_input": arguments, key: result, **self._id(), **more}
        return self.event(NAMES[self.host][1], **said)

    def _id(self) -> dict[str, str]:
        return {"tool_use_id": f"toolu_{self.name}_{self.calls}"} if self.host in ("claude-code", "codex") else {}


@dataclass(frozen=True)
class Place:
    """A configuration with a store, and a folder for the worker's socket. The folder's name is short: sockets' are."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "interlock.toml"

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "XDG_RUNTIME_DIR": str(self.folder)}

    def command(self, host: str, *more: str) -> list[str]:
        return [sys.executable, "-m", "interlock.hook", host, "--config", str(self.config), *more]

    def run(self, host: str, event: dict[str, Any] | bytes, *more: str, **environment: str) -> Ran:
        """Run the hook as a host would."""
        body = event if isinstance(event, bytes) else json.dumps(event).encode()
        done = subprocess.run(
            self.command(host, *more),
            input=body,
            capture_output=True,
            timeout=60,
            check=False,
            env={**self.environment, **environment},
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def desk(self) -> Desk:
        return Desk(str(self.config))


@contextmanager
def place(config: str = CONFIG) -> Iterator[Place]:
    """A place that is gone afterwards, and with its socket the worker."""
    folder = Path(mkdtemp(prefix="il-"))
    try:
        made = Place(folder)
        made.config.write_text(config)
        SqliteStore.migrate(folder / "interlock.db")
        store = SqliteStore(folder / "interlock.db")
        SqlArtifacts.begin(store)
        store.close()
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ask(desk: Desk, host: str, event: dict[str, Any] | bytes) -> Ran:
    """Ask a desk in this process."""
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    reply = desk.answer(host, body)
    return Ran(reply.exit, reply.out, reply.err)
