"""``interlock mcp``: MCP servers."""

from __future__ import annotations

import click

from interlock.cli.mcp_scan import scan


@click.group()
def mcp() -> None:
    """Stand in front of MCP servers."""


mcp.add_command(scan)
