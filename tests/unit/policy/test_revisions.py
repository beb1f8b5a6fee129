"""Proves which revisions meet which demand: what can't be compared meets none.

Mutation that it is shown to catch: comparing revisions as texts.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.policy.revisions import Demand, orderable, reaches, well_formed
from tests.ids import stable


@pytest.mark.parametrize(
    ("revision", "least", "meets"),
    [
        ("2026-11-30.2", "2026-11-29.10", True),
        ("2026-11-29.10", "2026-11-29.9", True),
        ("2026-11-29.9", "2026-11-29.10", False),
        ("r9", "r9", True),
        ("r10", "r9", True),
        ("r9", "r10", False),
        ("v10", "r9", False),
        ("r10-rc", "r9", False),
        ("10", "r9", False),
        ("r10.1", "r9", False),
        ("r", "r9", False),
        ("", "r9", False),
        ("r10", "", False),
        ("stable", "stable", False),
        ("r" + "9" * 40, "r9", False),
        ("r١٠", "r9", False),
    ],
    ids=stable,
)
def test_order(revision: str, least: str, meets: bool) -> None:
    assert reaches(revision, least) is meets
    assert Demand(at_least=least or "x").met_by(revision) is meets
    assert orderable(least) is any(one.isascii() and one.isdigit() for one in least)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_numbers(one: int, other: int) -> None:
    assert reaches(f"a{one}b{other}", f"a{other}b{one}") is ((one, other) >= (other, one))


@given(st.text(max_size=20), st.text(min_size=1, max_size=20))
def test_exact(revision: str, exact: str) -> None:
    assert Demand(exact=exact).met_by(revision) is (revision == exact)
    assert not Demand(exact=exact).met_by("")
    assert Demand().met_by(revision)


def test_what_may_be_shown() -> None:
    assert well_formed("sha256:abc")
    assert not any(well_formed(one) for one in ("", "a\nb", "a\x1bb", "x" * 257, 7, None, ["r"]))
