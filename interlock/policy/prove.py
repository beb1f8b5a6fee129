"""Proving a set of controls on the abstract space of the document, exhaustively (T5, T6), and a manifest by search.

Each control is asked on the product of the dimensions that it reads, under every combination of the settings that it
reads. Since the combined verdict is the strictest of all, a law that holds for each control holds for all together.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import regorus

from interlock.errors import EngineUnavailable
from interlock.model.answers import judged, parse_answers
from interlock.model.calls import FrozenCall, call_digest
from interlock.model.canonical import pack
from interlock.model.control_plane import Control
from interlock.model.decisions import Verdict
from interlock.model.destinations import Destination
from interlock.model.digests import Digest
from interlock.model.document import Asked, Document, Setting, build
from interlock.model.labels import Label, category_of, leg_of
from interlock.model.manifest import Manifest
from interlock.model.origins import Origin, value_digest
from interlock.model.settings import SETTING_VALUES
from interlock.model.tools import Audience, Effect, Egress, Kind, ToolId, ToolSpec
from interlock.policy.bundle import Bundle
from interlock.policy.rego_ast import Module, code_of, parse_module, paths_read, strings
from interlock.policy.sources import Source
from interlock.policy.space import SILENT, Dimension, Path, dimensions, document, leaks, neighbours, states, valued

Progress: TypeAlias = Callable[[str, int], None]

# Another JSON type for every type, and the missing key (T6).
_OTHER: Final[tuple[Any, ...]] = (None, True, 0, "", [], {}, {"a": SILENT})


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A law that does not hold, with the smallest pair of documents that shows it.

    Attributes:
        law: ``T5``, ``T6`` or ``leak``.
        weaker, stronger: values of the dimensions; for T6 ``stronger`` is the same state and ``damage`` says what was
            done to the document; for a leak only ``stronger`` is given.
    """

    law: str
    code: str
    says: str
    settings: Mapping[str, Any]
    weaker: Mapping[str, Any]
    stronger: Mapping[str, Any]
    verdicts: tuple[str, str]
    damage: str = ""

    @property
    def size(self) -> int:
        """How many dimensions are not at their weakest."""
        base = dict(zip([one.name for one in dimensions()], [one.values[0] for one in dimensions()], strict=True))
        return sum(value != base.get(name, ()) for name, value in self.stronger.items())


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proved about one control: over how many documents, and what it reads beyond the abstract space."""

    code: str
    documents: int
    beyond: tuple[str, ...]
    counterexamples: tuple[Counterexample, ...]


class _Control:
    """One control in an engine of its own, asked by document; answers are kept by what it reads."""

    def __init__(self, bundle: Bundle, module: Module, code: str) -> None:
        self._bundle = bundle
        self.code = code
        self._rule = f"data.{'.'.join(module.package)}.verdict"
        modules = [module, *_libraries(bundle)]
        self.paths = paths_read(modules, "input")
        self.settings = {path[1] for path in paths_read(modules, "data") if path[:1] == ("settings",) and len(path) > 1}
        self._engines: dict[tuple[tuple[str, Any], ...], Any] = {}
        self._known: dict[tuple[Any, ...], int] = {}
        self.asked = 0

    def strictness(self, settings: Mapping[str, Any], value: Any, look: bytes | None = None) -> int:
        """0 allow, 1 ask, 2 deny; no answer and an error are denials. ``look`` is the value's, where it is known."""
        key = (*sorted(settings.items()), self.look(value) if look is None else look)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._ask(settings, value)
            self.asked += 1
        return known

    def look(self, value: Any) -> bytes:
        """What the control sees of a document."""
        return pack([project(value, path) for path in self.paths])

    def _ask(self, settings: Mapping[str, Any], value: Any) -> int:
        key = tuple(sorted(settings.items()))
        engine = self._engines.get(key)
        if engine is None:
            engine = regorus.Engine()
            for source in self._bundle.sources:
                engine.add_policy(source.path, source.text)
            data = json.loads(self._bundle.data)
            data["settings"] = {**data["settings"], **settings}
            engine.add_data_json(json.dumps(data))
            self._engines[key] = engine
        try:
            # Only what the control reads: a tenth of the document, and most of the time is reading it in.
            engine.set_input_json(json.dumps(_slim(value, self.paths)))
            answer = json.loads(engine.eval_rule_as_json(self._rule))
        except RuntimeError:
            del self._engines[key]  # after an error the object may still hold the document before
            return 2
        verdict = answer.get("verdict") if isinstance(answer, dict) else None
        return {"allow": 0, "ask": 1}.get(verdict if isinstance(verdict, str) else "", 2)


