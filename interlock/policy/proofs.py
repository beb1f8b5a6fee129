"""The proofs of a control: which conditions would lift its objection, and which of them a document lacks."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import regorus

from interlock.model.canonical import unpack
from interlock.policy.bundle import Bundle
from interlock.policy.rego_ast import Module, bodies, closed, code_of, constant, parse_module
from interlock.policy.sources import Source


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a proof. ``holds`` is None when it can't be judged alone (it uses a name bound beside it)."""

    text: str
    line: int
    holds: bool | None
    found: str = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """One way to lift an objection: all of its conditions must hold."""

    rule: str
    line: int
    conditions: tuple[Condition, ...]
    holds: bool


@dataclass(frozen=True, slots=True)
class Proofs:
    """All proofs of one control against one document."""

    code: str
    path: str
    proofs: tuple[Proof, ...]

    @property
    def nearest(self) -> tuple[Proof, ...]:
        """The failed proofs with the fewest conditions that do not hold."""
        failed = [proof for proof in self.proofs if not proof.holds]
        if not failed:
            return ()
        lacking = [sum(one.holds is not True for one in proof.conditions) for proof in failed]
        return tuple(proof for proof, count in zip(failed, lacking, strict=True) if count == min(lacking))


@dataclass(frozen=True, slots=True)
class ProofText:
    """A proof as it is written: the rule, its line, and the text and line of each statement."""

    rule: str
    line: int
    statements: tuple[tuple[str, int], ...]


def written_proofs(module: Module, source: Source) -> list[ProofText]:
    """The bodies that let a control answer allow, helper rules of the same package followed one level down."""
    data = source.text.encode()
    found: list[ProofText] = []
    helpers: set[str] = set()
    for rule in module.rules:
        if rule.name != "verdict" or rule.is_default:
            continue
        for value, statements in bodies(rule.node):
            if not _allows(value):
                continue
            texts = _texts(data, statements)
            names = {text for text, _ in texts if text in module.rule_names}
            if len(texts) == 1 and names:
                helpers |= names
            else:
                found.append(ProofText("verdict", rule.line, texts))
    for rule in module.rules:
        if rule.name in helpers and not rule.is_default:
            found += [ProofText(rule.name, rule.line, _texts(data, statements)) for _, statements in bodies(rule.node)]
    return found


def _allows(value: Any) -> bool:
    try:
        answer = constant(value)
    except (ValueError, KeyError, AttributeError):
        return True  # computed: it might allow
    return not isinstance(answer, dict) or answer.get("verdict") == "allow"


def _texts(data: bytes, statements: list[tuple[int, int, int]]) -> tuple[tuple[str, int], ...]:
    return tuple((data[start : closed(data, start, end)].decode().strip(), line) for start, end, line in statements)


def proofs_of(bundle: Bundle, code: str, document: bytes) -> Proofs:
    """Judge every proof of a control against a document.

    Raises:
        KeyError: no control has this code.
    """
    source = next(one for one in bundle.sources if code_of(parse_module(one.path, one.text)) == code)
    module = parse_module(source.path, source.text)
    engine = regorus.Engine()
    for one in bundle.sources:
        engine.add_policy(one.path, one.text)
    engine.add_data_json(bundle.data.decode())
    engine.set_input_json(document.decode())
    value = unpack(document)
    return Proofs(
        code, source.path, tuple(_judged(engine, module, text, value) for text in written_proofs(module, source))
    )


def _judged(engine: Any, module: Module, text: ProofText, document: Any) -> Proof:
    alone = [_Statement(statement, line) for statement, line in text.statements]
    bound = {name for one in alone for name in one.binds}
    conditions = []
    for one in alone:
        judgeable = not one.binds and not (one.names & bound)
        holds = _holds(engine, module, [one.text]) if judgeable else None
        conditions.append(Condition(" ".join(one.text.split()), one.line, holds, _found(one.text, document)))
    whole = _holds(engine, module, [one.text for one in alone])
    return Proof(text.rule, text.line, tuple(conditions), whole is True)


_NAME = re.compile(r"(?<![\w.\"])[a-z_]\w*")


@dataclass(frozen=True, slots=True)
class _Statement:
    text: str
    line: int

    @property
    def binds(self) -> set[str]:
        some = re.match(r"some\s+([\w\s,]+?)(?:\s+in\b|$)", self.text)
        assigned = re.match(r"([a-z_]\w*)\s*:=", self.text)
        names = set(re.split(r"[\s,]+", some.group(1))) if some else set()
        return names | ({assigned.group(1)} if assigned else set())

    @property
    def names(self) -> set[str]:
        return set(_NAME.findall(self.text))


def _holds(engine: Any, module: Module, statements: list[str]) -> bool | None:
    """Is a body true? Undefined is false; an error is None: nobody can say.

    Asked as a rule, not as a query: in a query this engine calls every ``every`` true.
    """
    package = ".".join(module.package)
    names = "|".join(map(re.escape, sorted(module.rule_names)))
    body = "\n\t".join(re.sub(rf"(?<![\w.\"])({names})\b", rf"data.{package}.\1", one) for one in statements)
    imports = "".join(f"import {'.'.join(path)} as {alias}\n" for alias, path in module.imports.items())
    asking = engine.clone()
    try:
        asking.add_policy("explain.rego", f"package interlock_explain\n{imports}holds if {{\n\t{body}\n}}\n")
        return bool(json.loads(asking.eval_rule_as_json("data.interlock_explain.holds")) is True)
    except (RuntimeError, ValueError):
        return None


_PATH = re.compile(r"\b(?:input|data\.settings)(?:\.\w+)+")
_OPAQUE = "input.call.arguments"


def _found(text: str, document: Any) -> str:
    """What the document says where a condition looks. Arguments are not repeated: they may be somebody's secrets."""
    shown = []
    for path in dict.fromkeys(_PATH.findall(text)):
        if path.startswith("input.") and not path.startswith(_OPAQUE):
            text = json.dumps(_at(document, path.split(".")[1:]))
            shown.append(f"{path.removeprefix('input.')} is {text if len(text) <= 60 else text[:60] + '…'}")
    return "; ".join(shown)


def _at(value: Any, parts: list[str]) -> Any:
    for part in parts:
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return value
