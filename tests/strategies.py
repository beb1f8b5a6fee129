"""Re-exports the shipped strategies, and what only our own tests need of them. Proves nothing by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import Phase, settings

from interlock.model.answers import parse_answers
from interlock.model.decisions import Verdict
from interlock.model.settings import PRESETS, SETTING_VALUES, parse_settings
from interlock.policy.bundle import assemble
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.reference import ReferenceEngine
from interlock.policy.sources import shipped_sources
from interlock.testing.strategies import *  # noqa: F403
from interlock.testing.strategies import COVERING, SETTINGS, settings_id


def fewer(times: int) -> Callable[..., Any]:
    """A decorator: this test draws fewer examples than the profile says, since each example checks many things."""
    return settings(max_examples=max(5, settings().max_examples // times))


def enumerating(times: int) -> Callable[..., Any]:
    """Like :func:`fewer`, for tests that check hundreds of things per example: shrinking them would take minutes.

    What failed is named in the assertion, and the documents are small anyway.
    """
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    return settings(max_examples=max(5, settings().max_examples // times), phases=phases)


@cache
def embedded(index: int = 0) -> EmbeddedEngine:
    """The shipped controls under ``SETTINGS[index]`` in the shipped engine."""
    return EmbeddedEngine(assemble(shipped_sources(), parse_settings(SETTINGS[index])))


@cache
def reference(index: int = 0) -> ReferenceEngine:
    """The shipped controls under ``SETTINGS[index]`` in plain Python."""
    values = parse_settings(SETTINGS[index]).model_dump()
    return ReferenceEngine(values, embedded(index).controls)


# Settings under which every shipped control meets every value of every setting that it reads (none reads two), and the
# presets.
def _all(word: str) -> dict[str, str]:
    return {name: word for name, values in SETTING_VALUES.items() if word in values}


LAYOUTS: dict[str, dict[str, str]] = {
    **{f"preset {name}": {"preset": name} for name in PRESETS},
    "all deny": _all("deny"),
    "all ask": _all("ask"),
    "all off": _all("off"),
}


EVERY_VALUE = pytest.mark.parametrize("index", COVERING, ids=[settings_id(SETTINGS[index]) for index in COVERING])
ENGINES = {"embedded": embedded, "reference": reference}


def verdicts(engine: Any, document: bytes) -> dict[str, Verdict]:
    """The verdict of every control, and of all together under the empty name. An engine error denies everywhere."""
    try:
        answers = parse_answers(engine.evaluate(document), engine.controls)
    except Exception:
        return {**dict.fromkeys(engine.controls, Verdict.DENY), "": Verdict.DENY}
    found = {code: answer.verdict for code, answer in answers.items()}
    whole = max(found.values(), key=lambda verdict: verdict.strictness)
    return {**found, "": whole}
