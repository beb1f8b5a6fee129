"""Proves that `install` adds hooks beside those of others, takes back what it wrote byte for byte, and holds (probe),
and that `doctor` notices what was loosened since.

Mutation that it is shown to catch: a probe that believes an exit code, a backup of what was written instead of before.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interlock.cli import cli
from interlock.cli.hook_probe import probe
from interlock.integrations.host_reactions import FAULTS, REACTIONS, Reaction, command_line, unenforceable
from interlock.integrations.host_settings import FORMS, findings, merged, without
from tests.hooks.hosts import place
from tests.ids import stable

HOSTS = sorted(FORMS)


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A home folder with a configuration and a store."""
    with place() as made:
        old = {name: os.environ.get(name) for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME")}
        os.environ.update(HOME=str(made.folder), XDG_RUNTIME_DIR=str(made.folder))
        os.environ.pop("XDG_CONFIG_HOME", None)
        yield made.folder
        for name, value in old.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def run(home: Path, *words: str, said: str = "") -> Result:
    found = ["--config", str(home / "interlock.toml")] if "--config" not in words else []
    return CliRunner().invoke(cli, [*words, *found], input=said)


FOREIGN: dict[str, dict[str, Any]] = {
    "claude-code": {
        "model": "m",
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"}]}]},
    },
    "codex": {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "beep"}]}]}},
    "gemini": {"theme": "dark"},
    "cursor": {"version": 1, "hooks": {"preToolUse": [{"command": "lint"}]}},
}


@pytest.mark.parametrize("host", HOSTS, ids=stable)
@pytest.mark.parametrize("there", [True, False], ids=stable)
def test_what_was_there_stays_and_comes_back(home: Path, host: str, there: bool) -> None:
    file = home / FORMS[host].file
    before = json.dumps(FOREIGN[host], indent=7).encode() + b"\n\n  "  # nobody else writes it like this
    if there:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(before)
        file.chmod(0o640)
    done = run(home, "install", host, "--yes")
    assert done.exit_code == 0, done.output
    assert "FAILED" not in done.output
    written = json.loads(file.read_text())
    for event in FORMS[host].events:
        assert any("interlock.hook" in json.dumps(one) for one in written["hooks"][event])
    assert without(written, host) == ({**FOREIGN[host]} if there else ({"version": 1} if host == "cursor" else {}))
    again = run(home, "install", host, "--yes")
    assert "as it should be already" in again.output
    assert run(home, "install", host, "--yes", "--uninstall").exit_code == 0
    if there:
        assert file.read_bytes() == before
        assert file.stat().st_mode & 0o777 == 0o640
        file.unlink()
    else:
        assert not file.exists()
    assert run(home, "install", host, "--yes", "--uninstall").exit_code == 2  # nothing is left to take back


def test_nothing_is_written_without_a_yes(home: Path) -> None:
    done = run(home, "install", "codex", said="n\n")
    assert done.exit_code == 2
    assert "+" in done.output  # it was shown
    assert not (home / FORMS["codex"].file).exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}'], ids=stable)
def test_settings_that_are_not_understood_stay_as_they_are(home: Path, text: str) -> None:
    file = home / FORMS["codex"].file
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    done = run(home, "install", "codex", "--yes")
    assert done.exit_code == 2
    assert file.read_text() == text
    file.unlink()


def test_what_was_changed_since_keeps_the_change(home: Path) -> None:
    file = home / FORMS["gemini"].file
    assert run(home, "install", "gemini", "--yes").exit_code == 0
    changed = json.loads(file.read_text())
    file.write_text(json.dumps({**changed, "theme": "light"}))
    assert run(home, "install", "gemini", "--yes", "--uninstall").exit_code == 0
    assert json.loads(file.read_text()) == {"theme": "light"}
    file.unlink()


