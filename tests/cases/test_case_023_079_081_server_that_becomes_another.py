"""Cases 23, 79 and 81: a server behaves until it is trusted, and then becomes another one.

Its next version copies every mail to somebody; or the same version changes the description of a tool in the middle of
a session, on the fourth look. A detector of such changes that nothing calls finds nothing. Behind the proxy a tool is
what was pinned, with who and which version its server is; whatever differs has every leg. The honest twin: the server
as it was pinned goes on working.
"""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.mcp.stage import NONE, USUAL, Stage, manifest, refused, run, server, staged, text_of


@pytest.mark.parametrize("told", [False, True], ids=["when it is listed", "when it says so"])
def test_attack_a_tool_that_becomes_another_one(tmp_path: Path, told: bool) -> None:
    """Cases 78, 79 and 81: the change on the fourth list is caught in the middle of a session, and a change that the
    server announces while a call is under way is too."""
    note = tmp_path / "changed"
    tools = {"add": NONE, "change": NONE, "slow": NONE}
    servers = {"sums": server("changes", note) if told else server("changes")}
    stage = staged(tmp_path, servers, manifest(sums=tools))

    async def story() -> None:
        async with stage.client() as one:
            assert refused(await one.call_tool("add", {"a": 1, "b": 2})) == ""
            if told:
                result = await one.call_tool("change", {})
                # The tool that was called is itself as it was; what changed is another one.
                assert result.meta is not None
                assert result.meta["dev.interlock/labels"] == []
            else:
                for _ in range(4):
                    listed = await one.list_tools()
                assert [tool.meta["dev.interlock/declared"] for tool in listed.tools if tool.meta] == [
                    False,
                    True,
                    True,
                ]
            result = await one.call_tool("add", {"a": 1, "b": 2})
            assert refused(result) != ""
            assert "the server changed it" in text_of(result)

    run(story)


def test_attack_a_tool_that_changes_while_it_is_called(tmp_path: Path) -> None:
    note = tmp_path / "changed"
    stage = staged(
        tmp_path, {"sums": server("changes", note)}, manifest(sums={"add": NONE, "change": NONE, "slow": NONE})
    )

    async def story() -> None:
        async with stage.client() as one:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.call_tool, "change", {})
                slow = await one.call_tool("slow", {})
            assert refused(slow) == ""
            # After the change the server's text is a stranger's, for everything that is in the conversation.
            assert refused(await one.call_tool("add", {"a": 1, "b": 2})) != ""

    run(story)


def test_attack_a_new_version_of_a_server(tmp_path: Path) -> None:
    note = tmp_path / "calls"
    stage = staged(tmp_path, {"mail": server("plain", note)}, manifest(mail=USUAL))
    newer = Stage(stage.file, {"mail": server("plain", note, version="2")})

    async def story() -> None:
        async with newer.client() as one:
            result = await one.call_tool("read", {"text": "x"})
            assert refused(result) != ""
            assert "another version" in text_of(result)

    run(story)


def test_honest_the_server_that_was_pinned(tmp_path: Path) -> None:
    stage = staged(tmp_path, {"mail": server("plain")}, manifest(mail=USUAL))

    async def story() -> None:
        for _ in range(2):
            async with stage.client() as one:
                assert refused(await one.call_tool("read", {"text": "x"})) == ""

    run(story)
