"""Proves that each example runs offline as it stands, prints what its readers are promised, and warns of nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

PRINTED = {
    "ten_lines.py": """\
fetch_page  allow  allowed
read_file   allow  allowed
send_email  deny   trifecta
fetch_page  deny   trifecta
send_email  allow  allowed
labels: private:files untrusted:web
outbox: ana@corp.example: Ferry
""",
    "decorated_tools.py": """\
typed: sent 22 characters to ana@corp.example
stranger: Not done: this call was denied by the security policy. [trifecta] This conversation has read text from \
outside and has had access to private data, so nothing may be sent to a destination that the person or the operator \
has not named. It would be allowed to a destination that the person has named in their own words; or in a new \
conversation that the person begins.
outside: 'send_email' runs only through Interlock: use `with guard:` around the call, or guard.call(…, run=send_email)
""",
    "asyncio_loop.py": """\
page_0   fetch_page  allow  allowed
page_1   fetch_page  allow  allowed
read     read_file   allow  allowed
ana      send_email  allow  allowed
stranger send_email  deny   trifecta
""",
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_promises(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,  # an example finds its files from anywhere
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == PRINTED[name]


def test_every_example_is_run_here_and_named_in_the_readme() -> None:
    assert sorted(one.name for one in EXAMPLES.glob("*.py")) == sorted(PRINTED)
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for name in (*PRINTED, "interlock.toml"):
        assert f"[`{name}`]({name})" in readme


def test_the_readme_shows_the_real_output() -> None:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```console\n\$ python examples/ten_lines.py\n(.*?)```", readme, re.DOTALL)
    assert shown == PRINTED["ten_lines.py"]


def test_the_ten_lines_are_about_ten() -> None:
    text = (EXAMPLES / "ten_lines.py").read_text(encoding="utf-8")
    added = text.partition("# --- the lines that you add")[2].partition("# --- a model")[0]
    lines = [line for line in added.splitlines()[1:] if line.strip() and not line.strip().startswith(('"""', "#"))]
    assert len(lines) <= 12
