"""Rego tests beside the controls, run in the embedded engine, and mutants that they must catch.

A test is a rule ``test_*`` in a package that ends in ``_test``; it passes when it is true. A *mutant* is a control with
one thing loosened: a proof dropped, a default made weaker, a condition turned round or dropped. A mutant that every
test lets pass shows a line that nobody has tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import regorus

from interlock.errors import PolicyError
from interlock.policy.bundle import Bundle
from interlock.policy.rego_ast import (
    Module,
    Rule,
    closed,
    code_of,
    constant,
    parse_module,
    span_of,
    statements,
    syntax_error,
)
from interlock.policy.sources import MAX_FILE_BYTES, Source

MutantKind: TypeAlias = Literal["proof dropped", "default loosened", "condition flipped", "condition dropped"]


@dataclass(frozen=True, slots=True)
class RegoTest:
    """One test rule."""

    package: str
    name: str
    path: str
    line: int

    @property
    def query(self) -> str:
        return f"data.{self.package}.{self.name}"


@dataclass(frozen=True, slots=True)
class RegoResult:
    """What a test gave; ``problem`` is empty when it passed."""

    test: RegoTest
    problem: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A control with one thing loosened, and where."""

    code: str
    path: str
    line: int
    kind: MutantKind
    what: str
    source: Source


def read_tests(directory: str | Path) -> list[Source]:
    """All ``*_test.rego`` files below a directory.

    Raises:
        PolicyError: a file can't be read.
    """
    root = Path(directory)
    found = []
    for path in sorted(root.rglob("*_test.rego")):
        if path.stat().st_size > MAX_FILE_BYTES:
            raise PolicyError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        try:
            found.append(Source(str(path), path.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise PolicyError(f"{path}: can't be read ({type(error).__name__})") from None
    return found


def find_tests(sources: Iterable[Source]) -> list[RegoTest]:
    """The tests in some files, in order.

    Raises:
        PolicyError: a syntax error, or a test that no runner would find because its package does not end in ``_test``.
    """
    found = []
    for source in sources:
        module = parse_module(source.path, source.text)
        package = ".".join(module.package)
        tests = [rule for rule in module.rules if rule.name.startswith("test_")]
        if not package.endswith("_test"):
            raise PolicyError(f"{source.path}:{module.line}: package {package} holds tests; its name must end in _test")
        found += [RegoTest(package, rule.name, source.path, rule.line) for rule in tests]
    return found


class Suite:
    """Controls with their tests, loaded once per set of controls."""

    def __init__(self, bundle: Bundle, tests: Sequence[Source]) -> None:
        self.bundle = bundle
        self.sources = tuple(tests)
        self.tests = find_tests(tests)

    def run(self, only: Iterable[RegoTest] | None = None, mutant: Mutant | None = None) -> Iterator[RegoResult]:
        """Run tests against the bundle, or against the bundle with one file replaced by a mutant's."""
        engine = self._engine(mutant)
        for test in self.tests if only is None else only:
            yield RegoResult(test, self._problem(engine, test))

    def of(self, code: str) -> list[RegoTest]:
        """The tests of one control: those in the package that is named for it."""
        return [test for test in self.tests if test.package.removesuffix("_test").rpartition(".")[2] == code]

    def catches(self, mutant: Mutant) -> RegoTest | None:
        """The first test that a mutant fails, or None when it survives."""
        ours = self.of(mutant.code)
        others = [test for test in self.tests if test not in ours]
        return next((result.test for result in self.run([*ours, *others], mutant) if result.problem), None)

    def _engine(self, mutant: Mutant | None) -> Any:
        engine = regorus.Engine()
        for source in self.bundle.sources:
            text = mutant.source.text if mutant is not None and source.path == mutant.path else source.text
            engine.add_policy(source.path, text)
        for source in self.sources:
            engine.add_policy(source.path, source.text)
        engine.add_data_json(self.bundle.data.decode())
        engine.set_input_json("{}")
        return engine

    @staticmethod
    def _problem(engine: Any, test: RegoTest) -> str:
        try:
            value = engine.eval_rule_as_json(test.query)
        except Exception as error:
            return syntax_error(test.path, error)
        return "" if value.strip() == "true" else "is not true"


# --- mutants --------------------------------------------------------------------------------------------------------

_WEAKER: Final = {"deny": ("ask", "allow"), "ask": ("allow",)}


def mutants(bundle: Bundle, *, own: bool | None = None) -> Iterator[Mutant]:
    """Every mutant of every control; with ``own`` only of the shipped (True) or the user's (False) ones."""
    for source in bundle.sources:
        if own is not None and source.own is not own:
            continue
        module = parse_module(source.path, source.text)
        code = code_of(module)
        if code is not None:
            yield from _mutants(code, source, module)


def _mutants(code: str, source: Source, module: Module) -> Iterator[Mutant]:
    data = source.text.encode()
    for rule in module.rules:
        if rule.is_default:
            yield from _defaults(code, source, rule)
            continue
        start, end, line = span_of(rule.node)
        end = closed(data, start, end)
        if not rule.is_function:  # a function is not a proof; its conditions are flipped below
            yield _mutant(code, source, line, "proof dropped", start, end, "", data[start:end].decode())
        for first, last, at, flippable in statements(rule.node):
            if not flippable:
                continue
            last = closed(data, first, last)
            text = data[first:last].decode()
            yield _mutant(code, source, at, "condition flipped", first, last, _flipped(text), text)
            if not text.startswith("is_"):
                # Where a test of type only keeps engines together, no test in one engine can miss it.
                yield _mutant(code, source, at, "condition dropped", first, last, "true", text)


def _defaults(code: str, source: Source, rule: Rule) -> Iterator[Mutant]:
    if rule.name != "verdict":
        return
    try:
        verdict = constant(rule.default)["verdict"]
    except (ValueError, KeyError, TypeError):
        return
    start, end, line = span_of(rule.node)
    data = source.text.encode()
    end = closed(data, start, end)
    text = data[start:end].decode()
    for weaker in _WEAKER.get(verdict, ()):
        loose = text.replace(f'"{verdict}"', f'"{weaker}"', 1)
        yield _mutant(code, source, line, "default loosened", start, end, loose, f"{verdict} → {weaker}")


def _flipped(text: str) -> str:
    """The opposite of a condition, true where it was false or undefined."""
    if text.startswith("not "):
        return text[4:]
    if text.count(" == ") == 1:
        return text.replace(" == ", " != ")
    if text.count(" != ") == 1:
        return text.replace(" != ", " == ")
    return f"not {text}"


def _mutant(
    code: str, source: Source, line: int, kind: MutantKind, start: int, end: int, new: str, what: str
) -> Mutant:
    data = source.text.encode()
    text = (data[:start] + new.encode() + data[end:]).decode()
    return Mutant(code, source.path, line, kind, " ".join(what.split())[:100], replace(source, text=text))
