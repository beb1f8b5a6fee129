"""Cases 83 and 84: a server asks the client's model for a sample, or the person for a key.

The question is a server's text, and the answer leaves to that server: each is a call for the gate, and without the
operator's leave it is not even offered. The honest twin: a server with leave gets its answer in a clean conversation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from tests.mcp.stage import USUAL, Stage, manifest, run, server, staged, text_of


async def answer(_context: Any, params: Any) -> Any:
    if isinstance(params, types.ElicitRequestFormParams):
        return types.ElicitResult(action="accept", content={"key": "sk-1"})
    text = types.TextContent(type="text", text="a sample")
    return types.CreateMessageResult(role="assistant", content=text, model="m")


async def folders(_context: Any) -> Any:
    return types.ListRootsResult(roots=[types.Root(uri="file:///home/ann")])


ASKED = 'returns = []\negress = "chosen"\ncontent = ["message", "requestedSchema", "mode", "messages", "maxTokens"]'
QUESTIONS = {"elicitation": "elicitation/create", "sampling": "sampling/createMessage", "roots": "roots/list"}


def asking(folder: Path, *requests: str, trusted: bool = False, era: str = "legacy") -> Stage:
    every = {**USUAL, **dict.fromkeys(QUESTIONS.values(), ASKED)}
    return staged(folder, {"x": server("asks", requests=list(requests), trusted=trusted, era=era)}, manifest(x=every))


@pytest.mark.parametrize("era", ["legacy", "auto"])
@pytest.mark.parametrize("kind", list(QUESTIONS))
def test_attack_a_server_asks_without_leave(tmp_path: Path, kind: str, era: str) -> None:
    """Cases 83 and 84."""
    stage = asking(tmp_path, trusted=True, era=era)  # the policy would let it

    async def story() -> None:
        callbacks: Any = {"elicitation_callback": answer, "sampling_callback": answer, "list_roots_callback": folders}
        async with stage.client("legacy", **callbacks) as one:
            text = text_of(await one.call_tool("ask", {"what": kind}))
            assert "sk-1" not in text
            assert "a sample" not in text
            assert "home" not in text

    run(story)


def test_attack_the_answer_to_a_question_leaves_to_the_server(tmp_path: Path) -> None:
    """Cases 83 and 84: with leave, in a clean conversation; not once there is something to lose."""
    stage = asking(tmp_path, *QUESTIONS, trusted=True)

    async def story() -> None:
        callbacks: Any = {"elicitation_callback": answer, "sampling_callback": answer, "list_roots_callback": folders}
        async with stage.client("legacy", **callbacks) as one:
            assert "sk-1" in text_of(await one.call_tool("ask", {"what": "elicitation"}))
            assert "a sample" in text_of(await one.call_tool("ask", {"what": "sampling"}))
            assert "home" in text_of(await one.call_tool("ask", {"what": "roots"}))
            await one.call_tool("read", {"text": "x"})
            await one.call_tool("page", {"url": "https://a.example"})
            for kind in QUESTIONS:
                assert "got" not in text_of(await one.call_tool("ask", {"what": kind})), kind

    run(story)


def test_honest_a_question_of_the_new_era_comes_with_the_result(tmp_path: Path) -> None:
    stage = asking(tmp_path, "elicitation", trusted=True, era="auto")

    async def story() -> None:
        async with stage.client(elicitation_callback=answer) as one:
            assert "sk-1" in text_of(await one.call_tool("ask", {"what": "elicitation"}))
            await one.call_tool("read", {"text": "x"})
            await one.call_tool("page", {"url": "https://a.example"})
            assert "sk-1" not in text_of(await one.call_tool("ask", {"what": "elicitation"}))

    run(story)
