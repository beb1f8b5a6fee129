"""What a bundle must keep to be loaded: one line per problem, with file, line, what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interlock.model.answers import CODE
from interlock.model.decisions import GATE_CODES
from interlock.model.document import document_schema
from interlock.policy.builtins import ALLOWED, RESERVED
from interlock.policy.dialects import refused
from interlock.policy.rego_ast import Module, Ref, Rule, absolute, code_of, constant, until_computed
from interlock.policy.sources import Source


class Checks:
    """Every rule that a bundle must keep. Each method yields one line per problem."""

    def __init__(self, modules: Sequence[tuple[Source, Module]], settings: Mapping[str, Any]) -> None:
        self._modules = modules
        self._settings = settings
        self._schema = document_schema()
        self._rules: dict[tuple[str, ...], set[str]] = {}
        self._functions: dict[tuple[str, ...], set[str]] = {}
        for _, module in modules:
            self._rules.setdefault(module.package, set()).update(module.rule_names)
            functions = {rule.name for rule in module.rules if rule.is_function}
            self._functions.setdefault(module.package, set()).update(functions)

    def all(self) -> Iterator[str]:
        yield from self._packages()
        yield from self._defaults()
        yield from self._controls()
        for source, module in self._modules:
            yield from self._reserved(module)
            for rule in module.rules:
                yield from self._rule(source, module, rule)
        yield from self._recursion()

    def _packages(self) -> Iterator[str]:
        owners: dict[str, str] = {}
        for source, module in self._modules:
            where = f"{module.path}:{module.line}"
            name = ".".join(module.package)
            if source.own:
                continue
            first = module.package[0]
            if source.guest and first != "controls":
                yield f"{where}: a workspace may add controls only, not package {name}; write package controls.<code>"
            elif first not in ("controls", "lib"):
                yield f"{where}: package {name} is not yours to define; write package controls.<code> (or lib.<name>)"
            elif len(module.package) != 2 or not CODE.fullmatch(module.package[1]):
                yield f"{where}: package {name} must be {first}.<name>, one lower-case name with _ and digits"
        for _, module in self._modules:
            code = code_of(module)
            if code is None:
                continue
            kind = module.package[0]
            if code in GATE_CODES:
                yield f"{module.path}:{module.line}: code {code!r} is the gate's own; choose another name"
            other = owners.setdefault(code, kind)
            if other != kind:
                yield f"{module.path}:{module.line}: code {code!r} is a shipped control; choose another name"

    def _defaults(self) -> Iterator[str]:
        """Of two defaults the embedded engine takes one, by the order of their files, and OPA takes neither."""
        known: dict[tuple[str | None, ...], str] = {}
        for _, module in self._modules:
            for rule in module.rules:
                here = f"{module.path}:{rule.line}"
                if rule.is_default and rule.name != "verdict":  # that one has a message of its own
                    first = known.setdefault((*module.package, *rule.head), here)
                    if first != here:
                        yield f"{here}: `default {rule.name}` stands at {first} already; keep one"

    def _controls(self) -> Iterator[str]:
        by_code: dict[str, list[Module]] = {}
        for _, module in self._modules:
            code = code_of(module)
            if code is not None:
                by_code.setdefault(code, []).append(module)
        if not by_code:
            yield "no control is loaded: an interlock without controls would decide nothing"
        for code, modules in sorted(by_code.items()):
            path, line = modules[0].path, modules[0].line
            defaults = [(module, rule) for module in modules for rule in module.rules if rule.is_default]
            verdicts = [(module, rule) for module, rule in defaults if rule.name == "verdict"]
            if not verdicts:
                yield (
                    f"{path}:{line}: control {code} has no `default verdict`;"
                    ' write default verdict := {"verdict": "deny"} (or "ask"): its objection when nothing is proved'
                )
            if len(verdicts) > 1 and len(modules) == 1:
                second = verdicts[1][1]
                yield f"{path}:{second.line}: control {code} has a second `default verdict`; keep one"
            for module in modules:
                for rule in module.rules:
                    if rule.name == "verdict" and rule.head != ("verdict",):
                        yield f"{path}:{rule.line}: `verdict` is one value; a rule can't define a part of it"
            for module, rule in verdicts:
                yield from self._default(module, rule, code)
            if len(modules) > 1:
                files = ", ".join(module.path for module in modules)
                yield f"{path}:{line}: control {code} is spread over {files}; keep it in one file"

    def _default(self, module: Module, rule: Rule, code: str) -> Iterator[str]:
        try:
            value = constant(rule.default)
        except (ValueError, KeyError, AttributeError, TypeError):
            value = None
        verdict = value.get("verdict") if isinstance(value, dict) else None
        if verdict not in ("ask", "deny"):
            yield (
                f"{module.path}:{rule.line}: the default verdict of {code} must be an objection,"
                ' {"verdict": "ask"} or {"verdict": "deny"}: what is not proved is not allowed'
            )

    def _rule(self, source: Source, module: Module, rule: Rule) -> Iterator[str]:
        for line in rule.withs:
            yield (
                f"{module.path}:{line}: `with` has no place in a control: it swaps what is being judged;"
                " use it in tests"
            )
        for call in rule.calls:
            yield from self._call(module, call)
        for ref in rule.refs:
            yield from self._ref(source, module, rule, ref)
        yield from refused(module, rule)

    def _call(self, module: Module, call: Ref) -> Iterator[str]:
        if self._is_function(module, call):
            return
        name = ".".join(part or "?" for part in call.parts)
        if name not in ALLOWED:
            yield (
                f"{module.path}:{call.line}: builtin {name} is not allowed in controls: decisions must depend on the"
                " document only (time is input.now); see docs/writing-policies.md for the list"
            )

    def _is_function(self, module: Module, call: Ref) -> bool:
        """Does a call name a function that these files define? Names of builtins can't be taken, see `_reserved`."""
        root = call.parts[0] or ""
        if len(call.parts) == 1 and root in self._functions.get(module.package, ()):
            return True
        full = call.parts if root == "data" else (*module.imports.get(root, ("",)), *call.parts[1:])
        names = tuple(part or "" for part in full[1:])
        return full[0] == "data" and bool(names) and names[-1] in self._functions.get(names[:-1], ())

    def _reserved(self, module: Module) -> Iterator[str]:
        for rule in module.rules:
            if rule.name in RESERVED:
                yield f"{module.path}:{rule.line}: a rule can't be called {rule.name!r}, like a builtin; rename it"
        for alias in module.imports:
            if alias in RESERVED or alias in ("input", "data"):
                yield f"{module.path}:{module.line}: an import can't be called {alias!r} like a builtin; use `as`"

    def _ref(self, source: Source, module: Module, rule: Rule, ref: Ref) -> Iterator[str]:
        full = absolute(module, rule, ref)
        if full is None:
            return
        if full[0] == "input":
            yield from self._input(module, ref.line, full)
        elif full[0] == "data":
            yield from self._data(source, module, ref.line, full)

    def _input(self, module: Module, line: int, path: tuple[str | None, ...]) -> Iterator[str]:
        schema: Any = self._schema
        for place, part in enumerate(path[1:], 1):
            if "$ref" in schema:
                schema = self._schema["$defs"][schema["$ref"].rpartition("/")[2]]
            if schema.get("type") == "array":
                schema = schema.get("items", {})
                continue
            properties = schema.get("properties")
            if properties is None and schema.get("type") in ("string", "boolean", "integer"):
                shown = ".".join(one or "_" for one in path[:place])
                yield f"{module.path}:{line}: {shown} is a {schema['type']}; there is nothing below it"
                return
            if properties is None or part is None:
                return  # opaque from here on (call.arguments), or computed
            if part not in properties:
                shown = ".".join(one or "_" for one in path[: place + 1])
                known = ", ".join(sorted(properties))
                yield f"{module.path}:{line}: the document has no {shown}; there is {known}"
                return
            schema = properties[part]

    def _data(self, source: Source, module: Module, line: int, path: tuple[str | None, ...]) -> Iterator[str]:
        shown = ".".join(part or "_" for part in path)
        if path[1:2] == ("settings",):
            value: Any = self._settings
            for part in path[2:]:
                if not isinstance(value, Mapping) or part is None:
                    return
                if part not in value:
                    yield f"{module.path}:{line}: there is no setting {shown.removeprefix('data.settings.')}"
                    return
                value = value[part]
            return
        names = until_computed(path[1:])
        if not any(self._defines(package, rules, names) for package, rules in self._rules.items()):
            if source.own and names == ("controls",):
                return  # the user's controls, of which there may be none
            yield f"{module.path}:{line}: nothing defines {shown}; it would always be undefined"

    @staticmethod
    def _defines(package: tuple[str, ...], rules: set[str], names: tuple[str, ...]) -> bool:
        if names[: len(package)] == package:
            return len(names) == len(package) or names[len(package)] in rules
        return package[: len(names)] == names

    def _recursion(self) -> Iterator[str]:
        """A cycle of rules kills the process inside the engine, so it is refused from the syntax tree."""
        nodes: dict[tuple[str, ...], tuple[Module, int]] = {}
        edges: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for _, module in self._modules:
            for rule in module.rules:
                node = (*module.package, rule.name)
                nodes.setdefault(node, (module, rule.line))
                edges.setdefault(node, set()).update(self._targets(module, rule))
        resolved = {
            node: {
                other
                for target in targets
                for other in nodes
                if other[: len(target)] == target or target[: len(other)] == other
            }
            for node, targets in edges.items()
        }
        done: set[tuple[str, ...]] = set()
        for start in sorted(resolved):
            cycle = _cycle(start, resolved, done)
            if cycle:
                module, line = nodes[cycle[0]]
                names = " → ".join(".".join(node) for node in cycle)
                yield f"{module.path}:{line}: rules refer to each other in a circle: {names}; break it"
                return

    def _targets(self, module: Module, rule: Rule) -> Iterator[tuple[str, ...]]:
        for ref in (*rule.refs, *rule.calls):
            root = ref.parts[0] or ""
            if root in self._rules[module.package] and root not in rule.bindings:
                yield (*module.package, root)
                continue
            full = absolute(module, rule, ref)
            if full is not None and full[0] == "data":
                yield until_computed(full[1:])


def _cycle(
    start: tuple[str, ...], edges: Mapping[tuple[str, ...], set[tuple[str, ...]]], done: set[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """A cycle that can be reached from ``start``, or an empty list. Depth-first without recursion of our own."""
    path: list[tuple[str, ...]] = []
    stack: list[tuple[tuple[str, ...], Iterator[tuple[str, ...]]]] = []
    if start not in done:
        path, stack = [start], [(start, iter(sorted(edges.get(start, ()))))]
    while stack:
        node, successors = stack[-1]
        following = next(successors, None)
        if following is None:
            stack.pop()
            path.pop()
            done.add(node)
        elif following in path:
            return [*path[path.index(following) :], following]
        elif following not in done:
            path.append(following)
            stack.append((following, iter(sorted(edges.get(following, ())))))
    return []
