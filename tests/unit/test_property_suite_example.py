"""Proves that the property suite finds the leak of its example quickly, says it in few words, and lets the repair pass.

And that the pytest plugin, which everybody who has Interlock installed loads, is silent unless it is used.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "property_suite"
LEAK = "Conversation.from_messages(messages)"
REPAIR = 'Conversation.resumed(messages, stored["labels"])'
# By its name, whether or not the entry point is installed here.
PLUGIN = ("-p", "no:interlock", "-p", "interlock.testing.plugin")


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest as a stranger runs it: in their folder, with their configuration, every warning an error."""
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers --strict-config\nfilterwarnings = error\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("INTERLOCK_", "PYTEST_"))}
    environment = {**kept, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return tmp_path / "example"


@pytest.fixture(scope="module")
def leaking(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], float]:
    """The example as it stands, and the processor time that it took: cores are shared, and wall time says little."""
    folder = tmp_path_factory.mktemp("leaking") / "example"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    before = os.times()
    run = pytest_in(folder)
    after = os.times()
    return run, after.children_user + after.children_system - before.children_user - before.children_system


def test_the_leak_is_found_quickly_and_told_in_few_words(
    leaking: tuple[subprocess.CompletedProcess[str], float],
) -> None:
    run, seconds = leaking
    assert run.returncode == 1, run.stdout + run.stderr
    assert seconds < 30
    (failure,) = re.findall(r"^E +AssertionError: (check_integration\(Driven\): .*)$", run.stdout, re.MULTILINE)
    assert "the lethal trifecta" in failure
    steps = re.findall(r"^E +(\d)\. (.*)$", run.stdout, re.MULTILINE)
    assert 2 <= len(steps) <= 6, run.stdout
    assert any("stopped and resumed" in step for _, step in steps)
    # The trace is about the agent: no frame and no note of Hypothesis's.
    assert "hypothesis/" not in run.stdout
    assert "contextlib" not in run.stdout


def test_the_trace_on_the_pages_is_the_one_that_is_printed(
    leaking: tuple[subprocess.CompletedProcess[str], float],
) -> None:
    printed = re.findall(r"^E +(.*)$", leaking[0].stdout, re.MULTILINE)
    for page in (EXAMPLE / "README.md", ROOT / "docs" / "property-suite.md"):
        (shown,) = re.findall(r"^```text\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        lines = [line.removeprefix("AssertionError: ") for line in printed]
        assert [line.strip() for line in shown.splitlines()] == lines, page.name


def test_the_repair_passes(example: Path) -> None:
    agent = example / "agent.py"
    text = agent.read_text(encoding="utf-8")
    assert text.count(LEAK) == 1
    agent.write_text(text.replace(LEAK, REPAIR), encoding="utf-8")
    run = pytest_in(example, *PLUGIN)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "check_integration(Driven): T2 T8 T17 held in" in run.stdout


def test_the_page_shows_the_repair() -> None:
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    assert f"-        conversation = {LEAK}\n+        conversation = {REPAIR}\n" in page


# --- the plugin -------------------------------------------------------------------------------------------------------


def test_the_plugin_is_registered() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.pytest11]\ninterlock = "interlock.testing.plugin"\n' in text


def test_the_entry_point_loads_it(tmp_path: Path) -> None:
    """As of an installed package, in a project that makes every warning an error."""
    package = tmp_path / "installed-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: installed\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[pytest11]\ninterlock = interlock.testing.plugin\n")
    (tmp_path / "test_other.py").write_text(
        "def test_other(request):\n    assert request.config.pluginmanager.hasplugin('interlock')\n"
    )
    run = pytest_in(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "interlock" not in run.stdout


def test_the_plugin_loads_nothing_and_says_nothing_unless_it_is_used(tmp_path: Path) -> None:
    heavy = (
        "hypothesis",
        "pydantic",
        "interlock.testing.conformance",
        "interlock.testing.traces",
        "interlock.policy.embedded_",
    )
    (tmp_path / "test_other.py").write_text(
        "import sys\n\n\ndef test_other():\n"
        "    assert 'interlock.testing.plugin' in sys.modules\n"
        f"    assert not [name for name in {heavy!r} if name in sys.modules]\n"
    )
    run = pytest_in(tmp_path, *PLUGIN, "-p", "no:hypothesispytest")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "interlock" not in run.stdout


def test_the_plugin_gives_the_checks_and_the_number_of_examples(tmp_path: Path) -> None:
    (tmp_path / "test_checks.py").write_text(
        "from interlock import Conversation, MemoryJournal, Session\n"
        "from interlock.testing.toolbox import reference\n\n\n"
        "def test_all(interlock_checks):\n"
        "    assert interlock_checks.conversation(Conversation.new).examples < 20\n"
        "    assert interlock_checks.session(Session.create, Session.load).examples < 20\n"
        "    assert interlock_checks.journal(MemoryJournal, examples=3).examples < 20\n"
        "    interlock_checks.engine(reference())\n"
    )
    run = pytest_in(tmp_path, *PLUGIN, "--interlock-examples", "5")
    assert run.returncode == 0, run.stdout + run.stderr
    shown = re.findall(r"^check_(\w+)\(.*held in", run.stdout, re.MULTILINE)
    assert shown == ["conversation", "session", "journal", "engine"]


def test_a_number_of_examples_that_shows_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("def test_other():\n    pass\n")
    run = pytest_in(tmp_path, *PLUGIN, "--interlock-examples", "0")
    assert run.returncode == 4
    assert "--interlock-examples" in run.stderr
