"""T12: an embedder that never ends kept its caller for ever, and one of huge numbers put facts out of reach.

The numbers were all gathered before they were counted. And the product of two huge ones is no number, by which nothing
can be sorted: facts with such a vector pushed others out of a short answer.
"""

from __future__ import annotations

import itertools
import math

import pytest

from interlock import Conversation
from interlock.errors import Refused
from interlock.memory import Memory
from interlock.model.facts import MAX_DIMENSIONS, Vector, vector_of
from interlock.stores.memory_facts import MemoryFacts


def test_numbers_without_end() -> None:
    with pytest.raises(Refused):
        Memory(MemoryFacts(), embed=lambda _: itertools.repeat(1.0)).remember(Conversation(), "text")
    assert len(vector_of([1.0] * MAX_DIMENSIONS)) == MAX_DIMENSIONS


@pytest.mark.parametrize("size", [1e308, 1e200, 1e-200, 5e-324])
def test_vectors_of_any_size_are_compared_by_their_direction(size: float) -> None:
    vectors: dict[str, Vector] = {
        "same": (size, size),
        "near": (size, size / 2 or size),
        "away": (-size, -size),
        "query": (1.0, 1.0),
    }
    memory, conversation = Memory(MemoryFacts(), embed=lambda text: vectors[text]), Conversation()
    for text in ("away", "near", "same"):
        memory.remember(conversation, text)
    found = [fact.text for fact in memory.recall(conversation, "query", limit=2).facts]
    assert found[0] in {"same", "near"}
    assert set(found) == {"same", "near"}
    assert math.isfinite(size)
