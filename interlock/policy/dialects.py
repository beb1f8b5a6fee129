"""Constructs that engines read differently, found by asking the embedded engine and OPA the same thing (T13).

What the embedded engine would answer more loosely than OPA, and no reader would expect, is refused at load
(:func:`refused`). What differs at a margin is a finding of ``interlock check`` (:func:`differing`): the control works,
and the message says where it would not mean the same. Each has its evidence in ``tests/agreement/gaps.toml``, where it
is asked of both engines again by every run of the tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from interlock.policy.rego_ast import Module, Rule, absolute, first_line, ref_of

# Name of a builtin → where engines part.
_BUILTINS: Final = {
    "array.slice": "an index with a fraction is an error in one engine and undefined in another",
    "ceil": "engines round numbers next to whole ones, or just below 0, differently",
    "floor": "engines round numbers next to whole ones, or just below 0, differently",
    "format_int": "engines print small negative fractions differently",
    "indexof": "looking for an empty text is an error in one engine and an answer in another",
    "lower": "engines fold letters outside ASCII differently",
    "product": "one engine counts in decimals, another in binary fractions: 0.1 × 3 is 0.3 in one only",
    "sort": "engines order sets and objects differently",
    "substring": "an offset with a fraction is an error in one engine and an empty text in another",
    "sum": "one engine counts in decimals, another in binary fractions: 0.1 + 0.2 is 0.3 in one only",
    "time.parse_rfc3339_ns": "engines accept different spellings; input.now is in the one that all accept",
    "to_number": "engines disagree about what is a number",
    "upper": "engines fold letters outside ASCII differently",
}
_ORDERED: Final = {"Lt": "<", "Le": "<=", "Gt": ">", "Ge": ">=", "Ne": "!="}
_ARITHMETIC: Final = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%"}
_COMPOSITE: Final = ("Set", "Array", "Object", "SetCompr", "ArrayCompr", "ObjectCompr")
_INFIX: Final = ("BoolExpr", "BinExpr", "ArithExpr", "AssignExpr", "Membership")
_TYPE_TESTS: Final = frozenset("is_array is_boolean is_null is_number is_object is_set is_string type_name".split())
_LOCAL_TEXT: Final = frozenset("arguments id name namespace now parent server value argument noun".split())

# Of a pattern's escapes these mean Unicode's letters, digits and spaces in one engine and ASCII's in another.
_CLASSES: Final = re.compile(r"\\[dDwWsSbB]")
# And these are operators, or errors, in one engine only.
_ODD: Final = re.compile(
    r"\\[<>uQEGhHRXKC0-9]|&&|--|~~|\[\^?\[(?!:)|\(\?[a-zA-Z]*-?[a-zA-Z]*[xuR]|[*+?}]\+|\*\*|\\p\{\^"
    r"|(?<!\\)(?<!\\[pPx])\{(?!\d+(?:,\d*)?\})|\[[^\]]*\\[dwsDWS]-"
)
_UNICODE: Final = (
    r"regex.match: \d, \w, \s and \b are Unicode's in one engine and ASCII's in another; write [0-9] or [A-Za-z0-9_]"
)
_NEGATED: Final = (
    "`not` over a missing field inside a call, a calculation or a list is true in one engine and undefined in another;"
    " assign the inner part first, or test the field with =="
)


def refused(module: Module, rule: Rule) -> Iterator[str]:
    """What can't load: one line per place."""
    if None in rule.head[:-1] or (None in rule.head and _is_set(rule)):
        yield (
            f"{module.path}:{rule.line}: a rule whose name has a computed part, as in names[key].more or names[key]"
            " contains …, loses values in one engine; let the key stand last, as in names[key] := …"
        )
    for line in _unions(rule.node):
        yield (
            f"{module.path}:{line}: a body or set that begins with a union, as in {{ a | b == c }}, is a comprehension,"
            " and as a body always true, in one engine; write (a | b) == c, or give the union a name first"
        )
    for line in _memberships(rule.node):
        yield (
            f"{module.path}:{line}: `in` as a part of something else is false in one engine where a field is missing,"
            " and undefined in another; let it stand by itself, as a statement or the body of a rule"
        )
    for line in _object_patterns(rule.node):
        yield (
            f"{module.path}:{line}: an object as a pattern matches objects with more keys in one engine and not in"
            " another; test each field by itself, as in input.tool.egress == …"
        )


def differing(module: Module, rule: Rule) -> Iterator[tuple[int, str]]:
    """Line and message of everything that engines may answer differently."""
    yield from _builtins(rule)
    yield from _patterns(rule)
    yield from _comparisons(module, rule)
    yield from _calculations(rule)
    yield from _iterations(module, rule)
    yield from _negations(rule)


