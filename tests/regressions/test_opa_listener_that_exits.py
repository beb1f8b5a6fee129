"""One handler of the log that ended the thread of the courier ended every later question to every server.

What is no answer is told to the log in the thread that speaks to all servers. A handler that calls ``sys.exit`` there
stops the event loop: nobody could be asked any more, every decision took the whole deadline and was a denial, or the
embedded engine's where it may stand in.
Mutation that this file catches: a loop that is not taken up again.
"""

from __future__ import annotations

import pytest

pytest.importorskip("opa_client")

from interlock.errors import EngineUnavailable
from interlock.model.canonical import pack
from interlock.policy.courier import courier
from interlock.policy.opa import Limits, OpaEngine
from interlock.policy.opa_client import OpaServer
from interlock.policy.samples import SAMPLES
from tests.opa_worlds import BUNDLE, StandIn

DOCUMENT = pack(SAMPLES["quiet tool"])


def exits(kind: str, problem: str) -> None:
    raise SystemExit(f"{kind}: {problem}")


def test_the_courier_outlives_a_listener_that_exits() -> None:
    with StandIn(lambda connection: connection.reset()) as wrong, StandIn() as good:
        talkative = OpaEngine(BUNDLE, OpaServer(wrong.url()), limits=Limits(1.0, retries=0), said=exits)
        quiet = OpaEngine(BUNDLE, OpaServer(good.url()), limits=Limits(3.0, retries=0))
        before = courier()
        for _ in range(2):
            with pytest.raises((SystemExit, EngineUnavailable)):
                talkative.evaluate(DOCUMENT)
            quiet.evaluate(DOCUMENT)
        assert quiet.counts == {"answered": 2}
        assert courier() is before
        talkative.close()
        quiet.close()
