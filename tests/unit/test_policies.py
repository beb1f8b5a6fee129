"""Proves that the shipped controls keep their word, and that the loader refuses what would be silent, loose or dead.

Rego tests, samples in both engines (T13), the language of proofs (T5, T6), every refusal at load with its exact
message (T3, T4), and the same for settings and manifests (T7).

Mutations that this file is shown to catch: any proof of a control dropped or turned round (the Rego tests), `deny` for
`ask` in a shipped default (the samples), `_reserved` left out of `_Checks.all` (the loader's table).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import regorus
from ruamel.yaml import YAML

from interlock import Call, Conversation, Interlock, Manifest, Verdict, tool
from interlock.errors import ManifestError, Misconfigured, PolicyError, SettingsError
from interlock.model.answers import parse_answers
from interlock.model.canonical import pack
from interlock.model.document import check_document
from interlock.model.origins import address_book
from interlock.model.settings import Settings, parse_settings
from interlock.policy.bundle import assemble
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.reference import CONTROLS, ReferenceEngine
from interlock.policy.rego_ast import Module, Ref, Rule, parse_module, ref_of
from interlock.policy.samples import SAMPLES
from interlock.policy.sources import Source, read_sources, shipped_sources

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "policies" / "interlock" / "controls"
CODES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def module_of(path: Path) -> Module:
    return parse_module(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


def metadata_of(path: Path) -> dict[str, Any]:
    """The METADATA block at the top of a file, read without the loader's help."""
    block: list[str] = []
    lines = iter(path.read_text(encoding="utf-8").splitlines())
    assert next(lines) == "# METADATA", f"{path.name} must begin with its METADATA"
    for line in lines:
        if not line.startswith("#"):
            break
        block.append(line[2:])
    value = YAML(typ="safe", pure=True).load("\n".join(block))
    assert isinstance(value, dict)
    return value


# --- Rego tests -------------------------------------------------------------------------------------------------------

TESTS = [
    (code, rule.name)
    for code in CODES
    for rule in module_of(FOLDER / code / f"{code}_test.rego").rules
    if rule.name.startswith("test_")
]


@pytest.fixture(scope="module")
def whole() -> Any:
    """One engine with every Rego file, tests too. Made, used and dropped by one thread: the engine demands it."""
    engine = regorus.Engine()
    for path in sorted((ROOT / "policies").rglob("*.rego")):
        engine.add_policy(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    return engine


@pytest.mark.parametrize(("code", "name"), TESTS, ids=lambda part: part)
def test_rego(whole: Any, code: str, name: str) -> None:
    # Undefined is None: a test whose body fails is not true, and one that is merely absent can't be listed.
    assert whole.eval_rule(f"data.interlock.controls.{code}_test.{name}") is True


@pytest.mark.parametrize("code", CODES)
def test_a_rego_test_can_fail(code: str) -> None:
    """A control that always allows fails its own tests: none of them is true of nothing."""
    engine = regorus.Engine()
    engine.add_policy("loose.rego", f'package interlock.controls.{code}\n\nverdict := {{"verdict": "allow"}}\n')
    path = FOLDER / code / f"{code}_test.rego"
    engine.add_policy(path.name, path.read_text(encoding="utf-8"))
    names = [name for other, name in TESTS if other == code]
    held = [name for name in names if engine.eval_rule(f"data.interlock.controls.{code}_test.{name}") is True]
    # Only the tests of what lifts the objection may hold of a control that never objects.
    assert held == [name for name in names if name.startswith("test_lifted")]


# --- samples ----------------------------------------------------------------------------------------------------------

VERDICTS = {"allowed": "allow", "asked": "ask", "denied": "deny"}


@dataclass(frozen=True)
class Sample:
    """One case of a samples.json: the document of a clean send with some places changed, and the settings."""

    code: str
    verdict: str
    title: str
    changes: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(json.dumps(SAMPLES["clean send"]))
        for path, value in self.changes.items():
            *folders, last = path.split(".")
            place = document
            for name in folders:
                place = place[name]
            assert last in place, f"{self.code}: {path} is no place in the document"
            place[last] = value
        return document


def samples_of(code: str) -> list[Sample]:
    groups = json.loads((FOLDER / code / "samples.json").read_text(encoding="utf-8"))
    assert list(groups) == list(VERDICTS), f"{code}: samples.json holds allowed, asked and denied, in this order"
    return [Sample(code, VERDICTS[group], **one) for group, cases in groups.items() for one in cases]


SAMPLED = [sample for code in CODES for sample in samples_of(code)]


def answers_of(engine: str, sample: Sample) -> dict[str, Any]:
    settings = parse_settings(sample.settings)
    bundle = assemble(shipped_sources(), settings)
    asked: EmbeddedEngine | ReferenceEngine = (
        EmbeddedEngine(bundle) if engine == "embedded" else ReferenceEngine(settings.model_dump(), bundle.controls)
    )
    raw = asked.evaluate(pack(sample.document))
    parse_answers(raw, bundle.controls)
    answers: dict[str, Any] = json.loads(raw)
    return answers


@pytest.mark.parametrize("engine", ["embedded", "reference"])
@pytest.mark.parametrize("sample", SAMPLED, ids=lambda one: f"{one.code}-{one.verdict}-{one.title}")
def test_sample(sample: Sample, engine: str) -> None:
    assert answers_of(engine, sample)[sample.code]["verdict"] == sample.verdict


@pytest.mark.parametrize("sample", SAMPLED, ids=lambda one: f"{one.code}-{one.verdict}-{one.title}")
def test_sample_is_a_document_that_the_gate_could_ask(sample: Sample) -> None:
    """Samples teach; one that could never be asked would teach something wrong."""
    document = sample.document
    check_document(document)
    exposure, forecast, own = document["exposure"], document["forecast"], document["call"]["labels"]
    assert forecast["untrusted"] == exposure["untrusted"]
    for leg in ("private", "egress"):
        assert set(forecast[leg]) >= set(exposure[leg]) | set(own[leg])
    assert forecast["credentials"] == (not {"credentials", "unknown"}.isdisjoint(forecast["private"]))
    grounding = [one["origin"] in ("user", "operator", "trusted") for one in document["call"]["destinations"]]
    assert document["call"]["grounded"] == (all(grounding) and bool(grounding) and not document["call"]["unclassified"])
    assert document["tool"]["egress"] == "none" or document["call"]["destinations"]
    assert (document["call"]["control"] == "none") == (document["tool"]["effect"] != "control")


@pytest.mark.parametrize("code", CODES)
def test_samples_show_both_sides(code: str) -> None:
    verdicts = {sample.verdict for sample in samples_of(code)}
    assert "allow" in verdicts
    assert verdicts & {"ask", "deny"}


# --- what stands beside every control ---------------------------------------------------------------------------------


def test_there_are_eighteen_controls_and_the_reference_knows_them() -> None:
    assert len(CODES) == 18
    assert list(CONTROLS) == CODES
    assert list(assemble(shipped_sources(), Settings()).controls) == CODES


@pytest.mark.parametrize("code", CODES)
def test_a_control_has_test_page_samples_and_metadata(code: str) -> None:
    folder = FOLDER / code
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [f"{code}.rego", f"{code}_test.rego", "samples.json"]
    )
    metadata = metadata_of(folder / f"{code}.rego")
    custom = metadata["custom"]
    assert metadata["title"]
    assert metadata["description"]
    assert custom["code"] == code
    assert custom["page"] == f"docs/controls/{code}.md"
    assert (ROOT / custom["page"]).is_file()
    assert custom["model"].strip()
    assert module_of(folder / f"{code}.rego").package == ("interlock", "controls", code)
    text = assemble(shipped_sources(), Settings()).controls[code]
    assert (text.code, text.title, text.own) == (code, metadata["title"], True)
    assert text.for_model == " ".join(custom["model"].split())


