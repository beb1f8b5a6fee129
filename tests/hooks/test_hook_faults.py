"""Proves that whatever goes wrong, the installed command ends in a way that the hosts take for a refusal.

Every row of the table in docs/hooks.md is made to happen to the real command, run by a shell as the hosts do. Mutation
that it is shown to catch: the shell's way out left away, a broad `except` that goes on, an answer printed by default.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock import hook
from interlock.integrations.coding_agents import PROTOCOLS
from interlock.integrations.host_reactions import FAULTS, Ending, command_line
from tests.hooks.hosts import HOSTS, NAMES, Place, Ran, Session, ask, place
from tests.ids import stable

CALL = Session("claude-code").before("Read", {"file_path": "/srv/project/a"})
BODY = json.dumps(CALL).encode()


def shell(here: Place, body: bytes | None = BODY, *, python: str = sys.executable, more: str = "", **keys: Any) -> Ran:
    """The installed command, run as hosts run it."""
    line = command_line(python, "claude-code", str(here.config))
    line = line.replace(" || ", f" {more} || ", 1)
    done = subprocess.run(
        ["sh", "-c", line],
        input=body,
        capture_output=True,
        timeout=60,
        check=False,
        env={**here.environment, **keys.pop("env", {})},
        **keys,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(scope="module")
def here() -> Iterator[Place]:
    with place() as made:
        yield made


def worker_of(here: Place) -> int:
    """Process id of the worker that listens for a place."""
    path = next(one for one in (here.folder / f"interlock-{os.getuid()}").iterdir() if one.suffix == "")
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(path))
        return int.from_bytes(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def an_exception() -> Ran:
    with place() as own:
        (own.folder / "interlock.db.hooks").write_bytes(b"no database" * 100)
        return shell(own)


def no_decision_in_time(here: Place) -> Ran:
    with locked(here.folder / "interlock.db"):
        return shell(here, more="--deadline 0.5")


def worker_killed(here: Place) -> Ran:
    shell(here)
    pid = worker_of(here)
    found: list[Ran] = []
    with locked(here.folder / "interlock.db"):
        asking = threading.Thread(target=lambda: found.append(shell(here)))
        asking.start()
        time.sleep(0.4)
        os.kill(pid, signal.SIGKILL)
        asking.join(30)
    return found[0]


def hook_killed(here: Place) -> Ran:
    line = command_line(sys.executable, "claude-code", str(here.config))
    # The shell's child kills itself the hard way, in the hook's place.
    line = line.replace(f"'{sys.executable}'", "sh -c 'kill -9 $$'", 1)
    done = subprocess.run(["sh", "-c", line], input=BODY, capture_output=True, timeout=60, check=False)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def bad_policy(here: Place) -> Ran:
    with place() as own:
        (own.folder / "controls").mkdir()
        rule = own.folder / "controls" / "own.rego"
        rule.write_text('package controls.own\n\ndefault verdict := {"verdict": "allow"}\n')
        own.config.write_text(own.config.read_text().replace("[journal]", 'policies = ["controls"]\n[journal]'))
        shell(own)  # a worker that has read it
        rule.write_text("package controls.own\n\ndefault verdict := {")
        return shell(own)


def bad_configuration(here: Place) -> Ran:
    with place() as own:
        shell(own)
        own.config.unlink()
        return shell(own)


def store_locked(here: Place) -> Ran:
    with locked(here.folder / "interlock.db"):
        return shell(here, more="--deadline 0.6 --alone")


def never_ends(here: Place) -> Ran:
    reading, writing = os.pipe()
    try:
        os.write(writing, BODY)
        return shell(here, None, more="--deadline 0.4", stdin=reading)
    finally:
        os.close(reading)
        os.close(writing)


MAKE: dict[str, Callable[[Place], Ran]] = {
    "an exception": lambda here: an_exception(),
    "no decision before the deadline": no_decision_in_time,
    "the worker is killed while it decides": worker_killed,
    "the hook's own process is killed": hook_killed,
    "the interpreter is missing": lambda here: shell(here, python="/nowhere/python3"),
    "the package is missing": lambda here: shell(here, python="/usr/bin/python3"),
    "a policy that can't be read": bad_policy,
    "a configuration that can't be read": bad_configuration,
    "the store is locked": store_locked,
    "standard input is closed": lambda here: shell(here, None, more="<&-"),
    "standard input is empty": lambda here: shell(here, b""),
    "standard input never ends": never_ends,
    "garbage on standard input": lambda here: shell(here, b"\xff{not json"),
    "an event that is too large": lambda here: shell(here, b" " * (hook.MAX_BODY + 1)),
    "an event that nobody knows": lambda here: shell(here, BODY.replace(b"PreToolUse", b"PreToolUsage")),
    "wrong names of fields": lambda here: shell(here, BODY.replace(b"session_id", b"sessionId")),
    "standard output is closed": lambda here: shell(here, more=">&-"),
}


def test_every_fault_of_the_table_is_made_or_is_out_of_our_hands() -> None:
    ours = {fault for fault, ending in FAULTS.items() if ending is Ending.REFUSED}
    assert ours == set(MAKE)


@pytest.mark.parametrize("fault", sorted(MAKE), ids=stable)
def test_a_fault_is_a_refusal(here: Place, fault: str) -> None:
    if fault == "the package is missing" and not Path("/usr/bin/python3").exists():
        pytest.skip("no second interpreter")
    ran = MAKE[fault](here)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.strip()
    assert "/srv/project" not in ran.err  # no argument is repeated
    assert "Traceback" not in ran.err


def test_after_every_fault_an_honest_call_is_answered_again(here: Place) -> None:
    session = Session("claude-code", "honest")
    assert shell(here, json.dumps(session.begin()).encode()).verdict == "allow"
    assert shell(here, json.dumps(session.before("Read", {"file_path": "/a"})).encode()).verdict == "allow"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"], ids=stable)
def test_a_signal_is_a_refusal(here: Place, name: str) -> None:
    with subprocess.Popen(
        here.command("claude-code"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        time.sleep(0.4)  # it waits for its standard input
        process.send_signal(getattr(signal, name))
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (2, b"")
    assert b"signal" in err


@pytest.mark.parametrize("given", [[], ["cloud-code"], ["codex", "--allow"], ["codex", "--deadline", "no"]], ids=stable)
def test_wrong_arguments_are_a_refusal(given: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "interlock.hook", *given], input=BODY, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"usage" in done.stderr


def test_a_stranger_in_the_workers_place_is_not_believed(here: Place) -> None:
    """A worker that says something else than an answer, or nothing."""
    with place() as own:
        old = os.environ.get("XDG_RUNTIME_DIR")
        os.environ["XDG_RUNTIME_DIR"] = str(own.folder)
        try:
            address = hook.socket_of(str(own.config))
        finally:
            os.environ.pop("XDG_RUNTIME_DIR")
            if old is not None:
                os.environ["XDG_RUNTIME_DIR"] = old
        said = [b"", b"yes", b'{"exit": 0, "out": "", "err": ""}', b'{"exit": 0, "out": "[]", "err": ""}']
        said += [b'{"exit": 0, "out": "{}x", "err": ""}', b'{"exit": 1, "out": "{}", "err": "x"}', b"[" * 100_000]
        for answer in said:
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(address)
                listening.listen(1)
                thread = threading.Thread(target=_say, args=(listening, answer))
                thread.start()
                ran = own.run("claude-code", CALL)
                thread.join(10)
            os.unlink(address)
            assert (ran.code, ran.out) == (2, ""), answer
            assert ran.err.strip()


def _say(listening: socket.socket, answer: bytes) -> None:
    line, _ = listening.accept()
    with line, line.makefile("rb") as file:
        size = json.loads(file.readline())["size"]
        file.read(size)
        line.sendall(answer)


def test_a_folder_of_somebody_else_is_not_used() -> None:
    with place() as own:
        folder = own.folder / f"interlock-{os.getuid()}"
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)
        ran = own.run("claude-code", CALL)
    assert (ran.code, ran.out) == (2, "")
    assert "nobody else can open" in ran.err


# --- bodies, for every host -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def desk() -> Iterator[Any]:
    with place() as made:
        opened = made.desk()
        yield opened
        opened.close()


def broken_bodies(host: str) -> Iterator[tuple[str, bytes]]:
    good = Session(host).before("Read", {"file_path": "/srv/a"})
    key = PROTOCOLS[host].session
    text = json.dumps(good)
    yield "empty", b""
    yield "null", b"null"
    yield "list", f"[{text}]".encode()
    yield "cut", text[:-5].encode()
    yield "two", f"{text}{text}".encode()
    yield "twice", text.replace("{", '{"hook_event_name": "Other", ', 1).encode()
    yield "deep", b'{"a":' * 100_000
    yield "not utf-8", text.encode().replace(b"/srv/a", b"\xff\xfe")
    yield "utf-16", text.encode("utf-16")
    for name in (key, "hook_event_name", "tool_name", "tool_input"):
        yield f"no {name}", json.dumps({k: v for k, v in good.items() if k != name}).encode()
        for value in (None, 7, True, [], ["x"], {"x": "y"} if name != "tool_input" else "x", ""):
            yield f"{name} {value!r}", json.dumps({**good, name: value}).encode()
    yield "camel case", text.replace("tool_name", "toolName").encode()
    yield "surrogate", json.dumps({**good, "tool_input": {"file_path": "\ud800"}}).encode()
    yield "nul", json.dumps({**good, "tool_input": {"file_path": "\0"}}).encode()
    yield "nan", json.dumps({**good, "tool_input": {"n": float("nan")}}).encode()
    yield "big number", json.dumps({**good, "tool_input": {"n": 2**60}}).encode()
    yield (
        "other host",
        json.dumps({**good, "hook_event_name": NAMES["gemini" if host != "gemini" else "codex"][0]}).encode(),
    )
    yield "large", json.dumps({**good, "tool_input": {"x": "y" * (17 << 20)}}).encode()
    if PROTOCOLS[host].ids:
        for value in (None, 7, "", "a\nb", "x" * 300):
            yield f"id {value!r}", json.dumps({**good, "tool_use_id": value}).encode()


@pytest.mark.parametrize("host", HOSTS, ids=stable)
def test_an_event_that_is_wrong_in_any_way_is_a_refusal(desk: Any, host: str) -> None:
    for name, body in broken_bodies(host):
        ran = ask(desk, host, body)
        assert ran.verdict == "deny", name
        assert "/srv/a" not in ran.err, name


@pytest.mark.parametrize("host", HOSTS, ids=stable)
def test_an_event_that_is_right_is_answered(desk: Any, host: str) -> None:
    session = Session(host, f"right-{host}")
    assert ask(desk, host, session.begin()).verdict == "allow"
    reader = {"gemini": "read_file", "codex": "Bash"}.get(host, "Read")
    arguments = {"codex": {"command": "pwd"}, "gemini": {"absolute_path": "/srv/a"}}.get(host, {"file_path": "/srv/a"})
    assert ask(desk, host, session.before(reader, arguments)).verdict == "allow"
