"""Runs setups over suites on all cores, and says on standard error how far it is."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace

from benchmarks.agentdojo import replay, world
from benchmarks.agentdojo.replay import Honest, Pair
from benchmarks.agentdojo.setups import Setup


@dataclass(slots=True)
class Measured:
    """Everything that came of one setup."""

    setup: Setup
    honest: list[Honest] = field(default_factory=list)
    pairs: dict[str, list[Pair]] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One honest task under every setup: what is prepared for a pair serves all of them."""

    version: str
    suite: str
    task: str
    setups: tuple[Setup, ...]
    injections: tuple[str, ...]


def work(job: Job) -> list[tuple[Setup, tuple[Honest, dict[str, list[Pair]]]]]:
    """Run one job, in a process of the pool."""
    gc.set_threshold(500_000, 20, 100)  # environments are large and hold no cycles: looking for some takes a fifth
    found = []
    for setup in job.setups:
        make, watch = setup.gates(job.suite)
        honest = replay.honest(job.version, job.suite, job.task, make, watch)
        pairs = {}
        for place in setup.worlds:
            pairs[place] = [
                replay.attacked(job.version, job.suite, job.task, one, make, watch, poisoned=place == "poisoned")
                for one in job.injections
            ]
        found.append((setup, (honest, pairs)))
    replay.stage.cache_clear()
    return found


def jobs(version: str, setups: Sequence[Setup], suites: Iterable[str], every: int = 1) -> list[Job]:
    """Every task of the suites, the longest first so that no core is idle at the end."""
    found = []
    for suite in suites:
        injections = tuple(world.injection_tasks(version, suite))
        for task in list(world.user_tasks(version, suite))[::every]:
            found.append(Job(version, suite, task, tuple(one for one in setups if one.differs(suite)), injections))
    return sorted(found, key=lambda job: -_weight(job))


def _weight(job: Job) -> int:
    """Conversations are as long as their tasks; the number of calls is known only when they run."""
    task = world.user_tasks(job.version, job.suite)[job.task]
    steps = replay.ground_truth(job.suite, task, task.init_environment(world.clean(job.suite).restore()))
    return len(steps) ** 2 * len(job.injections)


def run(
    version: str, setups: Sequence[Setup], suites: Iterable[str] = world.SUITES, every: int = 1, workers: int = 0
) -> list[Measured]:
    """All setups over all tasks of a version.

    Args:
        every: take only every n-th honest task; for a quick look, not for figures.
        workers: processes; 0 for one per core.
    """
    todo = jobs(version, setups, suites, every)
    found = [Measured(setup, pairs={place: [] for place in setup.worlds}) for setup in setups]
    begun = time.monotonic()
    with ProcessPoolExecutor(workers or os.cpu_count() or 1) as pool:
        waiting = [pool.submit(work, job) for job in todo]
        for done, future in enumerate(as_completed(waiting), 1):
            for setup, (honest, pairs) in future.result():
                for measured in found:
                    if measured.setup == setup or _same(measured.setup, setup, honest.suite):
                        measured.honest.append(honest)
                        for place in measured.pairs:
                            measured.pairs[place] += pairs[place]
            progress(f"{version}: {done} of {len(todo)} tasks under {len(setups)} setups", begun)
    for measured in found:
        measured.honest.sort(key=lambda one: (world.SUITES.index(one.suite), world.number(one.task)))
    return found


def _same(one: Setup, measured: Setup, suite: str) -> bool:
    """Does what was measured hold for another setup too, since they do not differ in this suite?"""
    return not one.differs(suite) and replace(one, name="", internal=False) == replace(measured, name="")


def progress(what: str, begun: float) -> None:
    """One line that is written over, or lines of their own where nobody watches."""
    end = "\r" if sys.stderr.isatty() else "\n"
    print(f"  {what}, {time.monotonic() - begun:.0f} s   ", end=end, file=sys.stderr, flush=True)
