"""Reading the syntax tree that the embedded engine gives of a Rego file.

The tree is JSON: each node is an object with one key, its kind. Only what the loader needs is named here: references,
calls, ``with``, rule heads, and where each of them stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import regorus

from interlock.errors import PolicyError

Node = Any


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference such as ``input.call.arguments[name]``.

    Attributes:
        parts: names from the root on; None for a part that is computed.
        line: where it stands, from 1.
    """

    parts: tuple[str | None, ...]
    line: int


@dataclass(slots=True)
class Rule:
    """One rule: its name, what it refers to, what it calls.

    Attributes:
        given: each call with the references among its arguments.
        head: the whole name as it is written.
        default: constant value of a ``default`` rule, else None.
        domains: those of ``refs`` that are only iterated over: what is read of their elements stands elsewhere.
        bindings: local variable → reference that it iterates over (``some x in …``, ``every x in …``).
        aliases: local variable → reference that it was assigned.
        negations, comprehensions, withs: lines where they stand.
        rebound: one of its variables stands for two things in different places.
        node: the rule's own tree.
        data: bytes of the file.
    """

    name: str
    head: tuple[str | None, ...]
    line: int
    node: Node
    data: bytes
    is_default: bool = False
    is_function: bool = False
    default: Node = None
    refs: list[Ref] = field(default_factory=list)
    calls: list[Ref] = field(default_factory=list)
    given: list[tuple[Ref, list[tuple[str | None, ...]]]] = field(default_factory=list)
    domains: list[Ref] = field(default_factory=list)
    bindings: dict[str, Ref] = field(default_factory=dict)
    aliases: dict[str, Ref] = field(default_factory=dict)
    negations: list[int] = field(default_factory=list)
    comprehensions: list[int] = field(default_factory=list)
    withs: list[int] = field(default_factory=list)
    everies: list[tuple[int, Ref | None]] = field(default_factory=list)
    rebound: bool = False

    def bind(self, name: str, ref: Ref, table: dict[str, Ref]) -> None:
        """Note what a variable stands for. One name for two things is noted too: then nobody may rely on the first."""
        self.rebound = self.rebound or name in self.bindings or name in self.aliases
        table[name] = ref


@dataclass(slots=True)
class Module:
    """One file: its package, what it imports (name → path) and its rules."""

    path: str
    text: str
    package: tuple[str, ...]
    line: int
    imports: dict[str, tuple[str, ...]]
    rules: list[Rule]

    @property
    def rule_names(self) -> set[str]:
        return {rule.name for rule in self.rules}


MAX_NESTING: Final = 10

_SKIPPED: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|#[^\n]*')


def _nesting(text: str) -> int:
    """How deep brackets nest outside strings and comments."""
    depth = deepest = 0
    for char in _SKIPPED.sub("", text):
        if char in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}":
            depth -= 1
    return deepest


@lru_cache(maxsize=512)
def parse_module(path: str, text: str) -> Module:
    """Parse one file. The same text gives the same tree, which nobody changes.

    Raises:
        PolicyError: the file has a syntax error, with file, line and the engine's words.
    """
    deepest = _nesting(text)
    if deepest > MAX_NESTING:
        raise PolicyError(
            f"{path}: brackets nested {deepest} deep; at most {MAX_NESTING}: the parser's time doubles with each"
        )
    engine = regorus.Engine()
    try:
        engine.add_policy(path, text)
        (module,) = json.loads(engine.get_ast_as_json())
    except (RuntimeError, ValueError) as error:
        raise PolicyError(syntax_error(path, error)) from None
    tree = module["ast"]
    package = ref_of(tree["package"]["refr"])
    assert package is not None, "a package is a constant reference"
    imports: dict[str, tuple[str, ...]] = {}
    for one in tree.get("imports") or []:
        target = ref_of(one["refr"])
        if target is not None and target.parts[0] != "rego":
            path_parts = tuple(part or "" for part in target.parts)
            alias = _alias(text, one.get("as")) or path_parts[-1]
            imports[alias] = path_parts
    return Module(
        path,
        text,
        tuple(part or "" for part in package.parts),
        tree["package"]["span"]["line"],
        imports,
        [_rule(one, text.encode()) for one in tree.get("rules") or []],
    )