def _builtins(rule: Rule) -> Iterator[tuple[int, str]]:
    for call, given in rule.given:
        name = ".".join(part or "" for part in call.parts)
        if name == "time.parse_rfc3339_ns" and given == [("input", "now")]:
            continue
        if name in _BUILTINS:
            yield call.line, f"{name}: {_BUILTINS[name]}"
    for inner, name, params in _calls(rule.node):
        if name == "count" and params and _may_be_text(rule, params[0]):
            yield first_line(inner), "count: engines count the letters of a text differently; test is_array(…) first"


def _calls(node: Any) -> Iterator[tuple[Any, str, list[Any]]]:
    for inner in nodes(node, "Call"):
        ref = ref_of(inner["fcn"])
        if ref is not None:
            yield inner, ".".join(part or "" for part in ref.parts), inner["params"]


def _may_be_text(rule: Rule, param: Any) -> bool:
    """Text itself, or something in the arguments, or a field of the document that is text."""
    if "String" in param or "RawString" in param:
        return True
    ref = ref_of(param)
    if ref is None or ref.parts in tested(rule):
        return False
    return ref.parts[:3] == ("input", "call", "arguments") or (ref.parts[0] == "input" and ref.parts[-1] in _LOCAL_TEXT)


def _patterns(rule: Rule) -> Iterator[tuple[int, str]]:
    for inner, name, params in _calls(rule.node):
        if name != "regex.match" or not params:
            continue
        (kind, value), *_ = params[0].items()
        if kind not in ("String", "RawString"):
            yield first_line(inner), "regex.match: a pattern that is computed may be read differently; write it out"
            continue
        pattern = value["value"]
        if _CLASSES.search(pattern):
            yield first_line(inner), _UNICODE
        if _ODD.search(pattern):
            yield first_line(inner), "regex.match: the pattern holds what is an operator or an error in one engine only"


def _comparisons(module: Module, rule: Rule) -> Iterator[tuple[int, str]]:
    for operator, line, sides in comparisons(rule.node):
        if operator not in _ORDERED:
            continue
        shown = _ORDERED[operator]
        if any(_untested_input(module, rule, side) for side in sides):
            yield line, f"{shown} compares across types differently in different engines; test is_number(…) first"
        elif shown != "!=" and any(kind in side for side in sides for kind in _COMPOSITE):
            yield line, f"{shown} orders sets and objects differently in different engines"


def _untested_input(module: Module, rule: Rule, side: Any) -> bool:
    ref = ref_of(side)
    full = absolute(module, rule, ref) if ref is not None else None
    return ref is not None and full is not None and full[0] == "input" and ref.parts not in tested(rule)


def _calculations(rule: Rule) -> Iterator[tuple[int, str]]:
    for inner in nodes(rule.node, "ArithExpr"):
        sides = (inner["lhs"], inner["rhs"])
        if all(_whole(side) for side in sides) or any(kind in side for side in sides for kind in ("Set", "SetCompr")):
            continue
        shown = _ARITHMETIC.get(inner["op"], inner["op"])
        yield (
            first_line(inner),
            f"{shown} counts in decimals in one engine and in binary fractions in another: 0.1 + 0.2 is 0.3 in one",
        )
    for inner in nodes(rule.node, "UnaryExpr"):
        if "Number" not in inner["expr"]:
            yield first_line(inner), "- before anything but a number is an error in the embedded engine; write 0 - x"


def _whole(side: Any) -> bool:
    """A small whole number as written, or a count."""
    if "Number" in side:
        value = side["Number"]["value"]
        return isinstance(value, int) and abs(value) < 2**31
    ref = ref_of(side["Call"]["fcn"]) if "Call" in side else None
    return ref is not None and ref.parts == ("count",)


def _iterations(module: Module, rule: Rule) -> Iterator[tuple[int, str]]:
    for inner in nodes(rule.node, "Membership"):
        if inner["key"] is not None:
            yield inner["span"]["line"], "`key, value in` a set is undefined in the embedded engine; write `value in`"
    for inner in nodes(rule.node, "SomeIn"):
        ref = ref_of(inner["collection"])
        full = absolute(module, rule, ref) if ref is not None else None
        if ref is None or full is None or ref.parts in tested(rule):
            continue
        if full[:3] == ("input", "call", "arguments"):
            yield (
                ref.line,
                "`some … in` what is no list is an error in one engine and nothing in another; test is_array(…) first",
            )


