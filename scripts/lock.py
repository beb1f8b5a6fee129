"""Write `requirements/*.txt` anew: every package pinned by hash, for every platform, without index lines.

Needs `uv` on the PATH (`pip install uv`). Run it after changing dependencies in `pyproject.toml` or an `.in` file.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    # The opinions and the servers of others are no part of the package and need nothing of it.
    for name in ("demo", "test", "bench", "opinions", "mcp-servers", "mcp-servers-before"):
        command = ["uv", "pip", "compile", "--universal", "--python-version", "3.11", "--generate-hashes", "--quiet"]
        command += ["--no-emit-index-url", "--no-annotate", "--custom-compile-command", "python3 scripts/lock.py"]
        command += ["--output-file", f"requirements/{name}.txt", f"requirements/{name}.in"]
        command += ["pyproject.toml"] if name in ("demo", "test", "bench") else []
        done = subprocess.run(command, cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
        print(f"wrote requirements/{name}.txt", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
