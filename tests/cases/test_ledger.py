"""Proves that the table of cases is whole and true: every case stands in it once, every file named in it exists, every
file of a case is named, and each attack has an honest twin.

Mutations that this file catches: a case file renamed or added without its row; a row struck out or written twice; a
scenario whose number differs from its name; the counts at the top left as they were.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from interlock.scenarios import load_scenario

TESTS = Path(__file__).resolve().parents[1]
README = TESTS / "cases" / "README.md"

# All numbers of the collection. It has gaps, and a number never gets another meaning.
NUMBERS = {
    int(number)
    for number in """
    1 2 3 4 5 6 7 9 10 11 12 14 16 17 18 21 22 23 25 26 27
    28 29 30 31 32 33 35 36 37 38 39 40 41 42 44 45 46 48
    49 50 51 52 54 55 57 58 59 61 63 64 65 67 68 69 70
    71 73 74 77 78 79 81 82 83 84 86 87 88 89 90 91 94 98
    104 105 106 107 108 109 111 112 113 114 115 116
    117 119 120 122 123 124 125 126 129 130 131 132 133 134 136
    138 139 140 142 143 145 147 148 149 151 152 153 154 155 156 157 158 160
    163 164 165 166 168 170
    """.split()
}
# Tests that are told for an attack and its honest twin alike.
TOLD_AS_ONE = {
    "test_every_way_in_tells_the_same_story",
    "test_every_combination",
    "test_the_same_everywhere",
    "test_every_value_of_every_setting",
}
ISSUES = {3, 4, 5, 6, 7, 8, 9}


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    number: int
    what: str
    files: tuple[str, ...]
    later: dict[int, str]


def table() -> list[Row]:
    rows = []
    for line in README.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not re.match(r"\| \d+ \|", line) or not cells[2].startswith(("`", "—")):
            continue
        assert len(cells) == 4, line
        files = tuple(re.findall(r"`([^`]+)`", cells[2]))
        later = {} if cells[3] == "—" else dict(part.split(": ", 1) for part in cells[3].split("; "))
        rows.append(Row(int(cells[0]), cells[1], files, {int(issue): why for issue, why in later.items()}))
    return rows


ROWS = table()
TESTED = [row for row in ROWS if row.files]
ON_DISK = sorted(
    path.relative_to(TESTS).as_posix()
    for pattern in ("scenarios/**/case_*", "cases/**/test_case_*")
    for path in TESTS.glob(pattern)
    if "__pycache__" not in path.parts
)


def numbers(file: str) -> list[int]:
    """The numbers in a file's name."""
    match = re.fullmatch(r"(?:test_)?case_((?:\d{3}_)+)[a-z0-9_]+\.(?:py|yaml)", file.rpartition("/")[2])
    assert match, f"{file}: a case file is named (test_)case_NNN_<what happens>"
    return [int(number) for number in match[1].rstrip("_").split("_")]


def test_every_case_stands_in_the_table_once_and_in_order() -> None:
    listed = [row.number for row in ROWS]
    assert listed == sorted(set(listed))
    assert set(listed) == NUMBERS
    assert all(row.what for row in ROWS)


def test_every_file_that_is_named_exists_and_every_file_of_a_case_is_named() -> None:
    named = {file for row in ROWS for file in row.files}
    assert sorted(named) == ON_DISK


@pytest.mark.parametrize("row", TESTED, ids=lambda row: f"{row.number:03d}")
def test_a_file_stands_in_the_rows_of_its_numbers(row: Row) -> None:
    assert all(row.number in numbers(file) for file in row.files)
    assert sorted(row.files) == sorted({file for file in ON_DISK if row.number in numbers(file)})


def test_what_is_not_tested_waits_for_an_issue() -> None:
    for row in ROWS:
        assert row.files or row.later, f"case {row.number} is tested nowhere and waits for nothing"
        assert set(row.later) <= ISSUES
        assert all(why for why in row.later.values())


def test_the_counts_at_the_top() -> None:
    assert len(TESTED) >= 70
    wholly = sum(not row.later for row in TESTED)
    text = README.read_text(encoding="utf-8")
    waiting = [row for row in ROWS if not row.files]
    said = f"Of {len(ROWS)} cases {len(TESTED)} are tested, {wholly} of them wholly; {len(waiting)} wait for an issue."
    assert said in text
    first = Counter(min(row.later, key=list(row.later).index) for row in waiting)
    parts = Counter(issue for row in TESTED for issue in row.later)
    for issue in ISSUES:
        assert re.search(rf"^\| {issue} \| [^|]+ \| {first[issue]} \| {parts[issue]} \|$", text, re.MULTILINE), issue


@pytest.mark.parametrize("file", [file for file in ON_DISK if file.endswith(".yaml")], ids=lambda file: Path(file).stem)
def test_a_scenario_says_its_number(file: str) -> None:
    assert [load_scenario(TESTS / file).case] == [str(number) for number in numbers(file)]


@pytest.mark.parametrize("file", [file for file in ON_DISK if file.endswith(".py")], ids=lambda file: Path(file).stem)
def test_a_test_tells_its_story_and_has_both_sides(file: str) -> None:
    module = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    story = " ".join((ast.get_docstring(module) or "").split())
    said = re.match(r"Cases? (\d+)(?:(?:, | and | to )(\d+))*:", story)
    assert said, f"{file}: the docstring begins with its case"
    first = story.partition(":")[0]
    wanted, spoken = numbers(file), [int(number) for number in re.findall(r"\d+", first)]
    assert spoken == (wanted if " to " not in first else [wanted[0], wanted[-1]])
    assert 2 <= len(re.findall(r"[.?:](?:\s|$)", story)) <= 12
    assert "honest twin" in story
    functions = {node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef)}
    tests = {name for name in functions if name.startswith("test_")}
    assert tests
    for side in ("attack", "honest"):
        assert any(name.startswith(f"test_{side}_") for name in tests) or tests & TOLD_AS_ONE, f"{file}: no {side}"


def test_what_is_pending_is_named_and_not_collected() -> None:
    found = sorted(path.name for path in (TESTS / "cases" / "pending").glob("*.py"))
    listed = re.findall(r"^\* `cases/pending/([^`]+)`: ", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert found == listed
    for name in found:
        assert re.fullmatch(r"pending_case_\d{3}_[a-z0-9_]+\.py", name), f"{name}: rename it, or it is collected"
