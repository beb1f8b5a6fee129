"""The shape of a manifest file. Kept apart, and loaded when the first manifest is parsed, because pydantic takes two
thirds of the time that importing Interlock would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interlock.errors import ManifestError
from interlock.model.validation import explained

_STRICT: Final = ConfigDict(extra="forbid", strict=True)


class IdEntry(BaseModel):
    """One field under ``ids``."""

    model_config = _STRICT
    kind: str
    names: list[str] = []
    queries: list[str] = []
    made: bool = False


class SqlTest(BaseModel):
    model_config = _STRICT
    verbs: Annotated[list[Literal["select", "insert", "update", "delete"]], Field(min_length=1)]
    tables: Annotated[list[str], Field(min_length=1)]
    dialect: str = ""


_SOME: Final = Field(min_length=1)


class ConditionEntry(BaseModel):
    """One test of an argument: exactly one of these keys."""

    model_config = _STRICT
    is_: Annotated[list[str | int | bool], _SOME] | None = Field(default=None, alias="is")
    absent: Literal[True] | None = None
    plain: Literal[True] | None = None
    host: Annotated[list[str], _SOME] | None = None
    domain: Annotated[list[str], _SOME] | None = None
    under: Annotated[list[str], _SOME] | None = None
    sql: SqlTest | None = None


class ClauseEntry(BaseModel):
    """One clause under ``when``. What is not written keeps what the tool has."""

    model_config = _STRICT
    if_: Annotated[dict[str, ConditionEntry], Field(min_length=1, alias="if")]
    returns: list[str] | None = None
    reads: list[str] | None = None
    opens: list[str] | None = None
    egress: Literal["none", "blind", "chosen"] | None = None
    effect: Literal["none", "add", "write", "destroy", "control"] | None = None
    audience: Literal["closed", "self", ""] | None = None


class ToolEntry(BaseModel):
    """One ``[tools.NAME]`` table. ``returns`` and ``egress`` must be written: silence promises nothing (T7)."""

    model_config = _STRICT
    returns: list[str]
    egress: Literal["none", "blind", "chosen"]
    reads: list[str] = []
    opens: list[str] = []
    destinations: dict[str, str] = {}
    objects: dict[str, str] = {}
    parties: dict[str, str] = {}
    content: list[str] = []
    arguments: list[str] = []
    writes_to: dict[str, Literal["path", "url", "table", "key"]] = {}
    reads_from: dict[str, Literal["path", "url", "table", "key"]] = {}
    defaults: dict[str, Any] = {}
    effect: Literal["none", "add", "write", "destroy", "control"] = "none"
    audience: Literal["closed", "self", ""] = ""
    fields: dict[str, str | list[str]] = {}
    ids: dict[str, IdEntry] = {}
    keep: Literal["trusted", "metadata", ""] = ""
    when: list[ClauseEntry] = []
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
