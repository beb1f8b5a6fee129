"""``interlock-hook``: what a coding agent runs around every tool call. Only the standard library, and little of it.

It decides nothing. It reads the event, hands it to a process that has everything loaded (``interlock.hook_worker``,
started when there is none), and passes the answer on. All that can go wrong there is an answer here too: the time that
runs out, a worker that dies, one that never starts.

INVARIANT: standard output gets one whole JSON answer with exit code 0, or nothing. Everything else is exit code 2 with
the reason on standard error, which every host that we know takes for a refusal.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

HOSTS = ("claude-code", "codex", "cursor", "gemini")
MAX_BODY = 16 << 20
MAX_ANSWER = 4 << 20
DEADLINE = 8.0  # below the hosts' own, which let the call run when it passes
USAGE = "usage: interlock-hook HOST [--config FILE] [--deadline SECONDS] [--alone], HOST one of " + ", ".join(HOSTS)


class Stop(Exception):
    """There is no answer. The text says why, and what to do."""


def main(arguments: list[str] | None = None) -> None:
    """Answer one event. Never returns: nothing may run afterwards that could print or change the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        _refuse_on_signals()
        _finish(0, _answer(_read_arguments(given)), b"")
    except BaseException as error:  # an interrupt too: whatever it was, the host must not take it for a yes
        text = str(error) if isinstance(error, Stop) else f"the hook failed ({type(error).__name__})"
        _finish(2, b"", f"interlock: {text}\n".encode("utf-8", "replace"))


def _finish(code: int, out: bytes, err: bytes) -> None:
    try:
        _write(1, out)
        _write(2, err)
    except BaseException:
        code = 2  # nobody reads what we say, so nobody was told yes
    os._exit(code)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _refuse_on_signals() -> None:
    import signal

    def stop(*_: object) -> None:
        _finish(2, b"", b"interlock: stopped by a signal before there was a decision\n")

    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGXCPU"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), stop)


class Request:
    """What was asked for on the command line."""

    def __init__(self) -> None:
        self.host = ""
        self.config = ""
        self.alone = not hasattr(__import__("socket"), "AF_UNIX")
        self.until = monotonic() + DEADLINE

    def left(self) -> float:
        """Seconds that are left. Raises Stop when there are none."""
        left = self.until - monotonic()
        if left <= 0:
            raise Stop("no decision in time, so the call is refused; `interlock doctor` says what is slow")
        return left


def _read_arguments(given: list[str]) -> Request:
    request = Request()
    waiting = list(given)
    while waiting:
        word = waiting.pop(0)
        if word == "--alone":
            request.alone = True
        elif word in ("--config", "--deadline") and waiting:
            value = waiting.pop(0)
            if word == "--config":
                request.config = value
            else:
                request.until = monotonic() + _seconds(value)
        elif word in HOSTS and not request.host:
            request.host = word
        else:
            raise Stop(USAGE)
    if not request.host:
        raise Stop(USAGE)
    request.config = os.path.abspath(request.config or default_config())
    return request


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0.05 <= found <= 600:
        raise Stop(USAGE)
    return found


