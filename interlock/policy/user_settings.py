"""Settings of the user's own controls, checked against the JSON schemas that stand beside them.

They reach Rego as ``data.settings.controls``. A schema is an object schema; a property without a ``default`` must be
set by the operator; a setting that no schema names is refused, since it would silently do nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from interlock.errors import NotCanonical, PolicyError, SettingsError
from interlock.model.canonical import check, parse


class Text(Protocol):
    @property
    def path(self) -> str: ...
    @property
    def text(self) -> str: ...


def user_settings(values: Mapping[str, Any], schemas: Iterable[Text]) -> dict[str, Any]:
    """The values with defaults filled in.

    Raises:
        PolicyError: a schema is no schema, or two schemas name the same setting.
        SettingsError: a value is unknown, missing or outside its schema.
    """
    import jsonschema_rs  # loaded late: most bundles have no settings of their own

    try:
        check(dict(values))
    except NotCanonical as error:
        raise SettingsError(f"settings.controls: {error}") from None
    owners: dict[str, str] = {}
    whole: dict[str, Any] = {}
    for one in schemas:
        schema = _schema(one)
        ours: dict[str, Any] = {}
        for name, wanted in schema["properties"].items():
            if name in owners:
                raise PolicyError(f"{one.path}: setting {name!r} is also declared in {owners[name]}; rename one")
            owners[name] = one.path
            if name not in values and "default" not in wanted:
                raise SettingsError(f"settings.controls.{name}: missing, and {one.path} gives no default")
            ours[name] = values.get(name, wanted.get("default"))
        try:
            jsonschema_rs.validator_for(schema, retriever=_no_network).validate(ours)
        except jsonschema_rs.ValidationError as error:
            place = ".".join(map(str, error.instance_path))
            raise SettingsError(f"settings.controls{'.' + place if place else ''}: {error.message}") from None
        except ValueError as error:
            raise PolicyError(f"{one.path}: not a schema: {error}") from None
        whole |= ours
    unknown = sorted(set(values) - set(owners))
    if unknown:
        raise SettingsError(
            f"settings.controls.{unknown[0]}: unknown setting; declare it in settings.schema.json beside the control"
        )
    return whole


def _no_network(address: str) -> Any:
    """A ``$ref`` to somewhere else would let a policy file make us fetch it."""
    raise ValueError(f"{address} is not in this file; only local references are followed")


def _schema(one: Text) -> dict[str, Any]:
    try:
        schema = parse(one.text)
    except NotCanonical as error:
        raise PolicyError(f"{one.path}: not JSON: {error}") from None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or schema.get("type") != "object" or not isinstance(properties, dict):
        raise PolicyError(f"{one.path}: a settings schema is {json.dumps({'type': 'object', 'properties': {}})}")
    for name, wanted in properties.items():
        if not isinstance(wanted, dict):
            raise PolicyError(f"{one.path}: {name}: the schema of a setting is an object")
    return schema
