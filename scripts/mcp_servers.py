"""MCP servers of others for tests: from npm and PyPI, pinned by hash, below the checkout.

    python3 scripts/mcp_servers.py COMMAND [ARGUMENT …]

Runs a command with `INTERLOCK_TEST_MCP` set to the folder that holds them; without a command, prints it. Whatever is
there already is used again. Without npm only those from PyPI are there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NPM = ROOT / "requirements" / "mcp-servers"
PYPI = ROOT / "requirements" / "mcp-servers.txt"


def kept() -> Path:
    """The folder for exactly what is pinned now: another pin is another folder."""
    pins = hashlib.sha256()
    for file in (NPM / "package.json", NPM / "package-lock.json", PYPI):
        pins.update(file.read_bytes())
    return ROOT / ".tools" / f"mcp-servers-{pins.hexdigest()[:12]}"


def found() -> Path | None:
    """The folder, if somebody named it or it was made before; installs nothing."""
    named = os.environ.get("INTERLOCK_TEST_MCP")
    place = Path(named) if named else kept()
    return place if (place / "python").is_dir() else None


def node(place: Path, name: str) -> list[str] | None:
    """How an npm server of the folder is started, or None when it is not there."""
    script = place / "node" / "node_modules" / "@modelcontextprotocol" / name / "dist" / "index.js"
    program = shutil.which("node")
    return [program, str(script)] if program and script.exists() else None


def python(place: Path, name: str) -> list[str]:
    """How a PyPI server of the folder is started."""
    return [str(place / "python" / "bin" / name)]


def provided() -> Path:
    """The folder, filled if need be.

    Raises:
        RuntimeError: something could not be installed.
    """
    here = found()
    if here is not None:
        return here
    kept().parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept().parent) as scratch:
        folder = Path(scratch) / "made"
        folder.mkdir()
        npm = shutil.which("npm")
        waiting = None
        if npm is not None:
            print("interlock: fetching MCP servers from npm (once)", file=sys.stderr, flush=True)
            shutil.copytree(NPM, folder / "node")
            # No script of any package is run: none of them needs it, and nobody has read them.
            command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
            waiting = subprocess.Popen(command, cwd=folder / "node", stdout=subprocess.DEVNULL)
        else:
            print("interlock: there is no npm here, so servers from npm are not tested", file=sys.stderr, flush=True)
        print("interlock: installing MCP servers from PyPI (once)", file=sys.stderr, flush=True)
        # At the place where it stays: programs of an environment know its path.
        home = kept()
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        venv.create(home / "python.part", with_pip=True)
        pip = [str(home / "python.part" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]
        done = subprocess.run(
            [*pip, "--quiet", "--no-compile", "--require-hashes", "-r", str(PYPI)], stdout=sys.stderr, check=False
        )
        if waiting is not None and waiting.wait():
            raise RuntimeError("npm could not install the servers")
        if done.returncode:
            raise RuntimeError("pip could not install the servers")
        if waiting is not None:
            os.replace(folder / "node", home / "node")
        for script in (home / "python.part" / "bin").glob("mcp-server-*"):
            text = script.read_text(encoding="utf-8")
            script.write_text(text.replace("python.part", "python", 1), encoding="utf-8")
        os.replace(home / "python.part", home / "python")  # the last step: it says that all is there
    return kept()


def main(command: list[str]) -> int:
    try:
        place = provided()
    except (OSError, RuntimeError) as error:
        print(f"interlock: {error}", file=sys.stderr)
        return 2
    if not command:
        print(place)
        return 0
    return subprocess.run(command, env={**os.environ, "INTERLOCK_TEST_MCP": str(place)}, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