# --- the language of proofs -------------------------------------------------------------------------------------------

# The only operators: `==` between values, `:=` of a head, a default or a local name.
_OPERATORS = {"BoolExpr": {"Eq"}, "AssignExpr": {"ColEq"}, "assign": {"ColEq"}, "Default": {"ColEq"}}


def impure(rule: Rule) -> list[str]:
    """What a rule uses beside equality, membership, `some … in` and an `every` that is not true of nothing."""
    found = [f"not, line {line}" for line in rule.negations]
    found += [f"comprehension, line {line}" for line in rule.comprehensions]
    found += [f"with, line {line}" for line in rule.withs]
    found += [f"call of {'.'.join(part or '?' for part in call.parts)}" for call in rule.calls]
    found += list(_operators(rule.node))
    found += [f"every without one, line {line}" for line, over in rule.everies if not _at_least_one(over, rule)]
    return found


def _at_least_one(over: Ref | None, rule: Rule) -> bool:
    """Is there, beside `every x in over`, a test of `over[0]` or a `some` in it? `every` is true of nothing at all."""
    if over is None:
        return False
    width = len(over.parts)
    first = any(len(ref.parts) > width and ref.parts[:width] == over.parts for ref in rule.refs)
    return first or any(some is not None and some.parts == over.parts for some in _somes(rule.node))


def _somes(node: Any) -> Iterator[Ref | None]:
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _somes(inner)
    if isinstance(node, dict) and "SomeIn" in node:
        yield ref_of(node["SomeIn"]["collection"])


