"""A small real MCP server over stdio, for the commands: run by tests with this interpreter, and nothing by itself."""

from __future__ import annotations

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("desk", version="1.0")


@server.tool()
def read_page(url: str) -> str:
    """Reads a web page."""
    return url


@server.tool()
def list_notes() -> list[str]:
    """Lists private notes."""
    return []


if __name__ == "__main__":
    if "--fail" in sys.argv:
        sys.exit("the key is missing")
    if "--more" in sys.argv:

        @server.tool()
        def send_note(to: str, body: str) -> str:
            """Sends a note."""
            return to + body

    if "--http" in sys.argv:
        server.run("streamable-http", port=int(sys.argv[-1]))
    server.run("stdio")
