"""Proves what the proxy does with servers that are not honest, and with clients of both eras, end to end: a proxy in a
process of its own, a server on the official SDK behind it, and the SDK's client in front.

Mutations that this file catches: a pin that is not compared; a result whose tool changed meanwhile; a question of a
server that reaches the client though nobody configured it; standard output with something else on it.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp import MCPError

from interlock.integrations.mcp.pinning import seen_now
from interlock.model.pins import pins_text
from interlock.model.proxies import ProxyChoice
from tests.mcp.stage import (
    EVIL,
    INTERLOCK,
    MODES,
    NONE,
    PAGE,
    READ,
    SEND,
    USUAL,
    client,
    manifest,
    process,
    refused,
    run,
    server,
    serving,
    staged,
    text_of,
)


@pytest.mark.parametrize("mode", MODES)
def test_attack_a_page_and_a_note_of_two_servers_and_a_send(tmp_path: Path, mode: str) -> None:
    """Cases 41 and 42: every way has the taint, and every result is observed."""
    note = tmp_path / "sent"
    stage = staged(
        tmp_path, {"web": server("plain", note), "notes": server("plain", note)}, manifest(web=USUAL, notes=USUAL)
    )

    async def story() -> None:
        async with stage.client(mode) as one:
            assert refused(await one.call_tool("notes__send", EVIL)) == ""  # clean: nothing private, nothing foreign
            assert text_of(await one.call_tool("notes__read", {"text": "x"})) == "read of plain"
            page = await one.call_tool("web__page", {"url": "https://a.example"})
            assert page.meta is not None
            assert page.meta["dev.interlock/labels"] == ["untrusted:web"]
            assert page.meta["ifc"] == {"integrity": "untrusted", "confidentiality": "public"}
            for name in ("notes__send", "web__send"):
                assert refused(await one.call_tool(name, EVIL)) == "trifecta"

    run(story)
    assert note.read_text().count("send") == 1


@pytest.mark.parametrize("mode", MODES)
def test_attack_a_session_id_that_is_new_each_time_launders_nothing(tmp_path: Path, mode: str) -> None:
    """Over HTTP, in the era in which each request has a session of its own; and from one client to the next."""
    stage = staged(tmp_path, {"web": server("plain")}, manifest(web=USUAL))

    async def story(where: str) -> None:
        async with client(where, mode) as one:
            await one.call_tool("read", {"text": "x"})
            await one.call_tool("page", {"url": "https://a.example"})
            assert refused(await one.call_tool("send", EVIL)) == "trifecta"
        async with client(where, "auto") as other:
            assert refused(await other.call_tool("send", EVIL)) == "trifecta"

    async def whole() -> None:
        async with stage.served() as where:
            await story(where)

    run(whole)


def test_sessions_are_conversations_when_the_operator_says_so(tmp_path: Path) -> None:
    stage = staged(tmp_path, {"web": server("plain")}, manifest(web=USUAL), mcp='conversation = "session"')

    async def story(where: str) -> None:
        async with client(where, "legacy") as one:
            await one.call_tool("read", {"text": "x"})
            await one.call_tool("page", {"url": "https://a.example"})
            assert refused(await one.call_tool("send", EVIL)) == "trifecta"
        async with client(where, "legacy") as other:
            assert refused(await other.call_tool("send", EVIL)) == ""
        for _ in range(2):  # no session: whatever has none is one conversation
            async with client(where, "auto") as modern:
                result = await modern.call_tool("send", EVIL)
                await modern.call_tool("read", {"text": "x"})
                await modern.call_tool("page", {"url": "https://a.example"})
        assert refused(result) == "trifecta"

    async def whole() -> None:
        async with stage.served() as where:
            await story(where)

    run(whole)


def test_a_principal_is_remembered_by_the_journal(tmp_path: Path) -> None:
    """A new process is no new conversation where the operator names the principal."""
    stage = staged(
        tmp_path,
        {"web": server("plain")},
        manifest(web=USUAL),
        mcp='conversation = "principal"\nprincipal = "ann"',
        more='journal = {kind = "sqlite", path = "journal.db"}',
    )
    subprocess.run([*INTERLOCK, "store", "migrate", "--config", str(stage.file)], check=True, capture_output=True)

    async def first() -> None:
        async with stage.client() as one:
            await one.call_tool("read", {"text": "x"})
            await one.call_tool("page", {"url": "https://a.example"})

    async def second() -> None:
        async with stage.client() as one:
            assert refused(await one.call_tool("send", EVIL)) == "trifecta"

    run(first)
    run(second)


def test_names_that_can_not_be_told_apart_are_left_out(tmp_path: Path) -> None:
    """Cases 71 and 73."""
    stage = staged(tmp_path, {"a": server("names"), "a-b": server("names")}, manifest(a={"ok": NONE, "_x__y": NONE}))

    async def story() -> None:
        async with stage.client() as one:
            names = sorted(tool.name for tool in (await one.list_tools()).tools)
            assert names == ["a-b___x__y", "a-b__ok", "a___x__y", "a__ok"]
            assert refused(await one.call_tool("a___x__y", {})) == ""
            assert refused(await one.call_tool("a-b___x__y", {})) != ""
            for name in ("send", "a__send", "a__Send", "a__resources/read", "a__bad name", "ok", "a_", ""):
                assert refused(await one.call_tool(name, {})) == "unknown_name", name

    run(story)


def test_attack_a_tool_that_carries_the_name_of_another(tmp_path: Path) -> None:
    stage = staged(tmp_path, {"hub": server("gateway")}, manifest(hub={"call_tool": NONE}))

    async def story() -> None:
        async with stage.client() as one:
            result = await one.call_tool("call_tool", {"tool_name": "send", "arguments": {}})
            assert refused(result) != ""
            assert "takes the name of another tool" in text_of(result)

    run(story)


@pytest.mark.parametrize("trusted", [False, True])
def test_labels_of_a_server_only_restrict_unless_it_is_trusted(tmp_path: Path, trusted: bool) -> None:
    """Case 70."""
    stage = staged(
        tmp_path, {"x": server("labels", trusted=trusted)}, manifest(x={"read": PAGE, "page": NONE, "send": SEND})
    )

    async def story() -> None:
        async with stage.client() as one:
            read = await one.call_tool("read", {"text": "x"})
            assert read.meta is not None
            assert read.meta["dev.interlock/labels"] == ["private:server:x", "untrusted:web"]
            assert "dev.interlock/x" not in read.meta
            page = await one.call_tool("page", {"url": "https://a.example"})
            assert page.meta is not None
            assert page.meta["dev.interlock/labels"] == ["private:server:x", "untrusted:server:x"]
            assert page.meta["x"] == 1
            assert page.meta["ifc"] == {"integrity": "untrusted", "confidentiality": "private"}
            assert refused(await one.call_tool("send", EVIL)) == "trifecta"

    run(story)


@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_dies_in_the_middle(tmp_path: Path, mode: str) -> None:
    """The call failed, nobody knows how far it got, it is not sent again, and the next one finds a new server."""
    note = tmp_path / "calls"
    stage = staged(tmp_path, {"x": process("plain", note)}, manifest(x={**USUAL, "die": READ}))

    async def story() -> None:
        async with stage.client(mode) as one:
            result = await one.call_tool("die", {})
            assert result.is_error
            assert "nobody knows whether the call was carried out" in text_of(result)
            assert note.read_text().count("die") == 1
            assert refused(await one.call_tool("page", {"url": "https://a.example"})) == ""
            assert refused(await one.call_tool("send", EVIL)) == "trifecta"  # what it would have brought has joined

    run(story)


def test_a_call_that_is_cancelled_or_too_late_is_in_doubt(tmp_path: Path) -> None:
    stage = staged(tmp_path, {"x": server("plain", timeout=0.5)}, manifest(x={**USUAL, "sleep": READ}))

    async def story() -> None:
        steps: list[float] = []

        async def progress(done: float, _total: float | None, _message: str | None) -> None:
            steps.append(done)

        async with stage.client("legacy") as one:
            late = await one.call_tool("sleep", {"seconds": 3}, progress_callback=progress)
            assert "did not answer in time" in text_of(late)
            assert steps
            assert refused(await one.call_tool("page", {"url": "https://a.example"})) == ""
            assert refused(await one.call_tool("send", EVIL)) == "trifecta"

    run(story)


def test_attack_calls_of_one_turn(tmp_path: Path) -> None:
    """Calls that are under way count: of a page, a note and a send at once the send does not win the race."""
    note = tmp_path / "calls"
    stage = staged(tmp_path, {"x": server("plain", note)}, manifest(x={**USUAL, "sleep": READ, "page": PAGE}))

    async def story() -> None:
        async with stage.client() as one, anyio.create_task_group() as tasks:
            tasks.start_soon(one.call_tool, "sleep", {"seconds": 1})
            await one.call_tool("page", {"url": "https://a.example"})
            while not note.exists():  # noqa: ASYNC110 - another process makes it
                await anyio.sleep(0.01)
            assert refused(await one.call_tool("send", EVIL)) == "trifecta"

    run(story)


def test_standard_output_is_the_protocols(tmp_path: Path) -> None:
    """Whatever a server prints, each line that the client gets is a message."""
    stage = staged(tmp_path, {"x": process("prints")}, manifest(x=USUAL))
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    running = subprocess.Popen(
        [*INTERLOCK, "-v", "mcp", "proxy", "--config", str(stage.file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdin is not None
    assert running.stdout is not None
    for message in (
        hello,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "send", "arguments": EVIL}},
        {"jsonrpc": "2.0", "id": 3, "method": "tasks/list", "params": {}},
        {"jsonrpc": "2.0", "id": 4, "method": "x/y", "params": {}},
    ):
        running.stdin.write(json.dumps(message).encode() + b"\n")
        running.stdin.flush()
    lines = [json.loads(running.stdout.readline()) for _ in range(4)]
    running.stdin.close()
    assert running.stdout.read() == b""
    assert running.wait(20) == 0
    running.stdout.close()
    assert running.stderr is not None
    running.stderr.close()
    by_id = {one["id"]: one for one in lines}
    assert by_id[3]["error"]["code"] == by_id[4]["error"]["code"] == types.METHOD_NOT_FOUND


def test_a_gate_that_fails_forwards_nothing(tmp_path: Path) -> None:
    """A journal that is gone in the middle: an error as result, and the server saw nothing."""
    note = tmp_path / "calls"
    stage = staged(
        tmp_path,
        {"x": server("plain", note)},
        manifest(x=USUAL),
        more='journal = {kind = "sqlite", path = "journal.db"}',
    )
    subprocess.run([*INTERLOCK, "store", "migrate", "--config", str(stage.file)], check=True, capture_output=True)

    async def story() -> None:
        async with stage.client() as one:
            assert refused(await one.call_tool("send", EVIL)) == ""
            for damaged in tmp_path.glob("journal.db*"):  # noqa: ASYNC240 - nobody else runs here
                damaged.write_bytes(b"no database" * 1000)
            result = await one.call_tool("send", EVIL)
            assert refused(result) == "journal_error"

    run(story)
    assert note.read_text().count("send") == 1


def test_over_http_a_token_and_loopback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx

    stage = staged(tmp_path, {"x": server("plain")}, manifest(x=USUAL), mcp='token_from = "PROXY_TOKEN"')
    token = "t" * 32
    with serving(stage.file, environment={"PROXY_TOKEN": token}) as where:
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {token}"}):
            assert httpx.post(where, json=body, headers=given, trust_env=False).status_code == 401
        rebound = {"authorization": f"Bearer {token}", "host": "evil.example"}
        assert httpx.post(where, json=body, headers=rebound, trust_env=False).status_code == 421
    for address, why in (("0.0.0.0:0", "others can connect"), ("nonsense", "HOST:PORT")):
        if address.startswith("0"):
            stage = staged(tmp_path, {"x": server("plain")}, manifest(x=USUAL), pinned=False)
        done = subprocess.run(
            [*INTERLOCK, "mcp", "proxy", "--config", str(stage.file), "--http", address], capture_output=True, text=True
        )
        assert done.returncode == 2
        assert why in done.stderr


def test_a_server_over_http_behind_the_proxy(tmp_path: Path) -> None:
    """A proxy behind a proxy: streamable HTTP on both sides, in the new era."""

    inner = staged(tmp_path, {"x": server("plain")}, manifest(x=USUAL))

    async def story() -> None:
        async with inner.served() as where:
            (tmp_path / "outer").mkdir()
            far = {"far": {"url": where}}
            pins, _ = await seen_now(ProxyChoice.model_validate({"servers": far}), tmp_path)
            outer = staged(tmp_path / "outer", far, manifest(far=USUAL), pinned=False)
            (tmp_path / "outer" / "pins.toml").write_text(pins_text(pins))
            async with outer.served() as address:
                for mode in MODES:
                    async with client(address, mode) as one:
                        assert text_of(await one.call_tool("read", {"text": "x"})) == "read of plain"
                async with client(address) as one:
                    await one.call_tool("page", {"url": "https://a.example"})
                    assert refused(await one.call_tool("send", EVIL)) == "trifecta"

    run(story)


def test_a_server_that_can_not_be_started_is_said_to_be_missing(tmp_path: Path) -> None:
    stage = staged(
        tmp_path,
        {"x": server("plain"), "gone": {"command": str(tmp_path / "nothing")}},
        manifest(x=USUAL),
        pinned=False,
    )

    async def story() -> None:
        async with stage.client() as one:
            assert {tool.name.partition("__")[0] for tool in (await one.list_tools()).tools} == {"x"}
            with pytest.raises(MCPError):
                await one.read_resource("file:///x")

    run(story)
