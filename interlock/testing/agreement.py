"""Looking for documents over which engines disagree (T13), and keeping the smallest as a scenario.

Answers are compared whole: verdict, codes and remedies of every control, and with them the decision. An error is
alike to an error only.

    python -m interlock.testing.agreement interlock.toml --engine package.module:make --write tests/disagreement.yaml

asks the embedded engine and the engine that ``make(bundle)`` gives, about well-typed and hostile documents.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from interlock.assembly import bundled, read_parts
from interlock.errors import EngineUnavailable
from interlock.model.answers import Answer, judged, parse_answers
from interlock.model.canonical import pack
from interlock.model.decisions import ENGINE_ERROR
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.samples import SAMPLES
from interlock.ports import Engine
from interlock.testing.engines import differences
from interlock.testing.strategies import documents, holes, hostile_documents

Answers = dict[str, Answer]


def answers(engine: Engine, raw: bytes) -> Answers | None:
    """What an engine answers, read strictly; None for an error, silence, and what is no answer."""
    try:
        return parse_answers(engine.evaluate(raw), engine.controls)
    except EngineUnavailable:
        return None


class Disagreement(AssertionError):
    """Two engines answer one document differently.

    Attributes:
        names: of the two engines.
        raw: the document.
        said: what each answered; None for an error.
        codes: the controls that answered differently; empty when one of the two erred.
    """

    def __init__(self, names: tuple[str, str], raw: bytes, said: tuple[Answers | None, Answers | None]) -> None:
        self.names, self.raw, self.said = names, raw, said
        one, other = said
        self.codes: tuple[str, ...] = ()
        if one is not None and other is not None:
            self.codes = tuple(sorted(code for code in {*one, *other} if one.get(code) != other.get(code)))
        try:
            shown = differences(json.loads(raw))
        except ValueError:
            shown = f"{raw[:80]!r}"
        what = ", ".join(self.codes) or " and ".join(
            f"{name} {'errs' if given is None else 'answers'}" for name, given in zip(names, said, strict=True)
        )
        super().__init__(f"{names[0]} and {names[1]} disagree about a document with {shown}: {what}")


def compare(first: Engine, second: Engine, raw: bytes, only: Sequence[str] | None = None) -> None:
    """Ask both.

    Args:
        only: codes of the controls that both know; by default all.

    Raises:
        Disagreement: their answers, or the decisions that follow from them, are not the same.
    """
    one, other = answers(first, raw), answers(second, raw)
    if only is not None:
        one, other = _of(one, only), _of(other, only)
    alike = one == other
    if alike and one is not None and other is not None:
        alike = judged(one, first.controls) == judged(other, first.controls)
    if not alike:
        raise Disagreement((first.name, second.name), raw, (one, other))


def _of(given: Answers | None, codes: Sequence[str]) -> Answers | None:
    return None if given is None else {code: one for code, one in given.items() if code in codes}


def search(
    first: Engine, second: Engine, examples: int = 1000, only: Sequence[str] | None = None
) -> Disagreement | None:
    """A document over which they disagree, as small as can be, or None when nobody found one. The same every time.

    ``examples`` well-typed documents; every sample with one key left out or of another type, which is where rules fail
    open and what chance finds last; and as many hostile documents.
    """
    found = _drawn(first, second, documents(), examples, only)
    for sample in () if found else reversed(SAMPLES.values()):
        for _, holed in itertools.chain([("", sample)], holes(sample)):
            if _parts(first, second, holed, only) is not None:
                return _smallest(first, second, holed, only)
    found = found or _drawn(first, second, hostile_documents(), examples, only)
    return _smallest(first, second, json.loads(found.raw), only) if found else None


def _parts(first: Engine, second: Engine, document: Any, only: Sequence[str] | None) -> Disagreement | None:
    try:
        compare(first, second, pack(document), only)
    except Disagreement as found:
        return found
    return None


def _drawn(
    first: Engine, second: Engine, drawn: SearchStrategy[Any], examples: int, only: Sequence[str] | None
) -> Disagreement | None:
    # Not shrunk here: that takes a hundred times as long as `_smallest`, which knows what a harmless document is.
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(document=drawn)
    def agree(document: Any) -> None:
        compare(first, second, pack(document), only)

    try:
        agree()
    except Disagreement as found:
        return found
    return None


def _smallest(first: Engine, second: Engine, document: Any, only: Sequence[str] | None) -> Disagreement:
    """The same disagreement with everything as in a harmless call that may be so."""

    def tried(whole: Any, usual: Any, here: tuple[str, ...]) -> Any:
        value, wanted = _at(whole, here), _at(usual, here)
        if value == wanted and type(value) is type(wanted):
            return whole
        calmer = _with(whole, here, wanted)
        if _parts(first, second, calmer, only) is not None:
            return calmer
        for key in wanted if isinstance(wanted, dict) and isinstance(value, dict) else ():
            if key in value:
                whole = tried(whole, usual, (*here, key))
        return whole

    usual = SAMPLES["quiet tool"]
    calm = document
    if isinstance(document, dict):
        for key in usual:
            if key in calm:
                calm = tried(calm, usual, (key,))
    found = _parts(first, second, calm, only)
    assert found is not None, "every step kept the disagreement"
    return found


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _with(value: Any, path: tuple[str, ...], new: Any) -> Any:
    key, *rest = path
    return {**value, key: _with(value[key], tuple(rest), new) if rest else new}


@dataclass(frozen=True, slots=True)
class Setup:
    """What a scenario file needs to load the same controls: a configuration, or a manifest in place."""

    configuration: str = ""
    settings: Mapping[str, Any] | None = None
    policies: Sequence[str] = ()


def as_scenario(found: Disagreement, setup: Setup | None = None) -> str:
    """A scenario file in which the document is asked and the first engine's answer expected. JSON, and so YAML."""
    setup = setup or Setup()
    first = found.said[0]
    expected: dict[str, Any] = {"expect": "deny", "code": ENGINE_ERROR}
    if first is not None:
        verdict, reasons = _decided(first)
        expected = {"expect": verdict, "answers": {code: _written(one) for code, one in sorted(first.items())}}
        if reasons:
            expected["code"] = reasons
    step = {"document": _ascii(found.raw), **expected}
    told = ", ".join(found.codes) or "one of them errs"
    file: dict[str, Any] = {
        "version": 1,
        "title": f"{found.names[0]} and {found.names[1]} disagree: {told}",
    }
    if setup.configuration:
        file["configuration"] = setup.configuration
    else:
        file["manifest"] = {"version": 1, "tools": {}}
    if setup.settings:
        file["settings"] = dict(setup.settings)
    if setup.policies:
        file["policies"] = list(setup.policies)
    file["stories"] = {
        "disagreement": {
            "kind": "attack",
            "says": f"The smallest document found over which {found.names[1]} answers otherwise.",
            "steps": [step],
        }
    }
    return json.dumps(file, indent=2) + "\n"


