"""What a server lists: its tools with their schemas, read from the JSON of ``tools/list``, and compared with before.

All of it is the server's own word. It may raise what is believed of a tool, and never lower it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from interlock.errors import Misconfigured
from interlock.model.digests import Digest
from interlock.model.pins import ServerIdentity, tool_digest

MAX_TOOLS: Final = 10_000
MAX_DEPTH: Final = 6
_NOBODY: Final = ServerIdentity()


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool, or a field inside of one.

    Attributes:
        path: keys with dots, as in the manifest; lists are walked by themselves.
        texts: may text stand there? Where the schema does not say, it may.
        closed: only the values of an ``enum`` or ``const``.
        form: ``format`` of the schema, such as ``uri``.
        described: the description, in lower case.
        hidden: more may be in it than the schema shows: a reference to nowhere, or too deep to follow.
    """

    path: str
    texts: bool = True
    closed: bool = False
    form: str = ""
    described: str = ""
    hidden: bool = False

    @property
    def name(self) -> str:
        """The last key of the path."""
        return self.path.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class ListedTool:
    """One tool as its server lists it.

    ``said`` is a digest of all that the server says of it, whoever the server is: equal in two versions when nothing
    changed. ``pin`` is the digest under which the proxy knows it, and names the server and its version too.
    """

    name: str
    described: str
    schema: Mapping[str, Any]
    hints: Mapping[str, Any]
    raw: Mapping[str, Any]
    said: Digest
    pin: Digest

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments, in their order."""
        return tuple(_fields(self.schema, self.schema))

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Every argument and every field inside of one, as far as the schema names them."""
        return tuple(_walk(self.schema, self.schema, "", 0))

    @property
    def takes_anything(self) -> bool:
        """Does it take arguments that it does not name? Without a schema it does."""
        shapes = list(_shapes(self.schema, self.schema, 0))
        more = ("additionalProperties", "patternProperties", "unevaluatedProperties")
        return not self.schema or any(shape.get(key) for shape in shapes for key in more) or _is_hidden(shapes)


@dataclass(frozen=True, slots=True)
class Listing:
    """A server's whole list.

    Attributes:
        identity: who the server says it is.
        package: the package that it was run from, where somebody wrote that down, and its version.
    """

    identity: ServerIdentity
    tools: tuple[ListedTool, ...]
    package: str = ""
    version: str = ""


def read_listing(document: Any, where: str) -> Listing:
    """Read ``{"tools": [...]}``, a JSON-RPC response with that as its ``result``, or what ``--save`` wrote.

    Raises:
        Misconfigured: it is no such list; the message names the place.
    """
    body = document.get("result", document) if isinstance(document, Mapping) else None
    tools = body.get("tools") if isinstance(body, Mapping) else None
    if not isinstance(tools, list) or not isinstance(body, Mapping):
        raise Misconfigured(f'{where}: no list of tools; {{"tools": [...]}} is expected, as `tools/list` answers')
    if len(tools) > MAX_TOOLS:
        raise Misconfigured(f"{where}: more than {MAX_TOOLS} tools")
    server = body.get("server") or body.get("serverInfo") or {}
    if not isinstance(server, Mapping):
        raise Misconfigured(f"{where}: server: an object with name and version is expected")
    identity = ServerIdentity(_text(server.get("name")), _text(server.get("version")))
    listed = tuple(_tool(one, identity, f"{where}: tools[{number}]") for number, one in enumerate(tools))
    return Listing(identity, listed, _text(body.get("package")), _text(body.get("version")))


