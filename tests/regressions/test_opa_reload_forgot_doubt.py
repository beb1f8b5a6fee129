"""A reload made the embedded engine speak again for policies that had been taken away from the server.

After any word of the server's that does not count the embedded engine stays silent until the server answers well. What
had been heard was kept with the engine, and each reload makes another one: a host that reloads on a signal or a timer
allowed calls by the old policies as soon as the server was stopped.
Mutation that this file catches: what was heard is kept for each engine.
"""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

pytest.importorskip("opa_client")

from interlock import Call, Conversation, Interlock, MemoryJournal
from interlock.model.decisions import Verdict
from tests.faults.test_opa_stand_in import MISBEHAVIOURS
from tests.opa_worlds import StandIn, behaves

CONFIGURATION = """
version = 1
[engine]
kind = "opa"
url = "{url}"
revision = "same"
fallback = "embedded"
deadline = 3
retries = 0
[tools.note]
returns = []
egress = "none"
"""


@pytest.mark.parametrize("reloads", [1, 2])
def test_what_was_heard_outlives_a_reload(reloads: int, tmp_path: Path) -> None:
    def verdict() -> Verdict:
        return guard.preview(Call("note", {}, id="call_1")).verdict

    with StandIn() as server:
        file = tmp_path / "interlock.toml"
        file.write_text(CONFIGURATION.format(url=server.url()))
        lock = Interlock.load(file, journal=MemoryJournal())
        guard = lock.guard(Conversation.new())
        server.behaviour = MISBEHAVIOURS["nothing"][0]
        assert verdict() is Verdict.DENY
        server.behaviour = lambda connection: connection.reset()
        for _ in range(reloads):
            lock.reload()
            gc.collect()
        assert verdict() is Verdict.DENY
        server.behaviour = behaves
        assert verdict() is Verdict.ALLOW
        server.behaviour = lambda connection: connection.reset()
        lock.reload()
        assert verdict() is Verdict.ALLOW
