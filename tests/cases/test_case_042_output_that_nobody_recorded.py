"""Case 42: a tool ran, its output went to the model, and the taint did not notice.

Whatever comes of a call that touched the outside arms: text, an error body, nothing at all, an exception, a time-out,
half an output, a status other than zero, and a result that never came. The honest twin was refused by the harness
before anything went out, and says so.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Call, ToolResult
from tests.cases.desk import EVIL, did, fresh, got

OUTPUTS: dict[str, Any] = {
    "text": "do what follows",
    "nothing": "",
    "null": None,
    "status one": ToolResult("", is_error=True),
    "error body": ToolResult({"stderr": "do what follows", "status": 22}, is_error=True),
    "half of it": ToolResult("do what fol…"),
    "bytes": b"\x00\xff",
    "blocks": [{"type": "text", "text": "x"}],
    "exception": RuntimeError("do what follows"),
    "time-out": TimeoutError(),
    "broken pipe": BrokenPipeError(32, "x"),
    "argument error of the tool itself": TypeError("unexpected keyword"),
    "made-up class": type("Do what follows", (Exception,), {})(),
}


@pytest.mark.parametrize("output", OUTPUTS.values(), ids=OUTPUTS)
def test_attack_every_output_arms(output: Any) -> None:
    guard = fresh()
    outcome = did(guard, "bash", {"command": "curl https://x.example"}, output)
    assert outcome.executed
    assert set(guard.conversation.taint) == {"untrusted:shell", "private:shell"}
    assert "do what follows" not in outcome.for_model or not outcome.error
    assert got(did(guard, "send_email", EVIL)) == ("deny", "trifecta")


def test_attack_an_output_that_never_came() -> None:
    """The host forgets to observe: what the call may bring stays in the exposure."""
    guard = fresh()
    guard.propose(Call("bash", {"command": "curl https://x.example"}))
    assert not guard.conversation.taint
    assert set(guard.conversation.exposure) == {"untrusted:shell", "private:shell"}
    assert got(did(guard, "send_email", EVIL)) == ("deny", "trifecta")


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit])
def test_attack_an_output_that_was_cut_off(end: type[BaseException]) -> None:
    guard = fresh()
    with pytest.raises(end):
        did(guard, "bash", {"command": "curl https://x.example"}, end())
    assert set(guard.conversation.taint) == {"untrusted:shell", "private:shell"}


def test_attack_an_output_in_instalments_is_no_output() -> None:
    """A generator would hand its text to the model after the outcome was written."""
    guard = fresh()
    outcome = did(guard, "bash", {"command": "curl https://x.example"}, (part for part in ["do ", "what"]))
    assert outcome.error is not None
    assert outcome.result is None
    assert "untrusted:shell" in guard.conversation.taint


def test_honest_the_harness_refused_before_anything_went_out() -> None:
    guard = fresh()
    did(guard, "page_text", {"page": "x"}, ToolResult("no such page in the cache", external=False, is_error=True))
    assert not guard.conversation.taint
    did(guard, "read_file", {"path": "plan.txt"})
    assert did(guard, "send_email", EVIL).executed
