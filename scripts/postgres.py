"""A throw-away PostgreSQL for tests: made in a temporary folder, on a free port of loopback, gone afterwards.

    python3 scripts/postgres.py COMMAND [ARGUMENT …]

Runs a command with `INTERLOCK_TEST_POSTGRES_DSN` set to it. PostgreSQL refuses to run as root, so root starts it as the
user `postgres`, which Debian's package brings.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self


def programs() -> Path | None:
    """The folder with the newest server's programs, or None when there is none."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: int(one.parent.name), reverse=True)
    found = shutil.which("postgres")
    return next((one for one in [*places, *([Path(found).parent] if found else [])] if (one / "initdb").exists()), None)


class Cluster:
    """A server with a database `interlock`, whose superuser needs no password. Use it in a `with` block."""

    def __init__(self, *settings: str) -> None:
        """`settings`: of the server, such as `fsync=off`."""
        found = programs()
        if found is None:
            raise FileNotFoundError("PostgreSQL is not installed here")
        self._programs = found
        self._user = "postgres" if os.geteuid() == 0 else None
        self._settings = settings
        self._server: subprocess.Popen[bytes] | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="interlock-postgres-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    @property
    def dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=interlock dbname=interlock"

    def __enter__(self) -> Self:
        if self._user:
            known = pwd.getpwnam(self._user)
            os.chown(self.folder, known.pw_uid, known.pw_gid)
        made = ["initdb", "--pgdata", str(self.folder / "data"), "--username", "interlock", "--auth", "trust"]
        self._run(*made, "--encoding", "UTF8", "--locale", "C", "--no-sync")
        self.start()
        self._run("createdb", "--host", "127.0.0.1", "--port", str(self.port), "--username", "interlock", "interlock")
        return self

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = [f"port={self.port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={self.folder}"]
        options += ["max_connections=100", *self._settings]
        command = [str(self._programs / "postgres"), "-D", str(self.folder / "data")]
        command += [part for one in options for part in ("-c", one)]
        with open(self.folder / "log", "ab") as log:
            self._server = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder, user=self._user
            )
        deadline = time.monotonic() + 60
        ready = ["pg_isready", "--quiet", "--host", "127.0.0.1", "--port", str(self.port)]
        while subprocess.run([str(self._programs / ready[0]), *ready[1:]], check=False).returncode:
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "log").read_text(errors="replace")[-2000:])
            time.sleep(0.05)

    def kill(self) -> None:
        """Stop it at once, as a loss of power would: nothing is written any more."""
        if self._server is not None:
            self._server.send_signal(signal.SIGQUIT)
            self._server.wait()
            self._server = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, name: str, *arguments: str) -> None:
        command = [str(self._programs / name), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, user=self._user)
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stderr}")


def main(command: list[str]) -> int:
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    with Cluster() as cluster:
        environment = {**os.environ, "INTERLOCK_TEST_POSTGRES_DSN": cluster.dsn}
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