def code_of(module: Module) -> str | None:
    """Code of the control that a file belongs to, or None for the entry point and libraries."""
    if module.package[:2] == ("interlock", "controls") and len(module.package) == 3:
        return module.package[2]
    if module.package[:1] == ("controls",) and len(module.package) == 2:
        return module.package[1]
    return None


def syntax_error(path: str, error: Exception) -> str:
    """The engine's message without its stack trace, which names paths of the machine it was built on."""
    lines = [line.rstrip() for line in str(error).split("Stack backtrace")[0].splitlines() if line.strip()]
    place = next((line.removeprefix("-->").strip() for line in lines if line.startswith("-->")), path)
    what = next((line.removeprefix("error:").strip() for line in lines if line.startswith("error:")), "not Rego")
    shown = next((line.split("|", 1)[1].strip() for line in lines if line[:1].isdigit() and "|" in line), "")
    return f"{place}: {what}" + (f" in `{shown}`" if shown else "")


def _alias(text: str, span: Any) -> str:
    if not isinstance(span, dict):
        return ""
    data = text.encode()
    return data[span["start"] : span["end"]].decode()


def _rule(node: Node, data: bytes) -> Rule:
    if "Default" in node:
        inner = node["Default"]
        head = ref_of(inner["refr"])
        rule = Rule(
            _root(head),
            head.parts if head else (),
            inner["span"]["line"],
            node,
            data,
            is_default=True,
            default=inner["value"],
        )
        rule.is_function = bool(inner.get("args"))
        _collect(inner["value"], rule)
        return rule
    inner = node["Spec"]
    (head_kind, head_node), *_ = inner["head"].items()
    head = ref_of(head_node["refr"])
    rule = Rule(
        _root(head), head.parts if head else (), inner["span"]["line"], node, data, is_function=head_kind == "Func"
    )
    for key, part in head_node.items():
        if key == "refr":
            _collect_index(part, rule)
        else:
            _collect(part, rule)
    _collect(inner["bodies"], rule)
    return rule


def _root(ref: Ref | None) -> str:
    return (ref.parts[0] if ref and ref.parts[0] else "") or ""


def _collect_index(node: Node, rule: Rule) -> None:
    """The computed parts of a rule's head (``answers[code]``)."""
    if isinstance(node, dict) and "RefBrack" in node:
        _collect(node["RefBrack"]["index"], rule)
        _collect_index(node["RefBrack"]["refr"], rule)
    elif isinstance(node, dict) and "RefDot" in node:
        _collect_index(node["RefDot"]["refr"], rule)


def _collect(node: Node, rule: Rule) -> None:
    if isinstance(node, list):
        for item in node:
            _collect(item, rule)
        return
    if not isinstance(node, dict):
        return
    if node.get("with_mods"):
        rule.withs.append(first_line(node))
    for kind, inner in node.items():
        if kind in ("Var", "RefDot", "RefBrack"):
            ref = ref_of({kind: inner})
            if ref is not None:
                rule.refs.append(ref)
            for index in _indices({kind: inner}):
                _collect(index, rule)
        elif kind == "Call":
            called = ref_of(inner["fcn"])
            if called is not None:
                rule.calls.append(called)
                given = [ref.parts for ref in map(ref_of, inner["params"]) if ref is not None]
                rule.given.append((called, given))
            _collect(inner["params"], rule)
        elif kind in ("SomeIn", "Every"):
            _iteration(kind, inner, rule)
        else:
            if kind == "AssignExpr":
                name, bound = ref_of(inner["lhs"]), ref_of(inner["rhs"])
                if name is not None and len(name.parts) == 1 and name.parts[0] and bound is not None:
                    rule.bind(name.parts[0], bound, rule.aliases)
            if kind == "NotExpr":
                rule.negations.append(first_line(inner))
            elif kind in ("ArrayCompr", "SetCompr", "ObjectCompr"):
                rule.comprehensions.append(first_line(inner))
            _collect(inner, rule)


