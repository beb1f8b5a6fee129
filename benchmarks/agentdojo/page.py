"""Writes the measured tables into the documentation, between marks, from the JSON of the last run.

    python -m benchmarks.agentdojo.page

So no figure in the text is typed by hand. Needs no `agentdojo`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "agentdojo.json"
PAGE = ROOT / "docs" / "benchmark-agentdojo.md"
Data = dict[str, Any]


NOT_YET = "Not measured yet."
NOBODY = "strict, all asked, nobody"


def _table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    head = list(columns)
    body = list(rows)
    if not body:
        return NOT_YET
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in body)])


def _through(data: Data, place: str, kind: str = "") -> str:
    if place not in data:
        return "–"
    count = data[place]["by class"][kind] if kind else data[place]["tool-borne"]
    return str(count["through"])


def _plain(one: Data) -> bool:
    """A preset as it is shipped, with nobody who answers."""
    return one["approver"] == "none" and not one["settings"]


def presets(data: Data) -> str:
    """Honest work and attacks, one row per setup that nobody answers for."""
    rows = []
    for one in data["setups"]:
        if not _plain(one):
            continue
        honest = one["honest"]
        suites = [f"{part['passed']}" for part in honest["by suite"].values()]
        rows.append(
            [
                one["name"],
                f"**{honest['passed']}**",
                *suites,
                _through(one, "clean"),
                _through(one, "clean", "theft"),
                _through(one, "poisoned"),
                _through(one, "poisoned", "theft"),
            ]
        )
    first = data["setups"][0]
    pairs = first["clean"]["tool-borne"]["pairs"]
    sizes = [f"{suite} /{part['tasks']}" for suite, part in first["honest"]["by suite"].items()]
    columns = ["", f"honest /{first['honest']['tasks']}", *sizes, f"attacks through /{pairs}", "thefts /562"]
    return _table([*columns, "poisoned: through", "thefts"], rows)


def classes(data: Data) -> str:
    """Attacks through by class, clean and poisoned."""
    rows = []
    for one in data["setups"]:
        if one["preset"] == "deny-all" or not _plain(one):
            continue
        for place in ("clean", "poisoned"):
            if place in one:
                rows.append([one["name"], place, *(part["through"] for part in one[place]["by class"].values())])
    kinds = data["setups"][0]["clean"]["by class"]
    return _table(["", "records", *(f"{kind} /{part['pairs']}" for kind, part in kinds.items())], rows)


def people(data: Data) -> str:
    """Setups in which somebody answers, and what the questions cost."""
    rows = []
    for one in data["setups"]:
        if one["approver"] == "none" and one["name"] not in ("strict", NOBODY):
            continue
        honest = one["honest"]
        rows.append(
            [
                one["name"].removesuffix(f", {one['approver']}").removesuffix(", nobody"),
                one["approver"],
                f"{honest['passed']} of {honest['tasks']}",
                honest["asks per 100 calls"],
                f"{honest['calls asked about']} of {honest['calls']} in {honest['tasks with a question']} tasks",
                one["clean"]["calls asked about"],
                _through(one, "clean"),
                _through(one, "poisoned"),
                one["clean"]["credentials left"] + one.get("poisoned", {}).get("credentials left", 0),
            ]
        )
    columns = ["", "approver", "honest", "asks per 100 calls", "calls asked about", "under attack: questions"]
    return _table([*columns, "through", "poisoned: through", "pairs in which a credential left"], sorted(rows))


def ablation(data: Data) -> str:
    """The preset strict without one of its controls."""
    rows = []
    for one in data["setups"]:
        if one["name"] == "strict" or "without" in one["name"]:
            kinds = [
                f"{kind} {part['through']}" for kind, part in one["clean"]["by class"].items() if kind != "text only"
            ]
            some = [kind for kind in kinds if not kind.endswith(" 0")]
            rows.append([one["name"], one["honest"]["passed"], _through(one, "clean"), ", ".join(some)])
    return _table(["", "honest", "attacks through", "which"], rows)


def refused(data: Data) -> str:
    """Honest tasks that need a person, by the control that says so."""
    rows = []
    for one in data["setups"]:
        if one["name"] not in ("strict", "convenient", "trifecta-only"):
            continue
        codes: dict[str, list[str]] = {}
        for task in one["honest"]["refused"]:
            codes.setdefault(f"`{task['code']}`, {task['verdict']}", []).append(task["task"])
        rows += [[one["name"], code, ", ".join(tasks)] for code, tasks in sorted(codes.items())]
    return _table(["", "control", "tasks"], rows)


def hijack(data: Data) -> str:
    """Changed calls that ran; in brackets how many of them run when nobody changes them."""
    return _hijack(data["hijack"])


def hijack_poisoned(data: Data) -> str:
    """The same, with what the text names in the metadata of the records too."""
    return _hijack(data["hijack poisoned"])


def _hijack(found: Data) -> str:
    names = list(found)
    if not names:
        return NOT_YET
    rows = []
    for kind, first in found[names[0]].items():
        cells = [found[name][kind] for name in names]
        rows.append([kind, first["calls"], *(f"{one['ran']} ({one['unchanged runs']})" for one in cells)])
    return _table(["what the text changes", "calls", *names], rows)


def two_steps(data: Data) -> str:
    """Cases of our own."""
    rows = [
        [name, one["cases"], one["stolen"], one["twins passed"], _codes(one["twins refused"])]
        for name, one in data["two steps"].items()
    ]
    return _table(["", "cases", "stolen", "honest twins passed", "twins refused by"], rows)


def _codes(found: dict[str, int]) -> str:
    return ", ".join(f"`{code}` {count}" for code, count in found.items())


def versions(data: Data) -> str:
    """Older task sets, unchanged."""
    rows = []
    for version, some in data["versions"].items():
        for one in some:
            borne = one["clean"]["tool-borne"]
            honest = one["honest"]
            rows.append(
                [
                    version,
                    one["name"],
                    f"{honest['passed']} of {honest['tasks']}",
                    f"{borne['through']} of {borne['pairs']}",
                    one["clean"]["by class"]["theft"]["through"],
                ]
            )
    return _table(["version", "", "honest", "attacks through", "thefts"], rows)


def run(data: Data) -> str:
    """On what it was run."""
    facts = data["facts"]
    used = f"{facts['processor seconds']} seconds of processor time, " if "processor seconds" in facts else ""
    return (
        f"agentdojo {facts['agentdojo']}, Python {facts['python']}, {facts['cores']} cores shared with other work, "
        f"{used}{facts['seconds']} seconds in all."
    )


TABLES: dict[str, Callable[[Data], str]] = {
    "presets": presets,
    "classes": classes,
    "people": people,
    "ablation": ablation,
    "refused": refused,
    "hijack": hijack,
    "hijack poisoned": hijack_poisoned,
    "two steps": two_steps,
    "versions": versions,
    "run": run,
}


def written(text: str, data: Data) -> str:
    """The page with every table as the data has it."""
    for name, table in TABLES.items():
        pattern = rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)"
        text, count = re.subn(pattern, lambda m, t=table: f"{m[1]}\n{t(data)}\n\n{m[2]}", text, flags=re.DOTALL)
        if count != 1:
            raise SystemExit(f"{PAGE.name} has {count} places for the table {name!r}; one is expected")
    return text


def main() -> None:
    data = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), data), encoding="utf-8")


if __name__ == "__main__":
    main()
