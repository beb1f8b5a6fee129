"""Proves that exported events have the shape of OPA's decision log, and are redacted as OPA redacts.

Mutations that it is shown to catch: a key that OPA's events don't have, a pointer that erases the parent, an id that
two decisions share.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Call, Conversation, Interlock
from interlock.errors import Refused
from interlock.model.decision_log import decision_id, document_of, events, trace_ids
from interlock.model.digests import NO_DIGEST
from interlock.model.entries import Decided, Entry, decode
from interlock.model.labels import Label
from interlock.stores.memory import MemoryJournal
from tests.worlds import MANIFEST

# EventV1 of OPA 1.22, `v1/plugins/logs/plugin.go`: what stands under a key, if it is there.
OPAS = {
    "labels": dict,
    "decision_id": str,
    "batch_decision_id": str,
    "trace_id": str,
    "span_id": str,
    "revision": str,
    "bundles": dict,
    "path": str,
    "query": str,
    "input": object,
    "result": object,
    "intermediate_results": dict,
    "mapped_result": object,
    "nd_builtin_cache": object,
    "erased": list,
    "masked": list,
    "error": object,
    "requested_by": str,
    "timestamp": str,
    "metrics": dict,
    "req_id": int,
    "rule_labels": list,
    "request_context": dict,
    "custom": dict,
}
DECIDED = Decided(
    "2026-11-29T12:00:00.000000Z",
    3,
    "call_3",
    "srv",
    "send",
    NO_DIGEST,
    "deny",
    ("trifecta", "leak_guard"),
    5,
    private=(Label("private:files"),),
    document="sha256:d",
    revision="sha256:r",
    engine="embedded",
)


def event(**changes: Any) -> dict[str, Any]:
    (found,) = events([("sha256:e", DECIDED)], "ana", "c-1", **changes)
    return found


def test_every_key_is_one_of_opas() -> None:
    found = event(erase=["/input/call/id"], mask={"/result/codes/0": "x"})
    for name, value in found.items():
        assert isinstance(value, OPAS[name]), name
    assert all(isinstance(one, str) for one in found["labels"].values()), "OPA's labels are texts"
    assert all(set(one) == {"revision"} for one in found["bundles"].values())
    assert re.fullmatch(r"[0-9a-f]{32}", found["trace_id"])
    assert re.fullmatch(r"[0-9a-f]{16}", found["span_id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", found["timestamp"]), "RFC 3339"


def test_what_is_erased_and_masked() -> None:
    found = event(
        erase=["/input/call/id", "/input/nothing", "/result/codes/0", "/result/codes/7", "/input/call/id/deeper"],
        mask={"/input/tool/name": "***", "/input/none/of/it": "x", "/result/labels/0": None},
    )
    assert found["erased"] == ["/input/call/id", "/result/codes/0"]
    assert found["masked"] == ["/input/tool/name", "/result/labels/0"]
    assert "id" not in found["input"]["call"]
    assert found["input"]["call"]["number"] == 3, "more than the pointer names is gone"
    assert found["result"]["codes"] == ["leak_guard"]
    assert found["result"]["labels"] == [None]
    assert found["input"]["tool"] == {"server": "srv", "name": "***"}
    assert "input" not in event(erase=["/input"])
    assert event(mask={"/input": 1})["input"] == 1
    assert "erased" not in event()


@pytest.mark.parametrize("pointer", ["", "/", "input", "/timestamp", "/decision_id", "/labels/app", "/custom"])
def test_what_is_no_pointer(pointer: str) -> None:
    with pytest.raises(Refused, match="pointer"):
        event(erase=[pointer])
    with pytest.raises(Refused, match="pointer"):
        event(mask={pointer: "x"})


def test_each_decision_has_a_name_of_its_own() -> None:
    given = [("ana", "c-1", 1, "d"), ("ana", "c-1", 2, "d"), ("bob", "c-1", 1, "d"), ("ana", "c-11", 1, "d")]
    given += [("ana", "c-1", 1, ""), ("an", "ac-1", 1, "d"), ("ana", "c-1", 11, "d")]
    assert len({decision_id(*one) for one in given}) == len(given)
    name = decision_id(*given[0])
    assert trace_ids("ana", "c-1", name)[0] == trace_ids("ana", "c-1", "other:x")[0]
    assert len({trace_ids(one[0], one[1], name)[0] for one in given}) == 4


def decisions(lock: Interlock, *calls: Call) -> list[Decided]:
    conversation = Conversation.user("hello")
    lock.guard(conversation).propose(*calls)
    assert isinstance(lock.journal, MemoryJournal)
    found: list[Entry] = [decode(one.body) for one in lock.journal.entries(conversation.id)]
    return [one for one in found if isinstance(one, Decided)]


# --- against a real OPA -----------------------------------------------------------------------------------------------

POLICY = """package interlock.entrypoint
import rego.v1
answers := {"answer": "yes", "list": ["a", "b"]}
"""
MASK = """package system.log
import rego.v1
mask contains "/input/call/digest" if input.input.tool.name == "send"
mask contains "/input/nothing"
mask contains "/result/list/0"
mask contains {"op": "upsert", "path": "/input/tool/name", "value": "***"} if input.input.tool.name != "now"
"""


@pytest.fixture(scope="module")
def opa(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server whose decision log is read from its console."""
    program = os.environ.get("INTERLOCK_TEST_OPA")
    if not program:
        pytest.skip("INTERLOCK_TEST_OPA names no OPA")
    folder: Path = tmp_path_factory.mktemp("opa")
    (folder / "policy.rego").write_text(POLICY)
    (folder / "mask.rego").write_text(MASK)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        url = f"127.0.0.1:{one.getsockname()[1]}"
    log = (folder / "log").open("wb")
    running = subprocess.Popen(
        [program, "run", "--server", "--addr", url, "--set", "decision_logs.console=true", str(folder)],
        stdout=log,
        stderr=log,
    )

    def ask(document: Any) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://{url}/v1/data/interlock/entrypoint/answers",
            json.dumps({"input": document}).encode(),
            {"Content-Type": "application/json"},
        )
        reply: Any = None
        for _ in range(200):
            try:
                with urllib.request.urlopen(request, timeout=5) as answer:
                    reply = json.load(answer)
                break
            except OSError:
                time.sleep(0.05)
        for _ in range(200):
            for line in (folder / "log").read_text().splitlines():
                value = json.loads(line)
                if value.get("decision_id") == reply["decision_id"]:
                    return value  # type: ignore[no-any-return]
            time.sleep(0.05)
        raise AssertionError("OPA has not logged it")

    yield ask
    running.kill()
    running.wait()
    log.close()


