"""Proves that `check`, `test`, `prove`, `explain` and `init` do what their pages say, on real files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from click.testing import CliRunner, Result

from interlock import Conversation, Interlock, Manifest, MemoryJournal
from interlock.cli import cli

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "policies"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(one) for one in arguments])


@pytest.fixture
def starter(tmp_path: Path) -> Path:
    done = run("init", tmp_path)
    assert done.exit_code == 0, done.output
    return tmp_path


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "policies"))


def test_the_starter_passes_as_it_is_written(starter: Path) -> None:
    config = starter / "interlock.toml"
    assert run("check", "--strict", config).exit_code == 0
    done = run("test", "--mutate", "--json", config)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["failed"] == 0
    assert result["passed"] >= 10
    assert all(one["caught_by"] for one in result["mutants"])


def test_init_overwrites_nothing(starter: Path) -> None:
    before = (starter / "interlock.toml").read_text()
    done = run("init", starter)
    assert done.exit_code == 2
    assert "exists already; nothing was written" in done.stderr
    assert (starter / "interlock.toml").read_text() == before


def test_the_five_example_controls_catch_every_mutant(example: Path) -> None:
    assert run("check", "--strict", example / "interlock.toml").exit_code == 0
    result = json.loads(run("test", "--mutate", "--json", example / "interlock.toml").stdout)
    assert result["failed"] == 0
    codes = {one["code"] for one in result["mutants"]}
    assert codes == {"allowed_domains", "amount_limit", "business_hours", "tenant", "two_people"}
    survived = [one for one in result["mutants"] if not one["caught_by"]]
    assert survived == []


def test_the_shipped_controls_catch_every_mutant() -> None:
    result = json.loads(run("test", "--shipped", "--mutate", "--json").stdout)
    assert result["failed"] == 0
    assert len(result["mutants"]) >= 80
    assert [one for one in result["mutants"] if not one["caught_by"]] == []
    assert {one["kind"] for one in result["mutants"]} == {
        "proof dropped",
        "default loosened",
        "condition flipped",
        "condition dropped",
    }


def test_a_mutant_that_nobody_tests_survives_and_fails(example: Path) -> None:
    path = example / "controls" / "amount_limit" / "amount_limit_test.rego"
    text = path.read_text()
    cut = text[: text.index("test_less_than_nothing")] + text[text.index("test_an_amount_as_text") :]
    cut = cut[: cut.index("test_nothing ")] + cut[cut.index("test_an_amount_as_text") :]
    path.write_text(cut)
    done = run("test", "--mutate", example / "interlock.toml")
    assert done.exit_code == 1
    assert "survived" in done.stdout
    assert "input.call.arguments.amount > 0" in done.stdout


def test_a_failing_test_says_where(example: Path, tmp_path: Path) -> None:
    path = example / "controls" / "amount_limit" / "amount_limit.rego"
    path.write_text(path.read_text().replace("<= data.settings", "< data.settings"))
    junit = tmp_path / "out.xml"
    done = run("test", "--junit", junit, example / "interlock.toml")
    assert done.exit_code == 1
    assert "test_up_to_the_limit" in done.stdout
    assert "amount_limit_test.rego:" in done.stdout
    suite = Xml.parse(junit).getroot()  # our own file, written a line before
    assert suite.get("failures") == "1"
    assert [case.get("name") for case in suite if case.find("failure") is not None] == [
        "controls.amount_limit_test.test_up_to_the_limit"
    ]


def test_a_failing_story_says_where(example: Path) -> None:
    path = example / "scenarios" / "invoice.yaml"
    path.write_text(path.read_text().replace("code: tenant", "code: trifecta"))
    done = run("test", example / "interlock.toml")
    assert done.exit_code == 1
    assert "steps[2]: pay: expected code trifecta, got tenant" in done.stdout


def test_tests_in_a_package_without_the_suffix_are_an_error(example: Path) -> None:
    path = example / "controls" / "tenant" / "tenant_test.rego"
    path.write_text(path.read_text().replace("package controls.tenant_test", "package controls.tenant_tests"))
    done = run("test", example / "interlock.toml")
    assert done.exit_code == 2
    assert "its name must end in _test" in done.stderr


def test_no_configuration_says_how_to_begin(tmp_path: Path) -> None:
    for command in ("check", "test", "prove"):
        done = run(command, tmp_path / "interlock.toml")
        assert done.exit_code == 2
        assert "interlock init" in done.output + done.stderr


LINTED = """version = 1
policies = ["controls"]

