"""Case 57: a name is looked up for the check and again for the request, and the second answer is this machine.

Here a decision looks nothing up: an address is vouched for as a whole value or not at all, and what a name means today
is never part of it, so a second look-up can't change what was decided. Numbers in the place of a name are nobody's
address, however they are written. The honest twin is the address that was typed.
"""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tests.cases.desk import armed, did, got

NUMERIC = [
    "http://127.0.0.1/x",
    "http://127.1/x",
    "http://0x7f000001/x",
    "http://2130706433/x",
    "http://0177.0.0.1/x",
    "http://[::1]/x",
    "http://[::ffff:127.0.0.1]/x",
    "http://169.254.169.254/latest/meta-data",
]


@pytest.fixture
def no_look_up(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    asked: list[Any] = []

    def refuse(*args: Any, **_: Any) -> Any:
        asked.append(args)
        raise AssertionError("a decision looked a name up")

    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    return asked


def test_attack_nothing_is_looked_up(no_look_up: list[Any]) -> None:
    guard = armed()
    for host in ("rebind.evil.test", "localhost", "corp.example", "metadata"):
        assert got(did(guard, "http_request", {"url": f"https://{host}/"})) == ("deny", "trifecta")
    assert got(did(guard, "send_email", {"to": "eve@evil.test", "body": "x"})) == ("deny", "trifecta")
    assert no_look_up == []


@pytest.mark.parametrize("url", NUMERIC)
def test_attack_a_number_is_nobodys_address_even_typed(no_look_up: list[Any], url: str) -> None:
    guard = armed(typed=f"Get {url} please.")
    assert got(did(guard, "http_request", {"url": url})) == ("deny", "trifecta")


def test_honest_the_name_that_was_typed(no_look_up: list[Any]) -> None:
    guard = armed(typed="Get https://status.example/today please.")
    assert did(guard, "http_request", {"url": "https://status.example/today"}).executed
    assert no_look_up == []