@pytest.mark.opa
def test_a_real_opa_logs_in_this_shape(opa: Any) -> None:
    theirs, ours = opa(event()["input"]), event()
    known = {name for name in theirs if name not in ("level", "msg", "type", "time")}
    assert known <= set(OPAS), "OPA has a key that is not in our table"
    for name in set(ours) & known:
        assert type(ours[name]) is type(theirs[name]) or name in ("input", "result"), name
    assert set(ours) - known <= {"trace_id", "span_id", "bundles", "custom"}, "keys that OPA leaves out when empty"
    assert {"labels", "decision_id", "path", "input", "result", "timestamp"} <= set(ours) & known


@pytest.mark.opa
def test_a_real_opa_redacts_like_this(opa: Any) -> None:
    theirs = opa(event()["input"])
    ours = event(erase=["/input/call/digest", "/input/nothing"], mask={"/input/tool/name": "***"})
    assert theirs["input"] == ours["input"]
    assert sorted(theirs["erased"]) == sorted([*ours["erased"], "/result/list/0"])
    assert theirs["masked"] == ours["masked"]
    assert theirs["result"] == {"answer": "yes", "list": ["b"]}


@pytest.mark.opa
def test_a_log_of_an_opa_server_joins_by_the_document(opa: Any) -> None:
    asked: list[bytes] = []
    journal = MemoryJournal()
    lock = Interlock(manifest=MANIFEST, journal=journal)
    engine = lock.engine
    plain = engine.evaluate

    def noting(document: bytes) -> str | bytes:
        asked.append(document)
        return plain(document)

    object.__setattr__(engine, "evaluate", noting)
    arguments = {"x": 1.0, "y": [1e3, 0.1, -0.0, 9007199254740991, True, None], "é\u2028": "<&>\u2028\x7f"}
    (decided,) = decisions(lock, Call("now", arguments, "a"))
    theirs = opa(json.loads(asked[0]))
    assert "erased" not in theirs or theirs["erased"] == ["/result/list/0"]
    del theirs["erased"]
    assert document_of(theirs) == decided.document
    assert document_of({**theirs, "erased": ["/input/x"]}) is None, "an event that is not whole joins nothing"
    assert document_of({**theirs, "erased": ["/result/x"]}) == decided.document
    assert document_of({"input": {**theirs["input"], "mode": "x"}}) != decided.document
    assert document_of({}) is None
    assert document_of({"input": float("nan")}) is None
