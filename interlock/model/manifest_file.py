"""The shape of a manifest file. Kept apart, and loaded when the first manifest is parsed, because pydantic takes two
thirds of the time that importing Interlock would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interlock.errors import ManifestError
from interlock.model.validation import explained

_STRICT: Final = ConfigDict(extra="forbid", strict=True)


class ToolEntry(BaseModel):
    """One ``[tools.NAME]`` table. ``returns`` and ``egress`` must be written: silence promises nothing (T7)."""

    model_config = _STRICT
    returns: list[str]
    egress: Literal["none", "blind", "chosen"]
    reads: list[str] = []
    opens: list[str] = []
    destinations: dict[str, str] = {}
    content: list[str] = []
    arguments: list[str] = []
    effect: Literal["none", "write", "destroy", "control"] = "none"
    audience: Literal["closed", ""] = ""
    writes_to: dict[str, Literal["path", "url", "table", "key"]] = {}
    reads_from: dict[str, Literal["path", "url", "table", "key"]] = {}
    description: str = ""


class ServerEntry(BaseModel):
    model_config = _STRICT
    tools: dict[str, ToolEntry] = {}


class ManifestFile(BaseModel):
    model_config = _STRICT
    version: Annotated[int, Field(ge=1, le=1)]  # not Literal[1], which also takes true
    tools: dict[str, ToolEntry] = Field(default_factory=dict)
    servers: dict[str, ServerEntry] = Field(default_factory=dict)


def parse_file(document: Mapping[str, Any], where: str) -> ManifestFile:
    """Read the mapping strictly. Raises ManifestError with every problem and its place."""
    try:
        return ManifestFile.model_validate(dict(document))
    except ValidationError as error:
        raise ManifestError(explained(error, where)) from None
    except (ValueError, TypeError) as error:
        raise ManifestError(f"{where}: not a manifest: {error}") from None