def test_a_home_without_anything_gets_a_configuration_and_a_store(home: Path, tmp_path: Path) -> None:
    own = tmp_path / "new" / "interlock.toml"
    done = run(home, "install", "cursor", "--yes", "--config", str(own), "--project", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert own.exists()
    assert (own.parent / "interlock.db").exists()
    assert (tmp_path / ".cursor/hooks.json").exists()


def test_the_list_of_servers_of_vscode_gets_the_proxy(home: Path, tmp_path: Path) -> None:
    file = tmp_path / ".vscode/mcp.json"
    file.parent.mkdir()
    file.write_text('{"servers": {"forge": {"command": "forge"}}}')
    done = run(home, "install", "vscode", "--yes", "--project", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "not enforceable by a hook: use the proxy" in done.output
    assert "forge" in done.output
    assert json.loads(file.read_text())["servers"]["interlock"]["command"] == sys.executable
    assert run(home, "install", "vscode", "--yes", "--uninstall", "--project", str(tmp_path)).exit_code == 0
    assert file.read_text() == '{"servers": {"forge": {"command": "forge"}}}'


@pytest.mark.parametrize(
    "command",
    [
        "exit 0",
        "echo '{}'",
        "echo yes",
        "exit 1",
        "cat > /dev/null; exit 2",
        "/nowhere/python",
        'echo \'{"decision": "ask"}\'',
    ],
    ids=stable,
)
def test_a_probe_believes_nothing_but_a_denial(command: str) -> None:
    assert any(one.problem for one in probe("claude-code", command))
    assert any(one.problem for one in probe("gemini", command))


def loosened(host: str) -> Iterator[tuple[str, dict[str, Any]]]:
    good = merged(FOREIGN[host], host, "x -m interlock.hook y")
    yield "nothing", {}
    yield "no hooks", without(good, host)
    for event in FORMS[host].events:
        yield f"no {event}", {**good, "hooks": {k: v for k, v in good["hooks"].items() if k != event}}
    yield "switched off", {**good, "disableAllHooks": True}
    yield "another command", merged(FOREIGN[host], host, "other -m interlock.hook y")
    text = json.dumps(good)
    for old, new in (('"onFailure": "block"', '"onFailure": "warn"'), ('"failClosed": true', '"failClosed": false')):
        if old in text:
            yield new, json.loads(text.replace(old, new))
    if '"matcher": "*"' in text:
        yield "a matcher", json.loads(text.replace('"matcher": "*"', '"matcher": "Bash"'))


@pytest.mark.parametrize("host", HOSTS, ids=stable)
def test_every_way_to_loosen_the_hooks_is_found(host: str) -> None:
    command = "x -m interlock.hook y"
    assert findings(merged(FOREIGN[host], host, command), host, command) == []
    for name, settings in loosened(host):
        assert findings(settings, host, command), name


def test_doctor_tells_what_holds_and_what_does_not(home: Path) -> None:
    assert run(home, "install", "claude-code", "--yes").exit_code == 0
    good = run(home, "doctor", "--json", "--host", "claude-code")
    assert good.exit_code == 0, good.output
    told = json.loads(good.stdout)
    assert [one for one in told if one["what"] == "claude-code" and one["mark"] == "ok"]
    file = home / FORMS["claude-code"].file
    file.write_text(file.read_text().replace(sys.executable, "/nowhere/python3"))
    bad = run(home, "doctor", "--json", "--host", "claude-code", "--host", "codex")
    assert bad.exit_code == 1
    wrong = [one["text"] for one in json.loads(bad.stdout) if one["mark"] == "wrong"]
    assert any("not installed" in one for one in wrong)
    assert any("not as installed" in one for one in wrong)
    assert any("honest call passes: no decision" in one for one in wrong)  # blocked, and still something to repair
    assert run(home, "install", "claude-code", "--yes", "--uninstall").exit_code == 0


def test_doctor_says_what_no_hook_can_enforce(home: Path) -> None:
    assert run(home, "install", "codex", "--yes").exit_code == 0
    told = json.loads(run(home, "doctor", "--json").stdout)
    notes = [one["text"] for one in told if one["what"] == "codex" and one["mark"] == "note"]
    for fault in unenforceable("codex"):
        assert f"{fault}: not enforceable by a hook: use the proxy" in notes
    assert len(unenforceable("codex")) == 2
    assert run(home, "install", "codex", "--yes", "--uninstall").exit_code == 0


def test_a_configuration_that_does_not_load_is_told(tmp_path: Path, home: Path) -> None:
    own = tmp_path / "interlock.toml"
    own.write_text("version = 2\n")
    done = run(home, "doctor", "--json", "--config", str(own))
    assert done.exit_code == 1
    assert any(one["what"] == "configuration" and one["mark"] == "wrong" for one in json.loads(done.stdout))


def test_every_host_says_what_it_does_with_every_ending() -> None:
    endings = set(FAULTS.values())
    for host in REACTIONS:
        assert endings <= set(REACTIONS[host])
        # What we can bring about, every host takes for a refusal.
        ours = [REACTIONS[host][one] for fault, one in FAULTS.items() if fault not in unenforceable(host)]
        assert set(ours) == {Reaction.BLOCKED}


def test_a_command_line_survives_its_own_paths() -> None:
    line = command_line("/opt/it's/py thon", "codex", "/etc/$(touch x)/`id`.toml")
    assert "'/opt/it'\\''s/py thon'" in line
    assert "'/etc/$(touch x)/`id`.toml'" in line
