"""A real OPA for tests: found, or built from its own module, or the official release with its checksum.

    python3 scripts/opa.py COMMAND [ARGUMENT …]

Runs a command with `INTERLOCK_TEST_OPA` set to the program; without a command, prints where the program is. In this
order: the one that `INTERLOCK_TEST_OPA` names, `opa` on PATH when it is new enough, the one that was made before
(`.tools/`), `go install` through the module proxy, which checks what it gets against Go's checksum database, and the
official release. Fails when none of these gives one.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[1]
VERSION = (1, 22, 3)
TAG = f"v{'.'.join(map(str, VERSION))}"
RELEASES = "https://github.com/open-policy-agent/opa/releases/download"


def version_of(program: Path | str) -> tuple[int, ...] | None:
    """What the program says of itself, or None when it is no OPA."""
    try:
        done = subprocess.run([str(program), "version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = re.search(r"^Version: (\d+)\.(\d+)\.(\d+)", done.stdout, re.MULTILINE)
    return tuple(map(int, said.groups())) if said else None


def kept() -> Path:
    """Where a program that was made here is kept: below the checkout, out of version control."""
    return ROOT / ".tools" / f"opa-{TAG}"


def found() -> Path | None:
    """A program that is here already; builds and fetches nothing.

    Raises:
        RuntimeError: `INTERLOCK_TEST_OPA` names something that is no OPA of this version or newer.
    """
    named = os.environ.get("INTERLOCK_TEST_OPA")
    if named:
        version = version_of(named)
        if version is None or version < VERSION:
            raise RuntimeError(f"INTERLOCK_TEST_OPA: {named!r} is no OPA {TAG} or newer")
        return Path(named).resolve()
    on_path = shutil.which("opa")
    for place in ([Path(on_path)] if on_path else []) + [kept()]:
        if (version_of(place) or (0,)) >= VERSION:
            return place.resolve()
    return None


def provided() -> Path:
    """A program, made if need be.

    Raises:
        RuntimeError: neither found, nor built, nor fetched; the message says what each way answered.
    """
    here = found()
    if here is not None:
        return here
    kept().parent.mkdir(exist_ok=True)
    problems = []
    for way in (_built, _fetched):
        with tempfile.TemporaryDirectory(dir=kept().parent) as folder:
            try:
                program = way(Path(folder))
                version = version_of(program)
                if version is None or version < VERSION:
                    raise RuntimeError(f"it says it is {version}, not {TAG}")
                # Whole or not at all: two test runs may be making it at once.
                os.replace(program, kept())
            except (OSError, RuntimeError) as error:
                problems.append(f"{way.__doc__}: {error}")
            else:
                return kept()
    raise RuntimeError(f"there is no OPA {TAG} to be had here\n  " + "\n  ".join(problems))


def _built(folder: Path) -> Path:
    """go install"""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
    if go is None:
        raise RuntimeError("there is no Go here")
    print(f"interlock: building OPA {TAG} (once)", file=sys.stderr, flush=True)
    environment = {**os.environ, "GOBIN": str(folder), "CGO_ENABLED": "0"}
    command = [go, "install", "-trimpath", f"github.com/open-policy-agent/opa@{TAG}"]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-600:])
    return folder / "opa"


def _fetched(folder: Path) -> Path:
    """the official release"""
    systems = {"Linux": "linux", "Darwin": "darwin"}
    machines = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
    system, machine = systems.get(platform.system()), machines.get(platform.machine())
    if system is None or machine is None:
        raise RuntimeError(f"none is known for {platform.system()} on {platform.machine()}")
    name = f"opa_{system}_{machine}_static" if system == "linux" else f"opa_{system}_{machine}"
    print(f"interlock: fetching OPA {TAG} (once)", file=sys.stderr, flush=True)
    wanted = _read(f"{RELEASES}/{TAG}/{name}.sha256").decode("ascii", "replace").split()
    content = _read(f"{RELEASES}/{TAG}/{name}")
    if not wanted or hashlib.sha256(content).hexdigest() != wanted[0]:
        raise RuntimeError(f"{name} does not have the checksum that was published with it")
    program = folder / "opa"
    program.write_bytes(content)
    program.chmod(0o755)
    return program


def _read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=120) as answer:
        content: bytes = answer.read()
    return content


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


class Server:
    """`opa run --server` on loopback. Use it in a `with` block.

    It asks nobody whether there is a newer version, and keeps its port over `kill` and `start`.
    """

    def __init__(self, program: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        """`arguments`: further options and the paths of policies and bundles, as `opa run` takes them."""
        self._program = program
        self._arguments: Sequence[str] = arguments
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="interlock-opa-"))
        self.port = free_port()
        self.tls = "--tls-cert-file" in arguments

    @property
    def host(self) -> str:
        return "127.0.0.1"

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    def log(self) -> str:
        """All that it wrote so far."""
        return (self.folder / "log").read_text(errors="replace")

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        """Start it and wait until it takes connections.

        Raises:
            RuntimeError: it ended or stayed silent; the message holds what it wrote.
        """
        command = [str(self._program), "run", "--server", "--addr", f"{self.host}:{self.port}"]
        command += ["--skip-version-check", "--log-level", "error", *self._arguments]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self._environment
            )
        deadline = time.monotonic() + 60
        while True:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"OPA did not start: {self.log()[-2000:]}")
            try:
                socket.create_connection((self.host, self.port), timeout=1).close()
            except OSError:
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """Stop it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def main(command: list[str]) -> int:
    try:
        program = provided()
    except RuntimeError as error:
        print(f"interlock: {error}", file=sys.stderr)
        return 2
    if not command:
        print(program)
        return 0
    environment = {**os.environ, "INTERLOCK_TEST_OPA": str(program)}
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
