"""Proves that the published document says what the service does, and that the copy in the repository is that document.

To write the copy anew: `INTERLOCK_WRITE_DOCS=1 python -m pytest tests/serve/test_openapi.py`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from interlock.serve.app import OPERATIONS, application
from interlock.serve.callers import Callers
from interlock.serve.openapi import documented
from interlock.serve.work import Limits
from interlock.stores.memory_store import MemoryStore
from tests.serve.stage import callers_file, desk_over

COPY = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"


def test_the_copy() -> None:
    if os.environ.get("INTERLOCK_WRITE_DOCS"):
        COPY.write_text(json.dumps(documented(OPERATIONS), indent=1) + "\n")
    assert json.loads(COPY.read_text()) == documented(OPERATIONS)


def test_every_route_is_in_it(tmp_path: Path) -> None:
    app = application(desk_over(MemoryStore()), Callers(callers_file(tmp_path)), Limits())
    told = {(method.upper(), path) for path, one in documented(OPERATIONS)["paths"].items() for method in one}
    routes: Any = app.routes
    there = {
        (method, route.path.replace(":path}", "}"))
        for route in routes
        for method in route.methods
        if route.path != "/openapi.json" and method != "HEAD"
    }
    assert told == there
    app.state.door.close()


def test_every_reference_leads_somewhere() -> None:
    document = documented(OPERATIONS)
    schemas = document["components"]["schemas"]

    def references(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*(references(one) for one in value.values()))
        if isinstance(value, list):
            return set().union(*(references(one) for one in value))
        return set()

    assert {one.rpartition("/")[2] for one in references(document)} <= set(schemas)
    for one in OPERATIONS:
        assert schemas[one.told.__name__]["additionalProperties"] is False
        assert one.asked is None or schemas[one.asked.__name__]["additionalProperties"] is False
