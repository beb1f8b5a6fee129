"""Proves T13 for controls that users write: the embedded engine and OPA answer alike.

The examples, the starter, every control of the documentation, and rules that reach into the document in each way that
the loader knows. On documents that fit the schema, alike means alike. On others, which the gate refuses before any
engine sees them, the embedded engine may err where OPA finds nothing (`gaps.toml`, `some_in_a_scalar`): that denies.
The other way round is a failure, and so is any two different answers. Mutation that this file catches: one constant of
an example changed for one of the engines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import regorus
from hypothesis import given
from hypothesis import strategies as st

from interlock.assembly import bundled, read_parts
from interlock.errors import EngineUnavailable, PolicyError
from interlock.model.canonical import pack
from interlock.model.document import check_document
from interlock.model.settings import parse_settings
from interlock.policy.bundle import Bundle, assemble
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.sources import Source, shipped_sources
from interlock.testing.agreement import Disagreement, compare
from tests.agreement.asking import ERROR, UNDEFINED, Opa, OpaEngine, asked_opa
from tests.laws.test_look import CONTROL, REACHES
from tests.strategies import documents, fewer, hostile_documents, json_values

ROOT = Path(__file__).resolve().parents[2]
VALUES = st.sampled_from(
    ["bob@example.com", "eve@evil.example", "a@b@example.com", "@", "", "x", 500, 500.5, 0, -1, True, None, [], {}]
)
NOW = st.sampled_from(
    [
        "2026-11-29T12:00:00Z",
        "2026-11-29T07:59:59Z",
        "2026-11-29T17:59:59Z",
        "2026-11-29T18:00:00Z",
        "2026-02-28T18:00:00Z",
    ]
)


@st.composite
def spoken(draw: st.DrawFn) -> dict[str, Any]:
    """A document that fits its schema, with arguments, receivers, times and namespaces that examples look at."""
    document = draw(documents())
    arguments = {name: draw(VALUES) for name in draw(st.sampled_from([("to", "amount"), ("amount",), (), ("x",)]))}
    call = {
        **document["call"],
        "arguments": {**arguments, **draw(st.just({}) | st.dictionaries(st.just("x"), json_values()))},
    }
    receivers = st.sampled_from(
        ["bob@example.com", "eve@evil.example", "a@b@example.com", "billing@supplier.example", ""]
    )
    call["destinations"] = [
        {**one, "value": draw(receivers), "kind": draw(st.sampled_from(["email", "unknown"]))}
        for one in call["destinations"]
    ]
    conversation = {**document["conversation"], "namespace": draw(st.sampled_from(["default", "acme", "other"]))}
    tool = {**document["tool"], "name": draw(st.sampled_from(["fetch", "send_email", "pay", "read_file", "other"]))}
    return {**document, "call": call, "now": draw(NOW), "conversation": conversation, "tool": tool}


def fits(document: Any) -> bool:
    try:
        check_document(document)
    except Exception:
        return False
    return True


@pytest.fixture(scope="module")
def server() -> Iterator[Opa]:
    with asked_opa() as running:
        yield running


@cache
def examples() -> Bundle:
    return bundled(read_parts(ROOT / "examples" / "policies" / "interlock.toml"))[1]


@cache
def of_the_documentation() -> Bundle:
    """Every control that a page shows, the broken ones left out, and that of the starter."""
    starter = ROOT / "interlock" / "cli" / "starter" / "business_hours.rego"
    found = {"business_hours.rego": starter.read_text(encoding="utf-8")}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for text in re.findall(r"^```rego\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            package = re.search(r"^package controls\.(\w+)$", text, re.MULTILINE)
            if package and "default verdict" in text:
                found[f"{package.group(1)}.rego"] = text
    schema = {"last_hour": 18, "desk": "closed"}
    names = {name: {"default": value} for name, value in schema.items()}
    return assemble(
        [*shipped_sources(), *(Source(name, text) for name, text in found.items())],
        parse_settings({"controls": schema}),
        [Source("settings.schema.json", json.dumps({"type": "object", "properties": names}))],
    )


BUNDLES = {"examples": examples, "documentation": of_the_documentation}


@cache
def engines(server: Opa, name: str) -> tuple[EmbeddedEngine, OpaEngine]:
    return EmbeddedEngine(BUNDLES[name]()), OpaEngine(server, BUNDLES[name]())


def test_there_is_something_to_compare() -> None:
    own = {name: {code for code, text in made().controls.items() if not text.own} for name, made in BUNDLES.items()}
    assert own["examples"] == {"allowed_domains", "amount_limit", "business_hours", "tenant", "two_people"}
    if (ROOT / "docs").is_dir():  # scripts/mutate.py leaves it out
        assert own["documentation"] >= {"business_hours", "front_desk", "no_copies", "no_mail_to_partners"}


@pytest.mark.parametrize("name", BUNDLES)
@fewer(3)
@given(document=spoken())
def test_t13_documents_that_fit(server: Opa, name: str, document: Any) -> None:
    assert fits(document)
    compare(*engines(server, name), pack(document))


@pytest.mark.parametrize("name", BUNDLES)
@fewer(4)
@given(document=hostile_documents())
def test_t13_hostile_documents(server: Opa, name: str, document: Any) -> None:
    try:
        compare(*engines(server, name), pack(document))
    except Disagreement as found:
        if found.said[0] is not None or fits(document):
            raise


# --- one rule at a time -----------------------------------------------------------------------------------------------

CODES = {name: f"reach{place}" for place, name in enumerate(REACHES)}


@cache
def rules() -> dict[str, str]:
    texts = {}
    for name, proof in REACHES.items():
        text = CONTROL.format(proof=proof).replace("controls.reach", f"controls.{CODES[name]}")
        try:
            assemble([*shipped_sources(), Source("reach.rego", text)], parse_settings({}))
        except PolicyError:  # pragma: no cover - the next test counts them
            continue
        texts[CODES[name]] = text
    return texts


def test_every_rule_loads() -> None:
    assert set(rules()) == set(CODES.values())


@cache
def all_rules() -> Any:
    engine = regorus.Engine()
    for code, text in rules().items():
        engine.add_policy(f"{code}.rego", text)
    return engine


def embedded_rule(code: str, raw: bytes) -> Any:
    engine = all_rules()
    engine.set_input_json(raw.decode())
    try:
        answer = json.loads(engine.eval_rule_as_json(f"data.controls.{code}.verdict"))
    except RuntimeError:
        return ERROR
    return UNDEFINED if answer == "<undefined>" else answer


def opa_rule(server: Opa, code: str, raw: bytes) -> Any:
    if getattr(server, "bundle", "") != "rules":
        assert server.policies(dict(rules())) == ""
        server.bundle = "rules"  # type: ignore[attr-defined]
    try:
        return json.loads(server.ask(f"controls/{code}/verdict", raw))
    except EngineUnavailable as error:
        return UNDEFINED if str(error) == UNDEFINED else ERROR


@fewer(10)
@given(document=spoken() | hostile_documents())
def test_t13_every_way_of_reaching_into_a_document(server: Opa, document: Any) -> None:
    raw, fitting = pack(document), fits(document)
    for name, code in CODES.items():
        ours, theirs = embedded_rule(code, raw), opa_rule(server, code, raw)
        assert ours == theirs or (ours == ERROR and not fitting), (name, ours, theirs)
