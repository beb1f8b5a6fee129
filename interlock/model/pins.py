"""Which tool is meant: what a server says of a tool, as one digest, and the digests that the operator has seen (pins).

A manifest's entry for a tool of an MCP server is a judgement about what the server said on the day it was written. It
stands as long as the server says the same: its name, its description, its schemas, and who and which version the
server is. Whatever else is called by that name is a tool that nobody declared, with every leg (T7).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interlock.errors import Misconfigured
from interlock.model.digests import Digest, digest
from interlock.model.manifest import folded
from interlock.model.tools import ToolId
from interlock.model.validation import explained

# No slash: names with one are those of the protocol's own methods (`resources/read`), which no server may take.
TOOL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
METHODS: Final = (
    "completion/complete",
    "elicitation/create",
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "roots/list",
    "sampling/createMessage",
)
"""Methods that move content: each is a tool of its server for the policy, under its own name."""


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Who a server says it is."""

    name: str = ""
    version: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip() or "(anonymous)"


def tool_digest(server: ServerIdentity, tool: Mapping[str, Any]) -> Digest:
    """Digest of a tool as a server lists it: all of it, whatever it is, since all of it may reach a model."""
    return digest("pin", _bytes({"server": [server.name, server.version], "tool": dict(tool)}))


def method_digest(server: ServerIdentity, method: str) -> Digest:
    """Digest of a method of a server, of which it says nothing but who it is."""
    return digest("pin", _bytes({"server": [server.name, server.version], "method": method}))


def instructions_digest(server: ServerIdentity, text: str) -> Digest:
    """Digest of what a server tells the model about itself."""
    return digest("pin", _bytes({"server": [server.name, server.version], "instructions": text}))


def _bytes(value: Any) -> bytes:
    """Bytes of any JSON, also of one that has no canonical form: a pin must be able to name it."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


def nameable(names: Iterable[str]) -> tuple[frozenset[str], dict[str, str]]:
    """Names of one server's tools that can be told apart, and why the others can't be used."""
    problems: dict[str, str] = {}
    groups: dict[tuple[str, str], list[str]] = {}
    for name in names:
        if not TOOL.fullmatch(name):
            problems[name] = "names are ASCII letters, digits and _.- with a letter or _ first, at most 128"
        else:
            groups.setdefault(folded(ToolId("", name)), []).append(name)
    for group in groups.values():
        if len(group) > 1:
            problems.update(dict.fromkeys(group, "two tools of this server have this name, or differ only by case"))
    return frozenset(group[0] for group in groups.values() if len(group) == 1), problems


_CARRIED_NAMES: Final = frozenset({"tool", "tool_name", "toolname", "function", "function_name", "action_name"})
_CARRIED_ARGUMENTS: Final = frozenset(
    {"arguments", "args", "params", "parameters", "input", "tool_input", "tool_args", "tool_arguments", "kwargs"}
)


def is_gateway(schema: Mapping[str, Any]) -> bool:
    """Does a tool take the name of another tool and its arguments? Then what it does is not what its name says."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return False
    names = {str(one).lower().replace("-", "_") for one in properties}
    carried = names & _CARRIED_ARGUMENTS
    return bool(carried) and bool(names & _CARRIED_NAMES or ("name" in names and carried & {"arguments", "args"}))


@dataclass(frozen=True, slots=True)
class ServerPins:
    """What the operator has seen of one server: digests of its tools, by name, and of its instructions."""

    tools: Mapping[str, str] = field(default_factory=dict)
    instructions: str = ""
    identity: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", MappingProxyType(dict(self.tools)))


_Pin = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
_STRICT: Final = ConfigDict(extra="forbid", strict=True)


class _ServerEntry(BaseModel):
    model_config = _STRICT
    identity: str = ""
    instructions: _Pin | None = None
    tools: dict[str, _Pin] = {}


class _PinsFile(BaseModel):
    model_config = _STRICT
    version: Annotated[int, Field(ge=1, le=1)]
    servers: dict[str, _ServerEntry] = {}


def parse_pins(document: Mapping[str, Any], where: str) -> dict[str, ServerPins]:
    """Read a file of pins strictly.

    Raises:
        Misconfigured: with every problem and its place.
    """
    try:
        file = _PinsFile.model_validate(dict(document))
    except ValidationError as error:
        raise Misconfigured(explained(error, where)) from None
    return {name: ServerPins(one.tools, one.instructions or "", one.identity) for name, one in file.servers.items()}


def pins_text(pins: Mapping[str, ServerPins]) -> str:
    """The file that :func:`parse_pins` reads."""
    lines = [
        "# What MCP servers said of themselves and of their tools when somebody looked. `interlock mcp pin` writes it.",
        "# A tool that is not as it stands here has every leg, whatever the manifest says of it.",
        "version = 1",
    ]
    for name, server in sorted(pins.items()):
        lines += ["", f"[servers.{_quoted(name)}]", f"identity = {_quoted(server.identity)}"]
        if server.instructions:
            lines.append(f'instructions = "{server.instructions}"')
        lines += ["", f"[servers.{_quoted(name)}.tools]"]
        lines += [f'{_quoted(tool)} = "{pin}"' for tool, pin in sorted(server.tools.items())]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text if text.isprintable() else ascii(text)[1:-1])
