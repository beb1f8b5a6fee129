"""Ask an OPA server about the samples, and hold its answers against the embedded engine's: for `interlock check`."""

from __future__ import annotations

import time
from dataclasses import dataclass

from interlock.errors import EngineUnavailable
from interlock.model.answers import parse_answers
from interlock.model.canonical import pack
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.opa import OpaEngine
from interlock.policy.samples import SAMPLES


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found.

    Attributes:
        url: where was asked.
        version: of OPA, as it says; empty when it gave no answer.
        revision: that answered, empty when none was reported.
        logged: does it keep a decision log?
        milliseconds: the median of the questions.
        problems: what is wrong, in words; empty when every sample was answered as the policies here would.
    """

    url: str
    version: str = ""
    revision: str = ""
    logged: bool = False
    milliseconds: float = 0.0
    problems: tuple[str, ...] = ()


def probe(engine: OpaEngine) -> Probe:
    """Ask everything once. Stops at the first question without an answer; raises nothing of the server's."""
    embedded = EmbeddedEngine(engine.bundle)
    took: list[float] = []
    problems: list[str] = []
    revision, logged = "", False
    for name, sample in SAMPLES.items():
        document = pack(sample)
        begun = time.monotonic()
        try:
            answer = engine.evaluate(document)
        except EngineUnavailable as error:
            problems.append(f"{error.kind}: {error}")
            break
        took.append(time.monotonic() - begun)
        revision, logged = answer.revision, bool(answer.decision_id)
        theirs = parse_answers(answer, engine.controls)
        ours = parse_answers(embedded.evaluate(document), engine.controls)
        other = sorted(code for code in ours if ours[code] != theirs[code])
        if other:
            problems.append(
                f"disagrees: the sample {name!r} is answered otherwise than by the policies here: {', '.join(other)}"
            )
    middle = sorted(took)[len(took) // 2] * 1000 if took else 0.0
    return Probe(engine.server.url, engine.version, revision, logged, middle, tuple(problems))
