"""Settings of the user's own controls, checked against the JSON schemas that stand beside them.

They reach Rego as ``data.settings.controls``. A schema is an object schema; a property without a ``default`` must be
set by the operator; a setting that no schema names is refused, since it would silently do nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from interlock.errors import NotCanonical, PolicyError, SettingsError
from interlock.model.canonical import parse


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

    properties: dict[str, Any] = {}
    owners: dict[str, str] = {}
    for one in schemas:
        for name, schema in _properties(one).items():
            if name in properties:
                raise PolicyError(f"{one.path}: setting {name!r} is also declared in {owners[name]}; rename one")
            properties[name], owners[name] = schema, one.path
    unknown = sorted(set(values) - set(properties))
    if unknown:
        raise SettingsError(
            f"settings.controls.{unknown[0]}: unknown setting; declare it in settings.schema.json beside the control"
        )
    whole = {}
    for name, schema in properties.items():
        if name not in values and not (isinstance(schema, dict) and "default" in schema):
            raise SettingsError(f"settings.controls.{name}: missing, and {owners[name]} gives no default")
        whole[name] = values.get(name, schema.get("default"))
        try:
            jsonschema_rs.validator_for(schema, retriever=_no_network).validate(whole[name])
        except jsonschema_rs.ValidationError as error:
            raise SettingsError(f"settings.controls.{name}: {error.message}") from None
        except ValueError as error:
            raise PolicyError(f"{owners[name]}: {name}: not a schema: {error}") from None
    return whole


def _no_network(address: str) -> Any:
    """A ``$ref`` to somewhere else would let a policy file make us fetch it."""
    raise ValueError(f"{address} is not in this file; only local references are followed")


def _properties(one: Text) -> dict[str, Any]:
    try:
        schema = parse(one.text)
    except NotCanonical as error:
        raise PolicyError(f"{one.path}: not JSON: {error}") from None
    if not isinstance(schema, dict) or schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        raise PolicyError(f"{one.path}: a settings schema is {json.dumps({'type': 'object', 'properties': {}})}")
    properties = schema["properties"]
    assert isinstance(properties, dict)
    return dict(properties)
