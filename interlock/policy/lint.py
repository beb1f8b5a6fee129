"""What looks wrong in controls that load: findings for `interlock check`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from interlock.model.manifest_lint import Finding
from interlock.policy.builtins import ALLOWED
from interlock.policy.bundle import Bundle
from interlock.policy.dialects import comparisons, differing, nodes, tested
from interlock.policy.rego_ast import Module, Rule, absolute, code_of, parse_module, ref_of
from interlock.policy.sources import Source

# Everything but these is an error, or undefined, for an argument of an unexpected type: in a proof, silence.
_TOTAL: Final = frozenset("is_array is_boolean is_null is_number is_object is_set is_string type_name".split())
_FALLIBLE: Final = ALLOWED - _TOTAL


def lint_bundle(bundle: Bundle) -> Iterator[Finding]:
    """Findings on the user's controls."""
    for source in bundle.sources:
        if source.own:
            continue
        module = parse_module(source.path, source.text)
        code = code_of(module)
        if code is not None:
            yield from _companions(code, source)
            for rule in module.rules:
                yield from _proof(module, rule)
        for rule in module.rules:
            for line, message in differing(module, rule):
                yield Finding("engines-differ", f"{module.path}:{line}", message)


def _companions(code: str, source: Source) -> Iterator[Finding]:
    file = Path(source.path)
    if not file.exists():
        return  # in an archive: its folder is not at hand
    wanted = {
        "test": (file.with_name(f"{file.stem}_test.rego"),),
        "page": (file.with_name(f"{file.stem}.md"), file.with_name("README.md")),
        "samples": (file.with_name("samples.json"), file.with_name("samples.yaml")),
    }
    for what, places in wanted.items():
        if not any(place.is_file() for place in places):
            yield Finding(
                f"no-{what}", source.path, f"control {code} has no {what}; expected {places[0].name} beside it"
            )


def _proof(module: Module, rule: Rule) -> Iterator[Finding]:
    """Every rule of a control may be part of a proof; one that can be silent or true by accident is found here."""
    if rule.is_default or rule.is_function:
        return
    for line in rule.negations:
        yield Finding(
            "negation",
            f"{module.path}:{line}",
            "`not` is true of what is missing; test a field that is there for the value it must have",
        )
    for line in rule.comprehensions:
        yield Finding(
            "comprehension",
            f"{module.path}:{line}",
            "a comprehension over what is missing is empty, not undefined; test fields directly",
        )
    for line, over in rule.everies:
        # A reference into the list (`xs[0].y`) tests that there is one.
        if over is None or not any(ref.parts[: len(over.parts)] == over.parts != ref.parts for ref in rule.refs):
            yield Finding(
                "every-of-nothing",
                f"{module.path}:{line}",
                "`every` is true of an empty list; test its first element beside it, as in `xs[0].y == …`",
            )
    known = tested(rule)
    for call, given in rule.given:
        name = ".".join(part or "" for part in call.parts)
        if name in _FALLIBLE and not known.issuperset(given):
            yield Finding(
                "fallible-builtin",
                f"{module.path}:{call.line}",
                f"{name} fails on a value of another type, and the decision with it; test the type first or use ==",
            )


_MEANING: Final[dict[tuple[str, ...], str]] = {("tool", "name"): "tool", ("tool", "server"): "server"}


def constants(bundle: Bundle) -> Iterator[tuple[str, str, str]]:
    """Words that the user's controls compare with names of tools and servers, or look for among labels."""
    for source in bundle.sources:
        if source.own:
            continue
        module = parse_module(source.path, source.text)
        for rule in module.rules:
            for _, line, sides in comparisons(rule.node):
                yield from _named(module, rule, line, *sides)
            for needle, line, collection in _memberships(rule.node):
                yield from _named(module, rule, line, needle, collection)


def _named(module: Module, rule: Rule, line: int, one: Any, other: Any) -> Iterator[tuple[str, str, str]]:
    for text, ref_node in ((one, other), (other, one)):
        ref = ref_of(ref_node)
        full = absolute(module, rule, ref) if ref is not None else None
        if full is None or full[0] != "input" or not isinstance(text, dict):
            continue
        path = tuple(part or "" for part in full[1:])
        kind = _MEANING.get(path) or ("category" if path[:1] in (("exposure",), ("forecast",)) else "")
        for word in _words(text):
            if kind:
                yield f"{module.path}:{line}", kind, word


def _words(node: Any) -> Iterator[str]:
    if "String" in node:
        yield node["String"]["value"]
    for kind in ("Set", "Array"):
        if kind in node:
            for item in node[kind]["items"]:
                yield from _words(item)


def _memberships(node: Any) -> Iterator[tuple[Any, int, Any]]:
    """``x in xs`` anywhere in a tree."""
    for inner in nodes(node, "Membership"):
        yield inner["value"], inner["span"]["line"], inner["collection"]
