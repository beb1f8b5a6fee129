"""Case 65: a word of the configuration is misspelt, and the gate that it would have set is quietly not there.

An unknown setting, a value outside its list, an empty one and a section with another name are errors at start, and
nothing is built. None of them is a way to less than the default. The honest twin writes the setting as it is meant and
finds it at work.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock import Conversation, Interlock
from interlock.errors import Misconfigured
from tests.cases.desk import EVIL, armed, did, got, locked

WRONG: dict[str, dict[str, Any]] = {
    "another name": {"on_trifecta": "ask"},
    "a value misspelt": {"trifecta": "aks"},
    "empty": {"trifecta": ""},
    "a list": {"trifecta": ["ask"]},
    "an empty list": {"trifecta": []},
    "nothing": {"trifecta": None},
    "false": {"trifecta": False},
    "off": {"trifecta": "off"},
    "allow": {"open_channel": "allow"},
    "a space": {"trifecta": "ask "},
    "another level": {"settings": {"trifecta": "ask"}},
    "a control of nobody": {"controls": {"trifecta": "ask"}},
    "a kind misspelt": {"address_book": {"emails": ["kim@corp.example"]}},
}


@pytest.mark.parametrize("settings", WRONG.values(), ids=WRONG)
def test_attack_nothing_is_built(settings: dict[str, Any]) -> None:
    with pytest.raises(Misconfigured):
        locked(settings=settings)


TOOL = '[tools.calc]\nreturns = []\negress = "none"\n'
FILES = {
    "a section misspelt": f'version = 1\n[setings]\ntrifecta = "deny"\n{TOOL}',
    "a list of policies misspelt": f'version = 1\npolicy = ["controls"]\n{TOOL}',
    "policies as a text": f'version = 1\npolicies = "controls"\n{TOOL}',
    "an engine that nobody knows": f'version = 1\n{TOOL}[engine]\nkind = "none"\n',
    "a journal that nobody knows": f'version = 1\n{TOOL}[journal]\nkind = "off"\n',
    "a mode": f'version = 1\nmode = "monitor"\n{TOOL}',
    "no version": TOOL,
    "nothing at all": "",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_attack_no_file_with_a_misspelt_word_loads(tmp_path: Path, text: str) -> None:
    file = tmp_path / "interlock.toml"
    file.write_text(text)
    with pytest.raises(Misconfigured):
        Interlock.load(file)


def test_honest_the_word_as_it_is_meant(tmp_path: Path) -> None:
    assert got(did(armed(locked(settings={"trifecta": "ask"})), "send_email", EVIL))[0] == "ask"
    (tmp_path / "interlock.toml").write_text(f'version = 1\n{TOOL}[settings]\ntrifecta = "ask"\n')
    lock = Interlock.load(tmp_path / "interlock.toml")
    assert did(lock.guard(Conversation.new()), "calc").executed
