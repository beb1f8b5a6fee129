"""Checks to run on your own implementation, in three lines each. See ``docs/property-suite.md``.

Each check returns a :class:`~interlock.testing.traces.Report`, or raises an ``AssertionError`` with the shortest list
of steps that shows what is wrong. How many examples are drawn is the argument's to say, then ``--interlock-examples``,
then the active Hypothesis profile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlock.testing.machines import ConversationMachine
from interlock.testing.traces import REPORTS, Report, chosen, reported, run_machine


def check_conversation(
    factory: Callable[[], Any],
    *,
    guard: Callable[[Any], Any] | None = None,
    examples: int | None = None,
    steps: int = 25,
) -> Report:
    """A conversation keeps its taint, its calls and its origins through everything that agents do to one.

    Shows T1, T2 and T17, that only typed text counts as typed, and that a restart holds nothing else. The steps: turns,
    rounds of calls with late and missing results, failed turns in all three shapes, rewrites, truncation, forks,
    children and their joins, ``copy``, ``deepcopy``, pickles, assignment.

    Args:
        factory: makes a fresh, clean conversation with the names of :class:`interlock.Conversation`.
        guard: makes a guard (``propose``, ``observe``, ``preview``, ``admit``) of one; ours by default, which is right
            for subclasses of Conversation. Yours must know the tools of :data:`interlock.testing.toolbox.MANIFEST`.
        steps: at most so many in one example.

    Raises:
        AssertionError: with the steps, what was expected and what was held.
    """
    __tracebackhide__ = True
    with reported("check_conversation", factory, ("T1", "T2", "T17")) as tally:
        run_machine(lambda: ConversationMachine(tally, factory, guard), chosen(examples), steps)
    return REPORTS[-1]
