"""OPA's own test cases, as far as our loader admits them, come out as the ledger says: as OPA's authors wrote, or with
a reason that somebody wrote after looking at it (ADR 0060).

The cases are in OPA's Go module, which CI has since it builds OPA from it. Mutation that this file catches: an engine
of another version, and a builtin that joins the allow-list without its cases passing.
"""

from __future__ import annotations

import os

import pytest

from tests.agreement.opa_cases import LEDGER, Run, ledger, module, run, written

HARMLESS = ("errs", "undefined", "undefined, warned", "errs, warned")


@pytest.fixture(scope="module")
def found() -> Run:
    root = module()
    if root is None:
        why = "there is no Go here to ask for OPA's test cases; INTERLOCK_TEST_OPA_MODULE may name the module's folder"
        if os.environ.get("INTERLOCK_CI"):
            pytest.fail(why, pytrace=False)
        pytest.skip(why)
    return run(root)


def test_the_ledger_is_what_comes_out(found: Run) -> None:
    reasons = {note: reason for note, (_, reason) in ledger()["failing"].items()}
    assert written(found, reasons) == LEDGER.read_text(encoding="utf-8"), (
        "the embedded engine comes out otherwise than the ledger says: look at the cases that changed, then"
        " `python -m tests.agreement.opa_cases --write`"
    )


def test_most_of_it_passes(found: Run) -> None:
    passed, failed, outside = (sum(one[place] for one in found.folders.values()) for place in range(3))
    assert passed >= 850
    assert failed <= 20
    assert outside < 1600


def test_every_failing_case_was_looked_at() -> None:
    """None of them answers where OPA does not, or otherwise: what is left errs or is undefined, and says why."""
    for note, (how, reason) in ledger()["failing"].items():
        assert reason, note
        assert how in HARMLESS, note
        # Undefined in a negation would be true: so a finding must say so.
        assert "undefined" not in how or "warned" in how, note
