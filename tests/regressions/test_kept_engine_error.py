"""An engine's error that outlives its thread made the engine complain on standard error.

The traceback of the error held the frames, and the frames held the engine object, which may only be dropped in the
thread that made it. Standard error is a protocol of its own for some hosts, and thread pools keep errors in futures.
"""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import Any

import pytest

from interlock.errors import EngineUnavailable
from interlock.policy import embedded as module
from tests.strategies import embedded


class Token:
    """Stands for an engine object: it can be watched."""


def test_an_error_holds_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens: list[weakref.ref[Token]] = []

    def loaded(_: Any) -> Any:
        token = Token()
        tokens.append(weakref.ref(token))
        return token

    def ask(*_: Any) -> str:
        raise ValueError("injected")

    engine = embedded()
    monkeypatch.setattr(module, "_loaded", loaded)
    monkeypatch.setattr(module, "_ask", ask)
    monkeypatch.setattr(module, "_engines", dict)
    with pytest.raises(EngineUnavailable) as caught:
        engine.evaluate(b"{}")
    gc.collect()
    assert tokens
    assert tokens[0]() is None, "the error keeps the engine alive"
    assert caught.value is not None


def test_an_error_may_end_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    kept: list[BaseException] = []

    def work() -> None:
        try:
            embedded().evaluate(b"{")
        except EngineUnavailable as error:
            kept.append(error)

    embedded()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert kept
    kept.clear()
    gc.collect()
    assert not complaints
