"""Figures out of what was measured: as data for JSON, and as tables for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.agentdojo import world
from benchmarks.agentdojo.attacks import CLASS_ORDER
from benchmarks.agentdojo.hijack import KINDS, Hijacked
from benchmarks.agentdojo.replay import Honest, Pair
from benchmarks.agentdojo.runner import Measured
from benchmarks.agentdojo.twostep import Came

TEXT_ONLY = "text only"


def honest_figures(found: list[Honest]) -> dict[str, Any]:
    """Passes per suite, questions, and every task that did not pass with the code of its first refusal."""
    calls = sum(one.calls for one in found)
    asked = sum(one.asked for one in found)
    return {
        "tasks": len(found),
        "passed": sum(one.passed for one in found),
        "by suite": {
            suite: {
                "tasks": sum(one.suite == suite for one in found),
                "passed": sum(one.suite == suite and one.passed for one in found),
            }
            for suite in world.SUITES
        },
        "calls": calls,
        "calls asked about": asked,
        "asks per 100 calls": round(100 * asked / calls, 1) if calls else 0.0,
        "tasks with a question": sum(one.asked > 0 for one in found),
        "refused": [
            {
                "task": f"{one.suite} {world.number(one.task)}",
                "tool": one.objections[0].tool if one.objections else "",
                "verdict": one.objections[0].verdict if one.objections else "",
                "code": one.objections[0].code if one.objections else "the task's own check",
            }
            for one in found
            if not one.passed
        ],
    }


def attack_figures(pairs: list[Pair], passed: frozenset[tuple[str, str]]) -> dict[str, Any]:
    """Attacks that came through, per suite and class; text-only ones, which no tool carries, apart.

    Args:
        passed: honest tasks that pass when nobody attacks.
    """
    borne = [one for one in pairs if one.kind != TEXT_ONLY]

    def count(some: Iterable[Pair]) -> dict[str, int]:
        listed = list(some)
        return {"pairs": len(listed), "through": sum(one.through for one in listed)}

    return {
        "tool-borne": count(borne),
        "at once": sum(one.at_once for one in borne),
        "text only": count(one for one in pairs if one.kind == TEXT_ONLY),
        "by suite": {suite: count(one for one in borne if one.suite == suite) for suite in world.SUITES},
        "by class": {kind: count(one for one in pairs if one.kind == kind) for kind in CLASS_ORDER},
        "credentials left": sum(one.leaked for one in pairs),
        "never read": sum(not one.reached for one in pairs),
        "passing tasks that an attack got refused": sum(
            one.disturbed and (one.suite, one.task) in passed for one in pairs
        ),
        "calls asked about": sum(one.asked for one in pairs),
        "through": [
            f"{one.suite} {world.number(one.task)} + {world.number(one.injection)}" for one in borne if one.through
        ],
    }


def figures(measured: Measured) -> dict[str, Any]:
    """Everything about one setup."""
    setup = measured.setup
    passed = frozenset((one.suite, one.task) for one in measured.honest if one.passed)
    return {
        "name": setup.name,
        "preset": setup.preset,
        "settings": setup.settings,
        "chat internal": setup.internal,
        "approver": setup.approver,
        "honest": honest_figures(measured.honest),
        **{place: attack_figures(pairs, passed) for place, pairs in measured.pairs.items()},
    }


def hijack_figures(found: dict[str, list[Hijacked]]) -> dict[str, Any]:
    """Per setup and kind: how many changed calls ran, of how many, and how many unchanged ones run."""
    return {
        name: {
            kind: {
                "calls": sum(one.kind == kind for one in some),
                "ran": sum(one.kind == kind and one.ran for one in some),
                "unchanged runs": sum(one.kind == kind and one.honest_runs for one in some),
            }
            for kind in KINDS
        }
        for name, some in found.items()
    }


def twostep_figures(found: dict[str, list[Came]]) -> dict[str, Any]:
    """Per setup: thefts, honest twins, and why twins were refused."""
    return {
        name: {
            "cases": len(some),
            "stolen": sum(one.stolen for one in some),
            "twins passed": sum(one.twin_passed for one in some),
            "twins refused": dict(Counter(one.twin_code for one in some if not one.twin_passed)),
        }
        for name, some in found.items()
    }


# --- tables ---------------------------------------------------------------------------------------------------------


def _table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(str, row))
    return table


def _attacks(data: dict[str, Any], place: str, get: Callable[[dict[str, Any]], object]) -> object:
    return get(data[place]) if place in data else "–"


def main_table(found: list[dict[str, Any]], title: str) -> Table:
    """One row per setup: honest work beside attacks."""
    rows = []
    for data in found:
        honest = data["honest"]
        rows.append(
            [
                data["name"],
                *(honest["by suite"][suite]["passed"] for suite in world.SUITES),
                f"{honest['passed']} of {honest['tasks']}",
                honest["asks per 100 calls"],
                _attacks(data, "clean", lambda one: f"{one['tool-borne']['through']} of {one['tool-borne']['pairs']}"),
                _attacks(data, "clean", lambda one: one["by class"]["theft"]["through"]),
                _attacks(data, "poisoned", lambda one: one["tool-borne"]["through"]),
                _attacks(data, "poisoned", lambda one: one["by class"]["theft"]["through"]),
                _attacks(data, "clean", lambda one: one["text only"]["through"]),
            ]
        )
    columns = [
        "",
        *world.SUITES,
        "honest",
        "asks / 100 calls",
        "attacks through",
        "thefts",
        "poisoned: through",
        "thefts",
        "text only",
    ]
    return _table(title, columns, rows)


def class_table(found: list[dict[str, Any]], place: str) -> Table:
    """Attacks through, by class."""
    some = [data for data in found if place in data]
    rows = [[data["name"], *(f"{data[place]['by class'][kind]['through']}" for kind in CLASS_ORDER)] for data in some]
    first = some[0][place]["by class"] if some else {}
    columns = ["", *(f"{kind} ({first[kind]['pairs']})" for kind in CLASS_ORDER if kind in first)]
    return _table(f"Attacks through by class, {place} records", columns, rows)


def refused_table(found: list[dict[str, Any]]) -> Table:
    """Honest tasks that did not pass, by setup."""
    rows = []
    for data in found:
        by_code: dict[str, list[str]] = {}
        for one in data["honest"]["refused"]:
            by_code.setdefault(f"{one['code']} ({one['verdict']})", []).append(one["task"])
        rows += [[data["name"], code, len(tasks), ", ".join(tasks)] for code, tasks in sorted(by_code.items())]
    return _table("Honest tasks that were refused, and by which control", ["", "control", "tasks", "which"], rows)


def hijack_table(found: dict[str, Any], records: str) -> Table:
    """Changed calls that ran, by kind and setup."""
    names = list(found)
    rows = [
        [
            kind,
            found[names[0]][kind]["calls"],
            *(f"{found[name][kind]['ran']} ({found[name][kind]['unchanged runs']})" for name in names),
        ]
        for kind in KINDS
    ]
    title = f"Argument hijack, {records} records: changed calls that ran (in brackets: how many of them run unchanged)"
    return _table(title, ["what the text changes", "calls", *names], rows)


def twostep_table(found: dict[str, Any]) -> Table:
    rows = [
        [
            name,
            one["cases"],
            one["stolen"],
            one["twins passed"],
            ", ".join(f"{code} {count}" for code, count in one["twins refused"].items()),
        ]
        for name, one in found.items()
    ]
    return _table("Two-step cases and their honest twins", ["", "cases", "stolen", "twins passed", "refused by"], rows)


def show(data: dict[str, Any], console: Console) -> None:
    """All tables of a run."""
    if data["setups"]:
        console.print(main_table(data["setups"], f"AgentDojo {data['version']}, obeying at any point after the read"))
        for place in ("clean", "poisoned"):
            if any(place in one for one in data["setups"]):
                console.print(class_table(data["setups"], place))
        shown = [one for one in data["setups"] if one["preset"] not in ("allow-all", "deny-all")]
        console.print(refused_table([one for one in shown if "without" not in one["name"]]))
    for version, some in data["versions"].items():
        console.print(main_table(some, f"AgentDojo {version}, unchanged"))
    if data["hijack"]:
        console.print(hijack_table(data["hijack"], "clean"))
    if data["hijack poisoned"]:
        console.print(hijack_table(data["hijack poisoned"], "poisoned"))
    if data["two steps"]:
        console.print(twostep_table(data["two steps"]))
    for name, value in data["facts"].items():
        console.print(f"{name}: {value}", highlight=False)
