"""Case 119: an engine stops reading a text at NUL, so two different values are equal in it.

`ok.example` with NUL and more behind it is taken for `ok.example`, and two keys of which one holds a NUL fall together.
No NUL reaches an engine, in a key or in a value, at any depth, in arguments or in an answer; and the engine that is
shipped does not cut, so the limit is not the only thing that holds. The honest twin is the text without it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import regorus

from interlock.errors import EngineUnavailable, NotCanonical
from interlock.model.answers import parse_answers
from interlock.model.canonical import canonical, parse
from tests.cases.desk import all_allow, did, fresh, got, locked, mine, shared

HOLDING: list[Any] = [
    {"host": "ok.example\0.evil.test"},
    {"host\0": "ok.example"},
    {"to\0x": "eve@evil.test", "to": "kim@corp.example"},
    {"a": [{"b": {"c": ["\0"]}}]},
    {"a": {"\0": 1}},
]


@pytest.mark.parametrize("arguments", HOLDING)
def test_attack_no_nul_reaches_the_engine(tmp_path: Path, arguments: Any) -> None:
    lock = locked(policies=[mine(tmp_path, 'input.call.arguments.host in {"ok.example"}')])
    assert got(did(fresh(lock), "calc", arguments)) == ("deny", "invalid_call")
    with pytest.raises(NotCanonical, match="NUL"):
        canonical(arguments)
    with pytest.raises(NotCanonical, match="NUL"):
        parse(json.dumps(arguments))


def test_attack_nor_comes_one_back() -> None:
    with pytest.raises(EngineUnavailable):
        parse_answers(all_allow()[:-1] + b',"trifecta\\u0000":{"verdict":"allow"}}', shared().engine.controls)
    with pytest.raises(EngineUnavailable):
        parse_answers(all_allow().replace(b'"allow"', b'"allow\\u0000"', 1), shared().engine.controls)


def test_attack_the_shipped_engine_does_not_cut() -> None:
    engine = regorus.Engine()
    engine.add_policy(
        "t.rego",
        'package t\n\nequal := input.host == "ok.example"\n\nmember := input.host in {"ok.example"}\n\n'
        "keys := object.keys(input)\n\nwidth := count(input.host)\n",
    )
    engine.set_input_json(json.dumps({"host": "ok.example\0.evil.test", "host\0": 1}))
    said = {
        name: json.loads(engine.eval_rule_as_json(f"data.t.{name}")) for name in ("equal", "member", "keys", "width")
    }
    assert said == {"equal": False, "member": False, "keys": ["host", "host\0"], "width": 21}


def test_honest_the_text_without_it(tmp_path: Path) -> None:
    lock = locked(policies=[mine(tmp_path, 'input.call.arguments.host in {"ok.example"}')])
    assert did(fresh(lock), "calc", {"host": "ok.example"}).executed
    assert got(did(fresh(lock), "calc", {"host": "ok.example\\0"})) == ("deny", "mine")
