"""Proves that what the documentation shows works: each block runs, loads or parses, and each link leads somewhere.

A page may say more about a block in a comment on the line before it:

* `<!-- file: NAME -->`: the block is a file that the page's Python finds in its directory; `; configuration` and
  `; narrowing` after the name say what kind of TOML it is (a manifest otherwise);
* `<!-- output -->`: exactly what the Python block before it printed;
* `<!-- not run -->`: Python that can't run here. Rare, and counted below.

Mutation that it is shown to catch: a verdict changed in any `<!-- output -->` block, or in the code behind it.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import regorus

from interlock import Manifest
from interlock.model.configuration import parse_configuration, parse_narrowing
from interlock.model.settings import parse_settings
from interlock.policy.bundle import assemble
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.rego_ast import parse_module
from interlock.policy.sources import SCHEMA, Source, shipped_sources

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
FENCE = re.compile(
    r"(?:^<!-- (?P<note>[^\n]+?) -->\n)?^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    note: str
    body: str

    @property
    def file(self) -> str:
        return self.note.removeprefix("file: ").partition(";")[0] if self.note.startswith("file: ") else ""

    @property
    def kind(self) -> str:
        return self.note.partition("; ")[2]

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start("body")), found["language"], found["note"] or "", found["body"])
        for found in FENCE.finditer(text)
        if not (found["note"] or "").startswith("walk")  # a session, which test_walk.py runs
    ]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def of(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


def lay_out(page: Path, folder: Path) -> None:
    for block in blocks_of(page):
        if block.file:
            place = folder / block.file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(block.body, encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_python(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block runs in a namespace of its own, beside the page's files, and prints what the page says."""
    lay_out(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    printed: str | None = None
    for block in blocks_of(page):
        if block.note == "output":
            assert printed is not None, f"{block}: nothing ran before this output"
            assert block.body == printed, f"{block}: printed something else"
            printed = None
        elif block.language == "python" and block.note != "not run":
            assert not printed, f"{block}: the block before it printed something that the page does not show"
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block.body, str(block), "exec"), {"__name__": "__main__"})
            printed = out.getvalue()
    assert not printed, f"{page.name}: the last block printed something that the page does not show"


def test_there_is_something_to_run() -> None:
    python = of("python")
    assert len(python) >= 15
    assert sum(block.note == "not run" for block in python) <= 2


@pytest.mark.parametrize("block", of("toml"), ids=str)
def test_toml(block: Block) -> None:
    if block.kind == "configuration":
        configuration = parse_configuration(tomllib.loads(block.body), str(block))
        parse_settings(configuration.settings)
        Manifest.parse({"version": 1, "tools": configuration.tools, "servers": configuration.servers}, str(block))
    elif block.kind == "narrowing":
        parse_narrowing(tomllib.loads(block.body), str(block))
    else:
        assert len(Manifest.loads(block.body, where=str(block)))


@pytest.mark.parametrize("block", of("yaml"), ids=str)
def test_yaml(block: Block) -> None:
    assert len(Manifest.loads(block.body, syntax="yaml", where=str(block)))


@pytest.mark.parametrize("block", of("json"), ids=str)
def test_json(block: Block) -> None:
    json.loads(block.body)


@pytest.mark.parametrize("block", of("rego"), ids=str)
def test_rego(block: Block) -> None:
    """A control loads beside the shipped ones; a test of it is true; an excerpt of a shipped file is its text."""
    module = parse_module(str(block), block.body)
    page = blocks_of(block.page)
    if module.package[0] == "interlock":
        shipped = {source.text for source in shipped_sources()}
        assert any(block.body in text for text in shipped)
    elif module.package[-1].endswith("_test"):
        names = [rule.name for rule in module.rules if rule.name.startswith("test_")]
        assert names
        engine: Any = regorus.Engine()
        for other in page:
            if other.language == "rego":
                engine.add_policy(str(other), other.body)
        for name in names:
            assert engine.eval_rule(f"data.{'.'.join(module.package)}.{name}") is True, name
    else:
        schemas = [Source(str(one), one.body) for one in page if one.file.endswith(SCHEMA)]
        sources = [*shipped_sources(), Source(str(block), block.body)]
        bundle = assemble(sources, parse_settings({}), schemas)
        EmbeddedEngine(bundle)
        assert module.package[-1] in bundle.controls


# --- links and citations ----------------------------------------------------------------------------------------------


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as forges make them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        assert place.is_relative_to(ROOT), f"{target} leads out of the project"
        assert place.is_file(), f"{target} leads nowhere"
        assert not anchor or anchor in anchors(place), f"{target} names a heading that is not there"


# A place inside the wheel, and the word that a MAC begins with.
NO_PATHS = {"interlock/_policies/interlock/controls/", "interlock/head/v1"}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_citations(page: Path) -> None:
    """Theorems, files and folders that a page cites are there."""
    text = page.read_text(encoding="utf-8")
    for number in re.findall(r"\bT(\d+)\b", prose(page)):
        assert 1 <= int(number) <= 18
    for path in re.findall(r"`((?:tests|docs|interlock|policies|scripts|requirements|examples)/[\w./-]*)`", text):
        if path not in NO_PATHS:
            assert (ROOT / path).exists(), f"{path} is not there"


def test_every_page_can_be_reached() -> None:
    """From the README, by links."""
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", prose(page)):
            if not target.startswith("https://"):
                waiting.append((page.parent / target).resolve())
    assert {page.name for page in PAGES} - {page.name for page in seen} <= {"RELEASING.md"}


def test_the_readme_names_every_control() -> None:
    named = re.findall(r"^\| \[`(\w+)`\]", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(path.name for path in (ROOT / "policies/interlock/controls").iterdir())
    pages = {path.stem for path in (ROOT / "docs/controls").glob("*.md")}
    assert pages == set(named)
