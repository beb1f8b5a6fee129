"""The embedded engine: regorus' interpreter, in this process, with a guard for each of its pitfalls.

* Its objects belong to the thread that made them: used elsewhere they *panic*, with an exception that is no
  ``Exception``; dropped elsewhere they complain. So each thread has engines of its own, and they die with it.
* After a failed ``set_input`` the object keeps the previous call's document. So an object that raised anything is
  thrown away, never used again.
* Undefined comes back as the text ``<undefined>``, which is no object of answers, so the strict parser denies.
* Its error texts carry a stack trace; only their first line is passed on.
* It has no time limit: the loader refuses cycles, the gate bounds the document, and the threat model says so.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

import regorus

from interlock.errors import EngineUnavailable, PolicyError
from interlock.model.answers import ControlText, parse_answers
from interlock.model.canonical import pack
from interlock.model.document import check_document
from interlock.model.look import Paths
from interlock.policy.bundle import Bundle
from interlock.policy.rego_ast import syntax_error
from interlock.policy.samples import SAMPLES

ENTRYPOINT: Final = "data.interlock.entrypoint.answers"
ENGINES_PER_THREAD: Final = 8


class _Bench:
    """The engines of one thread, by revision, the last used at the end."""

    def __init__(self) -> None:
        self.engines: OrderedDict[str, Any] = OrderedDict()
        self._owner = threading.get_ident()

    def __del__(self) -> None:
        # After a fork the child drops the benches of threads that it does not have. Engines can't be dropped here
        # without a complaint on standard error, so they are kept: a little memory, once per fork.
        if threading.get_ident() != self._owner:
            _ORPHANS.append(self.engines)


_ORPHANS: list[OrderedDict[str, Any]] = []
_LOCAL = threading.local()


def _engines() -> OrderedDict[str, Any]:
    bench = getattr(_LOCAL, "bench", None)
    if bench is None:
        bench = _LOCAL.bench = _Bench()
    engines: OrderedDict[str, Any] = bench.engines
    return engines


class EmbeddedEngine:
    """Implements :class:`interlock.ports.Engine` for a bundle."""

    name: Final = "embedded"

    def __init__(self, bundle: Bundle, *, ask_samples: bool = True) -> None:
        """Load a bundle and ask it once per sample, since unknown builtins and unsafe variables show only then.

        Args:
            ask_samples: False only for mutants, which are meant to be wrong.

        Raises:
            PolicyError: it does not load, or a control does not answer a sample.
        """
        self.bundle = bundle
        self.revision: str = bundle.revision
        self.controls: Mapping[str, ControlText] = bundle.controls
        self.looks_at: Paths | None = bundle.looks_at
        for name, sample in SAMPLES.items() if ask_samples else ():
            check_document(sample)
            try:
                parse_answers(self.evaluate(pack(sample)), self.controls)
            except EngineUnavailable as error:
                raise PolicyError(f"the controls do not answer the sample {name!r}: {error}") from None

    def evaluate(self, document: bytes) -> str:
        """See :meth:`interlock.ports.Engine.evaluate`."""
        engines = _engines()
        # INVARIANT: the object is out of the table while it works, so that whatever it raises, it is not used again.
        engine = engines.pop(self.revision, None)
        if engine is None:
            engine = _guarded(lambda: _loaded(self.bundle), "load")
        try:
            answer: str = _guarded(lambda: _ask(engine, document), "evaluate")
        except EngineUnavailable:
            engine = None  # the traceback would carry it, and drop it, on another thread
            raise
        engines[self.revision] = engine
        if len(engines) > ENGINES_PER_THREAD:
            engines.popitem(last=False)
        return answer


def _loaded(bundle: Bundle) -> Any:
    engine = regorus.Engine()
    for source in bundle.sources:
        engine.add_policy(source.path, source.text)
    engine.add_data_json(bundle.data.decode())
    return engine


def _ask(engine: Any, document: bytes) -> str:
    engine.set_input_json(document.decode())
    answer: str = engine.eval_rule_as_json(ENTRYPOINT)
    return answer


def _guarded(work: Callable[[], Any], what: str) -> Any:
    try:
        return work()
    except Exception as error:
        problem = f"the embedded engine failed to {what}: {syntax_error('policy', error)}"
    except BaseException as error:
        if not type(error).__module__.startswith("pyo3_runtime"):
            raise
        problem = f"the embedded engine panicked during {what}"
    # Raised out here, where the engine's own exception is gone: its traceback holds the engine, which must not be
    # dropped on whichever thread reads the error.
    raise EngineUnavailable(problem)
