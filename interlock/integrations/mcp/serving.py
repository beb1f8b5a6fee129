"""Running the proxy: over standard input and output, or over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from mcp.server.stdio import stdio_server

from interlock.integrations.mcp.proxy import Front, Proxy, front_of


@asynccontextmanager
async def running(proxy: Proxy, version: str) -> AsyncGenerator[Front]:
    """The proxy with its servers, each connected or found to be out of reach."""
    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as starting:
            for upstream in proxy.upstreams.values():
                starting.start_soon(tasks.start, upstream.serve)
        yield front_of(proxy, version)
        tasks.cancel_scope.cancel()


async def over_stdio(proxy: Proxy, version: str) -> None:
    """Serve one client on standard input and output, which belong to the protocol alone, until it closes them."""
    # The streams first: what a server's process prints while it starts must not reach the client.
    async with stdio_server() as (reading, writing), running(proxy, version) as front:
        await front.run(reading, writing, front.create_initialization_options())
