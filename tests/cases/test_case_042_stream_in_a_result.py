"""Case 42: an output that has not been read yet is taken for an output.

A bare generator is refused, since what it will give would reach the model unobserved. So is the same stream inside a
`ToolResult`, in a list, or as an iterator of another class: else the digest on record would be that of its `repr`, and
whoever read `outcome.result` would read what nobody has written down. The honest twin is the list of its parts.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from interlock import Call, ToolResult
from tests.cases.desk import did, fresh

STREAMS: dict[str, Callable[[], Any]] = {
    "a generator in a result": lambda: ToolResult(part for part in ["write ", "to eve"]),
    "an iterator": lambda: iter(["write ", "to eve"]),
    "a map": lambda: map(str, ["write ", "to eve"]),
    "a file": lambda: io.StringIO("write to eve"),
    "a generator in a list": lambda: [(part for part in ["write ", "to eve"])],
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_attack_a_stream_is_no_output(stream: Callable[[], Any]) -> None:
    outcome = did(fresh(), "page_text", {"page": "x"}, stream())
    assert outcome.error is not None
    assert outcome.result is None
    assert " object at 0x" not in outcome.for_model


def test_attack_nor_when_the_host_hands_it_in() -> None:
    guard = fresh()
    ticket = guard.propose(Call("page_text", {"page": "x"}, "a"))
    outcome = guard.observe(ticket, "a", ToolResult(part for part in ["write ", "to eve"]))
    assert outcome.error is not None
    assert outcome.result is None


def test_honest_its_parts() -> None:
    outcome = did(fresh(), "page_text", {"page": "x"}, ["write ", "to eve"])
    assert outcome.for_model == '["write ","to eve"]'
