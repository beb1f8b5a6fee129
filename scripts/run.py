"""Run the demo or the tests on a machine that has nothing but Python 3.11 or newer.

    python3 scripts/run.py demo [options of `interlock demo`]
    python3 scripts/run.py test [options of pytest]

Makes a virtual environment of its own (`.venv-demo`, `.venv-test`) from the pinned requirements, once, and again when
they change.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def environment(name: str) -> Path:
    """The Python of an environment with everything in `requirements/<name>.txt` and this checkout installed."""
    folder = ROOT / f".venv-{name}"
    locked = ROOT / "requirements" / f"{name}.txt"
    opinions = ROOT / "requirements" / "opinions.txt"
    wanted = hashlib.sha256(
        locked.read_bytes() + opinions.read_bytes() + (ROOT / "pyproject.toml").read_bytes() + sys.version.encode()
    ).hexdigest()
    stamp = folder / "installed"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if stamp.is_file() and stamp.read_text() == wanted and python.exists():
        return python
    print(f"interlock: preparing {folder.name} (once)", file=sys.stderr)
    venv.create(folder, clear=True, with_pip=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--require-hashes", "-r", str(locked)], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], check=True)
    if name == "test":
        # One more engine for the agreement tests, which not every machine can get; they skip, and say so, without it.
        wheel = [*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(opinions)]
        if subprocess.run(wheel, check=False).returncode:
            print("interlock: no regopy for this machine; tests of its opinion will be skipped", file=sys.stderr)
    stamp.write_text(wanted)
    return python


def step(title: str, command: list[str]) -> None:
    """Run one check; a failure ends everything with its exit code."""
    print(f"\n== {title}", file=sys.stderr, flush=True)
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        print(f"interlock: {title} failed", file=sys.stderr)
        raise SystemExit(done.returncode)


def main(arguments: list[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - this script meets older Pythons; the package does not
        print(f"interlock needs Python 3.11 or newer; this is {sys.version.split()[0]}", file=sys.stderr)
        return 2
    if not arguments or arguments[0] not in ("demo", "test"):
        print(__doc__, file=sys.stderr)
        return 2
    what, rest = arguments[0], arguments[1:]
    python = str(environment(what))
    if what == "demo":
        return subprocess.run([python, "-m", "interlock.cli", "demo", *rest], check=False).returncode
    tool = str(Path(python).parent)
    step("ruff format", [f"{tool}/ruff", "format", "--check", "--quiet", "."])
    step("ruff check", [f"{tool}/ruff", "check", "--quiet", "."])
    step("mypy --strict", [f"{tool}/mypy"])
    step("import contracts", [f"{tool}/lint-imports"])
    # One process a core, whole files: what a file sets up (a server, an engine) is set up once.
    step("pytest", [python, "-m", "pytest", "--numprocesses=auto", "--dist=loadfile", *rest])
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
