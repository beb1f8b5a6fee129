"""Proves T13 for the engine that asks an OPA server (`interlock.policy.opa`): it answers as the reference does.

The other files here ask OPA over a connection of their own, many thousands of times; this one goes the way of a
decision, on fewer documents: the client, its deadline, the revision of the bundle, the strict parser. Mutation that
this file catches: an answer of one question given to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from interlock.model.canonical import pack
from interlock.model.settings import parse_settings
from interlock.policy.opa import Contract, Limits, OpaEngine
from interlock.policy.opa_client import OpaServer
from interlock.policy.reference import ReferenceEngine
from interlock.policy.revisions import Demand
from interlock.policy.samples import SAMPLES
from interlock.testing.agreement import compare
from tests.opa_worlds import BUNDLE, written
from tests.servers import opa
from tests.strategies import documents, fewer, hostile_documents, tightenings

REFERENCE = ReferenceEngine(parse_settings({}).model_dump(), BUNDLE.controls)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpaEngine]:
    folder: Path = written(BUNDLE, tmp_path_factory.mktemp("bundle"))
    with opa("--bundle", str(folder)) as server:
        asked = OpaEngine(
            BUNDLE,
            OpaServer(server.url),
            contract=Contract(Demand(exact=BUNDLE.revision)),
            limits=Limits(deadline=30.0, breaker_failures=1_000_000),
        )
        yield asked
        asked.close()


@fewer(6)
@given(document=documents())
def test_t13_well_typed_documents(engine: OpaEngine, document: Any) -> None:
    compare(REFERENCE, engine, pack(document))


@fewer(6)
@given(document=hostile_documents())
def test_t13_hostile_documents(engine: OpaEngine, document: Any) -> None:
    if document is None:
        return  # OPA warns that null is no input, and the engine takes an answer with a warning for none
    compare(REFERENCE, engine, pack(document))


@pytest.mark.parametrize("name", SAMPLES)
def test_t13_samples_and_every_step_from_them(engine: OpaEngine, name: str) -> None:
    compare(REFERENCE, engine, pack(SAMPLES[name]))
    for _, worse in tightenings(SAMPLES[name]):
        compare(REFERENCE, engine, pack(worse))
