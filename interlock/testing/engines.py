"""Laws of an engine: T3, T4, T5, T6 and T13, on documents that fit the schema and on any JSON at all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import orjson
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import EngineUnavailable
from interlock.model.answers import Answer, parse_answers
from interlock.model.canonical import pack
from interlock.model.decisions import Verdict
from interlock.model.look import look
from interlock.policy.samples import SAMPLES
from interlock.testing.strategies import Document, documents, holes, hostile_documents, tightenings
from interlock.testing.traces import Tally, quiet, told

NO_JSON: Final = (b"", b"{", b"\xff", b"nul", b"[" * 10_000, b'{"a":1}x', b"NaN")
THREADS: Final = 4

Answers = dict[str, Answer]


class EngineLaws:
    """See :func:`interlock.testing.check_engine`."""

    def __init__(self, tally: Tally, engine: Any, oracle: Any, examples: int) -> None:
        self._tally, self._engine, self._oracle, self._examples = tally, engine, oracle, examples
        self._failed = ""

    def all_hold(self) -> None:
        self._knows_the_shipped_controls()
        self._no_json_is_no_answer()
        self._law(documents(), self._alike)
        self._law(hostile_documents(), self._alike)
        self._law(documents(), self._writing_does_not_matter, times=3)
        self._law(documents(), self._nothing_else_matters, times=10)
        self._law(documents(), self._no_step_loosens, times=10)
        self._law(documents(), self._no_hole_loosens, times=30)
        self._threads_do_not_matter()

    def _law(self, drawn: st.SearchStrategy[Any], law: Callable[[Any], None], times: int = 1) -> None:
        """One law for drawn documents. ``times``: how much more one example of it costs than another's."""

        @quiet(max(5, self._examples // times))
        @given(document=drawn)
        def holds(document: Any) -> None:
            self._tally.examples += 1
            law(document)

        self._failed = ""
        holds()

    # --- asking ---------------------------------------------------------------------------------------------------

    def _asked(self, engine: Any, raw: bytes) -> Answers | str:
        self._tally.steps += 1
        try:
            return parse_answers(engine.evaluate(raw), engine.controls)
        except EngineUnavailable:
            return "an error"

    def _verdicts(self, document: Any) -> dict[str, Verdict]:
        """Of every control, and of all together under the empty name. An error denies everywhere."""
        answers = self._asked(self._engine, pack(document))
        if isinstance(answers, str):
            return {**dict.fromkeys(self._engine.controls, Verdict.DENY), "": Verdict.DENY}
        found = {code: answer.verdict for code, answer in answers.items()}
        return {**found, "": max(found.values(), key=lambda one: one.strictness)}

    def _demand(self, holds: bool, theorem: str, steps: list[str], expected: object, held: object) -> None:
        if not holds:
            raise AssertionError(told(theorem, steps, str(expected), held))

    # --- laws -----------------------------------------------------------------------------------------------------

    def _knows_the_shipped_controls(self) -> None:
        missing = sorted(set(self._oracle.controls) - set(self._engine.controls))
        self._demand(not missing, "T13", ["the engine was loaded"], "all shipped controls", f"without {missing}")

    def _no_json_is_no_answer(self) -> None:
        """And what was no JSON leaves nothing behind: the next answer is that of the next document."""
        sample = pack(SAMPLES["every leg"])
        before = self._asked(self._engine, sample)
        for raw in NO_JSON:
            steps = [f"asked about the bytes {raw[:12]!r}"]
            try:
                answer = self._engine.evaluate(raw)
            except Exception:
                pass  # the port says EngineUnavailable; the gate takes any other exception for that
            else:
                self._demand(False, "T4", steps, "an exception", answer)
            after = self._asked(self._engine, sample)
            steps.append("asked about a document with every leg")
            self._demand(after == before, "T4", steps, f"as before: {_words(before)}", _words(after))

    def _alike(self, document: Any) -> None:
        raw = pack(document)
        ours, theirs = self._asked(self._oracle, raw), self._asked(self._engine, raw)
        steps = [f"asked about a document with {differences(document)}"]
        if isinstance(theirs, str):
            # Silence, errors and what is no answer deny; but an engine that can err says less than it could.
            self._demand(False, "T13, T4", steps, _words(ours), "an error, silence or no answer")
            return
        shipped = {code: answer for code, answer in theirs.items() if code in self._oracle.controls}
        if shipped != ours:
            wrong = sorted(code for code in ours if shipped.get(code) != dict(ours)[code])  # type: ignore[arg-type]  # answers
            self._demand(False, "T13", steps, _words(ours, wrong), _words(shipped, wrong))

    def _writing_does_not_matter(self, document: Document) -> None:
        raw = pack(document)
        first = self._asked(self._engine, raw)
        turned = orjson.dumps(_turned(document), option=orjson.OPT_INDENT_2)
        for name, other in (("again", raw), ("with its keys in another order", turned)):
            steps = [f"asked about a document with {differences(document)}", f"asked {name}"]
            now = self._asked(self._engine, other)
            self._demand(now == first, "T3", steps, _words(first), _words(now))

    def _nothing_else_matters(self, document: Document) -> None:
        """Documents that look alike at the paths of ``looks_at`` have one answer, since answers may be remembered."""
        paths = getattr(self._engine, "looks_at", None)
        if paths is None:
            return
        first = self._asked(self._engine, pack(document))
        same = look(document, paths)
        for name, other in tightenings(document):
            if look(other, paths) == same:
                steps = [f"asked about a document with {differences(document)}", f"asked again with {name}"]
                now = self._asked(self._engine, pack(other))
                self._demand(now == first, "T13 (looks_at)", steps, _words(first), _words(now))

    def _no_step_loosens(self, document: Document) -> None:
        self._none_loosens("T5", document, tightenings(document))

    def _no_hole_loosens(self, document: Document) -> None:
        self._none_loosens("T6", document, holes(document))

    def _none_loosens(self, theorem: str, document: Document, others: Iterator[tuple[str, Document]]) -> None:
        before = self._verdicts(document)
        for name, other in others:
            if self._failed and name != self._failed:
                continue  # shrinking: only the step that failed is of interest by now
            after = self._verdicts(other)
            for code, verdict in before.items():
                if after[code].strictness < verdict.strictness:
                    self._failed = name
                    steps = [f"asked about a document with {differences(document)}", f"asked again with {name}"]
                    who = code or "all together"
                    self._demand(False, theorem, steps, f"{who}: {verdict.value} or stricter", after[code].value)

    def _threads_do_not_matter(self) -> None:
        raws = [pack(one) for one in SAMPLES.values()]
        expected = [self._asked(self._engine, raw) for raw in raws]
        found: dict[int, list[Answers | str]] = {}

        def ask(number: int) -> None:
            try:
                found[number] = [self._asked(self._engine, raw) for raw in raws]
            except BaseException as error:  # also a panic, which some engines answer another thread with
                found[number] = [f"{type(error).__name__}: {error}"]

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in range(THREADS):
            wrong = [(a, b) for a, b in zip(expected, found[number], strict=False) if a != b] or (
                [(expected[0], found[number][0])] if len(found[number]) != len(expected) else []
            )
            if wrong:
                steps = [f"asked in {THREADS} threads at once"]
                self._demand(False, "T13", steps, _words(wrong[0][0]), _words(wrong[0][1]))


def differences(document: Any) -> str:
    """What makes a document other than a harmless one, in a few words."""
    if not isinstance(document, dict):
        return f"nothing of a document: {str(document)[:80]!r}"
    words = list(_differences("", SAMPLES["quiet tool"], document))
    return ", ".join(words[:12]) + (f" and {len(words) - 12} more" if len(words) > 12 else "") if words else "no leg"


def _differences(path: str, usual: Any, value: Any) -> Iterator[str]:
    if isinstance(usual, Mapping) and isinstance(value, Mapping) and path != "call.arguments":
        for key in sorted({*usual, *value}, key=str):
            where = f"{path}.{key}" if path else str(key)
            if key not in value:
                yield f"no {where}"
            else:
                yield from _differences(where, usual.get(key), value[key])
    elif usual != value:
        yield f"{path} = {value!r}"


def _turned(value: Any) -> Any:
    """The same value with the keys of every object in the opposite order."""
    if isinstance(value, dict):
        return {key: _turned(one) for key, one in reversed(value.items())}
    return [_turned(one) for one in value] if isinstance(value, list) else value


def _words(answers: object, only: list[str] | None = None) -> str:
    if not isinstance(answers, dict):
        return str(answers)
    shown = {code: one for code, one in sorted(answers.items()) if only is None or code in only}
    return ", ".join(
        f"{code}: {one.verdict.value}" + (f" {list(one.remedies)}" if only else "") for code, one in shown.items()
    )
