"""A forked child that ended made its parent deaf on the connections to the OPA server.

What a loop waits with (epoll) is shared over a fork. A child that never asked anything, and in the end let go of the
engine that it had inherited, closed the idle connections: only its own copies of the sockets, but it also took them out
of what the parent's loop waits for. The parent's next question was sent, answered, and never heard: a denial after the
whole deadline for every connection that was open at the fork.
Mutations that this file catches: no look at who owns the connections; connections that are not let go of in the child.
"""

from __future__ import annotations

import gc
import os

import pytest

pytest.importorskip("opa_client")

from interlock.model.canonical import pack
from interlock.policy.opa import Limits, OpaEngine
from interlock.policy.opa_client import OpaServer
from interlock.policy.samples import SAMPLES
from tests.opa_worlds import BUNDLE, StandIn

DOCUMENT = pack(SAMPLES["quiet tool"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # as an error it would be kept, and what it speaks of with it
def test_a_child_that_lets_go_of_an_engine_leaves_its_parents_connections_alone() -> None:
    with StandIn() as server:
        engine = OpaEngine(BUNDLE, OpaServer(server.url()), limits=Limits(deadline=2.0))
        engine.evaluate(DOCUMENT)
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.dup2(write, 2)
            del engine
            gc.collect()
            os._exit(0)
        os.close(write)
        assert os.waitpid(child, 0)[1] == 0
        with os.fdopen(read) as said:
            assert said.read() == ""  # nor does it complain about what is not its own
        engine.evaluate(DOCUMENT)
        assert engine.counts == {"answered": 2}
        assert server.asked == 1
        engine.close()
