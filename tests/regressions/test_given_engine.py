"""``Interlock(engine=…, policies=…, settings=…)`` took all three and used only the engine.

An operator who gave their own engine, a folder of controls and ``leak_guard = "deny"`` had neither controls nor leak
guard, and a folder that did not exist was no error. Now an engine that is given brings its own controls and settings,
and anything beside it that would be ignored is a load error. The address book is used by the gate, so it may stay.
Mutation that this file catches: the check left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock import Verdict
from interlock.errors import Misconfigured
from tests.regressions.stage import BOTH, control, decided, interlock, policies


@pytest.mark.parametrize(
    "beside",
    [
        {"policies": ["/nowhere"]},
        {"settings": {"leak_guard": "deny"}},
        {"settings": {"trifecta": "deny"}},
        {"settings": {"controls": {}}},
        {"settings": {"address_book": {}, "open_channel": "ask"}},
        {"policies": ["/nowhere"], "settings": {"leak_guard": "deny"}},
    ],
)
def test_what_would_be_ignored_is_refused(beside: dict[str, Any]) -> None:
    with pytest.raises(Misconfigured, match="brings its own controls and settings"):
        interlock(engine=interlock().engine, **beside)


def test_honest_an_engine_alone_decides(tmp_path: Path) -> None:
    strict = interlock(policies=policies(tmp_path, control("strict")), settings={"leak_guard": "deny"}).engine
    decision = decided("calc", {}, engine=strict)
    assert decision.codes == ("strict",)
    assert decision.revision == strict.revision


def test_honest_the_address_book_is_the_gates() -> None:
    book = {"address_book": {"email": ["desk@corp.example"]}}
    mail = {"to": "desk@corp.example", "body": "x"}
    assert decided("send_email", mail, labels=BOTH, engine=interlock().engine, settings=book).verdict is Verdict.ALLOW
    assert decided("send_email", mail, labels=BOTH, engine=interlock().engine).verdict is Verdict.DENY
