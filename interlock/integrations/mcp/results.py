"""Results of MCP servers as the gate sees them, and as the client does.

What the gate looks at is what is handed on: where the manifest reads a result field by field, the client gets what was
read, and never a second copy of it in another form (case 138).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import mcp_types as types

from interlock.model.labels import Leg, label, leg_of

OURS: Final = "dev.interlock/"
LABELS: Final = "dev.interlock/labels"
_RESERVED: Final = ("io.modelcontextprotocol/", "modelcontextprotocol.io/", OURS)
_IFC: Final = "ifc"
_LABEL_PARTS: Final = re.compile(r"[^a-z0-9_.@/:-]")


def server_label(server: str) -> str:
    """Of text that a server wrote about itself."""
    return f"untrusted:server:{_LABEL_PARTS.sub('-', server.lower())}"


def private_label(server: str) -> str:
    """Of what a server itself calls private."""
    return f"private:server:{_LABEL_PARTS.sub('-', server.lower())}"


def for_gate(result: types.CallToolResult) -> Any:
    """What the gate looks at: the structured content where it is all there is, text where that is all, else both."""
    texts = [one.text for one in result.content if isinstance(one, types.TextContent)]
    plain = len(texts) == len(result.content) <= 1
    if result.structured_content is not None:
        if plain and (not texts or _same(texts[0], result.structured_content)):
            return result.structured_content
    elif plain:
        return texts[0] if texts else ""
    whole = result.model_dump(by_alias=True, mode="json", exclude_none=True, include={"content", "structured_content"})
    return dict(whole)


def _same(text: str, structured: Any) -> bool:
    """Does a text say what the structured content says? Many servers wrap what is no object as ``{"result": …}``."""
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        if structured["result"] == text:
            return True
        structured = structured["result"] if not isinstance(structured["result"], str) else structured
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return False
    # As bytes: in Python 1, 1.0 and True are equal.
    return json.dumps(read, sort_keys=True) == json.dumps(structured, sort_keys=True)


def rebuilt(result: types.CallToolResult, content: Any, text: str) -> types.CallToolResult:
    """The result with what is left of it after fields were dropped."""
    structured = content if result.structured_content is not None and not isinstance(content, str) else None
    return result.model_copy(
        update={"content": [types.TextContent(type="text", text=text)], "structured_content": structured}
    )


def extra_labels(server: str, trusted: bool, meta: Mapping[str, Any] | None, content: Iterable[Any]) -> set[str]:
    """Labels that a result has beyond those of its tool: what its server says of it may only add."""
    found: set[str] = set()
    if not trusted and any(_is_picture(one) for one in content):
        found.add("untrusted:image")  # text in pixels is read by a model and by no scanner
    said = (meta or {}).get(_IFC)
    if said is None:
        return found
    integrity, confidentiality = _said(said, "integrity"), _said(said, "confidentiality")
    if integrity != "trusted":
        found.add(server_label(server))
    if confidentiality != "public":
        found.add(private_label(server))
    return found


def _said(said: Any, key: str) -> str:
    value = said.get(key) if isinstance(said, Mapping) else None
    return value.lower() if isinstance(value, str) else ""


def called_trusted(meta: Mapping[str, Any] | None) -> bool:
    """Does the server say that only trusted parties wrote this result? Counts only of a server that is trusted."""
    return _said((meta or {}).get(_IFC), "integrity") == "trusted"


def _is_picture(one: Any) -> bool:
    if isinstance(one, types.EmbeddedResource):
        return isinstance(one.resource, types.BlobResourceContents)
    return isinstance(one, types.ImageContent | types.AudioContent | types.BlobResourceContents)


def foreign(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """The server's ``_meta`` without what is not its own to say."""
    return {key: value for key, value in (meta or {}).items() if not key.startswith(_RESERVED) and key != _IFC}


def meta_out(meta: Mapping[str, Any] | None, labels: Iterable[str]) -> dict[str, Any]:
    """The server's ``_meta`` without what is not its own to say, and with our labels, in both vocabularies."""
    kept = foreign(meta)
    held = sorted(set(labels))
    legs = {leg_of(label(one)) for one in held}
    kept[LABELS] = held
    kept[_IFC] = {
        "integrity": "untrusted" if Leg.UNTRUSTED in legs else "trusted",
        "confidentiality": "private" if Leg.PRIVATE in legs else "public",
    }
    return kept


def refusal(text: str, code: str) -> types.CallToolResult:
    """A call that was not made, as a result for the model."""
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=True, _meta={"dev.interlock/refused": code}
    )
