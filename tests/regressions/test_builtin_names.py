"""A control could call builtins that are not on the allow-list, by taking their name first.

A rule called ``time`` or ``import data.lib.time as time`` made the loader read ``time.now_ns()`` as a call of the
user's own function; the engine still called the builtin, so decisions depended on the clock, on chance or on the
network and could not be replayed. Now nothing may be called like a builtin, and a call counts as the user's own only
if it names a function that the files really define.
Mutations that this file catches: ``_is_function`` true for any rule or import of that name; ``_reserved`` left out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.errors import PolicyError
from tests.regressions.stage import decided, interlock, policies

DEFAULT = 'default verdict := {"verdict": "deny"}'
LIFTED = 'verdict := {"verdict": "allow"} if '


def _mine(*lines: str) -> str:
    return "\n".join(["package controls.mine", "", *lines, ""])


def _refused(folder: Path, text: str, why: str) -> None:
    with pytest.raises(PolicyError, match=why):
        interlock(policies=policies(folder, text))


CALLS = {
    "time": "time.now_ns() > 1",
    "rand": 'rand.intn("a", 2) == 1',
    "uuid": 'uuid.rfc4122("a") != ""',
    "opa": "opa.runtime().env",
    "http": 'http.send({"method": "get", "url": "http://127.0.0.1:1/"})',
    "net": 'net.lookup_ip_addr("page.example")',
    "print": 'print("x", input)',
    "trace": 'trace("x")',
    "io": 'io.jwt.decode("x")',
    "walk": "walk(input, [_, 1])",
}


@pytest.mark.parametrize("name", CALLS)
def test_a_rule_called_like_a_builtin_opens_nothing(name: str, tmp_path: Path) -> None:
    _refused(tmp_path, _mine(DEFAULT, f"{name} := 1", LIFTED + CALLS[name]), "is not allowed in controls")


@pytest.mark.parametrize("name", CALLS)
def test_an_import_called_like_a_builtin_opens_nothing(name: str, tmp_path: Path) -> None:
    for target in ("data.settings", "input.call", f"data.lib.{name}"):
        text = _mine(f"import {target} as {name}", DEFAULT, LIFTED + CALLS[name])
        _refused(tmp_path, text, "is not allowed in controls")


@pytest.mark.parametrize("name", [*CALLS, "count", "regex", "object", "startswith", "sprintf", "concat"])
def test_nothing_may_be_called_like_a_builtin(name: str, tmp_path: Path) -> None:
    lifted = LIFTED + "input.tool.known == true"
    _refused(tmp_path, _mine(DEFAULT, f"{name} := 1", lifted), "like a builtin")
    _refused(tmp_path, _mine(DEFAULT, f"{name}(x) := x", lifted), "like a builtin|not Rego")
    _refused(tmp_path, _mine(f"import data.settings as {name}", DEFAULT, lifted), "like a builtin")


@pytest.mark.parametrize("name", ["input", "data"])
def test_nothing_may_be_called_like_a_root(name: str, tmp_path: Path) -> None:
    text = _mine(f"import data.settings as {name}", DEFAULT, LIFTED + f'{name}.trifecta == "deny"')
    _refused(tmp_path, text, "like a builtin|not Rego|no input")


def test_a_helper_that_nobody_defines_is_no_function(tmp_path: Path) -> None:
    _refused(tmp_path, _mine(DEFAULT, LIFTED + "data.lib.clock.now(1) == 1"), "is not allowed|nothing defines")


def test_honest_functions_of_ones_own_may_be_called(tmp_path: Path) -> None:
    library = 'package lib.tools\n\nreads(name) if name in {"calc", "read_file"}\n'
    policies(tmp_path, library, "tools.rego")
    for imported, called in (("import data.lib.tools", "tools.reads"), ("", "data.lib.tools.reads")):
        text = _mine(imported, DEFAULT, "mine(x) := x", LIFTED + f"{called}(mine(input.tool.name))")
        mine = policies(tmp_path, text)
        assert decided("calc", {}, policies=mine).codes == ()
        assert decided("write", {"path": "notes"}, policies=mine).codes == ("mine",)


def test_honest_builtins_on_the_list_may_be_called(tmp_path: Path) -> None:
    text = _mine(DEFAULT, LIFTED + 'startswith(input.tool.name, "calc")')
    assert decided("calc", {}, policies=policies(tmp_path, text)).codes == ()
