"""Asking servers what they are now, for pins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio

from interlock.integrations.mcp.upstream import Hooks, Unreachable, Upstream
from interlock.model.pins import METHODS, ServerPins, instructions_digest, method_digest
from interlock.model.proxies import ProxyChoice


async def seen_now(
    choice: ProxyChoice, folder: Path, here: Mapping[str, Callable[[], Any]] | None = None
) -> tuple[dict[str, ServerPins], dict[str, Upstream]]:
    """What each server says now, as pins, and the servers as they were found.

    Raises:
        Unreachable: one of them does not answer; nothing is known then.
    """

    async def nothing(*_: Any) -> None:
        return None

    hooks = Hooks(nothing, nothing)
    upstreams = {
        name: Upstream(name, one, folder, None, hooks, quiet=True, here=(here or {}).get(name))
        for name, one in choice.servers.items()
    }
    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as starting:
            for upstream in upstreams.values():
                starting.start_soon(tasks.start, upstream.serve)
        problems = [f"mcp server {one.name!r}: {one.problem}" for one in upstreams.values() if one.problem]
        tasks.cancel_scope.cancel()
    if problems:
        raise Unreachable("\n".join(problems))
    return {name: _pins(one) for name, one in upstreams.items()}, upstreams


def _pins(upstream: Upstream) -> ServerPins:
    listing = upstream.listing
    tools = {name: str(one.digest) for name, one in listing.tools.items()}
    tools |= {one: method_digest(listing.identity, one) for one in METHODS}
    text = listing.instructions
    return ServerPins(tools, instructions_digest(listing.identity, text) if text else "", str(listing.identity))