def _ascii(raw: bytes) -> str:
    """The same JSON text in ASCII: letters outside it stand in strings only, where an escape means the same. YAML would
    read the escaped halves of one letter as two."""
    units = (
        char if char.isascii() else "".join(f"\\u{high:02x}{low:02x}" for high, low in _pairs(char.encode("utf-16-be")))
        for char in raw.decode()
    )
    return "".join(units)


def _pairs(data: bytes) -> Iterator[tuple[int, int]]:
    return zip(data[::2], data[1::2], strict=True)


def _decided(given: Answers) -> tuple[str, str]:
    strictest = max(given.values(), key=lambda one: one.verdict.strictness).verdict
    codes = sorted(code for code, one in given.items() if one.verdict is strictest)
    return strictest.value, "" if strictest.strictness == 0 else codes[0]


def _written(answer: Answer) -> dict[str, Any]:
    remedies = list(answer.remedies)
    return {"verdict": answer.verdict.value, **({"remedies": remedies} if remedies else {})}


def main(arguments: Sequence[str]) -> int:
    """See the top of this file. 0: no disagreement; 1: one was found, and written; 2: something can't be loaded."""
    parser = argparse.ArgumentParser(prog="interlock.testing.agreement", description=__doc__)
    parser.add_argument("configuration", type=Path)
    parser.add_argument("--engine", required=True, help="package.module:function, which makes an engine of a bundle")
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--write", type=Path, default=Path("disagreement.yaml"))
    given = parser.parse_args(arguments)
    module, _, name = given.engine.partition(":")
    try:
        make = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        print(f"--engine: there is no {given.engine}: {error}", file=sys.stderr)  # noqa: T201
        return 2
    _, bundle = bundled(read_parts(given.configuration))
    first, second = EmbeddedEngine(bundle), make(bundle)
    found = search(first, second, given.examples)
    if found is not None:
        setup = Setup(configuration=str(given.configuration.resolve()))
        given.write.write_text(as_scenario(found, setup), encoding="utf-8")
        print(f"{found}\nwritten to {given.write}", file=sys.stderr)  # noqa: T201
        return 1
    print(f"no disagreement in {given.examples} documents of each kind", file=sys.stderr)  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