def default_config() -> str:
    """The operator's configuration when the command names none."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(home, "interlock", "interlock.toml")


def _answer(request: Request) -> bytes:
    import json

    body = _body(request)
    raw = _alone(request, body) if request.alone else _resident(request, body)
    try:
        reply = json.loads(raw)
        code, out, err = reply["exit"], reply["out"], reply["err"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Stop("the hook's worker stopped before it answered, so the call is refused") from None
    if code != 0 or not isinstance(out, str) or not isinstance(json.loads(out), dict):
        raise Stop(str(err) or "the hook's worker gave no answer")
    return out.encode()


def _body(request: Request) -> bytes:
    """All of standard input, bounded in size and time."""
    import select

    chunks: list[bytes] = []
    size = 0
    while True:
        if os.name == "posix" and not select.select([0], [], [], request.left())[0]:
            raise Stop("standard input did not end in time, so the call is refused")
        chunk = os.read(0, 1 << 20)
        if not chunk:
            return b"".join(chunks)
        size += len(chunk)
        if size > MAX_BODY:
            raise Stop(f"the event is larger than {MAX_BODY >> 20} MiB, so the call is refused")
        chunks.append(chunk)


# --- the worker -------------------------------------------------------------------------------------------------------


def frame(host: str, config: str, body: bytes) -> bytes:
    """A request as the worker reads it: a line of JSON, then the event."""
    import json

    return json.dumps({"host": host, "config": config, "code": stamp(), "size": len(body)}).encode() + b"\n" + body


def stamp() -> str:
    """Which code this is. A worker that was started before an upgrade must not answer after it."""
    found = os.stat(__file__)
    return f"{found.st_ino}-{found.st_mtime_ns}"


def socket_of(config: str) -> str:
    """Where the worker of a configuration listens: in a folder that only this user can open.

    Raises:
        Stop: somebody else made that folder.
    """
    import stat
    from binascii import crc32

    uid = os.getuid()
    runtime = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - checked below
    folder = os.path.join(runtime, f"interlock-{uid}")
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or stat.S_IMODE(found.st_mode) & 0o077:
        raise Stop(f"{folder} must be a folder of yours that nobody else can open; remove it")
    # The worker compares the whole text; two that share a name answer each other's requests with a refusal.
    name = crc32(f"{config}\0{sys.executable}\0{__file__}".encode("utf-8", "surrogateescape"))
    return os.path.join(folder, f"hook-{name:08x}")


def _resident(request: Request, body: bytes) -> bytes:
    data = frame(request.host, request.config, body)
    address = socket_of(request.config)
    for attempt in range(3):
        raw = _asked(request, address, data)
        if raw is not None and raw != STALE:
            return raw
        if attempt < 2:
            _start(request, address)
    raise Stop("the hook's worker could not be started, so the call is refused; run `interlock doctor`")


STALE = b'{"stale": true}'


def _asked(request: Request, address: str, data: bytes) -> bytes | None:
    """The worker's reply; None when nobody listens. Once the request is out, silence is no reply and no second try."""
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(request.left())
        try:
            line.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        except OSError as error:
            raise Stop(f"the hook's worker can't be reached ({error.strerror}), so the call is refused") from None
        if not same_user(line):
            raise Stop("somebody else listens in the place of the hook's worker, so the call is refused")
        try:
            line.sendall(data)
            chunks: list[bytes] = []
            while True:
                line.settimeout(request.left())
                chunk = line.recv(1 << 16)
                if not chunk:
                    return b"".join(chunks)
                chunks.append(chunk)
                if sum(map(len, chunks)) > MAX_ANSWER:
                    raise Stop("the hook's worker said too much, so the call is refused")
        except TimeoutError:
            raise Stop("no decision in time, so the call is refused; `interlock doctor` says what is slow") from None
        except OSError:
            raise Stop("the hook's worker stopped before it answered, so the call is refused") from None


def same_user(line: object) -> bool:
    """Is the process at the other end ours? Where the system can't say, the folder's mode has to do."""
    import socket
    import struct

    if not hasattr(socket, "SO_PEERCRED"):
        return True
    assert isinstance(line, socket.socket)
    _, uid, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return bool(uid == os.getuid())


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "interlock.hook_worker", *words]


def _start(request: Request, address: str) -> None:
    """Start the resident worker and wait until it listens.

    Raises:
        Stop: it could not; its own words say why.
    """
    import select
    import subprocess

    reading, writing = os.pipe()
    try:
        subprocess.Popen(  # noqa: S603 - our own interpreter
            _command("--listen", address, "--config", request.config, "--ready", str(writing)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(writing,),
            start_new_session=True,
            cwd="/",
        )
        os.close(writing)
        writing = -1
        said = b""
        while True:
            if not select.select([reading], [], [], request.left())[0]:
                continue
            chunk = os.read(reading, 4096)
            if not chunk:
                break
            said += chunk
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)
    if said != b"ready":
        text = said.decode("utf-8", "replace").strip()
        raise Stop(text or "the hook's worker stopped while it started; run `interlock doctor`")


def _alone(request: Request, body: bytes) -> bytes:
    """A worker for this event only, where no resident one is wanted or possible. Slow: everything is loaded."""
    import subprocess

    process = subprocess.Popen(  # noqa: S603 - our own interpreter
        _command("--once"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/"
    )
    try:
        out, _ = process.communicate(frame(request.host, request.config, body), timeout=request.left())
    except subprocess.TimeoutExpired:
        process.kill()
        raise Stop("no decision in time, so the call is refused; `interlock doctor` says what is slow") from None
    return out


if __name__ == "__main__":
    main()
