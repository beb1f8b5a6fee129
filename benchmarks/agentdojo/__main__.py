"""AgentDojo against a model that always obeys, with and without Interlock.

    python -m benchmarks.agentdojo [--json [FILE]] [--svg [FILE]] [--preset NAME …] [--version V] [--quick]

Needs the package `agentdojo` (`pip install interlock[bench]`). No model and no network are used.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from rich.console import Console

try:
    import agentdojo  # noqa: F401 - asked for first, to say what to do
except ImportError as error:
    raise SystemExit("benchmarks.agentdojo needs `pip install interlock[bench]`") from error

from benchmarks.agentdojo import chart, hijack, report, runner, setups, twostep, world
from benchmarks.agentdojo.setups import Setup

RESULTS = Path(__file__).parents[1] / "results"
OLDER = ("v1", "v1.1", "v1.2", "v1.2.1")


def chosen(names: list[str]) -> tuple[Setup, ...]:
    """The setups of these presets, or all."""
    if not names:
        return setups.EVERY
    found = tuple(one for one in setups.EVERY if one.preset in names or one.name in names)
    if not found:
        known = sorted({one.preset for one in setups.EVERY} | {one.name for one in setups.EVERY})
        raise SystemExit(f"no setup {names!r}; there is {', '.join(known)}")
    return found


def _hijack(given: tuple[str, str, str, Setup, bool]) -> list[hijack.Hijacked]:
    version, suite, task, setup, poisoned = given
    return hijack.hijacked(version, suite, task, setup, poisoned=poisoned)


def hijacks(
    version: str, some: Sequence[Setup], workers: int, every: int, *, poisoned: bool = False
) -> dict[str, list[hijack.Hijacked]]:
    """All hijacks under some setups."""
    begun = time.monotonic()
    found = {}
    tasks = [(suite, task) for suite in world.SUITES for task in list(world.user_tasks(version, suite))[::every]]
    with ProcessPoolExecutor(workers) as pool:
        for setup in some:
            given = [(version, suite, task, setup, poisoned) for suite, task in tasks]
            found[setup.name] = [one for some in pool.map(_hijack, given, chunksize=4) for one in some]
            runner.progress(f"hijacks: {setup.name}", begun)
    return found


def two_steps(some: Sequence[Setup]) -> dict[str, list[twostep.Came]]:
    """All two-step cases under some setups."""
    found = {}
    for setup in some:
        found[setup.name] = [twostep.play(case, setup) for case in twostep.cases()]
        runner.progress(f"two steps: {setup.name}", time.monotonic())
    return found


def measure(options: argparse.Namespace, keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Everything that was asked for, as data. `keep` is given what there is after each part: a run takes minutes."""
    begun = time.monotonic()
    some = chosen(options.preset)
    workers = options.workers or os.cpu_count() or 1
    every = 8 if options.quick else 1
    plain = [one for one in some if one not in (*setups.PEOPLE, *setups.ABLATION) and one.preset != "deny-all"]
    outside = [one for one in plain if not one.internal]
    fields = [one for one in outside if one.preset in ("strict", "convenient")]
    data: dict[str, Any] = {"version": options.version, "setups": [], "hijack": {}, "hijack poisoned": {}}
    data |= {"two steps": {}, "versions": {}}

    def done(name: str, figures: Any) -> None:
        data[name] = figures
        data["facts"] = {
            "agentdojo": version_of("agentdojo"),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "seconds": round(time.monotonic() - begun),
            "processor seconds": round(_processor()),
            "quick": options.quick,
        }
        keep(data)

    def run(wanted: Sequence[Setup]) -> list[dict[str, Any]]:
        return [report.figures(one) for one in runner.run(options.version, wanted, every=every, workers=workers)]

    later = [one for one in some if one in (*setups.LOCKDOWN, *setups.ABLATION)]
    first = [one for one in some if one not in later]
    figures = run(first)
    done("setups", figures)
    done("hijack", report.hijack_figures(hijacks(options.version, outside, workers, every)))
    done("hijack poisoned", report.hijack_figures(hijacks(options.version, fields, workers, every, poisoned=True)))
    done("two steps", report.twostep_figures(two_steps(outside)))
    done("setups", [*figures, *run(later)])
    if options.version == world.LATEST and not options.quick:
        ends = [Setup(one.name, one.preset) for one in some if one.name in ("no interlock", "strict", "convenient")]
        older: dict[str, Any] = {}
        for version in OLDER:
            older[version] = [report.figures(one) for one in runner.run(version, ends, workers=workers)]
            done("versions", older)
    return data


def _processor() -> float:
    """Seconds of processor time, here and in the processes of the pools that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agentdojo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, nargs="?", const=RESULTS / "agentdojo.json", help="write the figures")
    parser.add_argument("--svg", type=Path, nargs="?", const=RESULTS / "agentdojo.svg", help="write the chart")
    parser.add_argument("--preset", action="append", default=[], help="only this preset or setup; may be repeated")
    parser.add_argument("--version", default=world.LATEST, choices=world.VERSIONS, help="of AgentDojo's tasks")
    parser.add_argument("--workers", type=int, default=0, help="processes; one per core by default")
    parser.add_argument("--quick", action="store_true", help="every eighth task: does it run at all?")
    options = parser.parse_args()

    def keep(data: dict[str, Any]) -> None:
        if options.json:
            options.json.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    data = measure(options, keep)
    report.show(data, Console(width=160 if not sys.stdout.isatty() else None))
    if options.svg:
        apart = {one.name for one in (*setups.PEOPLE, *setups.ABLATION)}
        drawn = [one for one in data["setups"] if one["name"] not in apart]
        options.svg.write_text(chart.svg(drawn), encoding="utf-8")


if __name__ == "__main__":
    main()
