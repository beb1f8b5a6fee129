"""MCP servers of others for tests: from npm and PyPI, pinned by hash, below the checkout.

    python3 scripts/mcp_servers.py COMMAND [ARGUMENT …]

Runs a command with `INTERLOCK_TEST_MCP` set to the folder that holds them; without a command, prints it. Whatever is
there already is used again. Without npm only those from PyPI are there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NPM = ROOT / "requirements" / "mcp-servers"
# Environment → what is in it. One server needs the SDK as it was before 2.
PYPI = {name: ROOT / "requirements" / f"{name}.txt" for name in ("mcp-servers", "mcp-servers-before")}


def kept() -> Path:
    """The folder for exactly what is pinned now: another pin is another folder."""
    pins = hashlib.sha256()
    for file in (NPM / "package.json", NPM / "package-lock.json", *PYPI.values()):
        pins.update(file.read_bytes())
    return ROOT / ".tools" / f"mcp-servers-{pins.hexdigest()[:12]}"


def found() -> Path | None:
    """The folder, if somebody named it or it was made before; installs nothing."""
    named = os.environ.get("INTERLOCK_TEST_MCP")
    place = Path(named) if named else kept()
    return place if (place / "whole").exists() else None


def node(place: Path, name: str) -> list[str] | None:
    """How an npm server of the folder is started, or None when it is not there."""
    script = place / "node" / "node_modules" / "@modelcontextprotocol" / name / "dist" / "index.js"
    program = shutil.which("node")
    return [program, str(script)] if program and script.exists() else None


def python(place: Path, name: str) -> list[str]:
    """How a PyPI server of the folder is started."""
    return next([str(found)] for one in PYPI if (found := place / one / "bin" / name).exists())


def inspector(place: Path) -> list[str] | None:
    """How the command line of the MCP inspector is started, or None when it is not there."""
    script = place / "node" / "node_modules" / "@modelcontextprotocol" / "inspector-cli" / "build" / "index.js"
    program = shutil.which("node")
    return [program, str(script)] if program and script.exists() else None


def provided() -> Path:
    """The folder, filled if need be.

    Raises:
        RuntimeError: something could not be installed.
    """
    here = found()
    if here is not None:
        return here
    place = kept()
    shutil.rmtree(place, ignore_errors=True)  # of an attempt that was cut off
    place.mkdir(parents=True)
    npm = shutil.which("npm")
    fetching = None
    if npm is None:
        print("interlock: there is no npm here, so servers from npm are not tested", file=sys.stderr, flush=True)
    else:
        print("interlock: fetching MCP servers from npm (once)", file=sys.stderr, flush=True)
        shutil.copytree(NPM, place / "node")
        # No script of any package is run: none of them needs it, and nobody has read them.
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        fetching = subprocess.Popen(command, cwd=place / "node", stdout=subprocess.DEVNULL)
    for name, pins in PYPI.items():
        print(f"interlock: installing {name} from PyPI (once)", file=sys.stderr, flush=True)
        venv.create(place / name, with_pip=False)
        pip = [sys.executable, "-m", "pip", "--python", str(place / name / "bin" / "python"), "install", "--quiet"]
        pip += ["--disable-pip-version-check", "--no-compile", "--no-deps", "--require-hashes", "-r", str(pins)]
        if subprocess.run(pip, stdout=sys.stderr, check=False).returncode:
            raise RuntimeError(f"pip could not install {name}")
    if fetching is not None and fetching.wait():
        raise RuntimeError("npm could not install the servers")
    if npm is not None:
        # The inspector's command line asks for its name and version where it stands in its authors' checkout.
        said = {"name": "inspector-cli", "version": "1", "type": "module"}
        (place / "node" / "node_modules" / "@modelcontextprotocol" / "package.json").write_text(json.dumps(said))
    (place / "whole").touch()
    return place


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
