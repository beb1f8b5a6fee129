"""The OpenAPI document, made from the table of operations and the shapes. ``docs/openapi.json`` is a copy of it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from pydantic.json_schema import models_json_schema

from interlock.serve import shapes

if TYPE_CHECKING:
    from interlock.serve.app import Operation

_REF: Final = "#/components/schemas/{model}"
_WORDS: Final = {
    "400": "The body is no JSON that can be trusted.",
    "401": "Unknown caller.",
    "403": "The caller does not have this right.",
    "404": "Not there, or somebody else's.",
    "409": "It contradicts what is on record.",
    "413": "Too large.",
    "415": "Not JSON.",
    "422": "Not of this shape.",
    "429": "Too much for these credentials; see Retry-After.",
    "503": "Not able to decide at present; see Retry-After.",
}


@cache
def documented(operations: tuple[Operation, ...]) -> dict[str, Any]:
    """The document. Callers must not change it."""
    kinds: list[type[shapes.Shape]] = [shapes.Failure, shapes.Health, shapes.Ready]
    for one in operations:
        kinds += [kind for kind in (one.asked, one.told) if kind is not None and kind not in kinds]
    _, schemas = models_json_schema([(kind, "validation") for kind in kinds], ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path.replace(":path}", "}"), {})[one.method.lower()] = _operation(one)
    paths["/health"] = {"get": _probe("health", "Alive.", shapes.Health)}
    paths["/ready"] = {"get": _probe("ready", "Able to decide.", shapes.Ready)}
    paths["/metrics"] = {
        "get": {
            "operationId": "metrics",
            "summary": "Metrics for Prometheus. Needs the right `metrics`.",
            "responses": {
                "200": {"description": "Text.", "content": {"text/plain": {"schema": {"type": "string"}}}},
                **_failures(("401", "403", "503")),
            },
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Interlock",
            "version": "1",
            "description": "Decides the tool calls of agents. Every answer that is no success is a denial.",
        },
        "security": [{"token": []}, {"certificate": []}],
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "certificate": {"type": "mutualTLS"},
            },
        },
    }


def _operation(one: Operation) -> dict[str, Any]:
    names = [part.strip("{}").partition(":")[0] for part in one.path.split("/") if part.startswith("{")]
    found: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "parameters": [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names],
        "responses": {
            str(one.status): {"description": one.told.__doc__ or "The answer.", "content": _json(one.told)},
            **_failures(_WORDS),
        },
    }
    if one.asked is not None:
        found["requestBody"] = {"required": True, "content": _json(one.asked)}
    return found


def _probe(name: str, summary: str, told: type[shapes.Shape]) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "security": [],
        "responses": {
            "200": {"description": "Yes.", "content": _json(told)},
            "503": {"description": "No.", "content": _json(told)},
        },
    }


def _failures(statuses: Iterable[str]) -> dict[str, Any]:
    return {status: {"description": _WORDS[status], "content": _json(shapes.Failure)} for status in statuses}


def _json(kind: type[shapes.Shape]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(model=kind.__name__)}}}
