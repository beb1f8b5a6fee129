"""A policy file of a few dozen brackets kept the loader busy for hours.

The parser of the embedded engine doubles its time with each bracket that stands directly in another: 25 of them take
minutes, and nothing could stop it. A workspace may bring controls, so a project's file could hang whoever opened it.
Now the brackets are counted before the parser sees the file, outside strings and comments, and more than ten are
refused.
Mutations that this file catches: the check left out; brackets in strings and comments counted.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from interlock.errors import PolicyError
from interlock.policy import rego_ast
from tests.regressions.stage import control, decided, interlock, policies


@pytest.mark.parametrize("opening", ["[", "{", "(", '{"a":', "[{"])
@pytest.mark.parametrize("times", [20, 25, 600, 20_000])
def test_deep_brackets_never_reach_the_parser(opening: str, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    closing = "".join({"[": "]", "{": "}", "(": ")"}.get(char, "") for char in reversed(opening))
    text = control("mine", f"x := {opening * times}1{closing * times}")
    monkeypatch.setattr(rego_ast, "regorus", None)  # so that a test fails, and does not hang, when they do
    with pytest.raises(PolicyError, match="nested"):
        rego_ast.parse_module("mine.rego", text)


def test_an_interlock_with_them_is_refused_at_once(tmp_path: Path) -> None:
    began = time.perf_counter()
    with pytest.raises(PolicyError, match="nested"):
        interlock(policies=policies(tmp_path, control("mine", f"x := {'[' * 16}1{']' * 16}")))
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    "hidden", ['x := "a\\"" # [', 'x := `"` # ]]]]', 'x := "#"', "x := `#`", 'x := "\\\\" # "'], ids=ascii
)
def test_strings_and_comments_hide_no_brackets(hidden: str, tmp_path: Path) -> None:
    text = control("mine", hidden, f"y := {'[' * 14}1{']' * 14}")
    with pytest.raises(PolicyError, match="nested"):
        interlock(policies=policies(tmp_path, text))


def test_honest_brackets_in_strings_and_comments_do_not_count(tmp_path: Path) -> None:
    lifted = 'verdict := {"verdict": "allow"} if input.tool.name in {"calc"}'
    for text in (f'x := "{"[" * 50}"', f"x := `{'{(' * 50}`", f"# {'[' * 50}", f'x := "\\"{"[" * 50}"'):
        assert decided("calc", {}, policies=policies(tmp_path, control("mine", text, lifted))).codes == ()


def test_honest_what_people_write_is_not_deep(tmp_path: Path) -> None:
    rule = 'verdict := {"verdict": "allow"} if count([x | some x in [{"a": [(1 + 2)]}]; x.a[0] == 3]) == 1'
    assert decided("calc", {}, policies=policies(tmp_path, control("mine", rule))).codes == ()
