"""Proves that the shipped policies and their tests pass under OPA's own tools: tests, strict check, format, Regal.

Regal is not to be had everywhere; it is the one of `INTERLOCK_TEST_REGAL`, or `regal` on PATH. In an empty Go module,
`go get github.com/styrainc/regal@v0.35.1 && go build github.com/styrainc/regal` makes it in a minute or two. Its rules
that are off, and why, stand in `.regal/config.yaml`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from interlock.policy.rego_tests import find_tests, read_tests

ROOT = Path(__file__).resolve().parents[2]


def ran(program: Path | str, *words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(program), *words], capture_output=True, text=True, check=False, timeout=120, cwd=folder)


@pytest.mark.opa
def test_every_rego_test_passes(opa_binary: Path) -> None:
    done = ran(opa_binary, "test", "--bundle", "policies", "--format", "json")
    results = json.loads(done.stdout)
    assert not [one["name"] for one in results if one.get("fail") or one.get("error") or one.get("skip")]
    assert done.returncode == 0
    ours = {(f"data.{one.package}", one.name) for one in find_tests(read_tests(ROOT / "policies"))}
    assert {(one["package"], one["name"]) for one in results} == ours
    assert len(ours) > 150


@pytest.mark.opa
def test_a_test_that_fails_is_seen(opa_binary: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "policies", tmp_path / "policies")
    control = tmp_path / "policies/interlock/controls/trifecta/trifecta.rego"
    control.write_text(
        control.read_text().replace('default verdict := {"verdict": "deny"', 'default verdict := {"verdict": "ask"')
    )
    assert ran(opa_binary, "test", "--bundle", "policies", folder=tmp_path).returncode == 2


@pytest.mark.opa
@pytest.mark.parametrize("words", [("check", "--strict", "policies"), ("fmt", "--fail", "--list", "policies")])
def test_checked_and_formatted(opa_binary: Path, words: tuple[str, ...]) -> None:
    done = ran(opa_binary, *words)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.opa
def test_what_is_started_from_is_checked_and_formatted(opa_binary: Path) -> None:
    """The control and its test that `interlock init` writes."""
    for words in (("check", "--strict"), ("fmt", "--fail", "--list")):
        done = ran(opa_binary, *words, *map(str, sorted((ROOT / "interlock/cli/starter").glob("*.rego"))))
        assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_regal_finds_nothing() -> None:
    program = os.environ.get("INTERLOCK_TEST_REGAL") or shutil.which("regal")
    if program is None:
        pytest.skip("there is no Regal: it is not needed, only another opinion on style")
    done = ran(program, "lint", "policies", "--format", "json")
    found = json.loads(done.stdout)
    assert found["violations"] == []
    assert found["summary"]["files_scanned"] >= 37
