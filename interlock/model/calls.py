"""Calls: what a model proposes, and the frozen form that is decided, journalled and executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from interlock.errors import NotCanonical, Refused
from interlock.model.canonical import MAX_BYTES, canonical, unpack
from interlock.model.digests import Digest, digest
from interlock.model.manifest import NAME, SERVER, Manifest
from interlock.model.tools import ToolId, ToolSpec


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as it was proposed: nothing about it has been checked.

    Attributes:
        name: the tool's name.
        arguments: an object of JSON values. Anything else is denied, not repaired.
        id: the provider's id of the call; empty lets the gate choose one.
        server: for a tool of a server, that server's name.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    server: str = ""


@dataclass(frozen=True, slots=True)
class FrozenCall:
    """A call whose arguments can't change any more: they are bytes.

    The arguments that were decided are the arguments that run: :meth:`thawed` makes a fresh copy each time.
    """

    tool: ToolId
    id: str
    arguments: bytes
    digest: Digest

    def thawed(self) -> dict[str, Any]:
        """A fresh copy of the arguments."""
        arguments: dict[str, Any] = unpack(self.arguments)
        return arguments


def call_digest(tool: ToolId, arguments: bytes) -> Digest:
    """Digest of one exact call: server, name and canonical arguments. No name holds NUL: parts stay apart."""
    return digest("call", f"{tool.server}\0{tool.name}\0".encode() + arguments)


def is_call_id(value: object) -> bool:
    """Printable text of at most 256 characters, or empty: what a provider's id of a call may be."""
    return type(value) is str and len(value) <= 256 and value.isprintable()


def freeze(call: Call, manifest: Manifest, call_id: str | None = None) -> tuple[FrozenCall, ToolSpec]:
    """Check the shape and limits of a proposed call and freeze it.

    Args:
        call_id: the id that the frozen call gets; the call's own when it is None.

    Returns:
        The frozen call and the spec of its tool (every leg when nobody declared it).

    Raises:
        Refused: the name, the id or the arguments are malformed, or the name is a declared one in disguise.
            The message holds no argument values, so that it may be shown to the model.
    """
    name, server = call.name, call.server
    if type(name) is not str or not NAME.fullmatch(name):
        raise Refused("the tool's name is not a name: ASCII letters, digits and _.:/- only")
    if type(server) is not str or (server and not SERVER.fullmatch(server)):
        raise Refused("the server's name is not a name: ASCII letters, digits and _.- only")
    if not is_call_id(call.id):
        raise Refused("the call's id must be printable text of at most 256 characters")
    tool = ToolId(server, name)
    double = manifest.lookalike(tool)
    if double is not None:
        raise Refused(f"no tool has this name; did you mean {str(double)!r}? Names are compared exactly")
    if not isinstance(call.arguments, Mapping):
        kind = type(call.arguments).__name__
        raise Refused(f"arguments must be an object, not {kind}; nothing is parsed out of text here")
    try:
        frozen = canonical(dict(call.arguments))
    except NotCanonical as error:
        raise Refused(f"arguments refused at {error}") from None
    except RecursionError:
        raise Refused("arguments refused: nested too deeply") from None
    if len(frozen) > MAX_BYTES:
        raise Refused("arguments refused: too large")
    chosen = call.id if call_id is None else call_id
    return FrozenCall(tool, chosen, frozen, call_digest(tool, frozen)), manifest.spec(tool)


def same_call(frozen: FrozenCall, tool: ToolId, arguments: Mapping[str, Any]) -> bool:
    """Are these the very tool and arguments that were frozen? Used at the door of a wrapped tool."""
    try:
        return frozen.digest == call_digest(tool, canonical(dict(arguments)))
    except (TypeError, ValueError, NotCanonical):
        return False
