"""What every check shares: a machine that writes down what it does, and a runner that says it in few words.

A failure is an ``AssertionError`` whose text is a list of steps that a person can read, shrunk by Hypothesis to the
shortest that still fails, and then what was expected and what was held instead. The traceback of Hypothesis is left
out: it is about our machine and not about your code.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, NoReturn

from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import Flaky, HypothesisException
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from interlock.model.messages import Message, Role, ToolAnswer

PLUGIN: Final = "interlock.testing.plugin"
# What traces call conversations and agents, in the order in which they come.
NAMES: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Report:
    """What one check has shown: of what, which theorems, and how much it took."""

    check: str
    subject: str
    theorems: tuple[str, ...]
    examples: int
    steps: int
    seconds: float
    without: tuple[str, ...] = ()

    def __str__(self) -> str:
        gaps = f"; never exercised: {', '.join(self.without)}" if self.without else ""
        return (
            f"{self.check}({self.subject}): {' '.join(self.theorems)} held"
            f" in {self.examples} examples, {self.steps} steps, {self.seconds:.1f} s{gaps}"
        )


@dataclass(slots=True)
class Tally:
    """How many examples and steps a check has drawn so far, failed and shrunk ones included."""

    examples: int = 0
    steps: int = 0
    without: tuple[str, ...] = ()


REPORTS: Final[list[Report]] = []
"""Of this process, oldest first; the pytest plugin prints them at the end."""


class Broken(AssertionError):
    """A demand of ours that was not met; its text is the whole story."""


class Traced(RuleBasedStateMachine):
    """A machine that keeps a list of its steps in words, and fails with that list."""

    def __init__(self, tally: Tally) -> None:
        super().__init__()
        self.steps: list[str] = []
        self._tally = tally
        tally.examples += 1

    def teardown(self) -> None:
        try:
            if self.steps and sys.exc_info()[0] is None:  # nothing failed, and Hypothesis did not give up on it
                self.end()
        finally:
            self.clean()

    def end(self) -> None:
        """What every script ends with: a look at what it has led to."""

    def clean(self) -> None:
        """Remove what the script has made."""

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Around everything that touches the subject. An exception of the subject is a failure of its own."""
        self.steps.append(text)
        self._tally.steps += 1
        with self.looking():
            yield

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Like :meth:`step`, for looking without doing."""
        try:
            yield
        except (Broken, HypothesisException):
            raise
        except Exception as error:  # an assertion of the subject's own is one, too
            self.broken("the contract", "no exception", f"{type(error).__name__}: {error}")

    def note(self, text: str) -> None:
        """More words on the step under way."""
        self.steps[-1] = f"{self.steps[-1]} {text}"

    def demand(self, holds: bool, theorem: str, expected: str, held: object) -> None:
        """Fail unless something holds. ``expected`` and ``held`` are for people."""
        if not holds:
            self.broken(theorem, expected, held)

    def broken(self, theorem: str, expected: str, held: object) -> NoReturn:
        # One place that raises, so that Hypothesis takes all failures for one and shrinks to the shortest of them.
        raise Broken(told(theorem, self.steps, expected, held))


def told(theorem: str, steps: Sequence[str], expected: str, held: object) -> str:
    """The text of a failure."""
    lines = [f"{theorem} does not hold:"]
    lines += [f"  {number}. {step}" for number, step in enumerate(steps, 1)]
    return "\n".join([*lines, f"expected: {expected}", f"held:     {held}"])


def chosen(examples: int | None, divisor: int = 1) -> int:
    """How many examples to draw: as asked, or as the plugin was told, or as the active Hypothesis profile says.

    Args:
        divisor: of the profile's number, for checks that hold many things against each example.
    """
    plugin = sys.modules.get(PLUGIN)
    wanted = examples if examples is not None else getattr(plugin, "EXAMPLES", {}).get("examples")
    if wanted is None:
        return max(1, settings().max_examples // divisor)
    if wanted < 1:
        raise ValueError("examples must be at least 1: a check that draws none shows nothing")
    return int(wanted)


def quiet(examples: int, **changes: Any) -> settings:
    """The active profile with what a check needs: slow subjects are no failure, and one failure is enough."""
    # Explaining takes as long as shrinking, and what it says is about our machine.
    changes.setdefault("phases", [one for one in settings().phases if one is not Phase.explain])
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
        **changes,
    )


class Reported:
    """Around one check: its failure with a head line and without our frames, or its report."""

    def __init__(self, check: str, subject: object, theorems: Iterable[str]) -> None:
        self._check, self._name, self._theorems = check, _name(subject), tuple(theorems)
        self._tally, self._began = Tally(), time.perf_counter()

    def __enter__(self) -> Tally:
        return self._tally

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        if isinstance(error, Flaky):
            raise AssertionError(
                f"{self._check}({self._name}): the same steps gave another result the second time, so the subject"
                " depends on something that is not in the steps (time, chance, a file, an earlier example):\n"
                f"{_first(error)}"
            ) from None
        if isinstance(error, AssertionError):
            raise AssertionError(f"{self._check}({self._name}): {error}") from None
        if error is None:
            tally, seconds = self._tally, time.perf_counter() - self._began
            found = (tally.examples, tally.steps, seconds, tally.without)
            REPORTS.append(Report(self._check, self._name, self._theorems, *found))


def run_machine(machine: Callable[[], Traced], examples: int, steps: int) -> None:
    """Drive a machine. Raises AssertionError with the shrunk trace."""
    __tracebackhide__ = True
    # Hypothesis takes "a class or a function" that makes machines; its annotation knows the class only.
    run_state_machine_as_test(machine, settings=quiet(examples, stateful_step_count=steps))  # type: ignore[arg-type]


def _name(subject: object) -> str:
    return str(getattr(subject, "__qualname__", "") or type(subject).__qualname__)


def _first(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error)


# --- judgements that do not ask the code under test -------------------------------------------------------------------


def unanswered(messages: Iterable[Message]) -> frozenset[str]:
    """Ids of tool uses without exactly one result before anybody else speaks, and of results without a use (T17).

    Written apart from :func:`interlock.model.transcript.unpaired`, which is under test.
    """
    wrong: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        told = [block.id for block in message.blocks if isinstance(block, ToolAnswer)]
        for one in told:
            if one in waiting:
                waiting.remove(one)
            else:
                wrong.add(one)
        if message.role is not Role.TOOL:
            wrong |= set(waiting)
            waiting = [use.id for use in message.uses]
    return frozenset(wrong | set(waiting))


def misshapen(messages: Sequence[Message]) -> str:
    """What a provider would refuse in the order of roles, or nothing."""
    before: Role | None = None
    for place, message in enumerate(messages):
        if message.role is Role.SYSTEM and place:
            return f"a system message at place {place}"
        if message.role is Role.USER and before in (Role.USER, Role.TOOL):
            return f"a second message of the user at place {place}"
        if message.role is Role.TOOL and before is not Role.ASSISTANT:
            return f"results at place {place} that follow no call"
        before = message.role
    return ""


def lost(wanted: Iterable[str], held: Iterable[str]) -> list[str]:
    """Labels that are not there, neither by name nor under the unknown of their leg, which is the top of it."""
    here = set(map(str, held))
    return sorted(one for one in wanted if one not in here and f"{one.partition(':')[0]}:unknown" not in here)


def shown(labels: Iterable[str]) -> str:
    """Labels for people."""
    found = sorted(map(str, labels))
    return ", ".join(found) if found else "nothing (clean)"