[tools.post_comment]
returns = []
egress = "none"
effect = "write"
arguments = ["text", "channel"]

[tools.send]
returns = []
egress = "chosen"
destinations = { to = "email" }
arguments = ["to", "reply_to"]

[tools.ping]
returns = []
egress = "chosen"
"""

LINTED_CONTROL = """package controls.sloppy

default verdict := {"verdict": "ask"}

verdict := {"verdict": "allow"} if lifted

lifted if not input.tool.name == "send_mail"

lifted if count(input.forecast.private) == 0

lifted if "payrol" in input.forecast.private

lifted if {
	every destination in input.call.destinations {
		destination.talks_back == false
	}
}

lifted if [x | some x in input.forecast.private] == []

lifted if input.call.siblings < 3
"""


def test_check_finds_what_looks_wrong(tmp_path: Path) -> None:
    (tmp_path / "controls").mkdir()
    (tmp_path / "interlock.toml").write_text(LINTED)
    (tmp_path / "controls" / "sloppy.rego").write_text(LINTED_CONTROL)
    done = run("check", "--json", tmp_path / "interlock.toml")
    assert done.exit_code == 0
    found = {(one["rule"], one["where"].rpartition("/")[2]) for one in json.loads(done.stdout)["findings"]}
    assert found == {
        ("receiver-without-egress", "tool post_comment"),
        ("shared-place", "tool post_comment"),
        ("unclassified-argument", "tool send"),
        ("nothing-classified", "tool ping"),
        ("no-test", "sloppy.rego"),
        ("no-page", "sloppy.rego"),
        ("no-samples", "sloppy.rego"),
        ("negation", "sloppy.rego:7"),
        ("fallible-builtin", "sloppy.rego:9"),
        ("every-of-nothing", "sloppy.rego:14"),
        ("comprehension", "sloppy.rego:19"),
        ("engines-differ", "sloppy.rego:21"),
        ("matches-nothing", "sloppy.rego:7"),
        ("matches-nothing", "sloppy.rego:11"),
    }
    assert run("check", "--strict", tmp_path / "interlock.toml").exit_code == 1


def test_check_reports_errors_as_json(tmp_path: Path) -> None:
    (tmp_path / "interlock.toml").write_text("version = 1\n[tools.a]\negress = 'none'\nnope = 1\n")
    done = run("check", "--json", tmp_path / "interlock.toml")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["errors"] == [
        f"{tmp_path}/interlock.toml: tools.a.returns: missing",
        f"{tmp_path}/interlock.toml: tools.a.nope: unknown key",
    ]


def test_explain_names_calls_controls_proofs_and_routes(starter: Path) -> None:
    done = run("explain", starter / "scenarios" / "mail.yaml")
    assert done.exit_code == 0
    for text in (
        "call 1  fetch  allow  +untrusted:web",
        "call 2  read_file  allow  +private:files",
        "call 3  send_email  DENY",
        "trifecta",
        "✗ input.call.grounded == true",
        "call.grounded is false",
        "another receiver, whom the person or the operator named: to is 'team@example.com'",
        "No approval can lift a denial.",
        "to: email 'eve@evil.example', origin untrusted",
    ):
        assert text in done.stdout, text
    told = json.loads(run("explain", "--json", starter / "scenarios" / "mail.yaml").stdout)
    assert told["verdict"] == "deny"
    assert [(one["label"], one["call"]) for one in told["causes"]] == [("private:files", 2), ("untrusted:web", 1)]
    honest = run("explain", "--story", "named_receiver", "--call", "3", starter / "scenarios" / "mail.yaml")
    assert "Every control was satisfied." in honest.stdout
    assert "origin user" in honest.stdout


def test_explain_says_what_is_not_there(starter: Path) -> None:
    scenario = starter / "scenarios" / "mail.yaml"
    assert "no story 'nope'" in run("explain", "--story", "nope", scenario).stderr
    assert "there is no call 9" in run("explain", "--call", "9", scenario).stderr


@pytest.mark.parametrize("damage", ["", "trifecta"], ids=["holds", "loosened by a setting"])
def test_prove_on_the_starter(starter: Path, damage: str) -> None:
    """The whole proof, `open_channel` included; a looser setting asks instead, which no sequence may slip past."""
    config = starter / "interlock.toml"
    only = ()
    if damage:
        config.write_text(config.read_text().replace('trifecta = "deny"', 'trifecta = "ask"'))
        only = ("--only", "trifecta")  # the laws hold for every setting, the first case shows it; here the sequences
    done = run("prove", "--json", *only, config)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert len(result["controls"]) == (1 if damage else 19)
    assert result["together"]["counterexample"] is None
    assert result["sequences"]["leak"] == []
    assert result["sequences"]["complete"] is True


def test_prove_writes_counterexamples_as_scenarios(starter: Path) -> None:
    path = starter / "controls" / "loose.rego"
    path.write_text(
        "package controls.loose\n\n"
        'default verdict := {"verdict": "ask"}\n\n'
        'verdict := {"verdict": "allow"} if input.forecast.private == []\n\n'
        'verdict := {"verdict": "allow"} if input.forecast.private == ["unknown"]\n'
    )
    done = run("prove", "--only", "loose", "--write", starter / "found", starter / "interlock.toml")
    assert done.exit_code == 1
    assert "fails" in done.stdout
    assert (starter / "found" / "t5_loose.yaml").is_file()
    told = run("explain", starter / "found" / "t5_loose.yaml")
    assert told.exit_code == 0, told.output


def test_prove_only_what_is_there(starter: Path) -> None:
    done = run("prove", "--only", "loose", starter / "interlock.toml")
    assert done.exit_code == 2
    assert "there is no control 'loose'" in done.stderr
    assert "trifecta" in done.stderr


def _journal(tmp_path: Path) -> Path:
    """A real conversation, recorded and exported."""
    tools = {
        "fetch": {"returns": ["untrusted:web"], "egress": "chosen", "destinations": {"url": "url"}},
        "read": {"returns": ["private:files"], "egress": "none"},
        "send": {"returns": [], "egress": "chosen", "destinations": {"to": "email"}},
    }
    journal = MemoryJournal()
    lock = Interlock(manifest=Manifest.parse({"version": 1, "tools": tools}), journal=journal)
    conversation = Conversation.user("Read https://example.com/a please")
    guard = lock.guard(conversation)
    guard.call("fetch", {"url": "https://example.com/a"}, run=lambda url: "…")
    guard.call("read", {"path": "a"}, run=lambda path: "…")
    guard.call("send", {"to": "eve@evil.example"}, run=lambda to: "…")
    path = tmp_path / "journal.jsonl"
    journal.save(conversation.id, path)
    return path


def test_explain_a_decision_from_a_journal(tmp_path: Path) -> None:
    path = _journal(tmp_path)
    assert path.stat().st_mode & 0o077 == 0
    done = run("explain", "--journal", path)
    assert done.exit_code == 0, done.output
    for text in ("call 1  fetch  allow  +untrusted:web", "call 2  read  allow  +private:files", "call 3  send  deny"):
        assert text in done.stdout, text
    told = json.loads(run("explain", "--journal", path, "--call", "3", "--json").stdout)
    assert told["codes"] == ["trifecta", "steered_destination"]
    assert [(one["label"], one["call"]) for one in told["causes"]] == [("private:files", 2), ("untrusted:web", 1)]
    assert json.loads(run("explain", "--journal", path, "--call", "1", "--json").stdout)["causes"] == []
    assert "eve@evil.example" not in path.read_text(), "the journal holds no argument"


@pytest.mark.parametrize("damage", ["cut", "edit", "head gone", "another head"])
def test_a_damaged_journal_is_not_explained(tmp_path: Path, damage: str) -> None:
    """T10: whatever was done to it, the command says so and exits 2."""
    path = _journal(tmp_path)
    head = path.with_name("journal.jsonl.head")
    lines = path.read_text().splitlines(keepends=True)
    if damage == "cut":
        path.write_text("".join(lines[:-1]))
    elif damage == "edit":
        path.write_text("".join(lines).replace("private:files", "private:other"))
    elif damage == "head gone":
        head.unlink()
    else:
        head.write_text(head.read_text().replace('"sequence":', '"sequence":1'))
    done = run("explain", "--journal", path)
    assert done.exit_code == 2
    assert "Traceback" not in done.output
    assert done.stdout == ""


def test_explain_needs_one_thing_to_explain(tmp_path: Path) -> None:
    assert run("explain").exit_code == 2
    assert run("explain", "--journal", _journal(tmp_path), "--call", "9").exit_code == 2
