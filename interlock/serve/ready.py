"""Can this process decide? Asked by whoever balances load, at most once a second whatever they do."""

from __future__ import annotations

import threading
import time
from typing import Any, Final

from interlock.assembly import Interlock
from interlock.model.answers import parse_answers
from interlock.model.canonical import pack
from interlock.policy.samples import SAMPLES
from interlock.ports import Store

FOR: Final = 1.0
PROBE: Final = "interlock-ready"  # a namespace that nobody has; asking for its conversations reaches the store


class Readiness:
    """The last answer, and when it was given."""

    def __init__(self, lock: Interlock) -> None:
        self._interlock = lock
        self._lock = threading.Lock()
        self._at = float("-inf")
        self._told: dict[str, Any] = {}

    def now(self) -> dict[str, Any]:
        """As :class:`interlock.serve.shapes.Ready`. What is wrong is said in one word."""
        with self._lock:
            if time.monotonic() - self._at >= FOR:
                engine, store = _word(self._engine), _word(self._store)
                self._told = {"ready": engine == store == "ok", "engine": engine, "store": store}
                self._at = time.monotonic()
            return self._told

    def _engine(self) -> None:
        engine = self._interlock.engine
        sample = next(iter(SAMPLES.values()))
        parse_answers(engine.evaluate(pack(sample)), engine.controls)

    def _store(self) -> None:
        journal = self._interlock.journal
        assert isinstance(journal, Store)
        journal.within(PROBE).conversations(limit=1)


def _word(ask: Any) -> str:
    try:
        ask()
    except Exception as error:
        return type(error).__name__
    return "ok"