def _negations(rule: Rule) -> Iterator[tuple[int, str]]:
    for inner in nodes(rule.node, "NotExpr"):
        if not _plain(inner["expr"]):
            yield first_line(inner), _NEGATED


def _plain(node: Any) -> bool:
    """What engines negate alike: a reference without a computed part, or one compared with a constant."""
    if "BoolExpr" in node:
        sides = (node["BoolExpr"]["lhs"], node["BoolExpr"]["rhs"])
        # With any other operator what is missing is no answer in one engine, and something to be negated in another.
        alike = node["BoolExpr"]["op"] == "Eq"
        return (
            alike and any(_constant(side) for side in sides) and all(_constant(side) or _direct(side) for side in sides)
        )
    return _direct(node)


def _direct(node: Any) -> bool:
    ref = ref_of(node)
    return ref is not None and None not in ref.parts


def _constant(node: Any) -> bool:
    return any(kind in node for kind in ("String", "RawString", "Number", "Bool", "Null"))


def _unions(node: Any) -> Iterator[int]:
    """Lines of bodies in braces whose first statement begins with `a | …`, whatever follows, and of sets that do."""
    for literal in nodes(node, "Set"):
        for item in literal.get("items", ())[:1]:  # the head of a rule that gives a set is called so too
            if "BinExpr" in item and item["BinExpr"]["op"] == "Union":
                yield literal["span"]["line"]
    for body in node.get("Spec", {}).get("bodies", ()):
        query = body["query"]
        first = query["stmts"][0] if query["stmts"] else None
        if first is None or first["span"]["start"] == query["span"]["start"] or "Expr" not in first["literal"]:
            continue
        begin, inner = first["span"]["start"], first["literal"]["Expr"]["expr"]
        while inner is not None:
            ((kind, value),) = inner.items()
            # In parentheses the union begins behind the statement.
            if kind == "BinExpr" and value["op"] == "Union" and value["span"]["start"] == begin:
                yield first_line(inner)
                break
            inner = value.get("lhs", value.get("value")) if kind in _INFIX else None


def _memberships(node: Any, alone: bool = False) -> Iterator[int]:
    """Lines of every `in` that is no statement, negated or not: a negated one is a finding already."""
    if isinstance(node, list):
        for child in node:
            yield from _memberships(child)
    elif isinstance(node, dict):
        for kind, child in node.items():
            if kind == "Membership" and isinstance(child, dict) and not alone:
                yield first_line(node)
            statement = kind in ("Expr", "NotExpr") and isinstance(child, dict)
            yield from _memberships(child["expr"] if statement else child, alone=statement)


def _object_patterns(node: Any) -> Iterator[int]:
    """Lines where an object is written in the place of a pattern: what a `some … in` or a parameter is called, and
    either side of `=` or the left one of `:=`."""
    for inner in nodes(node, "SomeIn"):
        yield from (first_line(inner["collection"]) for key in ("key", "value") if _has_object(inner[key]))
    for inner in nodes(node, "Func"):
        yield from (first_line(arg) for arg in inner["args"] if _has_object(arg))
    for inner in nodes(node, "AssignExpr"):
        sides = (inner["lhs"],) if inner["op"] == "ColEq" else (inner["lhs"], inner["rhs"])
        yield from (first_line(inner) for side in sides if _has_object(side))


def _is_set(rule: Rule) -> bool:
    return "Spec" in rule.node and "Set" in rule.node["Spec"]["head"]


def _has_object(node: Any) -> bool:
    """Is it an object, or a list with one in it?"""
    if not isinstance(node, dict):
        return False
    return "Object" in node or ("Array" in node and any(map(_has_object, node["Array"]["items"])))


# --- the tree ---------------------------------------------------------------------------------------------------------


def nodes(node: Any, kind: str) -> Iterator[Any]:
    """Every node of a kind, anywhere in a tree."""
    if isinstance(node, dict):
        inner = node.get(kind)
        if isinstance(inner, dict):
            yield inner
        for child in node.values():
            yield from nodes(child, kind)
    elif isinstance(node, list):
        for child in node:
            yield from nodes(child, kind)


def comparisons(node: Any) -> Iterator[tuple[str, int, tuple[Any, Any]]]:
    """Operator, line and both sides of every comparison in a tree."""
    for inner in nodes(node, "BoolExpr"):
        yield inner["op"], inner["span"]["line"], (inner["lhs"], inner["rhs"])


def tested(rule: Rule) -> set[tuple[str | None, ...]]:
    """References whose type the rule tests, with a builtin that answers for any value."""
    return {ref for call, given in rule.given if call.parts[0] in _TYPE_TESTS for ref in given}