def _operators(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _operators(item)
    elif isinstance(node, dict):
        for kind, inner in node.items():
            if isinstance(inner, dict) and "op" in inner and inner["op"] not in _OPERATORS.get(kind, set()):
                yield f"{kind} {inner['op']}"
            yield from _operators(inner)


@pytest.mark.parametrize("code", CODES)
def test_proofs_are_positive(code: str) -> None:
    """T6 by construction: take anything away from a document and a proof made of equalities can only fail."""
    rules = module_of(FOLDER / code / f"{code}.rego").rules
    assert {rule.name for rule in rules} <= {"verdict", "lifted"}
    assert {rule.name: impure(rule) for rule in rules if impure(rule)} == {}


IMPURE = {
    "not": "not input.tool.known",
    "comprehension": "[] == [x | some x in input.tool.reads]",
    "inequality": 'input.tool.egress != "none"',
    "order": "input.call.siblings < 1",
    "builtin": "count(input.tool.reads) == 0",
    "with": "input.tool.known with input as {}",
    "arithmetic": "input.call.siblings + 1 == 1",
    "set operator": 'input.tool.egress in {"none"} | {"blind"}',
    "every alone": "every x in input.call.destinations { x.talks_back == false }",
    "unification": 'input.tool.egress = "none"',
}


@pytest.mark.parametrize("body", IMPURE.values(), ids=IMPURE)
def test_the_check_of_proofs_finds_each_impurity(body: str) -> None:
    module = parse_module("x.rego", f"package controls.x\n\nlifted if {{\n\t{body}\n}}\n")
    assert impure(module.rules[0])


# --- what the loader refuses ------------------------------------------------------------------------------------------

HEAD = 'package controls.mine\n\ndefault verdict := {"verdict": "deny"}\n\n'
ALLOWS = 'verdict := {"verdict": "allow"} if '
CLOCK = (
    " is not allowed in controls: decisions must depend on the document only (time is input.now);"
    " see docs/writing-policies.md for the list"
)
TOOL_KEYS = "there is audience, digest, effect, egress, known, name, opens, reads, returns, server"
DESTINATION_KEYS = "there is argument, kind, origin, talks_back, value"
SPREAD = (
    "interlock/controls/trifecta/trifecta.rego:9: control trifecta is spread over"
    " interlock/controls/trifecta/trifecta.rego, mine/0.rego; keep it in one file"
)
SILENT = "the controls do not answer the sample 'clean send':"
OBJECTION = ' must be an objection, {"verdict": "ask"} or {"verdict": "deny"}: what is not proved is not allowed'


def mine(*bodies: str) -> list[str]:
    """One user's control whose allowing rule has this body; several bodies stand in one block."""
    return [HEAD + ALLOWS + "{\n\t" + "\n\t".join(bodies) + "\n}\n"]


REFUSED: dict[str, tuple[list[str], str]] = {
    "syntax error in one of several files": (
        [HEAD + ALLOWS + "input.tool.known == true\n", "package controls.other\n\nverdict := {\n", HEAD],
        "mine/1.rego:4:1: expecting expression",
    ),
    "syntax of Rego before version 1": (
        [HEAD + 'verdict = {"verdict": "allow"} { input.tool.known }\n'],
        (
            "mine/0.rego:5:32: `if` keyword is required before rule body in"
            ' `verdict = {"verdict": "allow"} { input.tool.known }`'
        ),
    ),
    "no package": (
        ['default verdict := {"verdict": "deny"}\n'],
        'mine/0.rego:1:1: expecting `package` Missing package declaration. in `default verdict := {"verdict": "deny"}`',
    ),
    "no default verdict": (
        ["package controls.mine\n\n" + ALLOWS + "input.tool.known == true\n"],
        (
            "mine/0.rego:1: control mine has no `default verdict`;"
            ' write default verdict := {"verdict": "deny"} (or "ask"): its objection when nothing is proved'
        ),
    ),
    "default allow": (
        ['package controls.mine\n\ndefault verdict := {"verdict": "allow"}\n'],
        "mine/0.rego:3: the default verdict of mine" + OBJECTION,
    ),
    "default that is no object": (
        ['package controls.mine\n\ndefault verdict := "deny"\n'],
        "mine/0.rego:3: the default verdict of mine" + OBJECTION,
    ),
    "default with a key that no answer has": (
        ['package controls.mine\n\ndefault verdict := {"verdict": "deny", "why": "x"}\n'],
        f"{SILENT} control 'mine' answered with unknown keys",
    ),
    "a foreign package": (
        ['package interlock.controls.mine\n\ndefault verdict := {"verdict": "deny"}\n'],
        (
            "mine/0.rego:1: package interlock.controls.mine is not yours to define;"
            " write package controls.<code> (or lib.<name>)"
        ),
    ),
    "a foreign package that is a shipped control": (
        ['package interlock.controls.trifecta\n\nverdict := {"verdict": "allow"}\n'],
        (
            "mine/0.rego:1: package interlock.controls.trifecta is not yours to define;"
            f" write package controls.<code> (or lib.<name>)\n{SPREAD}"
        ),
    ),
    "a foreign package in brackets": (
        ['package interlock["controls"].trifecta\n\nverdict := {"verdict": "allow"}\n'],
        (
            "mine/0.rego:1: package interlock.controls.trifecta is not yours to define;"
            f" write package controls.<code> (or lib.<name>)\n{SPREAD}"
        ),
    ),
    "a control named like a shipped one": (
        ['package controls.trifecta\n\ndefault verdict := {"verdict": "deny"}\n'],
        f"mine/0.rego:1: code 'trifecta' is a shipped control; choose another name\n{SPREAD}",
    ),
    "the entry point": (
        ["package interlock.entrypoint\n\nanswers := {}\n"],
        (
            "mine/0.rego:1: package interlock.entrypoint is not yours to define;"
            " write package controls.<code> (or lib.<name>)"
        ),
    ),
    "the settings": (
        ['package settings\n\ntrifecta := "ask"\n'],
        "mine/0.rego:1: package settings is not yours to define; write package controls.<code> (or lib.<name>)",
    ),
    "a nested package": (
        ['package controls.mine.deeper\n\ndefault verdict := {"verdict": "deny"}\n'],
        "mine/0.rego:1: package controls.mine.deeper must be controls.<name>, one lower-case name with _ and digits",
    ),
    "a code in capitals": (
        ['package controls.Mine\n\ndefault verdict := {"verdict": "deny"}\n'],
        "mine/0.rego:1: package controls.Mine must be controls.<name>, one lower-case name with _ and digits",
    ),
    "one control in two files": (
        [HEAD, "package controls.mine\n\n" + ALLOWS + "input.tool.known == true\n"],
        "mine/0.rego:1: control mine is spread over mine/0.rego, mine/1.rego; keep it in one file",
    ),
    "direct recursion": (
        [HEAD + "a if a\n"],
        "mine/0.rego:5: rules refer to each other in a circle: controls.mine.a → controls.mine.a; break it",
    ),
    "recursion of a function": (
        [HEAD + "f(x) := f(x)\n"],
        "mine/0.rego:5: rules refer to each other in a circle: controls.mine.f → controls.mine.f; break it",
    ),
    "mutual recursion": (
        [HEAD + "a if b\n\nb if a\n"],
        (
            "mine/0.rego:5: rules refer to each other in a circle:"
            " controls.mine.a → controls.mine.b → controls.mine.a; break it"
        ),
    ),
    "mutual recursion of two controls": (
        [
            *mine('data.controls.other.verdict == {"verdict": "allow"}'),
            HEAD.replace("mine", "other") + "verdict := data.controls.mine.verdict\n",
        ],
        (
            "mine/0.rego:3: rules refer to each other in a circle:"
            " controls.mine.verdict → controls.other.verdict → controls.mine.verdict; break it"
        ),
    ),
    "recursion through the entry point": (
        mine('data.interlock.entrypoint.answers.trifecta.verdict == "allow"'),
        (
            "mine/0.rego:3: rules refer to each other in a circle:"
            " controls.mine.verdict → interlock.entrypoint.answers → controls.mine.verdict; break it"
        ),
    ),
    "recursion through an import": (
        [
            HEAD.replace("\n\n", "\n\nimport data.interlock.entrypoint as all_of_them\n\n", 1)
            + ALLOWS
            + "all_of_them.answers.trifecta\n"
        ],
        (
            "mine/0.rego:5: rules refer to each other in a circle:"
            " controls.mine.verdict → interlock.entrypoint.answers → controls.mine.verdict; break it"
        ),
    ),
    "recursion through a computed name": (
        mine('name := "controls"', "data[name].mine.verdict"),
        "mine/0.rego:3: rules refer to each other in a circle: controls.mine.verdict → controls.mine.verdict; break it",
    ),
    "recursion through all of data": (
        mine("count(data) == 0"),
        "mine/0.rego:3: rules refer to each other in a circle: controls.mine.verdict → controls.mine.verdict; break it",
    ),
    "the clock": (mine("time.now_ns() == 1"), f"mine/0.rego:6: builtin time.now_ns{CLOCK}"),
    "the network": (mine('http.send({"url": "x"}).body == 1'), f"mine/0.rego:6: builtin http.send{CLOCK}"),
    "the environment": (mine("opa.runtime().env == {}"), f"mine/0.rego:6: builtin opa.runtime{CLOCK}"),
    "chance": (mine('rand.intn("x", 2) == 1'), f"mine/0.rego:6: builtin rand.intn{CLOCK}"),
    "printing": (mine("print(input.tool.name)"), f"mine/0.rego:6: builtin print{CLOCK}"),
    "walking": (mine('walk(input, [_, "x"])'), f"mine/0.rego:6: builtin walk{CLOCK}"),
    "a builtin that nobody knows": (mine("nonesuch(1)"), f"mine/0.rego:6: builtin nonesuch{CLOCK}"),
    "a builtin inside a library": (
        [HEAD, "package lib.help\n\nnow := time.now_ns()\n"],
        f"mine/1.rego:3: builtin time.now_ns{CLOCK}",
    ),
    "a builtin in the shadow of a rule": (
        [HEAD + "time := {}\n\n" + ALLOWS + "time.now_ns() == 1\n"],
        (
            "mine/0.rego:5: a rule can't be called 'time', like a builtin; rename it\n"
            f"mine/0.rego:7: builtin time.now_ns{CLOCK}"
        ),
    ),
    "a builtin in the shadow of an import": (
        [
            HEAD.replace("\n\n", "\n\nimport data.lib.time\n\n", 1) + ALLOWS + "time.now_ns() == 1\n",
            "package lib.time\n\nx := 1\n",
        ],
        (
            "mine/0.rego:1: an import can't be called 'time' like a builtin; use `as`\n"
            f"mine/0.rego:7: builtin time.now_ns{CLOCK}"
        ),
    ),
    "with": (
        mine('data.interlock.controls.trifecta.verdict.verdict == "allow" with input as {}'),
        "mine/0.rego:6: `with` has no place in a control: it swaps what is being judged; use it in tests",
    ),
    "an unknown part of the document": (
        mine("input.tols == 1"),
        (
            "mine/0.rego:6: the document has no input.tols;"
            " there is call, conversation, exposure, forecast, mode, now, schema, tool"
        ),
    ),
    "an unknown key of the document": (
        mine('input.tool.nmae == "x"'),
        f"mine/0.rego:6: the document has no input.tool.nmae; {TOOL_KEYS}",
    ),
    "an unknown key in brackets": (
        mine('input["tool"]["nmae"] == "x"'),
        f"mine/0.rego:6: the document has no input.tool.nmae; {TOOL_KEYS}",
    ),
    "an unknown key through an import": (
        [HEAD.replace("\n\n", "\n\nimport input.tool\n\n", 1) + ALLOWS + 'tool.nmae == "x"\n'],
        f"mine/0.rego:7: the document has no input.tool.nmae; {TOOL_KEYS}",
    ),
    "an unknown key of an element": (
        mine("input.call.destinations[_].foo == 1"),
        f"mine/0.rego:6: the document has no input.call.destinations._.foo; {DESTINATION_KEYS}",
    ),
    "an unknown key of an element through some": (
        mine("some d in input.call.destinations", "d.foo == 1"),
        f"mine/0.rego:7: the document has no input.call.destinations._.foo; {DESTINATION_KEYS}",
    ),
    "an unknown key of an element through some with an index": (
        mine("some i, d in input.call.destinations", "i == 0", "d.foo == 1"),
        f"mine/0.rego:8: the document has no input.call.destinations._.foo; {DESTINATION_KEYS}",
    ),
    "an unknown key of an element through every": (
        mine("every d in input.call.destinations {", "\td.foo == 1", "}"),
        f"mine/0.rego:7: the document has no input.call.destinations._.foo; {DESTINATION_KEYS}",
    ),
    "an unknown setting": (
        mine('data.settings.trifekta == "ask"'),
        "mine/0.rego:6: there is no setting trifekta",
    ),
    "an unknown setting through an import": (
        [HEAD.replace("\n\n", "\n\nimport data.settings\n\n", 1) + ALLOWS + 'settings.trifekta == "ask"\n'],
        "mine/0.rego:7: there is no setting trifekta",
    ),
    "data that nobody defines": (
        mine("data.vendors.known == 1"),
        "mine/0.rego:6: nothing defines data.vendors.known; it would always be undefined",
    ),
    "a rule that no library has": (
        [*mine("data.lib.help.z == 1"), "package lib.help\n\ny := 1\n"],
        "mine/0.rego:6: nothing defines data.lib.help.z; it would always be undefined",
    ),
    "a name that nobody binds": (
        mine("x == 1"),
        (
            f"{SILENT} the embedded engine failed to evaluate:"
            " mine/0.rego:6:5: use of undefined variable `x` is unsafe in `x == 1`"
        ),
    ),
    "two rules that contradict each other": (
        [HEAD + ALLOWS + "input.mode\n\n" + 'verdict := {"verdict": "ask"} if input.mode\n'],
        (
            f"{SILENT} the embedded engine failed to evaluate:"
            " mine/0.rego:7:1: rule conflicts with rule at mine/0.rego:5:1"
            ' in `verdict := {"verdict": "ask"} if input.mode`'
        ),
    ),
    "a verdict that is a set": (
        ['package controls.mine\n\ndefault verdict := {"verdict": "deny"}\n\nverdict contains 1\n'],
        f"{SILENT} control 'mine' answered list, not an object with a verdict",
    ),
    "a default with a key that stands twice": (
        ['package controls.mine\n\ndefault verdict := {"verdict": "allow", "verdict": "deny"}\n'],
        "mine/0.rego:3: the default verdict of mine" + OBJECTION,
    ),
    "a default that is computed": (
        ['package controls.mine\n\ndefault verdict := {"verdict": input.mode}\n'],
        "mine/0.rego:3: the default verdict of mine" + OBJECTION,
    ),
    "a code of the gate's own": (
        [HEAD.replace("mine", "engine_error")],
        "mine/0.rego:1: code 'engine_error' is the gate's own; choose another name",
    ),
    "an import in the place of the document": (
        [HEAD.replace("\n\n", "\n\nimport data.lib.help as input\n\n", 1), "package lib.help\n\nx := 1\n"],
        "mine/0.rego:1: an import can't be called 'input' like a builtin; use `as`",
    ),
    "a bomb of brackets": (
        [HEAD + f"x := {'[' * 11}{']' * 11}\n"],
        "mine/0.rego: brackets nested 11 deep; at most 10: the parser's time doubles with each",
    ),
    "METADATA that is not YAML": (
        ["# METADATA\n# title: [\n" + HEAD],
        (
            "mine/0.rego:1: METADATA: not YAML: while parsing a flow node expected the node content, but found"
            " '<stream end>' in \"<unicode string>\", line 1, column 9: title: [ ^ (line: 1)"
        ),
    ),
}


def loaded(texts: list[str]) -> EmbeddedEngine:
    given = [Source(f"mine/{place}.rego", text) for place, text in enumerate(texts)]
    return EmbeddedEngine(assemble([*shipped_sources(), *given], Settings()))


@pytest.mark.parametrize(("texts", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_at_load(texts: list[str], message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        loaded(texts)
    assert str(caught.value) == message


ACCEPTED: dict[str, list[str]] = {
    "a control": mine("input.tool.known == true"),
    "a library": [*mine("data.lib.help.yes == true"), "package lib.help\n\nyes := input.tool.known\n"],
    "a function": [*mine("data.lib.help.f(input.tool.known)"), "package lib.help\n\nf(x) if x == true\n"],
    "reading another control": mine('data.interlock.controls.trifecta.verdict.verdict == "allow"'),
    "every argument": mine("input.call.arguments.anything.at_all == 1"),
    "a name that is a rule and a variable": [HEAD + "d := 1\n\n" + ALLOWS + "{\n\tsome e in [d]\n\te == 1\n}\n"],
    "an import of Rego's own": [HEAD.replace("\n\n", "\n\nimport rego.v1\n\n", 1)],
}


@pytest.mark.parametrize("texts", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted_at_load(texts: list[str]) -> None:
    """The twin of the table above: the loader does not refuse what is right."""
    assert "mine" in loaded(texts).controls


def test_no_control_at_all() -> None:
    with pytest.raises(PolicyError) as caught:
        assemble([Source("lib/help.rego", "package lib.help\n\nx := 1\n")], Settings())
    assert str(caught.value) == "no control is loaded: an interlock without controls would decide nothing"


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        loaded(mine('input.tool.nmae == "x"', 'data.settings.trifekta == "ask"', "time.now_ns() == 1"))
    assert [line.partition(": ")[2].split(" ", 3)[:3] for line in str(caught.value).splitlines()] == [
        ["builtin", "time.now_ns", "is"],
        ["the", "document", "has"],
        ["there", "is", "no"],
    ]


def test_order_of_files_makes_no_difference() -> None:
    """T3: the same files in any order are the same revision and answer alike."""
    texts = [*mine("input.tool.known == true"), 'package controls.other\n\ndefault verdict := {"verdict": "ask"}\n']
    sources = [*shipped_sources(), *(Source(f"mine/{place}.rego", text) for place, text in enumerate(texts))]
    one, other = assemble(sources, Settings()), assemble(sources[::-1], Settings())
    assert one == other
    document = pack(SAMPLES["clean send"])
    assert EmbeddedEngine(one).evaluate(document) == EmbeddedEngine(other).evaluate(document)


# --- directories ------------------------------------------------------------------------------------------------------


def test_reading_directories(tmp_path: Path) -> None:
    cases: list[tuple[Callable[[Path], object], str]] = [
        (lambda folder: None, "{folder}: no such directory of controls"),
        (lambda folder: folder.mkdir(), "{folder}: no .rego file with a control in it"),
        (lambda folder: (folder / "mine_test.rego").write_text(HEAD), "{folder}: no .rego file with a control in it"),
        (
            lambda folder: (folder / "data.json").write_text("{}"),
            "{folder}/data.json: data files are not loaded, they could override rules; use settings instead",
        ),
        (
            lambda folder: ((folder / "data.json").unlink(), (folder / "data.yaml").write_text("")),
            "{folder}/data.yaml: data files are not loaded, they could override rules; use settings instead",
        ),
        (
            lambda folder: ((folder / "data.yaml").unlink(), (folder / "a.rego").write_bytes(b"\xff")),
            "{folder}/a.rego: not UTF-8; no part of the bundle is loaded",
        ),
        (
            lambda folder: (folder / "a.rego").write_text("#" * ((256 << 10) + 1)),
            "{folder}/a.rego: larger than 262144 bytes",
        ),
    ]
    folder = tmp_path / "controls"
    for prepare, message in cases:
        prepare(folder)
        with pytest.raises(PolicyError) as caught:
            read_sources(folder)
        assert str(caught.value) == message.format(folder=folder)


def test_nothing_is_passed_over_in_silence(tmp_path: Path) -> None:
    """A control that a person sees in the folder and that does not load would be a hole that nobody sees."""
    good, elsewhere = tmp_path / "controls" / "mine.rego", tmp_path / "elsewhere"
    good.parent.mkdir()
    good.write_text(HEAD)
    elsewhere.mkdir()
    strange = good.parent / "strange"
    cases: list[tuple[Path, Callable[[], object], str]] = [
        (
            strange,
            lambda: strange.symlink_to(elsewhere),
            "a link to a folder is not followed; its controls would be missing",
        ),
        (
            strange.with_suffix(".rego"),
            lambda: strange.with_suffix(".rego").symlink_to(tmp_path / "nowhere.rego"),
            "not a file that can be read (a dangling link?)",
        ),
        (
            strange.with_suffix(".REGO"),
            lambda: strange.with_suffix(".REGO").write_text(HEAD),
            "a control's file ends in .rego, in lower case; this one would not be loaded",
        ),
    ]
    for path, prepare, message in cases:
        prepare()
        with pytest.raises(PolicyError) as caught:
            read_sources(good.parent)
        assert str(caught.value) == f"{path}: {message}"
        path.unlink()
    assert [source.path for source in read_sources(good.parent)] == [str(good)]


def test_the_whole_interlock_refuses_with_the_loader(tmp_path: Path) -> None:
    manifest = Manifest.parse({"version": 1, "tools": {"calc": {"returns": [], "egress": "none"}}})
    (tmp_path / "mine.rego").write_text('package controls.mine\n\ndefault verdict := {"verdict": "allow"}\n')
    with pytest.raises(PolicyError) as caught:
        Interlock(manifest=manifest, policies=[tmp_path])
    assert str(caught.value) == f"{tmp_path}/mine.rego:3: the default verdict of mine{OBJECTION}"


def test_a_workspace_can_not_loosen_a_control_through_its_library(tmp_path: Path) -> None:
    """A narrowing file travels with a stranger's text, so it may not add to what the operator's rules use."""
    files = {
        "interlock.toml": 'version = 1\npolicies = ["mine"]\n[tools.a]\nreturns = []\negress = "none"\n',
        "mine/control.rego": HEAD + ALLOWS + "data.lib.names.good\n",
        "mine/names.rego": 'package lib.names\n\ndefault good := false\n\ngood if input.tool.name == "b"\n',
        "project/narrow.toml": 'version = 1\npolicies = ["theirs"]\n',
        "project/theirs/names.rego": 'package lib.names\n\ngood if input.tool.name == "a"\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    lock = Interlock.load(tmp_path / "interlock.toml")
    assert lock.guard(Conversation.new()).preview(Call("a", {})).verdict is Verdict.DENY
    with pytest.raises(PolicyError) as caught:
        Interlock.load(tmp_path / "interlock.toml", workspace=tmp_path / "project" / "narrow.toml")
    assert str(caught.value) == (
        f"{tmp_path}/project/theirs/names.rego:1: a workspace may add controls only, not package lib.names;"
        " write package controls.<code>"
    )


# --- settings ---------------------------------------------------------------------------------------------------------

SETTINGS_REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown setting": ({"trifekta": "ask"}, "settings.trifekta: unknown setting"),
    "a misspelt value": ({"trifecta": "aks"}, "settings.trifecta: Input should be 'deny' or 'ask'"),
    "a value in capitals": ({"trifecta": "Ask"}, "settings.trifecta: Input should be 'deny' or 'ask'"),
    "no way to switch the trifecta off": ({"trifecta": "off"}, "settings.trifecta: Input should be 'deny' or 'ask'"),
    "no way to switch the channel off": (
        {"open_channel": "off"},
        "settings.open_channel: Input should be 'deny' or 'ask'",
    ),
    "a word that means true": ({"leak_guard": True}, "settings.leak_guard: Input should be 'deny', 'ask' or 'off'"),
    "a null": ({"leak_guard": None}, "settings.leak_guard: Input should be 'deny', 'ask' or 'off'"),
    "two problems": (
        {"trifecta": "allow", "nope": 1},
        "settings.trifecta: Input should be 'deny' or 'ask'\nsettings.nope: unknown setting",
    ),
    "an unknown kind in the address book": (
        {"address_book": {"mail": ["a@b.example"]}},
        "settings.address_book.mail: unknown setting",
    ),
    "one address instead of a list": (
        {"address_book": {"email": "a@b.example"}},
        "settings.address_book.email: Input should be a valid list",
    ),
    "an address that is none": (
        {"address_book": {"email": ["nobody"]}},
        "address_book.email: 'nobody' can't be read as email; correct or remove it",
    ),
    "a URL with a user in it": (
        {"address_book": {"url": ["https://corp.example@evil.example/"]}},
        "address_book.url: 'https://corp.example@evil.example/' can't be read as url; correct or remove it",
    ),
}


@pytest.mark.parametrize(("values", "message"), SETTINGS_REFUSED.values(), ids=SETTINGS_REFUSED)
def test_settings_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        address_book(parse_settings(values).address_book.model_dump())
    assert str(caught.value) == message


# --- the manifest -----------------------------------------------------------------------------------------------------

A = 'version = 1\n\n[tools.a]\nreturns = []\negress = "none"\n'
SEND = 'version = 1\n\n[tools.a]\nreturns = []\negress = "chosen"\n'
LABEL = (
    " is not a label; write untrusted:<category>, private:<category> or egress:<category>"
    " in lower-case letters, digits and _.@/:-"
)
KINDS = "use one of url, email, path, domain, account, phone, channel, user, id, name, words, amount, time, secret"
NAMES = "names are ASCII letters, digits and _.:/- (servers: _.-), at most 128"
BLIND = 'm.toml: tool \'a\': egress "blind" needs audience = "closed" and no destinations; else write "chosen"'

TOML_REFUSED: dict[str, tuple[str, str]] = {
    "nothing": ("", "m.toml: version: missing"),
    "version 2": (A.replace("= 1", "= 2"), "m.toml: version: Input should be less than or equal to 1"),
    "version 0": (A.replace("= 1", "= 0"), "m.toml: version: Input should be greater than or equal to 1"),
    "version true": (A.replace("= 1", "= true"), "m.toml: version: Input should be a valid integer"),
    "version as text": (A.replace("= 1", '= "1"'), "m.toml: version: Input should be a valid integer"),
    "an unknown section": (f"{A}\n[tool.b]\n", "m.toml: tool: unknown key"),
    "an unknown key": (f"{A}retruns = []\n", "m.toml: tools.a.retruns: unknown key"),
    "no returns": ('version = 1\n\n[tools.a]\negress = "none"\n', "m.toml: tools.a.returns: missing"),
    "no egress": ("version = 1\n\n[tools.a]\nreturns = []\n", "m.toml: tools.a.egress: missing"),
    "neither": ("version = 1\n\n[tools.a]\n", "m.toml: tools.a.returns: missing\nm.toml: tools.a.egress: missing"),
    "an egress that is none of the three": (
        A.replace('"none"', '"maybe"'),
        "m.toml: tools.a.egress: Input should be 'none', 'blind' or 'chosen'",
    ),
    "one label instead of a list": (
        A.replace("[]", '"untrusted:web"'),
        "m.toml: tools.a.returns: Input should be a valid list",
    ),
    "a tool that stands twice": (
        f'{A}\n[tools.b]\nreturns = []\negress = "none"\n\n[tools.a]\nreturns = []\negress = "none"\n',
        "m.toml: [tools.a] is declared twice, on line 3 and on line 11; keep one of them",
    ),
    "a tool that stands twice, once in quotes": (
        f'{A}\n[tools."a"]\nreturns = []\negress = "none"\n',
        "m.toml: [tools.a] is declared twice, on line 3 and on line 7; keep one of them",
    ),
    "a key that stands twice": (
        f'{A}egress = "none"\n',
        "m.toml: egress is declared twice, on line 5 and on line 6; keep one of them",
    ),
    "a tool that stands twice by case": (
        f'{A}\n[tools.A]\nreturns = []\negress = "none"\n',
        "m.toml: tools 'a' and 'A' differ only by case; rename one",
    ),
    "a server that stands twice by case": (
        (
            'version = 1\n[servers.gh.tools.x]\nreturns = []\negress = "none"\n'
            '[servers.GH.tools.x]\nreturns = []\negress = "none"\n'
        ),
        "m.toml: tools 'gh/x' and 'GH/x' differ only by case; rename one",
    ),
    "a label without a leg": (A.replace("[]", '["web"]'), f"m.toml: tool 'a': 'web'{LABEL}"),
    "a label in capitals": (A.replace("[]", '["untrusted:Web"]'), f"m.toml: tool 'a': 'untrusted:Web'{LABEL}"),
    "a leg that is none": (A.replace("[]", '["trusted:web"]'), f"m.toml: tool 'a': 'trusted:web'{LABEL}"),
    "a result that sends": (
        A.replace("[]", '["egress:channel"]'),
        "m.toml: tool 'a': 'egress:channel' under returns, which takes untrusted or private labels",
    ),
    "reads that are untrusted": (
        f'{A}reads = ["untrusted:web"]\n',
        "m.toml: tool 'a': 'untrusted:web' under reads, which takes private labels",
    ),
    "opens that are private": (
        f'{A}opens = ["private:files"]\n',
        "m.toml: tool 'a': 'private:files' under opens, which takes egress labels",
    ),
    "blind to an open audience": (A.replace('"none"', '"blind"'), BLIND),
    "blind to a receiver in the arguments": (
        A.replace('"none"', '"blind"\naudience = "closed"') + 'destinations = { to = "email" }\n',
        BLIND,
    ),
    "blind to a receiver that is called content": (
        A.replace('"none"', '"blind"\naudience = "closed"') + 'content = ["line", "recipient"]\n',
        "m.toml: tool 'a': egress \"blind\", but ['recipient'] look like receivers; write \"chosen\"",
    ),
    "a server without a name": (
        f'{A}\n[servers."".tools.a]\nreturns = ["untrusted:web"]\negress = "chosen"\n',
        "m.toml: servers: a server needs a name; the agent's own tools stand under [tools.NAME]",
    ),
    "an audience of nothing": (
        f'{A}audience = "closed"\n',
        "m.toml: tool 'a': audience belongs to egress \"blind\" only",
    ),
    "an argument that is destination and content": (
        f'{SEND}content = ["to"]\ndestinations = {{ to = "email" }}\n',
        "m.toml: tool 'a': ['to'] stand under destinations and content; an argument is one or the other",
    ),
    "a kind that is none": (
        f'{SEND}destinations = {{ to = "mail" }}\n',
        f"m.toml: tool 'a': 'mail' is not a kind of destination; {KINDS}",
    ),
    "the kind of what can't be parsed": (
        f'{SEND}destinations = {{ to = "unknown" }}\n',
        f"m.toml: tool 'a': 'unknown' is not a kind of destination; {KINDS}",
    ),
    "an effect that is none": (
        f'{A}effect = "delete"\n',
        "m.toml: tools.a.effect: Input should be 'none', 'add', 'write', 'destroy' or 'control'",
    ),
    "a name with a space": (A.replace(".a]", '."a b"]'), f"m.toml: tool 'a b': {NAMES}"),
    "a name that looks like another": (A.replace(".a]", '."а"]'), f"m.toml: tool 'а': {NAMES}"),
    "a server with a slash": (
        'version = 1\n[servers."a/b".tools.x]\nreturns = []\negress = "none"\n',
        f"m.toml: tool 'a/b/x': {NAMES}",
    ),
    "a server that vouches for itself": (
        "version = 1\n[servers.gh]\ntrusted = true\n",
        "m.toml: servers.gh.trusted: unknown key",
    ),
    "NUL in a name": (A.replace(".a]", '."a\\u0000"]'), f"m.toml: tool 'a\\x00': {NAMES}"),
    "NUL in the file": (
        A.replace(".a]", '."a\0"]'),
        "m.toml: not TOML: Illegal character '\\x00' (at line 3, column 10)",
    ),
    "a bomb of brackets": (f"version = {'[' * 5000}", "m.toml: nested too deeply"),
    "too much of it": ("#" * ((4 << 20) + 1), "m.toml: larger than 4194304 bytes"),
}


@pytest.mark.parametrize(("text", "message"), TOML_REFUSED.values(), ids=TOML_REFUSED)
def test_toml_manifest_refused(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        Manifest.loads(text, where="m.toml")
    assert str(caught.value) == message


Y = "version: 1\ntools:\n  a: {returns: [], egress: none}\n"

YAML_REFUSED: dict[str, tuple[str, str]] = {
    "a list": ("- 1\n", "m.yaml: the top level must be a mapping"),
    "nothing": ("", "m.yaml: the top level must be a mapping"),
    "a word that other readers take for false": (
        Y.replace("none", "no"),
        "m.yaml: tools.a.egress: Input should be 'none', 'blind' or 'chosen'",
    ),
    "an alias": (
        "version: 1\ntools:\n  a: &one {returns: [], egress: none}\n  b: *one\n",
        "m.yaml: aliases are not read; write the value out",
    ),
    "a merge": (
        "version: 1\ntools:\n  a: &one {returns: [], egress: none}\n  b:\n    <<: *one\n",
        "m.yaml: aliases are not read; write the value out",
    ),
    "a tag": (
        "version: 1\ntools: !!python/name:os.system {}\n",
        (
            "m.yaml: not YAML: could not determine a constructor for the tag"
            " 'tag:yaml.org,2002:python/name:os.system' in \"<unicode string>\", line 2, column 8:"
            " tools: !!python/name:os.system {} ^ (line: 2)"
        ),
    ),
    "two documents": (
        "version: 1\n---\nversion: 1\n",
        (
            'm.yaml: not YAML: expected a single document in the stream in "<unicode string>", line 1, column 1:'
            ' version: 1 ^ (line: 1) but found another document in "<unicode string>", line 2, column 1:'
            " --- ^ (line: 2)"
        ),
    ),
    "a tool without a word": (
        "version: 1\ntools:\n  a:\n",
        "m.yaml: tools.a: Input should be a valid dictionary or instance of ToolEntry",
    ),
    "a tool named by a number": (Y.replace(" a:", " 1:"), "m.yaml: tools.1.[key]: Input should be a valid string"),
    "NUL in a name": (Y.replace(" a:", ' "a\\0":'), f"m.yaml: tool 'a\\x00': {NAMES}"),
}


@pytest.mark.parametrize(("text", "message"), YAML_REFUSED.values(), ids=YAML_REFUSED)
def test_yaml_manifest_refused(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        Manifest.loads(text, syntax="yaml", where="m.yaml")
    assert str(caught.value) == message


def test_a_tool_that_stands_twice_in_yaml_names_both_places() -> None:
    text = Y + "  b: {returns: [], egress: none}\n  a: {returns: [], egress: none}\n"
    with pytest.raises(ManifestError) as caught:
        Manifest.loads(text, syntax="yaml", where="m.yaml")
    message = str(caught.value)
    assert message.startswith("m.yaml: not YAML: while constructing a mapping")
    assert 'found duplicate key "a"' in message
    assert "line 3, column 3" in message
    assert "line 5, column 3" in message


def test_a_tool_of_manifest_and_code_names_both_places() -> None:
    @tool(returns=[], egress="none")
    def a() -> None:
        """Nothing."""

    with pytest.raises(ManifestError) as caught:
        Interlock(manifest=Manifest.loads(A), tools=[a])
    assert str(caught.value) == ("tool 'a' is declared twice: in the manifest and by tools=; keep one of them")


def test_an_interlock_that_knows_no_tool() -> None:
    with pytest.raises(Misconfigured) as caught:
        Interlock()
    assert str(caught.value) == ("an Interlock needs a manifest or tools; without them every call would be unknown")


@pytest.mark.parametrize("text", [A, SEND, A.replace('"none"', '"blind"\naudience = "closed"')])
def test_manifest_accepted(text: str) -> None:
    """The twin of the tables above. Equal manifests have equal digests in either syntax."""
    assert [spec.id.name for spec in Manifest.loads(text)] == ["a"]
    assert Manifest.loads(A).digest == Manifest.loads(Y, syntax="yaml").digest


def test_files_of_manifests(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text("{}")
    (tmp_path / "bad.toml").write_bytes(b"\xff")
    cases = {
        "m.json": "must be a .toml, .yaml or .yml file",
        "missing.toml": "can't be read: No such file or directory",
        "bad.toml": "can't be read: not UTF-8",
    }
    for name, message in cases.items():
        with pytest.raises(ManifestError) as caught:
            Manifest.load(tmp_path / name)
        assert str(caught.value) == f"{tmp_path / name}: {message}"
