"""Wrong configuration left ``Interlock`` with errors that were not ``Misconfigured``, or was not noticed.

A METADATA block with a number of thousands of digits, settings with integers beyond 2**53, sets, lone surrogates or
NaN, and a settings schema that was no object ended in ``ValueError``, ``TypeError`` or ``AttributeError``; NaN made a
limit that every comparison passes. And of a settings schema only the properties were read: ``required``,
``additionalProperties`` and ``$defs`` at its root did nothing. Now all of them are read, and each error has its place.
Mutations that this file catches: ``str`` in place of ``_text``; the code of METADATA shown in the error; ``check`` left
out of ``user_settings``; a schema's own type or its properties' types unchecked; each property checked for itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interlock import Interlock, MemoryJournal
from interlock.errors import Misconfigured, PolicyError, SettingsError
from tests.regressions.stage import control, decided, interlock, policies, says

DIGITS = "0x" + "f" * 6000
ANY = '{"type": "object", "properties": {"limit": {}}}'
LIMITED = control("fine", 'verdict := {"verdict": "allow"} if data.settings.controls.limit == 5')


def _with_schema(folder: Path, schema: str, rules: str = LIMITED) -> list[Path]:
    policies(folder, schema, "settings.schema.json")
    return policies(folder, rules)


@pytest.mark.parametrize(
    "block", [f"title: {DIGITS}", f"description: {DIGITS}", f"custom: {{model: {DIGITS}}}", f"custom: {DIGITS}"]
)
def test_a_huge_number_in_metadata_is_no_text(block: str, tmp_path: Path) -> None:
    decision = decided("calc", {}, policies=policies(tmp_path, f"# METADATA\n# {block}\n{control('mine')}"))
    assert [reason.for_model for reason in decision.reasons] == ["The operator's control mine objects."]


@pytest.mark.parametrize(
    "block", [f"custom: {{code: {DIGITS}}}", "title: " + "9" * 6000, "title: 2020-99-99", "custom: {code: [1]}"]
)
def test_metadata_that_is_wrong_is_refused(block: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="METADATA"):
        interlock(policies=policies(tmp_path, f"# METADATA\n# {block}\n{control('mine')}"))


@pytest.mark.parametrize(
    "value",
    [
        10**400,
        2**53 + 1,
        {1},
        {"a": {1}},
        {1: 2},
        (1, 2),
        b"x",
        "\ud800",
        {"\ud800": 1},
        "a\x00b",
        float("nan"),
        [float("inf")],
        object(),
    ],
)
def test_a_setting_that_is_no_json_is_refused(value: Any, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"settings\.controls"):
        interlock(policies=_with_schema(tmp_path, ANY), settings={"controls": {"limit": value}})


@pytest.mark.parametrize("value", ["nan", "inf", "99999999999999999999", "2020-01-01", "12:00:00", '"a\\u0000b"'])
def test_so_is_one_in_a_file(value: str, tmp_path: Path) -> None:
    _with_schema(tmp_path / "rules", ANY)
    tools = '[tools.calc]\nreturns = []\negress = "none"\n'
    text = f'version = 1\npolicies = ["rules"]\n{tools}[settings.controls]\nlimit = {value}\n'
    (tmp_path / "interlock.toml").write_text(text)
    with pytest.raises(SettingsError, match=r"settings\.controls"):
        Interlock.load(tmp_path / "interlock.toml", journal=MemoryJournal())


@pytest.mark.parametrize("schema", ["5", "[]", "null", '"x"', "{", "", "[" * 5000, '{"type": "object"}', '{"type": 5}'])
def test_a_schema_is_an_object_schema(schema: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"settings\.schema\.json"):
        interlock(policies=_with_schema(tmp_path, schema))


@pytest.mark.parametrize("wanted", ["5", "true", "false", "null", "[]", '"x"'])
def test_so_is_that_of_each_setting(wanted: str, tmp_path: Path) -> None:
    schema = '{"type": "object", "properties": {"limit": %s}}' % wanted  # noqa: UP031 - braces all around
    with pytest.raises(PolicyError, match="limit: the schema of a setting is an object"):
        interlock(policies=_with_schema(tmp_path, schema), settings={"controls": {"limit": 5}})


ROOT: dict[str, dict[str, Any]] = {
    "required": {"required": ["more"]},
    "minProperties": {"minProperties": 5},
    "maxProperties": {"maxProperties": 0},
    "propertyNames": {"propertyNames": {"maxLength": 2}},
    "patternProperties": {"patternProperties": {"^l": {"type": "string"}}},
    "$defs": {"$defs": {"n": {"type": "string"}}, "properties": {"limit": {"$ref": "#/$defs/n", "default": 5}}},
    "allOf": {"allOf": [{"properties": {"limit": {"maximum": 4}}}]},
    "not": {"not": {"properties": {"limit": {"const": 5}}}},
}


@pytest.mark.parametrize("word", ROOT)
def test_the_words_at_the_root_of_a_schema_count(word: str, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"limit": {"default": 5}}, **ROOT[word]}
    with pytest.raises(SettingsError, match=r"settings\.controls"):
        interlock(policies=_with_schema(tmp_path, json.dumps(schema)))


def test_additional_properties_are_refused(tmp_path: Path) -> None:
    for more in ({"additionalProperties": False}, {}):
        schema = {"type": "object", "properties": {"limit": {"default": 5}}, **more}
        with pytest.raises(SettingsError, match="other"):
            interlock(policies=_with_schema(tmp_path, json.dumps(schema)), settings={"controls": {"other": 1}})


@pytest.mark.parametrize(
    "wanted",
    [{"$ref": "http://127.0.0.1:9/x"}, {"$ref": "#/x"}, {"type": "nope"}, {"pattern": "("}, {"multipleOf": 0}],
)
def test_a_schema_that_is_none_is_misconfigured(wanted: dict[str, Any], tmp_path: Path) -> None:
    schema = json.dumps({"type": "object", "properties": {"limit": {"default": 5, **wanted}}})
    with pytest.raises(Misconfigured):
        interlock(policies=_with_schema(tmp_path, schema))


def test_honest_settings_that_fit(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "$defs": {"number": {"type": "integer"}},
        "properties": {"limit": {"$ref": "#/$defs/number", "default": 5}, "other": {"type": "string"}},
        "required": ["other"],
        "additionalProperties": False,
    }
    mine = _with_schema(tmp_path, json.dumps(schema))
    assert says(decided("calc", {}, policies=mine, settings={"controls": {"other": "x"}})) == "allow"
    assert says(decided("calc", {}, policies=mine, settings={"controls": {"other": "x", "limit": 6}})) == "deny fine"


def test_honest_metadata_texts_are_kept(tmp_path: Path) -> None:
    text = '# METADATA\n# title: 2020-12-24\n# custom: {model: "One\n#   line.", code: mine}\n' + control("mine")
    decision = decided("calc", {}, policies=policies(tmp_path, text))
    assert [reason.for_model for reason in decision.reasons] == ["One line."]
