"""Cases 123 and 124: an evaluation goes wrong without an exception, or with one that nobody expects there.

Rules that contradict each other for some documents only, a builtin that nobody knows, a name that nobody binds, rules
in a circle, an exception of another library, and a panic that is no `Exception` at all. What can be seen at load does
not load; the rest denies as a failure, in words without paths of this machine, and the next call is answered well. The
honest twin is the same control without its contradiction.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from interlock import Interlock, MemoryJournal
from interlock.errors import PolicyError
from tests.cases.desk import CONTROL, MANIFEST, Engine, did, fresh, got, locked, shared

CONFLICT = """package controls.mine

default verdict := {"verdict": "deny"}

verdict := {"verdict": "allow"} if input.tool.known == true

verdict := {"verdict": "ask"} if input.call.arguments.path == "x"
"""


def test_attack_rules_that_contradict_each_other_for_some_calls(tmp_path: Path) -> None:
    (tmp_path / "mine.rego").write_text(CONFLICT)
    lock = locked(policies=[tmp_path])
    guard = fresh(lock)
    assert did(guard, "read_file", {"path": "y"}).executed
    outcome = did(guard, "read_file", {"path": "x"})
    assert got(outcome) == ("deny", "engine_error")
    shown = " ".join(reason.for_person + reason.for_model for reason in outcome.decision.reasons)
    assert ".cargo" not in shown
    assert ".rs" not in shown
    assert "backtrace" not in shown.lower()
    assert did(guard, "read_file", {"path": "y"}).executed


@pytest.mark.parametrize(
    "body", ["nonesuch(1)", "x == 1", "data.controls.mine.verdict", "f(1)\n\nf(x) if f(x)", "time.now_nanos() > 0"]
)
def test_attack_what_can_be_seen_at_load_does_not_load(tmp_path: Path, body: str) -> None:
    (tmp_path / "mine.rego").write_text(CONTROL + body + "\n")
    with pytest.raises(PolicyError, match=r"mine\.rego:\d"):
        locked(policies=[tmp_path])


def a_panic() -> BaseException:
    class PanicException(BaseException):
        """What a library in another language throws."""

    PanicException.__module__ = "pyo3_runtime"
    return PanicException("at src/lib.rs:1 in /home/builder/x")


ERRORS = {
    "of a parser": lambda: json.JSONDecodeError("x", "y", 0),
    "a key": lambda: KeyError("verdict"),
    "an end of an iteration": StopIteration,
    "an assertion": AssertionError,
    "a panic": a_panic,
    "a group": lambda: ExceptionGroup("x", [ValueError()]),
    "an import": lambda: ImportError("x"),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_attack_an_exception_of_any_class_denies(error: object) -> None:
    broken = [True]
    engine = Engine(lambda document: error() if broken[0] else shared().engine.evaluate(document))  # type: ignore[operator]
    guard = fresh(Interlock(manifest=MANIFEST, journal=MemoryJournal(), engine=engine))
    outcome = did(guard, "calc")
    assert got(outcome) == ("deny", "engine_error")
    assert "/home/builder" not in str(outcome.decision)
    broken[0] = False
    assert did(guard, "calc").executed


def test_attack_engines_of_other_threads_are_never_touched() -> None:
    """Used or dropped elsewhere the engine's objects panic; threads come and go here, and garbage is collected."""
    guard = fresh(locked())
    seen: list[tuple[str, str]] = []
    for _ in range(20):
        thread = threading.Thread(target=lambda: seen.append(got(did(guard, "calc"))))
        thread.start()
        thread.join(30)
        seen.append(got(did(guard, "calc")))
    assert set(seen) == {("allow", "allowed")}


def test_honest_no_contradiction(tmp_path: Path) -> None:
    (tmp_path / "mine.rego").write_text(CONFLICT.replace('"ask"', '"allow"'))
    assert did(fresh(locked(policies=[tmp_path])), "read_file", {"path": "x"}).executed
