"""Case 116: the gate is there, and one place in the code builds its own way past it.

Read from the source: a permit is made in one place, a tool's function is entered in one place, an engine is asked in
one place. At run time: a wrapped function does nothing without a permit, whatever it is reached by. The honest twin
goes through the gate.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import interlock
from interlock import Interlock, MemoryJournal, NotPermitted, tool
from tests.cases.desk import fresh

PACKAGE = Path(interlock.__file__).parent


def called(name: str, attribute: bool) -> set[str]:
    """Files in which something of this name is called."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in calls(path):
            function = node.func
            named = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if named == name and isinstance(function, ast.Attribute) == attribute:
                found.add(path.relative_to(PACKAGE).as_posix())
    return found


@functools.cache
def calls(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]


def test_attack_each_door_is_in_one_place() -> None:
    assert called("Permit", attribute=False) == {"gate/drivers.py"}
    assert called("executing", attribute=False) == {"gate/drivers.py"}
    assert called("_function", attribute=True) == {"gate/tools.py"}
    assert called("Execute", attribute=False) == {"gate/steps.py"}
    # The second takes up what the journal says was allowed, to observe its result; it can neither decide nor execute.
    assert called("Allowed", attribute=False) == {"gate/steps.py", "gate/tickets.py"}
    text = (PACKAGE / "gate" / "tickets.py").read_text(encoding="utf-8")
    assert not [one for one in ("Execute", "Permit", "executing", "Evaluate", "Append", ".decide") if one in text]


def test_attack_the_gate_alone_asks_for_decisions_that_let_something_run() -> None:
    """Others ask an engine, to prove, test or explain; none of them holds what it takes to execute."""
    asking = called("evaluate", attribute=True) | called("Evaluate", attribute=False)
    assert {"gate/drivers.py", "gate/steps.py"} <= asking
    for name in asking - {"gate/drivers.py", "gate/steps.py"}:
        text = (PACKAGE / name).read_text(encoding="utf-8")
        assert "Permit" not in text, name
        assert "Execute(" not in text, name


RAN: list[str] = []


@tool(returns=["private:files"], egress="none")
def read(path: str) -> str:
    """Reads."""
    RAN.append(path)
    return "text"


class Holder:
    method = read

    def __init__(self) -> None:
        self.bound = read


REACHED: dict[str, Callable[[], object]] = {
    "called": lambda: read("x"),
    "in a partial": functools.partial(read, "x"),
    "as an attribute of a class": lambda: Holder.method("x"),
    "as an attribute of an object": lambda: Holder().bound("x"),
    "mapped": lambda: list(map(read, ["x"])),
    "as a key": lambda: sorted(["x"], key=read),
    "by its type": lambda: type(read).__call__(read, "x"),
    "in a comprehension": lambda: [read(one) for one in ["x"]],
}


@pytest.mark.parametrize("way", REACHED.values(), ids=REACHED)
def test_attack_a_wrapped_function_does_nothing_by_itself(way: Callable[[], object]) -> None:
    RAN.clear()
    with pytest.raises(NotPermitted):
        way()
    assert RAN == []


def test_attack_nothing_leads_from_the_wrapper_to_the_function_by_its_usual_name() -> None:
    def names(thing: object) -> Iterator[str]:
        yield from (name for name in dir(thing) if name in ("__wrapped__", "__func__", "func", "function", "fn"))

    assert list(names(read)) == []


def test_honest_through_the_gate() -> None:
    RAN.clear()
    guard = fresh(Interlock(tools=[read], journal=MemoryJournal()))
    assert guard.call("read", {"path": "x"}, run=read).result == "text"
    with guard:
        assert [read(one) for one in ("y", "z")] == ["text", "text"]
    assert RAN == ["x", "y", "z"]
