"""Wrong files came out as ``RecursionError``, ``ValueError`` or ``AttributeError``, or took minutes, or were accepted.

A host that catches ``Misconfigured`` around a reload, and keeps what was in force, crashed instead: deep METADATA,
dates and integers that no date or integer can hold, aliases that unfold to billions, keys of a default that are no
text or stand twice, ``version: true``. Now every wrong file is a ``Misconfigured`` that names it, at once.
Mutations that this file catches: ``RecursionError`` or ``ValueError`` of the readers not translated; aliases read;
``Literal[1]`` for the version; the check for keys that stand twice in ``constant`` left out.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from interlock import Interlock, Manifest
from interlock.errors import InterlockError, ManifestError, Misconfigured, PolicyError
from interlock.model.markup import Syntax
from tests.regressions.stage import control, decided, interlock, policies

# A million items, so that a reader that unfolds them fails here and does not hang.
BOMB = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
for _one, _other in zip("bcdef", "abcde", strict=True):
    BOMB.append(f"{_one}: &{_one} [{', '.join([f'*{_other}'] * 10)}]")

METADATA = {
    "deep": f"title: {'[' * 600}{']' * 600}",
    "deep mapping": "title: " + "{a: " * 600 + "1" + "}" * 600,
    "a date that is none": "title: 2020-13-45",
    "a long integer": f"title: {'9' * 6000}",
    "an alias bomb": "\n".join([*BOMB, "title: *f"]),
    "an alias of itself": "title: &a [*a]",
    "a tag": "title: !python/object:os.system x",
    "a key that stands twice": "title: a\ntitle: b",
    "a list": "- title",
    "a control character": "title: a\x01b",
}


@pytest.mark.parametrize("name", METADATA)
def test_metadata_that_cant_be_read_is_a_policy_error(name: str, tmp_path: Path) -> None:
    block = "".join(f"# {line}\n" for line in METADATA[name].split("\n"))
    mine = policies(tmp_path, f"# METADATA\n{block}{control('mine')}")
    began = time.perf_counter()
    with pytest.raises(PolicyError):
        interlock(policies=mine)
    assert time.perf_counter() - began < 10


DEFAULTS = {
    "a list as key": '{["verdict"]: "deny"}',
    "an object as key": '{{"a": 1}: 1, "verdict": "deny"}',
    "a set as key": '{{1}: 1, "verdict": "deny"}',
    "a key that stands twice": '{"verdict": "allow", "verdict": "deny"}',
    "the same the other way round": '{"verdict": "deny", "verdict": "allow"}',
    "a number": "1",
    "a set": '{"verdict"}',
    "computed": '{"verdict": input.mode}',
    "a list": '[{"verdict": "deny"}]',
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_that_is_no_objection_is_a_policy_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError):
        interlock(policies=policies(tmp_path, control("mine", default=DEFAULTS[name])))


TOOL = "tools:\n  a: {returns: [], egress: none"
MANIFESTS: list[tuple[str, Syntax]] = [
    (f"version: 1\n{TOOL}, description: 2020-13-45}}\n", "yaml"),
    (f"version: 1\n{TOOL}, description: {'9' * 6000}}}\n", "yaml"),
    (f"version: 1\nx: {'[' * 600}{']' * 600}\n", "yaml"),
    ("\n".join(["version: 1", *BOMB]), "yaml"),
    (f"version: true\n{TOOL}}}\n", "yaml"),
    (f"version: 1.0\n{TOOL}}}\n", "yaml"),
    (f"version: '1'\n{TOOL}}}\n", "yaml"),
    (f"version: 1\n{TOOL}, egress: chosen}}\n", "yaml"),
    ("- version: 1\n", "yaml"),
    ("", "yaml"),
    ("version: 1\ntools: {1: {returns: [], egress: none}}\n", "yaml"),
    ("version: 1\ntools: {[a]: {returns: [], egress: none}}\n", "yaml"),
    ("? {a: b}\n: c\n", "yaml"),
    ("1: 2\n", "yaml"),
    (f"version = 1\nx = {'9' * 5000}\n", "toml"),
    (f"version = {'9' * 5000}\n", "toml"),
    (f"version = 1\nx = {'[' * 5000}{']' * 5000}\n", "toml"),
    ("version = true\n", "toml"),
    ("version = 1\nversion = 1\n", "toml"),
    ("version = 1\nx = 2020-13-45\n", "toml"),
    ("version = 1\n[tools.a]\nreturns = []\negress = 2020-01-01\n", "toml"),
    ("version = nan\n", "toml"),
]


@pytest.mark.parametrize(("text", "syntax"), MANIFESTS, ids=[f"{syntax}-{text[:24]!a}" for text, syntax in MANIFESTS])
def test_a_manifest_that_is_none_is_a_manifest_error(text: str, syntax: Syntax, tmp_path: Path) -> None:
    began = time.perf_counter()
    with pytest.raises(ManifestError):
        Manifest.loads(text, syntax=syntax)
    assert time.perf_counter() - began < 10
    file = tmp_path / f"interlock.{syntax}"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(Misconfigured) as caught:
        Interlock.load(file)
    assert str(file) in str(caught.value)


def test_a_reload_of_a_wrong_file_keeps_what_was_in_force(tmp_path: Path) -> None:
    mine = policies(tmp_path, control("mine"))
    lock = interlock(policies=mine)
    before = lock.engine.revision
    for block in METADATA.values():
        policies(tmp_path, "# METADATA\n" + "".join(f"# {line}\n" for line in block.split("\n")) + control("mine"))
        with pytest.raises(InterlockError):
            lock.reload()
        assert lock.engine.revision == before


def test_honest_metadata_is_read(tmp_path: Path) -> None:
    text = "# METADATA\n# title: Mine\n# description: 2020-12-24\n# custom: {code: mine, model: Not today.}\n"
    decision = decided("calc", {}, policies=policies(tmp_path, text + control("mine")))
    assert decision.reasons[0].for_model == "Not today."
    assert decision.reasons[0].for_person == "2020-12-24"


def test_honest_a_default_with_remedies_is_an_objection(tmp_path: Path) -> None:
    text = control("mine", default='{"verdict": "ask", "remedies": ["wait"]}')
    decision = decided("calc", {}, policies=policies(tmp_path, text))
    assert decision.candidates == ("wait",)