def _iteration(kind: str, inner: Node, rule: Rule) -> None:
    collection = inner["collection" if kind == "SomeIn" else "domain"]
    over = ref_of(collection)
    value = inner["value"]
    name = value["Var"]["value"] if kind == "SomeIn" and isinstance(value, dict) and "Var" in value else ""
    if kind == "Every":
        rule.everies.append((first_line(inner), over))
        name = _every_name(inner, rule.data)
    if over is not None and name:
        rule.bind(name, over, rule.bindings)
        rule.refs.append(over)
        rule.domains.append(over)
        for index in _indices(collection):
            _collect(index, rule)
    else:
        _collect(collection, rule)
    for key, part in inner.items():
        if key not in ("span", "value", "key", "collection", "domain") or (
            kind == "SomeIn" and key in ("value", "key")
        ):
            _collect(part, rule)


def _every_name(inner: Node, data: bytes) -> str:
    """The tree names the variable of an ``every`` by its place only."""
    span = inner["value"]
    return data[span["start"] : span["end"]].decode() if isinstance(span, dict) and "start" in span else ""


def _indices(node: Node) -> Iterator[Node]:
    while isinstance(node, dict):
        if "RefDot" in node:
            node = node["RefDot"]["refr"]
        elif "RefBrack" in node:
            yield node["RefBrack"]["index"]
            node = node["RefBrack"]["refr"]
        elif "Var" in node:
            return
        else:
            yield node
            return


def ref_of(node: Node) -> Ref | None:
    """The reference that a node is, or None."""
    parts: list[str | None] = []
    line = 0
    while isinstance(node, dict):
        if "Var" in node:
            parts.append(node["Var"]["value"])
            return Ref(tuple(reversed(parts)), line or node["Var"]["span"]["line"])
        if "RefDot" in node:
            inner = node["RefDot"]
            parts.append(inner["field"][1] if isinstance(inner["field"], list) else None)
        elif "RefBrack" in node:
            inner = node["RefBrack"]
            index = inner["index"]
            parts.append(index["String"]["value"] if isinstance(index, dict) and "String" in index else None)
        else:
            return None
        line = line or inner["span"]["line"]
        node = inner["refr"]
    return None


def first_line(node: Node) -> int:
    """First line at or below a node."""
    if isinstance(node, dict):
        span = node.get("span")
        if isinstance(span, dict):
            return int(span["line"])
        if "line" in node and isinstance(node["line"], int):
            return int(node["line"])
        children: Any = node.values()
    elif isinstance(node, list):
        children = node
    else:
        return 0
    return next((line for line in map(first_line, children) if line), 0)


def constant(node: Node) -> Any:
    """The JSON value of a constant term.

    Raises:
        ValueError: the term is computed.
    """
    (kind, inner), *_ = node.items()
    if kind in ("String", "Number", "Bool"):
        return inner["value"]
    if kind == "Null":
        return None
    if kind == "Array":
        return [constant(item) for item in inner["items"]]
    if kind == "Object":
        pairs = [(constant(key), constant(value)) for _, key, value in inner["fields"]]
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a key stands twice")
        return dict(pairs)
    raise ValueError(kind)


MAX_BOUND: Final = 64


def absolute(module: Module, rule: Rule, ref: Ref) -> tuple[str | None, ...] | None:
    """A reference from its root (``input`` or ``data``), through imports and variables of ``some``, ``every`` and
    assignments; None when it begins at a local name. A chain of variables that is too long is the whole input."""
    parts = ref.parts
    for _ in range(MAX_BOUND):
        root, rest = parts[0], parts[1:]
        if root in ("input", "data"):
            return parts
        if root in module.imports:
            return (*module.imports[root], *rest)
        if root in rule.bindings:
            parts = (*rule.bindings[root].parts, None, *rest)
        elif root in rule.aliases:
            parts = (*rule.aliases[root].parts, *rest)
        else:
            return None
    return ("input",)


def until_computed(parts: Iterable[str | None]) -> tuple[str, ...]:
    """The constant beginning of a reference: a computed part may stand for any name."""
    names: list[str] = []
    for part in parts:
        if part is None:
            break
        names.append(part)
    return tuple(names)


