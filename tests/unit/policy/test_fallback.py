"""T4: the embedded engine speaks only while nobody else does, and never after a word that did not count.

Mutation that it is shown to catch: falling back on every error, or forgetting what was heard before the server ended.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

pytest.importorskip("opa_client")

from interlock.errors import EngineUnavailable, Misconfigured
from interlock.model.answers import Answered
from interlock.model.canonical import pack
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.fallback import FallbackEngine
from interlock.policy.opa import Contract, Limits
from interlock.policy.opa_faults import OUT, Fault
from interlock.policy.revisions import Demand
from interlock.policy.samples import SAMPLES
from tests.faults.test_opa_stand_in import MISBEHAVIOURS
from tests.opa_worlds import BUNDLE, DEADLINE, PATIENT, REVISION, StandIn, behaves, engine_for, until

DOCUMENT = pack(SAMPLES["every leg"])
EMBEDDED = EmbeddedEngine(BUNDLE)
LIMITS = Limits(PATIENT, retries=0, breaker_failures=1000)
BRIEF = Limits(DEADLINE, retries=0, breaker_failures=1000)
DOORS: list[Callable[[FallbackEngine], Answered]] = [
    lambda engine: engine.evaluate(DOCUMENT),
    lambda engine: asyncio.run(engine.aevaluate(DOCUMENT)),
]
# One misbehaviour for each fault.
ONE_OF_EACH = {fault: way for way, (_, fault) in MISBEHAVIOURS.items()}


@pytest.mark.parametrize("door", DOORS, ids=["sync", "async"])
@pytest.mark.parametrize("fault", ONE_OF_EACH)
def test_out_or_wrong(fault: Fault, door: Callable[[FallbackEngine], Answered]) -> None:
    contract = Contract(Demand(exact=REVISION), decision_log=fault is Fault.NO_DECISION_ID)
    limits = BRIEF if fault is Fault.DEADLINE else LIMITS
    with StandIn() as server, engine_for(server.url(), contract=contract, limits=limits) as first:
        engine = FallbackEngine(first, EMBEDDED)
        good = door(engine)
        server.behaviour = MISBEHAVIOURS[ONE_OF_EACH[fault]][0]
        first.close()
        if fault in OUT:
            answer = door(engine)
            assert json.loads(answer) == json.loads(EMBEDDED.evaluate(DOCUMENT))
            assert answer.engine == f"embedded ({fault.value})"
            assert answer.revision == REVISION
            return
        with pytest.raises(EngineUnavailable):
            door(engine)
        server.behaviour = lambda connection: connection.reset()
        for _ in range(2):
            with pytest.raises(EngineUnavailable):
                door(engine)  # it is out now, and it had said something else before
        server.behaviour = behaves
        assert door(engine) == good
        first.close()
        server.behaviour = lambda connection: connection.reset()
        assert door(engine) != good  # trusted again: the embedded engine speaks


def test_an_older_answer_does_not_restore_trust() -> None:
    """Two questions overlap: the one that was asked first is answered well, after the other was not."""
    with StandIn() as server, engine_for(server.url(), limits=LIMITS) as first:
        engine = FallbackEngine(first, EMBEDDED)
        older = next(first._line._trust.numbers)
        server.behaviour = MISBEHAVIOURS["nothing"][0]
        with pytest.raises(EngineUnavailable):
            engine.evaluate(DOCUMENT)
        first._line.answered(older)
        server.behaviour = lambda connection: connection.reset()
        first.close()
        with pytest.raises(EngineUnavailable):
            engine.evaluate(DOCUMENT)


@pytest.mark.parametrize("demand", [Demand(), Demand(exact="r1"), Demand(at_least="r1")], ids=str)
def test_only_for_the_very_same_policies(demand: Demand) -> None:
    with (
        engine_for("http://127.0.0.1:1", contract=Contract(demand)) as first,
        pytest.raises(Misconfigured, match='revision = "same"'),
    ):
        FallbackEngine(first, EMBEDDED)


def test_a_wrong_word_that_comes_too_late_is_heard() -> None:
    """Whoever asked was told that nobody answered, and is gone; the word that comes then still counts."""
    with StandIn() as server, engine_for(server.url(), limits=BRIEF) as first:
        engine = FallbackEngine(first, EMBEDDED)
        until(lambda: engine.evaluate(DOCUMENT).engine == "opa")
        assert first.trusted
        line, number = first._line, first.counts.get("undefined", 0)
        server.behaviour = MISBEHAVIOURS["nothing"][0]
        first.close()
        line.begin(DOCUMENT)  # and nobody waits for it
        until(lambda: first.counts.get("undefined", 0) > number)
        assert not first.trusted
        server.behaviour = lambda connection: connection.reset()
        with pytest.raises(EngineUnavailable):
            engine.evaluate(DOCUMENT)
