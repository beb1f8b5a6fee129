"""Proves what `interlock bundle` prints and with which code it ends; what a bundle is stands in test_bundles.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interlock.cli import cli
from tests.policies.bundling import HOURS, OFFICE, SCHEMA, own_bundle, pair, plain, shelf

CONFIGURATION = """version = 1
policies = ["rules"]

[settings]
leak_guard = "ask"

[settings.controls]
quiet = "blind"
"""


@pytest.fixture(autouse=True)
def _a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules").mkdir()
    for name, text in {"office.rego": OFFICE, "hours.rego": HOURS, "settings.schema.json": SCHEMA}.items():
        Path("rules", name).write_text(text)
    Path("interlock.toml").write_text(CONFIGURATION)
    for kind in ("RS", "RS-other"):
        Path(f"{kind}.private").write_bytes(pair(kind)[0])
        Path(f"{kind}.pem").write_bytes(pair(kind)[1])


def ran(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, ["bundle", *words])
    assert done.exit_code == code, done.output
    return done


def told(*words: str, code: int = 0) -> Any:
    return json.loads(ran(*words, "--json", code=code).stdout)


def test_build_sign_verify_inspect_push() -> None:
    built = told("build", "-o", "b.tar.gz")
    assert built["revision"] == own_bundle().revision
    assert Path("b.tar.gz").read_bytes() == plain()
    assert not told("build", "interlock.toml", "-o", "b.tar.gz")["changed"]
    assert told("inspect", "b.tar.gz")["signature"] == "none"
    told("sign", "b.tar.gz", "--key-file", "RS.private", "--key-id", "k", "-o", "s.tar.gz")
    signed = Path("s.tar.gz").read_bytes()
    told("sign", "s.tar.gz", "--key-file", "RS.private", "--key-id", "k")
    assert Path("s.tar.gz").read_bytes() == signed
    assert told("verify", "s.tar.gz", "--key-file", "RS.pem")["verified"]
    found = told("inspect", "s.tar.gz", "--key-file", "RS.pem")
    assert (found["signature"], found["revision"]) == ("good", own_bundle().revision)
    assert {"code": "office", "title": "Office hours", "shipped": False} in found["controls"]
    assert found["settings"]["controls"] == {"quiet": "blind"}
    assert told("inspect", "s.tar.gz")["signature"] == "signed, not verified"
    Path("www").mkdir()
    assert told("push", "s.tar.gz", "www", "--key-file", "RS.pem")["changed"]
    assert not told("push", "s.tar.gz", "www/s.tar.gz", "--key-file", "RS.pem")["changed"]
    with shelf() as server:
        assert told("push", "s.tar.gz", server.url(), "--key-file", "RS.pem")["changed"]
        assert server.held["/bundle.tar.gz"] == signed
    for words in (("inspect", "s.tar.gz"), ("verify", "s.tar.gz", "--key-file", "RS.pem")):
        assert own_bundle().revision in ran(*words).stdout


def test_options_instead_of_a_configuration() -> None:
    Path("s.yaml").write_text("leak_guard: ask\ncontrols: {quiet: blind}\n")
    assert told("build", "--policies", "rules", "--settings", "s.yaml")["revision"] == own_bundle().revision
    assert told("build", "--preset", "lockdown")["revision"] != told("build", "--preset", "strict")["revision"]
    assert told("inspect", "bundle.tar.gz")["settings"]["preset"] == "strict"


def test_a_promise_that_is_broken_is_1() -> None:
    told("build", "-o", "b.tar.gz")
    told("sign", "b.tar.gz", "--key-file", "RS.private")
    other = told("verify", "b.tar.gz", "--key-file", "RS-other.pem", code=1)
    assert not other["verified"]
    assert "not one by RS-other.pem" in other["problem"]
    assert told("inspect", "b.tar.gz", "--key-file", "RS-other.pem", code=1)["signature"] == "bad"
    assert "not verified" in ran("verify", "b.tar.gz", "--key-file", "RS.pem", "--scope", "x", code=1).stdout
    told("build", "-o", "b.tar.gz")
    assert "not signed" in told("verify", "b.tar.gz", "--key-file", "RS.pem", code=1)["problem"]


NOTHING = {
    "no such bundle": ("inspect", "none.tar.gz"),
    "no bundle at all": ("inspect", "RS.pem"),
    "no such key": ("verify", "b.tar.gz", "--key-file", "none"),
    "a private key to verify": ("verify", "b.tar.gz", "--key-file", "RS.private"),
    "a public key to sign": ("sign", "b.tar.gz", "--key-file", "RS.pem"),
    "no word about the signature": ("push", "b.tar.gz", "p.tar.gz"),
    "two words about the signature": ("push", "b.tar.gz", "p.tar.gz", "--key-file", "RS.pem", "--unsigned"),
    "unsigned, though it is signed": ("push", "s.tar.gz", "p.tar.gz", "--unsigned"),
    "signed by another": ("push", "s.tar.gz", "p.tar.gz", "--key-file", "RS-other.pem"),
    "signed by nobody": ("push", "b.tar.gz", "p.tar.gz", "--key-file", "RS.pem"),
    "a configuration and options": ("build", "interlock.toml", "--preset", "strict"),
    "two presets": ("build", "--settings", "lockdown.toml", "--preset", "strict"),
    "settings that are no file": ("build", "--settings", "none.toml"),
    "settings of no known form": ("build", "--settings", "RS.pem"),
    "an unknown preset": ("build", "--preset", "loose"),
    "a control that does not load": ("build", "--policies", "bad"),
    "a bundle of a bundle": ("build", "bundled.toml"),
}


@pytest.fixture
def _prepared() -> None:
    ran("build", "-o", "b.tar.gz")
    ran("sign", "b.tar.gz", "--key-file", "RS.private", "-o", "s.tar.gz")
    Path("lockdown.toml").write_text('preset = "lockdown"\n')
    Path("bundled.toml").write_text('version = 1\n[bundle]\nfile = "b.tar.gz"\n')
    Path("bad").mkdir()
    Path("bad/system.rego").write_text("package system.authz\n\nallow := true\n")


@pytest.mark.usefixtures("_prepared")
def test_what_can_not_be_done_is_2_and_leaves_nothing() -> None:
    before = {one.name: one.read_bytes() for one in Path().iterdir() if one.is_file()}
    for what, words in NOTHING.items():
        done = ran(*words, code=2)
        assert done.stderr.startswith("interlock: "), what
        assert not done.stdout
        assert {one.name: one.read_bytes() for one in Path().iterdir() if one.is_file()} == before, what


@pytest.mark.usefixtures("_prepared")
def test_what_would_not_load_is_not_signed_or_pushed() -> None:
    from interlock.policy.archives import files_of, written

    files = files_of(plain(), "it")
    files.pop("interlock/controls/trifecta/trifecta.rego")
    Path("soft.tar.gz").write_bytes(written(files))
    for words in (
        ("sign", "soft.tar.gz", "--key-file", "RS.private"),
        ("push", "soft.tar.gz", "p.tar.gz", "--unsigned"),
    ):
        assert "trifecta.rego" in ran(*words, code=2).stderr
    assert not Path("p.tar.gz").exists()
    found = told("inspect", "soft.tar.gz", code=1)
    assert "trifecta.rego" in found["problem"]
    assert "trifecta.rego" in ran("inspect", "soft.tar.gz", code=1).stdout
