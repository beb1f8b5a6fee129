"""Checks to run on your own implementation, in three lines each. See ``docs/property-suite.md``.

Each check returns a :class:`~interlock.testing.traces.Report`, or raises an ``AssertionError`` with the shortest list
of steps that shows what is wrong. How many examples are drawn is the argument's to say, then ``--interlock-examples``,
then the active Hypothesis profile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from interlock.gate.conversation import Conversation
from interlock.testing.agents import AgentMachine, works
from interlock.testing.engines import EngineLaws
from interlock.testing.journal_machine import JournalMachine, check_threads
from interlock.testing.kit import OPTIONAL, Kit
from interlock.testing.machines import ConversationMachine
from interlock.testing.session_machine import SessionMachine
from interlock.testing.toolbox import reference
from interlock.testing.traces import REPORTS, Report, Reported, chosen, run_machine


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
    with Reported("check_conversation", factory, ("T1", "T2", "T17")) as tally:
        run_machine(lambda: ConversationMachine(tally, factory, guard), chosen(examples), steps)
    return REPORTS[-1]


def check_session(
    create: Callable[[Path, Any], Any],
    load: Callable[[Path], Any],
    *,
    conversation: Callable[[], Any] = Conversation.new,
    guard: Callable[[Any], Any] | None = None,
    folder: Path | None = None,
    examples: int | None = None,
    steps: int = 25,
) -> Report:
    """A stored conversation never loads cleaner than it was, whatever happens to its process and its files.

    Shows T2, T10, T11, T16 and T17: everything that :func:`check_conversation` does, with records, loads, crashes at
    every byte of a write, and files that were cut, edited, swapped or parted.

    Args:
        create: ``create(path, conversation)`` begins a session in a file that is not there, and gives an object with
            the names of :class:`interlock.Session`. Everything that it stores is in the folder of ``path``, which is
            empty, or not there yet; names that end in ``.lock`` are not content.
        load: ``load(path)`` continues one. Of damaged files it loads every leg, or raises.
        conversation: makes a fresh conversation.
        guard: see :func:`check_conversation`.
        folder: where the suite makes its folders; by default where temporary files go. Memory is much faster.

    Raises:
        AssertionError: with the steps, what was expected and what was held.
    """
    __tracebackhide__ = True
    with Reported("check_session", load, ("T2", "T10", "T11", "T16", "T17")) as tally:
        run_machine(lambda: SessionMachine(tally, create, load, conversation, guard, folder), chosen(examples), steps)
    return REPORTS[-1]


def check_engine(
    engine: Any, *, settings: Mapping[str, str] | None = None, oracle: Any = None, examples: int | None = None
) -> Report:
    """An engine answers as the reference does, and by its laws, whatever document it is asked about.

    Shows T3, T4, T5, T6 and T13: on documents that fit the schema and on any JSON; with each key left out or given
    another type; one step more dangerous; written in another order; in several threads; after bytes that are no JSON.

    Args:
        engine: implements :class:`interlock.ports.Engine` and has loaded the shipped controls. Controls of its own may
            stand beside them, and must obey T4 to T6 too.
        settings: of the shipped controls, as the engine was given them.
        oracle: what its answers for the shipped controls are held against; by default the reference.

    Raises:
        AssertionError: with what makes the document other than a harmless one, the step from it, and both answers.
    """
    __tracebackhide__ = True
    with Reported("check_engine", engine, ("T3", "T4", "T5", "T6", "T13")) as tally:
        known = oracle or reference(tuple(sorted((settings or {}).items())))
        EngineLaws(tally, engine, known, chosen(examples)).all_hold()
    return REPORTS[-1]


def check_journal(
    factory: Callable[[], Any],
    *,
    reopen: Callable[[Any], Any] | None = None,
    key: bytes = b"",
    examples: int | None = None,
    steps: int = 20,
) -> Report:
    """A journal writes all or nothing, under the version that was expected, and its state is the fold of its entries.

    Shows T2, T8, T10 and T11 of the port: what it refuses and with which exception; that nothing of a refused batch is
    there; that concurrent appends all survive and each version is won once.

    Args:
        factory: makes an empty journal. If it has ``entries(conversation)`` and ``head(conversation)``, as ours, the
            chain is held against the head after each step.
        reopen: ``reopen(journal)`` gives another journal over the same storage, as after a crash: the old object is
            dropped as it is. Without it, durability is not looked at.
        key: of the heads' MAC, if there is one.

    Raises:
        AssertionError: with the steps, what was expected and what was held.
    """
    __tracebackhide__ = True
    with Reported("check_journal", factory, ("T2", "T8", "T10", "T11")) as tally:
        run_machine(lambda: JournalMachine(tally, factory, reopen, key), chosen(examples), steps)
        check_threads(tally, factory())
        tally.without = () if reopen else ("reopen",)
    return REPORTS[-1]


def check_integration(
    make: Callable[[Kit], Any], *, folder: Path | None = None, examples: int | None = None, steps: int = 15
) -> Report:
    """Nothing leaks through an agent: random scripts of turns, calls, resumes, sub-agents and compactions, judged by
    what the tools really received.

    Shows T2, T8 and T17 from the outside: no secret goes to a place that nobody typed once hostile text was seen;
    nothing runs without a decision of its own; each call has one result; the labels only grow.

    Args:
        make: ``make(kit)`` gives a fresh agent, see :class:`interlock.testing.Agent`: two methods, and more if
            you have them. It uses the kit's tools and its engine.
        folder: where the folders of scripts are made; by default where temporary files go.

    Raises:
        AssertionError: with the script, what was expected, and what a tool received. Also if the agent lets nothing
            run: that would pass everything else.
    """
    __tracebackhide__ = True
    exercised: set[str] = set()
    with Reported("check_integration", make, ("T2", "T8", "T17")) as tally:
        works(tally, make, folder)
        run_machine(lambda: AgentMachine(tally, make, exercised, folder), chosen(examples), steps)
        tally.without = tuple(name for name in OPTIONAL if name not in exercised)
    return REPORTS[-1]
