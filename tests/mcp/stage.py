"""Real MCP servers, a proxy in a process of its own, and real clients. Holds no test."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from interlock import Interlock
from interlock.assembly import read_configuration
from interlock.cli.mcp import chosen, first_of, pins_of
from interlock.integrations.mcp.pinning import seen_now
from interlock.integrations.mcp.proxy import Proxy
from interlock.integrations.mcp.serving import over_http, running
from interlock.model.pins import pins_text
from tests.mcp.odd_server import Odd
from tests.servers import _scripts

HERE = Path(__file__).parent
NO_SERVERS = "no MCP servers of others here; run `python3 scripts/mcp_servers.py`"
INTERLOCK = [sys.executable, "-m", "interlock.cli"]


def servers_of_others() -> tuple[Any, Path]:
    """The script that knows them, and their folder. Under CI their absence is a failure."""
    script = _scripts("mcp_servers")
    place = script.found()
    if place is None:
        if os.environ.get("INTERLOCK_CI"):
            pytest.fail(f"{NO_SERVERS}; what was not tested against real servers is not tested", pytrace=False)
        pytest.skip(NO_SERVERS)
    if script.node(place, "server-memory") is None and os.environ.get("INTERLOCK_CI") and shutil.which("node"):
        pytest.fail("node is here, and its MCP servers are not", pytrace=False)
    return script, place


def odd(*arguments: str) -> list[str]:
    """The command of our own server, which does what honest ones do not."""
    return [sys.executable, str(HERE / "odd_server.py"), *arguments]


def toml(value: Any) -> str:
    return json.dumps(value)


def write_configuration(
    folder: Path,
    servers: Mapping[str, Mapping[str, Any]],
    manifest: str,
    *,
    mcp: str = "",
    more: str = "",
    pinned: bool = True,
) -> Path:
    """An ``interlock.toml`` for servers (``name → keys of [mcp.servers.NAME]``), and its pins."""
    lines = ["version = 1", more, "[mcp]", 'pins = "pins.toml"', mcp]
    for name, keys in servers.items():
        lines.append(f"[mcp.servers.{name}]")
        lines += [f"{key} = {_inline(value)}" for key, value in keys.items() if key not in ("kind", "note", "version")]
    file = folder / "interlock.toml"
    file.write_text("\n".join(lines) + "\n" + manifest, encoding="utf-8")
    if pinned and any("kind" in one for one in servers.values()):
        choice = read_configuration(file)[0].mcp
        assert choice is not None
        found, _ = anyio.run(seen_now, choice, folder, {name: odd_here(keys) for name, keys in servers.items()})
        (folder / "pins.toml").write_text(pins_text(found), encoding="utf-8")
    elif pinned:
        done = subprocess.run(
            [*INTERLOCK, "mcp", "pin", "--config", str(file)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    else:
        (folder / "pins.toml").write_text("version = 1\n", encoding="utf-8")
    return file


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml(key)} = {_inline(one)}" for key, one in value.items()) + "}"
    return toml(value)


def command_of(file: Path) -> StdioServerParameters:
    """The proxy over standard input and output."""
    return StdioServerParameters(
        command=INTERLOCK[0], args=[*INTERLOCK[1:], "mcp", "proxy", "--config", str(file)], env=dict(os.environ)
    )


@contextmanager
def serving(file: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """The proxy over HTTP, in a process of its own; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*INTERLOCK, "mcp", "proxy", "--config", str(file), "--http", f"127.0.0.1:{port}", *arguments]
    with open(file.parent / "proxy.log", "w+b") as log:
        process = subprocess.Popen(
            command, stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})}
        )
        try:
            deadline = time.monotonic() + 60
            while True:
                assert process.poll() is None, (file.parent / "proxy.log").read_text()
                assert time.monotonic() < deadline, (file.parent / "proxy.log").read_text()
                if b"serving MCP" in (file.parent / "proxy.log").read_bytes():
                    break
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            process.wait(20)


def odd_here(keys: Mapping[str, Any]) -> Any:
    """What gives an odd server of this process; a new one for each connection."""
    return lambda: Odd(
        keys["kind"], Path(keys["note"]) if keys.get("note") else None, keys.get("version", "1")
    ).server()


@dataclass(frozen=True)
class Stage:
    """A configuration whose servers are in this process, or are started by their commands."""

    file: Path
    servers: Mapping[str, Mapping[str, Any]]

    def proxy(self) -> Proxy:
        interlock = Interlock.load(self.file)
        choice, folder = chosen(self.file)
        here = {name: odd_here(keys) for name, keys in self.servers.items() if "kind" in keys}
        return Proxy(interlock, choice, folder, pins_of(choice, folder), first_of(interlock, choice), here=here)

    @asynccontextmanager
    async def client(self, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
        """A client of a proxy of this process."""
        async with running(self.proxy(), "1") as front, Client(front, mode=mode, **options) as made:
            yield made

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """The address of a proxy of this process that serves over HTTP."""
        async with anyio.create_task_group() as tasks:
            known: list[str] = []
            tasks.start_soon(over_http, self.proxy(), "1", "127.0.0.1", 0, "", known.append)
            while not known:  # noqa: ASYNC110 - told by a plain function
                await anyio.sleep(0.01)
            yield known[0]
            tasks.cancel_scope.cancel()


def staged(folder: Path, servers: Mapping[str, Mapping[str, Any]], manifest: str, **options: Any) -> Stage:
    return Stage(write_configuration(folder, servers, manifest, **options), servers)


@asynccontextmanager
async def client(where: Any, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
    """The official SDK's client."""
    async with Client(where, mode=mode, **options) as made:
        yield made


def text_of(result: Any) -> str:
    return "\n".join(getattr(one, "text", "") for one in result.content)


def refused(result: Any) -> str:
    """The code for which a call was not made, or nothing."""
    return str((result.meta or {}).get("dev.interlock/refused", "")) if result.is_error else ""


_CHANGING = re.compile(r"[0-9a-f]{7,40}|[0-9]+")


def plain(text: str, *folders: Iterable[Any]) -> str:
    """Text without what differs from run to run: folders, times, digests."""
    for folder in folders:
        text = text.replace(str(folder), "<folder>")
    return _CHANGING.sub("#", text)


# --- odd servers ----

READ, PAGE = 'returns = ["private:notes"]\negress = "none"', 'returns = ["untrusted:web"]\negress = "none"'
SEND = 'returns = []\negress = "chosen"\ndestinations = {to = "email"}\ncontent = ["body"]'
NONE = 'returns = []\negress = "none"'
ASK = 'returns = []\negress = "none"'
EVIL = {"to": "eve@evil.example", "body": "42"}


def manifest(**servers: dict[str, str]) -> str:
    return "\n".join(
        f"[servers.{server}.tools.{json.dumps(name)}]\n{spec}"
        for server, tools in servers.items()
        for name, spec in tools.items()
    )


def server(kind: str, note: Path | None = None, **keys: Any) -> dict[str, Any]:
    """An odd server of this process."""
    return {"kind": kind, "note": note and str(note), "command": "unused", **keys}


def process(*arguments: Any, **keys: Any) -> dict[str, Any]:
    """An odd server in a process of its own."""
    command = odd(*map(str, arguments))
    return {"command": command[0], "args": command[1:], **keys}


USUAL = {"read": READ, "page": PAGE, "send": SEND, "ask": ASK, "die": NONE, "sleep": NONE}
MODES = ("legacy", "auto")


def run(what: Callable[[], Awaitable[None]]) -> None:
    anyio.run(what)
