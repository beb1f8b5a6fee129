"""Proves that `[engine]` chooses what it says or is an error, that its files are protected, and what `check` finds.

Mutation that it is shown to catch: a revision that need not be said, a token file that a call may change.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("opa_client")

from interlock import Call, Conversation, Interlock, MemoryJournal
from interlock.cli import cli
from interlock.errors import Misconfigured
from interlock.model.decisions import ENGINE_ERROR, Verdict
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.fallback import FallbackEngine
from interlock.policy.opa import OpaEngine
from tests.ids import stable
from tests.opa_worlds import BUNDLE, REVISION, StandIn, answer, behaves, said, written
from tests.servers import opa

TOOLS = (
    '[tools.note]\nreturns = []\negress = "none"\n[tools.write_file]\nreturns = []\negress = "none"\neffect = "write"\n'
)
TOOLS += 'destinations = { path = "path" }\n'


def configured(folder: Path, url: str, lines: str = 'revision = "same"\n') -> Path:
    file = folder / "interlock.toml"
    file.write_text(f'version = 1\n[engine]\nkind = "opa"\nurl = "{url}"\n{lines}\n{TOOLS}')
    return file


def call(lock: Interlock) -> Any:
    return lock.guard(Conversation.new()).call("note", {}, run=lambda: "noted")


def test_it_is_asked(tmp_path: Path) -> None:
    with StandIn() as server:
        lock = Interlock.load(configured(tmp_path, server.url()), journal=MemoryJournal())
        decision = call(lock).decision
        assert (decision.verdict, decision.engine, decision.revision) == (Verdict.ALLOW, "opa", REVISION)
        assert isinstance(lock.engine, OpaEngine)
        assert lock.reload() == REVISION
        assert call(lock).decision.engine == "opa"
        assert server.asked == 2


def test_what_it_said_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with StandIn() as server:
        lock = Interlock.load(configured(tmp_path, server.url(), 'revision = "r1"\n'), journal=MemoryJournal())
        with caplog.at_level(logging.WARNING, logger="interlock"):
            assert call(lock).decision.code == ENGINE_ERROR
        assert "kind='wrong_revision'" in caplog.text


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("", "which revision may answer"),
        ('revision = "same"\nrevision_at_least = "r1"\n', "which revision may answer"),
        ('revision_at_least = "stable"\n', "holds no number"),
        ('revision = "same"\ntimeout = 3\n', "timeout"),
        ('revision = "same"\ndeadline = 0\n', "deadline"),
        ('revision = "same"\ndeadline = inf\n', "deadline"),
        ('revision = "same"\ndeadline = nan\n', "deadline"),
        ('revision = "same"\nretries = -1\n', "retries"),
        ('revision = "same"\ndecision_log = "yes"\n', "decision_log"),
        ('revision = "same"\nfallback = "allow"\n', "fallback"),
        ('revision = "any"\nfallback = "embedded"\n', 'revision = "same"'),
        ('revision_at_least = "r1"\nfallback = "embedded"\n', 'revision = "same"'),
        ('revision = "r1"\nfallback = "embedded"\n', 'revision = "same"'),
        ('revision = "same"\ntoken_file = "not there"\n', r"engine\.token_file"),
        ('revision = "same"\nca_file = "ca.pem"\n', "no TLS"),
        ('revision = "same"\nentrypoint = "a/b"\n', r"engine\.entrypoint"),
    ],
    ids=stable,
)
def test_what_does_not_load(tmp_path: Path, lines: str, problem: str) -> None:
    with pytest.raises(Misconfigured, match=problem):
        Interlock.load(configured(tmp_path, "http://localhost:8181", lines), journal=MemoryJournal())


def test_an_unknown_kind(tmp_path: Path) -> None:
    file = tmp_path / "interlock.toml"
    for engine in ('kind = "opaa"', 'kind = "embedded"\nurl = "http://localhost"'):
        file.write_text(f"version = 1\n[engine]\n{engine}\n{TOOLS}")
        with pytest.raises(Misconfigured, match="engine"):
            Interlock.load(file, journal=MemoryJournal())
    file.write_text(f'version = 1\n[engine]\nkind = "embedded"\n{TOOLS}')
    assert isinstance(Interlock.load(file, journal=MemoryJournal()).engine, EmbeddedEngine)


def test_its_files_are_the_operators(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    lines = 'revision = "same"\ntoken_file = "token"\nfallback = "embedded"\n'
    lock = Interlock.load(configured(tmp_path, "http://127.0.0.1:1", lines), journal=MemoryJournal())
    assert isinstance(lock.engine, FallbackEngine)
    guard = lock.guard(Conversation.new())
    decision = guard.preview(Call("write_file", {"path": str(tmp_path / "token")}))
    assert (decision.code, decision.engine) == ("control_plane", "embedded (refused)")
    assert guard.preview(Call("write_file", {"path": str(tmp_path / "other")})).code != "control_plane"


def test_a_reload_that_fails_leaves_what_was(tmp_path: Path) -> None:
    with StandIn() as server:
        lock = Interlock.load(configured(tmp_path, server.url()), journal=MemoryJournal())
        configured(tmp_path, "nowhere")
        with pytest.raises(Misconfigured):
            lock.reload()
        assert call(lock).verdict is Verdict.ALLOW


def checked(file: Path, *options: str) -> tuple[int, str, Any]:
    shown = CliRunner().invoke(cli, ["check", str(file), *options], env={"COLUMNS": "200"})
    data = CliRunner().invoke(cli, ["check", str(file), "--json", *options])
    return shown.exit_code, " ".join(shown.output.split()), json.loads(data.stdout)


def test_check_says_what_it_found(tmp_path: Path) -> None:
    """Out, wrong, and answering otherwise than the policies here."""
    file = configured(tmp_path, "http://127.0.0.1:1")
    code, text, data = checked(file)
    assert (code, data["loads"]) == (0, True)
    assert "refused: OPA at http://127.0.0.1:1" in text
    assert data["findings"][0]["rule"] == "engine"
    assert checked(file, "--strict")[0] == 1
    with StandIn(lambda connection: connection.request() and connection.send(answer({}))) as server:
        assert "undefined: OPA at" in checked(configured(tmp_path, server.url()))[1]
    with StandIn(behaves) as server:  # which allows everything
        code, text, data = checked(configured(tmp_path, server.url()))
        assert "disagrees: the sample 'every leg'" in text
        assert (data["engine"]["version"], data["engine"]["logged"]) == ("1.22.3", True)
    assert checked(configured(tmp_path, "nowhere"))[0] == 2
    assert said()["result"]


@pytest.mark.opa
def test_check_of_the_real_server(tmp_path: Path) -> None:
    with opa("-b", str(written(BUNDLE, tmp_path / "bundle"))) as server:
        code, text, data = checked(configured(tmp_path, server.url), "--strict")
        assert f"at {server.url} answers from {REVISION}, without a decision log" in text
        found = data["engine"]
        assert (code, found["problems"], found["revision"], found["logged"]) == (0, [], REVISION, False)
        assert found["version"].startswith("1.")