def _tool(one: Any, identity: ServerIdentity, where: str) -> ListedTool:
    if not isinstance(one, Mapping) or not isinstance(one.get("name"), str):
        raise Misconfigured(f"{where}: a tool with a name is expected")
    schema = one.get("inputSchema", one.get("input_schema"))
    hints = one.get("annotations")
    return ListedTool(
        name=one["name"],
        described=f"{_text(one.get('title'))} {_text(one.get('description'))}".strip().lower(),
        # A tool without a schema, or with one that is none, may take anything: it has no known argument.
        schema=MappingProxyType(dict(schema)) if isinstance(schema, Mapping) else MappingProxyType({}),
        hints=MappingProxyType(dict(hints)) if isinstance(hints, Mapping) else MappingProxyType({}),
        raw=MappingProxyType(dict(one)),
        said=tool_digest(_NOBODY, one),
        pin=tool_digest(identity, one),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _fields(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """Properties of a schema and of all its alternatives."""
    found: dict[str, Any] = {}
    for shape in _shapes(schema, root, 0):
        properties = shape.get("properties")
        if isinstance(properties, Mapping):
            found |= {str(name): one for name, one in properties.items() if str(name) not in found}
    return found


def _walk(schema: Any, root: Mapping[str, Any], above: str, depth: int) -> Iterator[Argument]:
    for name, one in _fields(schema, root).items():
        path = f"{above}.{name}" if above else name
        shapes = list(_shapes(one, root, 0))
        deeper = any(isinstance(shape.get("properties"), Mapping) for shape in shapes)
        yield Argument(
            path,
            texts=not shapes or any(_may_be_text(shape) for shape in shapes),
            closed=bool(shapes) and all("enum" in shape or "const" in shape for shape in shapes if _is_open(shape)),
            form=next((_text(shape.get("format")) for shape in shapes if shape.get("format")), ""),
            described=_text(one.get("description")).lower() if isinstance(one, Mapping) else "",
            hidden=_is_hidden(shapes) or (deeper and depth >= MAX_DEPTH),
        )
        if deeper and depth < MAX_DEPTH:
            yield from _walk(one, root, path, depth + 1)


_INNER: Final = ("anyOf", "oneOf", "allOf", "prefixItems")


def _shapes(schema: Any, root: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
    """The schema itself, its alternatives, what is in its lists, and what it refers to."""
    if not isinstance(schema, Mapping):
        return
    if depth > MAX_DEPTH:
        yield {"$ref": ""}
        return
    inner = [one for key in _INNER if isinstance(schema.get(key), list) for one in schema[key]]
    if isinstance(schema.get("items"), Mapping):
        inner.append(schema["items"])
    if "$ref" in schema:
        meant = _meant(schema["$ref"], root)
        if meant is None:
            yield schema
        else:
            inner.append(meant)
    if not inner or "properties" in schema or "enum" in schema:
        yield {key: value for key, value in schema.items() if key != "$ref"}
    for one in inner:
        yield from _shapes(one, root, depth + 1)


def _meant(reference: Any, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a reference inside of the schema points to; one to elsewhere is not followed."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    here: Any = root
    for key in reference.removeprefix("#").removeprefix("/").split("/"):
        if key:
            here = here.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) else None


def _is_hidden(shapes: list[Mapping[str, Any]]) -> bool:
    return any("$ref" in shape for shape in shapes)


def _kinds(shape: Mapping[str, Any]) -> tuple[str, ...]:
    kind = shape.get("type")
    if isinstance(kind, list):
        return tuple(_text(one) for one in kind)
    return (kind,) if isinstance(kind, str) else ("",)


def _is_open(shape: Mapping[str, Any]) -> bool:
    return not set(_kinds(shape)) <= {"null", "boolean", "number", "integer"}


def _may_be_text(shape: Mapping[str, Any]) -> bool:
    return bool(set(_kinds(shape)) & {"string", "array", "object", ""})


# --- two lists of one server -----------------------------------------------------------------------------------------

_PARTS: Final = ("title", "description", "inputSchema", "outputSchema", "annotations")


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one tool between two lists: ``new``, ``gone`` or ``changed``, and then in which parts."""

    name: str
    what: str
    parts: tuple[str, ...] = field(default=())


def changes(before: Listing, now: Listing) -> tuple[Change, ...]:
    """Every tool that is not what it was, by name. Equal digests mean that the server says the same, to the letter."""
    old = {one.name: one for one in before.tools}
    new = {one.name: one for one in now.tools}
    found = []
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            found.append(Change(name, "new"))
        elif name not in new:
            found.append(Change(name, "gone"))
        elif old[name].said != new[name].said:
            parts = [part for part in _PARTS if old[name].raw.get(part) != new[name].raw.get(part)]
            found.append(Change(name, "changed", tuple(parts) or ("other fields",)))
    return tuple(found)


_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def parts_of(name: str) -> tuple[str, ...]:
    """The words of a name in their order, in lower case: ``API-post-page`` is ``api``, ``post``, ``page``."""
    return tuple(one.lower() for one in _WORD.findall(name))
