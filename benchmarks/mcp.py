"""What the proxy costs per call, beside the bare server in the same run; and a soak.

    python -m benchmarks.mcp [--calls N] [--soak N] [--json FILE]

A server on the official SDK with one tool that answers at once, over standard input and over HTTP, with and without
the proxy, by the SDK's client. The soak keeps 16 calls in flight and reads the memory of the proxy's process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

SERVER = '''
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("bench", version="1")
@server.tool(structured_output=False)
def note(text: str) -> str:
    """Take a note."""
    return text
if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
'''
CONFIGURATION = """
version = 1
[mcp]
pins = "pins.toml"
[mcp.servers.bench]
{place}
[servers.bench.tools.note]
returns = ["private:notes"]
egress = "none"
"""
ARGUMENTS = {"text": "x" * 100}


async def times(where: Any, mode: str, calls: int) -> list[float]:
    found = []
    async with Client(where, mode=mode) as client:
        for _ in range(20):
            await client.call_tool("note", ARGUMENTS)
        for _ in range(calls):
            before = time.perf_counter()
            result = await client.call_tool("note", ARGUMENTS)
            found.append((time.perf_counter() - before) * 1000)
            assert not result.is_error, result
    return sorted(found)


def memory_of(pid: int) -> int:
    """Resident memory of a process, in kB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise RuntimeError("no VmRSS")


async def soak(where: str, pid: int, calls: int, in_flight: int = 16) -> list[tuple[int, int]]:
    """(calls made, kB) now and then."""
    found: list[tuple[int, int]] = []
    made = 0

    async def some(client: Client) -> None:
        nonlocal made
        while made < calls:
            made += 1
            if made % max(1, calls // 10) == 0:
                found.append((made, memory_of(pid)))
            result = await client.call_tool("note", ARGUMENTS)
            assert not result.is_error, result

    async with Client(where) as client, anyio.create_task_group() as tasks:
        for _ in range(in_flight):
            tasks.start_soon(some, client)
    return found


def free_port() -> int:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextlib.asynccontextmanager
async def process(command: list[str], port: int) -> AsyncIterator[int]:
    running = subprocess.Popen(  # noqa: ASYNC220 - at once
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                break
            await anyio.sleep(0.05)
        yield running.pid
    finally:
        running.terminate()
        running.wait(20)


async def measured(folder: Path, calls: int, soaked: int) -> dict[str, Any]:
    script = folder / "server.py"
    script.write_text(SERVER)
    interlock = [sys.executable, "-m", "interlock.cli", "mcp"]
    bare_port, proxy_port = free_port(), free_port()
    rows: dict[str, dict[str, float]] = {}

    def row(name: str, found: list[float]) -> None:
        rows[name] = {"p50 ms": statistics.median(found), "p99 ms": found[int(len(found) * 0.99)]}

    def configured(name: str, place: str) -> Path:
        (folder / name).mkdir()
        file = folder / name / "interlock.toml"
        file.write_text(CONFIGURATION.format(place=place))
        subprocess.run([*interlock, "pin", "--config", str(file)], check=True, capture_output=True)
        return file

    command = f"command = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(script))}]"
    over_stdio = configured("stdio", command)
    bare = StdioServerParameters(command=sys.executable, args=[str(script)])
    proxied = StdioServerParameters(command=interlock[0], args=[*interlock[1:], "proxy", "--config", str(over_stdio)])
    for mode, era in (("legacy", "sessions"), ("auto", "2026-07-28")):
        row(f"stdio, {era}, bare", await times(bare, mode, calls))
        row(f"stdio, {era}, proxy", await times(proxied, mode, calls))
    memory: list[tuple[int, int]] = []
    async with process([sys.executable, str(script), str(bare_port)], bare_port):
        address = f"http://127.0.0.1:{bare_port}/mcp"
        file = configured("http", f'url = "{address}"')
        serve = [*interlock, "proxy", "--config", str(file), "--http", f"127.0.0.1:{proxy_port}"]
        async with process(serve, proxy_port) as pid:
            through = f"http://127.0.0.1:{proxy_port}/mcp"
            for mode, era in (("legacy", "sessions"), ("auto", "2026-07-28")):
                row(f"HTTP, {era}, bare", await times(address, mode, calls))
                row(f"HTTP, {era}, proxy", await times(through, mode, calls))
    if soaked:
        # With a journal on disk: one in memory grows with every call, which is what it is for.
        text = over_stdio.read_text()
        over_stdio.write_text('journal = { kind = "sqlite", path = "journal.db", durability = "process" }\n' + text)
        migrate = [*interlock[:-1], "store", "migrate", "--config", str(over_stdio)]
        subprocess.run(migrate, check=True, capture_output=True)  # noqa: ASYNC221 - before anything runs
        serve = [*interlock, "proxy", "--config", str(over_stdio), "--http", f"127.0.0.1:{proxy_port}"]
        async with process(serve, proxy_port) as pid:
            memory = await soak(f"http://127.0.0.1:{proxy_port}/mcp", pid, soaked)
    return {"calls": calls, "rows": rows, "soak": memory, "python": sys.version.split()[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--soak", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = anyio.run(measured, Path(folder), options.calls, options.soak)
    print("| | p50 ms | p99 ms |\n|---|---|---|")
    for name, one in found["rows"].items():
        print(f"| {name} | {one['p50 ms']:.2f} | {one['p99 ms']:.2f} |")
    for made, size in found["soak"]:
        print(f"soak: after {made} calls {size / 1024:.1f} MB")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
