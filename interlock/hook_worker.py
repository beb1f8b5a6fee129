"""The process behind ``interlock-hook``: everything is loaded once, and each event is answered over a socket.

It belongs to one configuration and one installation, looks before each answer whether both are still what it read, and
ends by itself: when nobody asked for a while, when its socket is gone, or when the code on disk is another one.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Final

from interlock import hook
from interlock.errors import InterlockError
from interlock.hooks import Desk
from interlock.integrations.coding_agents import Reply, failed

IDLE: Final = 30 * 60.0
PATIENCE: Final = 10.0  # for a request to arrive whole
MAX_HEADER: Final = 64 << 10
AT_ONCE: Final = 16


def reply_bytes(reply: Reply) -> bytes:
    return json.dumps({"exit": reply.exit, "out": reply.out, "err": reply.err}).encode()


class Counter:
    """The desk of one configuration, opened again when something on disk has changed."""

    def __init__(self, configuration: str) -> None:
        self.configuration = configuration
        self._desk: Desk | None = None
        self._opening = threading.Lock()

    def answer(self, header: dict[str, Any], body: bytes) -> Reply:
        """Answer one request. What does not load is a refusal, each time until it does."""
        if header.get("config") != self.configuration or header.get("host") not in hook.HOSTS:
            return failed("the request was for another configuration or host")
        try:
            return self.desk().answer(str(header["host"]), body)
        except InterlockError as error:
            return failed(str(error))
        except Exception as error:  # whatever it was, there is no decision
            return failed(f"the worker failed ({type(error).__name__})")

    def desk(self) -> Desk:
        """Raises InterlockError when something does not load; what was loaded before answers nothing then."""
        with self._opening:
            if self._desk is not None and not self._desk.fresh:
                self._desk = None  # those who still use it hold it; it closes with them
            if self._desk is None:
                self._desk = Desk(self.configuration)
            return self._desk


def read_frame(file: IO[bytes]) -> tuple[dict[str, Any], bytes]:
    """One request. Raises ValueError when it is not whole."""
    header = json.loads(file.readline(MAX_HEADER))
    size = header["size"]
    if not isinstance(size, int) or not 0 <= size <= hook.MAX_BODY:
        raise ValueError("no size")
    body = file.read(size)
    if len(body) != size:
        raise ValueError("not whole")
    return header, body


def once() -> None:
    """Answer the one request on standard input."""
    try:
        header, body = read_frame(sys.stdin.buffer)
        reply = Counter(str(header["config"])).answer(header, body)
    except (ValueError, KeyError, TypeError) as error:
        reply = failed(f"the worker could not read the request ({type(error).__name__})")
    sys.stdout.buffer.write(reply_bytes(reply))
    sys.stdout.flush()


class Server:
    """Listens at one address until there is a reason not to."""

    def __init__(self, address: str, counter: Counter, idle: float) -> None:
        self.address = address
        self._counter = counter
        self._idle = idle
        self._stamp = hook.stamp()
        # Threads are kept: each of them loads an engine of its own when it first asks one.
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="interlock-hook")
        self._last = time.monotonic()
        self._stale = False

    def bind(self) -> socket.socket:
        """The listening socket, in the place of whatever stood there. The name appears whole, or not at all."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mine = f"{self.address}.{os.getpid()}"
        listening.bind(mine)
        os.chmod(mine, 0o600)
        listening.listen(64)
        listening.settimeout(1.0)
        os.rename(mine, self.address)
        self._inode = os.lstat(self.address).st_ino
        return listening

    def run(self, listening: socket.socket) -> None:
        """Serve. Returns when it is time to end."""
        while self._wanted():
            try:
                line, _ = listening.accept()
            except TimeoutError:
                continue
            self._last = time.monotonic()
            self._pool.submit(self._serve, line)

    def _wanted(self) -> bool:
        try:
            mine = os.lstat(self.address).st_ino == self._inode
        except OSError:
            mine = False
        return mine and not self._stale and time.monotonic() - self._last < self._idle

    def _serve(self, line: socket.socket) -> None:
        try:
            with line:
                line.settimeout(PATIENCE)
                if not hook.same_user(line):
                    return
                with line.makefile("rb") as file:
                    header, body = read_frame(file)
                if header.get("code") != self._stamp or hook.stamp() != self._stamp:
                    self._stale = True
                    os.unlink(self.address)
                    line.sendall(hook.STALE)
                    return
                line.sendall(reply_bytes(self._counter.answer(header, body)))
        except (OSError, ValueError, KeyError, TypeError):
            pass  # nobody is told anything, which is a refusal


def listen(address: str, configuration: str, ready: int, idle: float) -> None:
    """Be the worker of an address, unless somebody else is already."""
    import fcntl

    with open(os.open(f"{address}.lock", os.O_RDWR | os.O_CREAT, 0o600), "w") as claim:
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            _wait_for(address)
            os.write(ready, b"ready")
            return
        counter = Counter(configuration)
        try:
            counter.desk().lock(hook.HOSTS[0])
        except InterlockError as error:
            os.write(ready, str(error).encode("utf-8", "replace")[:4000])
            return
        server = Server(address, counter, idle)
        listening = server.bind()
        os.write(ready, b"ready")
        os.close(ready)
        server.run(listening)
        try:
            if os.lstat(address).st_ino == server._inode:
                os.unlink(address)
        except OSError:
            pass
        os._exit(0)  # whatever still hangs in a thread: nobody waits for it any more


def _wait_for(address: str) -> None:
    """Until the one who was first listens."""
    for _ in range(500):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            try:
                line.connect(address)
            except OSError:
                time.sleep(0.02)
            else:
                return


def main() -> None:
    import argparse

    parser = argparse.ArgumentParser(prog="python -m interlock.hook_worker")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--listen", default="")
    parser.add_argument("--config", default="")
    parser.add_argument("--ready", type=int, default=-1)
    parser.add_argument("--idle", type=float, default=IDLE)
    given = parser.parse_args()
    if given.once:
        once()
    else:
        listen(given.listen, str(Path(given.config)), given.ready, given.idle)


if __name__ == "__main__":
    main()
