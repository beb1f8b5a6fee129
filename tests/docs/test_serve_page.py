"""Proves that the session in docs/serve.md is what really happens: its commands, its output, a real server."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

from tests.docs.test_code_blocks import ROOT, lay_out

DOCS_SERVE = ROOT / "docs" / "serve.md"

_BLOCK = re.compile(r"<!-- session -->\n```sh\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


def test_the_session(tmp_path: Path) -> None:
    lay_out(DOCS_SERVE, tmp_path)
    blocks = _BLOCK.findall(DOCS_SERVE.read_text(encoding="utf-8"))
    assert len(blocks) >= 6
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = "set -eu\nservice=\ntrap 'test -z \"$service\" || kill $service 2>/dev/null || true' ERR\n"
    for number, (commands, _) in enumerate(blocks):
        script += f"echo '=== {number}'\n{commands.replace(':8443', f':{port}')}\necho\n"
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = re.split(r"=== \d+\n", done.stdout)[1:]
    for (commands, told), said in zip(blocks, printed, strict=True):
        assert said.strip() == told.strip(), commands
