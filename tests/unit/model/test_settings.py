"""Proves that settings are read strictly: defaults are the strict ones, and nothing unknown is taken for one.

Mutations that this file catches: an unknown setting accepted; a looser default.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock.errors import SettingsError
from interlock.model.settings import parse_settings
from tests.strategies import SETTINGS


def test_defaults() -> None:
    values = parse_settings({}).model_dump()
    assert (values["trifecta"], values["leak_guard"], values["open_channel"]) == ("deny", "off", "deny")
    assert not any(values["address_book"].values())
    assert {name: values[name] for name in SETTINGS[0]} == SETTINGS[0]


@pytest.mark.parametrize("values", SETTINGS, ids=str)
def test_every_combination_loads(values: dict[str, str]) -> None:
    assert parse_settings(values).model_dump().items() >= values.items()


@pytest.mark.parametrize(
    "values",
    [
        {"trifecta": "allow"},
        {"trifecta": "off"},
        {"trifecta": "Deny"},
        {"trifecta": None},
        {"trifecta": True},
        {"open_channel": "off"},
        {"leak_guard": ""},
        {"Trifecta": "deny"},
        {"trifecta ": "deny"},
        {"unknown": 1},
        {"address_book": {"emails": []}},
        {"address_book": {"email": "bob@corp.example"}},
        {"address_book": {"email": [1]}},
        {"address_book": []},
        [("trifecta", "x", "y")],
        7,
    ],
    ids=str,
)
def test_everything_else_is_refused(values: Any) -> None:
    with pytest.raises(SettingsError):
        parse_settings(values)
