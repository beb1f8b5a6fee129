"""The operator's ``[mcp]``: servers that the proxy stands in front of, and whose conversation its calls belong to."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_STRICT: Final = ConfigDict(extra="forbid", strict=True, frozen=True)

# Lower case, since labels are; and never two underscores, nor one at the end: `server__tool` can be read in one way.
SERVER: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]|_(?=[a-z0-9.-])){0,63}")


class UpstreamChoice(BaseModel):
    """One MCP server: a command that is started, or an address.

    Attributes:
        env: variables for the command, besides the few that every command gets (PATH, HOME and the like).
        env_from: names of variables that are handed on from the proxy's own environment.
        headers_from: header → name of an environment variable that holds its value.
        plaintext: ``http`` to another machine is meant.
        trusted: what the server says of itself is the operator's own word: its lists and instructions bring no label,
            and its results may be called trusted.
        requests: what the server may ask of the client. Each is a call of its own for the policy.
        logs: lines that the server logs reach the client, as text of a stranger.
        era: ``legacy`` never tries the protocol without sessions.
        timeout: seconds for one request.
    """

    model_config = _STRICT
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    env_from: list[str] = []
    cwd: str = ""
    url: str = ""
    headers_from: dict[str, str] = {}
    plaintext: bool = False
    trusted: bool = False
    requests: list[Literal["sampling", "elicitation", "roots"]] = []
    logs: bool = False
    era: Literal["auto", "legacy"] = "auto"
    timeout: Annotated[float, Field(ge=0.1, le=86_400, allow_inf_nan=False, strict=False)] = 60.0

    @model_validator(mode="after")
    def _one_way(self) -> UpstreamChoice:
        if bool(self.command) == bool(self.url):
            raise ValueError("give a command that starts the server, or its url")
        if self.url:
            stray = sorted(self.model_fields_set & {"args", "env", "env_from", "cwd"})
            if stray:
                raise ValueError(f"{', '.join(stray)} belong to a command, not to a url")
            _checked_url(self.url, self.plaintext)
        elif self.headers_from or self.plaintext:
            raise ValueError("headers_from and plaintext belong to a url")
        return self


def _checked_url(url: str, plaintext: bool) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise ValueError(f"url: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("url: an http or https address is expected")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise ValueError("url: no user, password or fragment; write headers_from for credentials")
    if parts.scheme == "http" and not is_loopback(host) and not plaintext:
        raise ValueError("url: http to another machine can be read and changed on the way; use https, or plaintext")


def is_loopback(host: str) -> bool:
    """Does a host's name or address stay on this machine?"""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class ProxyChoice(BaseModel):
    """What stands under ``[mcp]``.

    Attributes:
        conversation: whose calls are one conversation. ``process``: all that this proxy ever sees. ``principal``: all
            of the principal, in any process, for as long as the journal keeps it. ``session``: each session of the
            protocol's older era; whatever has none belongs to the process's conversation.
        principal: who works through this proxy; the namespace of the journal.
        pins: a file with the digests that `interlock mcp pin` wrote.
        token_from: environment variable with the token that clients over HTTP must send.
    """

    model_config = _STRICT
    servers: Annotated[dict[str, UpstreamChoice], Field(min_length=1)]
    conversation: Literal["process", "principal", "session"] = "process"
    principal: Annotated[str, Field(min_length=1, max_length=128)] = "default"
    pins: str = ""
    token_from: str = ""

    @field_validator("servers")
    @classmethod
    def _named(cls, servers: dict[str, UpstreamChoice]) -> dict[str, UpstreamChoice]:
        for name in servers:
            if not SERVER.fullmatch(name):
                raise ValueError(
                    f"{name!r}: names of servers are lower-case letters, digits and .-_ (one _ at a time, none at the"
                    " end), at most 64"
                )
        return servers
