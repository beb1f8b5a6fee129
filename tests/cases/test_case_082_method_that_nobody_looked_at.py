"""Case 82: a proxy that looks at one method only.

What moves content without being a call of a tool goes round such a proxy: resources, prompts, completions, tasks, and
whatever the protocol gets anew. Here each method is on a closed list, and those that move content are calls of the
gate. The honest twin: what the operator declared passes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import MCPError
from pydantic import TypeAdapter

from tests.mcp.stage import EVIL, USUAL, manifest, refused, run, server, staged

READ = 'returns = ["private:files"]\negress = "none"'


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("method", ["tasks/list", "tasks/result", "resources/write", "x/y", "tools/call/../list"])
def test_attack_a_method_that_is_not_on_the_list(tmp_path: Path, mode: str, method: str) -> None:
    stage = staged(tmp_path, {"x": server("plain")}, manifest(x=USUAL))

    async def story() -> None:
        async with stage.client(mode) as one:
            request: Any = types.Request[dict[str, Any], str](method=method, params={})
            with pytest.raises(MCPError) as caught:
                await one.session.send_request(request, TypeAdapter(dict[str, Any]))
            assert caught.value.code == types.METHOD_NOT_FOUND
            assert "this proxy" in caught.value.message  # by our list, and not because the SDK knows none

    run(story)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_attack_a_resource_and_a_prompt_that_nobody_declared(tmp_path: Path, mode: str) -> None:
    stage = staged(tmp_path, {"x": server("content")}, manifest(x=USUAL))

    async def story() -> None:
        async with stage.client(mode) as one:
            with pytest.raises(MCPError, match="approval"):
                await one.read_resource("file:///notes/a.txt")
            with pytest.raises(MCPError, match="approval"):
                await one.get_prompt("greet", {"name": "Ann"})

    run(story)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_attack_a_resource_brings_its_labels(tmp_path: Path, mode: str) -> None:
    tools = {**USUAL, "resources/read": READ, "prompts/get": 'returns = ["untrusted:web"]\negress = "none"'}
    stage = staged(tmp_path, {"x": server("content")}, manifest(x=tools))

    async def story() -> None:
        async with stage.client(mode) as one:
            read = await one.read_resource("file:///notes/a.txt")
            assert (read.meta or {})["dev.interlock/labels"] == ["private:files"]
            await one.get_prompt("greet", {"name": "Ann"})
            assert refused(await one.call_tool("send", EVIL)) == "trifecta"

    run(story)


def test_honest_what_was_declared_passes(tmp_path: Path) -> None:
    tools = {**USUAL, "resources/read": READ, "prompts/get": READ}
    stage = staged(tmp_path, {"x": server("content")}, manifest(x=tools))

    async def story() -> None:
        async with stage.client() as one:
            assert "42" in (await one.read_resource("file:///notes/a.txt")).contents[0].text  # type: ignore[union-attr]
            assert (await one.get_prompt("greet", {"name": "Ann"})).messages

    run(story)