def paths_read(modules: Iterable[Module], root: str) -> list[tuple[str, ...]]:
    """Paths below ``input`` or ``data`` that some files read, each once, sorted; a path covers what lies below it."""
    found = set()
    for module in modules:
        for rule in module.rules:
            for ref in rule.refs:
                full = absolute(module, rule, ref)
                if full is not None and full[0] == root:
                    found.add(until_computed(full[1:]))
    return sorted(one for one in found if not any(one[: len(other)] == other for other in found if other != one))


SHAPE: Final = "\x00shape"


def looks_at(modules: Iterable[Module]) -> tuple[tuple[str | None, ...], ...]:
    """All of the document that some files can see: evaluation is a function of what stands at these paths.

    None is every element or every computed key; a path covers what lies below it. :data:`SHAPE` at the end of a path is
    how many elements there are.
    """
    found: set[tuple[str | None, ...]] = set()
    for module in modules:
        for rule in module.rules:
            for ref in rule.refs:
                full = absolute(module, rule, ref)
                if full is not None and full[0] == "input":
                    # When a name stands for two things, a reference through it can't be told: then all of what is
                    # iterated over counts as read.
                    only_iterated = not rule.rebound and any(ref is one for one in rule.domains)
                    found.add((*full[1:], None, SHAPE) if only_iterated else full[1:])
    covered = {one for one in found if any(one[: len(other)] == other for other in found if other != one)}
    return tuple(sorted(found - covered, key=lambda path: tuple(part or "" for part in path)))


def strings(module: Module) -> list[str]:
    """Every string constant in a file's rules, each once, sorted."""
    found: set[str] = set()

    def walk(node: Node) -> None:
        if isinstance(node, dict):
            text = node.get("String")
            if isinstance(text, dict):
                found.add(text["value"])
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    for rule in module.rules:
        walk(rule.node)
    return sorted(found)


def span_of(node: Node) -> tuple[int, int, int]:
    """Where a rule stands: first byte, byte after the last, line. An `else` belongs to the rule before it."""
    (inner,) = node.values()
    span = inner["span"]
    return span["start"], span["end"], span["line"]


def statements(node: Node) -> Iterator[tuple[int, int, int, bool]]:
    """Every statement in a rule's bodies, also below ``every`` and in comprehensions.

    Yields first byte, byte after the last, line, and whether it is a condition (rather than a ``some`` or an
    assignment, which bind names).
    """
    for query in _queries(node):
        for statement in query["stmts"]:
            (kind, inner), *_ = statement["literal"].items()
            binds = kind in ("SomeIn", "SomeVars", "Every") or (
                kind == "Expr" and isinstance(inner.get("expr"), dict) and "AssignExpr" in inner["expr"]
            )
            span = statement["span"]
            yield span["start"], span["end"], span["line"], not binds


def bodies(node: Node) -> Iterator[tuple[Node, list[tuple[int, int, int]]]]:
    """The bodies of a rule, ``else`` branches too: the value that each would give (a tree, or None for true) and the
    place of each statement at its top level (first byte, byte after the last, line)."""
    inner = node["Spec"]
    (head,) = inner["head"].values()
    assign = head.get("assign")
    for body in inner["bodies"]:
        given = body.get("assign") or assign
        found = []
        for statement in body["query"]["stmts"]:
            span = statement["span"]
            found.append((span["start"], span["end"], span["line"]))
        yield (given["value"] if given else None), found


def closed(data: bytes, start: int, end: int) -> int:
    """The engine's spans leave out the quote that closes a string at their end; the true end."""
    text = re.sub(rb"\\.", b"", data[start:end])
    for quote in (b'"', b"`"):
        if text.count(quote) % 2 and data[end : end + 1] == quote:
            return end + 1
    return end


def _queries(node: Node) -> Iterator[Node]:
    if isinstance(node, dict):
        query = node.get("query")
        if isinstance(query, dict) and "stmts" in query:
            yield query
        for child in node.values():
            yield from _queries(child)
    elif isinstance(node, list):
        for child in node:
            yield from _queries(child)