def _libraries(bundle: Bundle) -> Iterator[Module]:
    for source in bundle.sources:
        module = parse_module(source.path, source.text)
        if module.package[0] == "lib" or module.package[:2] == ("interlock", "lib"):
            yield module


MAX_STATES: Final = 200_000
_CREDENTIAL_FACTS: Final = (("forecast", "credentials"), ("call", "credentials"))

_HOLE: Final = "\x00missing"


def project(value: Any, path: Path) -> Any:
    """What a control can see at a path; a missing key is told apart from null."""
    for part in path:
        if not isinstance(value, dict) or part not in value:
            return [_HOLE, value if not isinstance(value, dict | list) else type(value).__name__]
        value = value[part]
    return value


def _slim(value: Any, paths: Sequence[Path]) -> Any:
    """The parts of a value at some paths, holes and damage included."""
    heads = {path[0] for path in paths if path}
    if not isinstance(value, dict) or any(not path for path in paths):
        return value
    return {
        head: _slim(value[head], [path[1:] for path in paths if path[:1] == (head,)]) for head in heads if head in value
    }


def controls_of(bundle: Bundle) -> Iterator[tuple[str, Source, Module]]:
    """Code, file and syntax tree of every control."""
    for source in bundle.sources:
        module = parse_module(source.path, source.text)
        code = code_of(module)
        if code is not None:
            yield code, source, module


def prove_controls(
    bundle: Bundle, progress: Progress = lambda _code, _count: None, only: Collection[str] = ()
) -> list[Proof]:
    """T5 and T6 for every control, or for those in ``only``. Each law's counterexample is the smallest there is."""
    found = []
    for code, _, module in controls_of(bundle):
        if only and code not in only:
            continue
        control = _Control(bundle, module, code)
        named = categories_named([module])
        if any(_touches(path, fact) for path in control.paths for fact in _CREDENTIAL_FACTS):
            named.add("credentials")
        space = [
            one
            for one in dimensions(named)
            if any(_touches(path, seen) for path in one.paths for seen in control.paths)
        ]
        size = math.prod(len(one.values) for one in space)
        if size > MAX_STATES:
            found.append(Proof(code, 0, (f"{size} states, more than {MAX_STATES}: nothing was proved",), ()))
            continue
        covered = {path for one in space for path in one.paths}
        beyond = sorted(
            "input." + ".".join(path) for path in control.paths if not any(_touches(path, one) for one in covered)
        )
        examples: dict[str, Counterexample] = {}
        for settings in _settings(control.settings):
            for example in _laws(control, space, settings, progress):
                best = examples.get(example.law)
                if best is None or example.size < best.size:
                    examples[example.law] = example
        found.append(Proof(code, control.asked, tuple(beyond), tuple(examples.values())))
    return found


def categories_named(modules: Iterable[Module]) -> set[str]:
    """Words in controls that may be categories of labels; all other categories look alike to them."""
    return {one for module in modules for one in strings(module) if _is_category(one)}


def _is_category(text: str) -> bool:
    return text.isidentifier() and text.islower() and text not in _WORDS


# Words of the document that are no categories.
_WORDS: Final = frozenset(
    [
        *(one.value for group in (Verdict, Egress, Effect, Audience, Kind, Origin, Control) for one in group),
        *(value for values in SETTING_VALUES.values() for value in values),
        *("verdict", "remedies", "enforce", "shadow"),
    ]
)


