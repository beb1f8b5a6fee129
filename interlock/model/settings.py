"""The operator's settings: what Rego sees as ``data.settings``, with a schema of its own.

Every setting has a default that is the strict one, except where strictness would forbid every use
(``leak_guard``); each default is written out here and in ``docs/settings.md``. An unknown setting is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interlock.errors import NotCanonical, SettingsError
from interlock.model.canonical import check


class AddressBook(BaseModel):
    """Destinations that the operator vouches for: whole values, compared in normal form."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    url: list[str] = []
    email: list[str] = []
    path: list[str] = []
    domain: list[str] = []
    account: list[str] = []
    phone: list[str] = []
    channel: list[str] = []
    user: list[str] = []
    id: list[str] = []
    name: list[str] = []


Objection = Literal["deny", "ask", "off"]

# What each preset says where the operator says nothing. `strict` is what the fields below have as defaults.
PRESETS: Final[Mapping[str, Mapping[str, str]]] = {
    "strict": {},
    "convenient": {"metadata": "grounds"},
    "trifecta-only": dict.fromkeys(
        (
            "destructive",
            "steered_destination",
            "steered_object",
            "steered_party",
            "steered_link",
            "self_only",
            "split_exfiltration",
            "secret_read",
        ),
        "off",
    ),
    "lockdown": {"lockdown": "deny"},
}


class Settings(BaseModel):
    """Settings of the shipped controls."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    preset: Literal["strict", "convenient", "trifecta-only", "lockdown"] = Field(
        "strict", description="Values of the settings that are not written; see presets."
    )
    trifecta: Literal["deny", "ask"] = Field(
        "deny", description="What happens to a send to an ungrounded destination after untrusted and private content."
    )
    leak_guard: Literal["deny", "ask", "off"] = Field(
        "off", description="What happens to any send after private content, untrusted or not."
    )
    open_channel: Literal["deny", "ask"] = Field(
        "deny", description="What happens when private data, untrusted content and a standing channel would meet."
    )
    secret_read: Objection = Field(
        "deny", description="What happens to a call that reads credentials after untrusted content."
    )
    secret_egress: Literal["deny", "ask"] = Field(
        "deny", description="What happens to any send after untrusted content and credentials, whoever the receiver is."
    )
    destructive: Literal["ask", "off"] = Field(
        "ask", description="What happens, after untrusted content, to a change of something that nobody has named."
    )
    steered_destination: Objection = Field(
        "ask", description="What happens to a send to an ungrounded destination after untrusted content."
    )
    steered_object: Objection = Field(
        "ask", description="What happens, after untrusted content, to a call on an object that nobody has named."
    )
    steered_party: Objection = Field(
        "ask",
        description="What happens, after untrusted content, to a call for a party or value that nobody has named.",
    )
    steered_link: Objection = Field(
        "ask",
        description="What happens, after untrusted content, to outgoing text with a link that nobody vouches for.",
    )
    self_only: Objection = Field(
        "ask", description="What happens to an entry for the person alone that holds steered names or links."
    )
    split_exfiltration: Objection = Field(
        "ask", description="What happens to the ninth and later sends of private material to one ungrounded receiver."
    )
    lockdown: Objection = Field(
        "off", description="What happens to any send, change or channel after untrusted content."
    )
    metadata: Literal["ignored", "grounds"] = Field(
        "ignored", description="Do fields that the provider fills, and a stranger may have chosen, ground a value?"
    )
    own_domains: list[str] = Field(
        default_factory=list, description="Mail addresses and domains at these domains or below them are vouched for."
    )
    hosts: list[str] = Field(default_factory=list, description="URLs at these hosts or below them are vouched for.")
    roots: list[str] = Field(
        default_factory=list, description="Paths below these absolute folders are vouched for, by segments."
    )
    controls: dict[str, Any] = Field(
        default_factory=dict,
        description="Settings of your own controls; each is declared in a settings.schema.json beside them.",
    )
    address_book: AddressBook = Field(
        default_factory=AddressBook, description="Destinations that the operator vouches for, by kind."
    )


SETTING_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    name: get_args(field.annotation)
    for name, field in Settings.model_fields.items()
    if get_origin(field.annotation) is Literal
}
"""Settings with a closed set of values: what a prover tries all combinations of."""


def preset_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as written, over those of the preset that they name."""
    preset = values.get("preset")
    return {**(PRESETS.get(preset, {}) if isinstance(preset, str) else {}), **values}


_MEANINGS: Final = {"extra_forbidden": "unknown setting", "missing": "missing"}


def parse_settings(values: Mapping[str, Any]) -> Settings:
    """Read settings strictly.

    Raises:
        SettingsError: an unknown setting or a value outside its domain, each with its place.
    """
    try:
        check(dict(values))
    except NotCanonical as error:
        raise SettingsError(f"settings{error.path[1:]}: {error.problem}") from None
    except (TypeError, ValueError) as error:
        raise SettingsError(f"settings must be a mapping: {error}") from None
    try:
        return Settings.model_validate(preset_values(values))
    except (ValidationError, TypeError, ValueError) as error:
        if not isinstance(error, ValidationError):
            raise SettingsError(f"settings must be a mapping: {error}") from None
        lines = [
            f"settings.{'.'.join(map(str, one['loc']))}: {_MEANINGS.get(one['type'], one['msg'])}"
            for one in error.errors(include_url=False, include_input=False)
        ]
        raise SettingsError("\n".join(lines)) from None
