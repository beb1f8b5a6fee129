"""The proxy in front of MCP servers. It translates between the protocol and the gate, and decides nothing."""