def _touches(one: Path, other: Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _settings(read: set[str]) -> Iterator[dict[str, Any]]:
    names = sorted(read & SETTING_VALUES.keys())
    for values in itertools.product(*(SETTING_VALUES[name] for name in names)):
        yield dict(zip(names, values, strict=True))


_VERDICTS: Final = ("allow", "ask", "deny")


def _laws(
    control: _Control, space: Sequence[Dimension], settings: Mapping[str, Any], progress: Progress
) -> Iterator[Counterexample]:
    """The first, and so the weakest, counterexample of each law. States come weak ones first."""
    every = list(states(space))
    verdicts: dict[tuple[int, ...], int] = {}
    looks: dict[bytes, tuple[int, ...]] = {}
    for state in every:
        value = document(valued(space, state))
        look = control.look(value)
        verdicts[state] = control.strictness(settings, value, look)
        # Two states that look alike to the control are damaged alike.
        looks.setdefault(look, state)
        progress(control.code, control.asked)
    found = next(
        (
            (state, following)
            for state in every
            if verdicts[state]
            for following in neighbours(space, state)
            if verdicts[following] < verdicts[state]
        ),
        None,
    )
    if found is not None:
        weaker, stronger = found
        says = "it objects in a state and objects less in a stronger one"
        pair = (_VERDICTS[verdicts[weaker]], _VERDICTS[verdicts[stronger]])
        yield Counterexample("T5", control.code, says, settings, valued(space, weaker), valued(space, stronger), pair)
    for state in looks.values():
        if not verdicts[state]:
            continue
        values = valued(space, state)
        for damage, damaged in _damaged(document(values), control.paths):
            other = control.strictness(settings, damaged)
            progress(control.code, control.asked)
            if other < verdicts[state]:
                says = "it objects less when the document is damaged"
                pair = (_VERDICTS[verdicts[state]], _VERDICTS[other])
                yield Counterexample("T6", control.code, says, settings, values, values, pair, damage)
                return


def _damaged(value: Mapping[str, Any], paths: Sequence[Path]) -> Iterator[tuple[str, Any]]:
    """The document with one key deleted or given another JSON type, for every key on the way to what is read."""
    for path in sorted({one[:length] for one in paths for length in range(1, len(one) + 1)}):
        if path[:2] == ("call", "arguments") and len(path) > 2:
            continue  # arguments are opaque
        found = project(value, path)
        shown = "input." + ".".join(path)
        if isinstance(found, list) and found[:1] == [_HOLE]:
            continue
        yield f"{shown} deleted", _with(value, path, None, delete=True)
        for other in _OTHER:
            if _kind(other) != _kind(found):
                yield f"{shown} replaced by {json.dumps(other)}", _with(value, path, other)


def _kind(value: Any) -> str:
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def _with(value: Any, path: Path, new: Any, *, delete: bool = False) -> Any:
    copy = dict(value)
    if len(path) > 1:
        copy[path[0]] = _with(copy[path[0]], path[1:], new, delete=delete)
    elif delete:
        del copy[path[0]]
    else:
        copy[path[0]] = new
    return copy


# --- the trifecta itself --------------------------------------------------------------------------------------------

Evaluate: TypeAlias = Callable[[bytes], str | bytes]


def combined_verdict(bundle: Bundle, evaluate: Evaluate, value: Mapping[str, Any]) -> Verdict:
    """What the gate would decide on a document. An engine error is a denial."""
    try:
        verdict, _ = judged(parse_answers(evaluate(pack(value)), bundle.controls), bundle.controls)
    except EngineUnavailable:
        return Verdict.DENY
    return verdict


def prove_no_leak(bundle: Bundle, evaluate: Evaluate) -> tuple[int, Counterexample | None]:
    """In no state does a call leave with untrusted and private content to an ungrounded destination unasked.

    Returns:
        The number of documents, and the smallest counterexample or None.
    """
    wanted = {"untrusted", "private", "private by this call", "private by siblings", "egress", "grounded", "known"}
    space = [one for one in dimensions() if one.name in wanted]
    count = 0
    for state in states(space):
        values = valued(space, state)
        value = document(values)
        if not leaks(value):
            continue
        count += 1
        verdict = combined_verdict(bundle, evaluate, value)
        if verdict is Verdict.ALLOW:
            says = "a call leaves with untrusted and private content to an ungrounded destination, and nobody is asked"
            return count, Counterexample("leak", "all controls", says, {}, {}, values, ("", verdict.value))
    return count, None


# --- sequences of tools ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Move:
    """One call of a sequence: the tool, whether its destinations are grounded, and what was decided."""

    spec: ToolSpec
    grounded: bool
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Search:
    """What the search over sequences found: states seen, documents asked, and the shortest sequence that leaks."""

    states: int
    documents: int
    leak: tuple[Move, ...]
    complete: bool


_NOBODY: Final = ToolId("", "undeclared_tool")
_SOMEBODY: Final = Destination("to", Kind.EMAIL, "somebody@example.com")
_NOW: Final = datetime(2026, 11, 29, 12, tzinfo=UTC)


def document_of(spec: ToolSpec, held: tuple[Label, ...], *, grounded: bool) -> Document:
    """The real document of a call of this tool in a conversation that holds these labels."""
    receives = spec.egress is not Egress.NONE or bool(spec.destinations)
    one = Asked(
        call=FrozenCall(spec.id, "", b"{}", call_digest(spec.id, b"{}")),
        spec=spec,
        arguments={},
        destinations=(_SOMEBODY,) if receives else (),
        unclassified=(),
        paths=(),
    )
    typed = frozenset({value_digest(_SOMEBODY.kind, _SOMEBODY.value)}) if grounded else frozenset()
    nobody: frozenset[Digest] = frozenset()
    setting = Setting("c-0", "default", "", held, typed, frozenset(), nobody, deafening=False, protected=())
    return build(one, (), setting, _NOW)


def _abstracted(spec: ToolSpec, named: set[str]) -> ToolSpec:
    """The spec with every category that no control names replaced by one: the controls can't tell them apart."""

    def plain(labels: tuple[Label, ...]) -> tuple[Label, ...]:
        return tuple(
            one if category_of(one) in (*named, "unknown") else Label(f"{leg_of(one).value}:other") for one in labels
        )

    return replace(spec, returns=plain(spec.returns), reads=plain(spec.reads), opens=plain(spec.opens))


def search_sequences(bundle: Bundle, evaluate: Evaluate, manifest: Manifest, *, max_states: int = 20_000) -> Search:
    """Breadth-first over the label sets that sequences of this manifest's tools can reach from a clean conversation.

    Every tool may be called at any time, with grounded or ungrounded destinations, and its result is always external.
    Asked calls are followed too, as if a person had approved them. An undeclared tool is among the tools.
    """
    named = {"credentials", *categories_named(module for _, _, module in controls_of(bundle))}
    specs = [_abstracted(spec, named) for spec in (*manifest, manifest.spec(_NOBODY))]
    clean: frozenset[Label] = frozenset()
    came_by: dict[frozenset[Label], tuple[Move, ...]] = {clean: ()}
    waiting = deque([clean])
    asked = 0
    while waiting:
        held = waiting.popleft()
        for spec, grounded in itertools.product(specs, (True, False)):
            if spec.egress is Egress.NONE and not spec.destinations and grounded:
                continue
            value = document_of(spec, tuple(sorted(held)), grounded=grounded)
            verdict = combined_verdict(bundle, evaluate, value)
            asked += 1
            moves = (*came_by[held], Move(spec, grounded, verdict))
            if verdict is Verdict.ALLOW and leaks(value):
                return Search(len(came_by), asked, moves, complete=True)
            if verdict is Verdict.DENY:
                continue
            reached = held | set(spec.private) | set(spec.untrusted) | set(spec.opens)
            if reached not in came_by:
                if len(came_by) >= max_states:
                    return Search(len(came_by), asked, (), complete=False)
                came_by[reached] = moves
                waiting.append(reached)
    return Search(len(came_by), asked, (), complete=True)
