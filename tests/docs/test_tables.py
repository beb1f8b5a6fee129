"""Proves that the tables of the documentation say what the code says.

A table between `<!-- generated: NAME -->` and `<!-- end -->` must be what the code gives, word for word; what starts
with `<!-- checked: NAME -->` is written by hand, and the columns that the code knows are compared. To write the
generated ones anew: `INTERLOCK_WRITE_DOCS=1 python -m pytest tests/docs/test_tables.py`.

Mutation that it is shown to catch: a key added to the manifest, the document or an entry.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest

from interlock.cli import COMMANDS
from interlock.integrations.host_reactions import FAULTS, REACTIONS, reaction
from interlock.model import digests, entries
from interlock.model.answers import MAX_REMEDIES
from interlock.model.artifacts import KINDS
from interlock.model.configuration import (
    BundleChoice,
    Configuration,
    MemoryChoice,
    OpaChoice,
    OtelChoice,
    PauseChannel,
    PostgresChoice,
    SqliteChoice,
    StoreChannel,
    TerminalChannel,
    WebhookChannel,
)
from interlock.model.document import document_schema
from interlock.model.manifest_file import ToolEntry as _Tool
from interlock.model.proxies import UpstreamChoice
from interlock.model.scenario import CallStep, DocumentStep, Scenario, Step, Story
from interlock.model.settings import AddressBook, Settings
from interlock.model.telemetry import ATTRIBUTES
from interlock.model.tools import Kind
from interlock.policy.builtins import ALLOWED
from interlock.policy.opa_faults import OUT, Fault
from tests.catalog.measuring import catalogue_table, measured_table

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def words(values: Any) -> str:
    return ", ".join(f'`"{one}"`' for one in values)


# --- what the code gives ----------------------------------------------------------------------------------------------


def settings() -> str:
    rows = ["| setting | values | default | meaning |", "|---|---|---|---|"]
    for name, one in Settings.model_fields.items():
        literal = get_origin(one.annotation) is not None and all(isinstance(v, str) for v in get_args(one.annotation))
        values = words(get_args(one.annotation)) if literal else {"controls": "by name"}.get(name, "lists by kind")
        default = words([one.default]) if literal else "`{}`"
        rows.append(f"| `{name}` | {values} | {default} | {one.description} |")
    return "\n".join(rows)


def kinds_of_the_address_book() -> str:
    return "Kinds: " + ", ".join(f"`{name}`" for name in AddressBook.model_fields) + "."


def builtins() -> str:
    groups: dict[str, list[str]] = {}
    for name in sorted(ALLOWED):
        groups.setdefault(name.partition(".")[0] if "." in name else "", []).append(name)
    return "\n".join("* " + ", ".join(f"`{name}`" for name in names) for names in groups.values())


FIELDS = {"kind"}


def journal_entries() -> str:
    rows = ["| entry | fields |", "|---|---|"]
    for one in get_args(entries.Entry):
        kind = next(part.default for part in dataclasses.fields(one) if part.name == "kind")
        fields = [f"`{part.name}`" for part in dataclasses.fields(one) if part.name not in FIELDS]
        rows.append(f"| `{kind}` | {', '.join(fields)} |")
    return "\n".join(rows)


DIGESTED = {
    "artifact": "one link of the chain of labels of artifacts",
    "bundle": "texts of controls and settings, wherever the files stand; the revision that every decision carries",
    "call": "one exact call: server, name and canonical arguments",
    "content": "a text that a tool gave or a person typed",
    "decision": "the name of a decision, and the trace of a conversation",
    "document": "a document that was asked",
    "draft": "a call that was drafted instead of made, and what a person is shown of it",
    "entry": "one link of the chain",
    "fact": "a fact with the labels that are bound to it",
    "kept": "one link of the chain of dropped entries that stay beside",
    "manifest": "all specs together",
    "message": "a message of a stored transcript, with the labels that cover it",
    "operands": "the files that a call names, as they were read",
    "parcel": "a parcel with the labels that are bound to it",
    "pin": "what an MCP server says of itself, of one of its tools, or of a method",
    "question": "what a person is asked",
    "shape": "the tool and the argument paths of a call",
    "shown": "a draft together with the labels that a person was shown",
    "state": "the security state at a checkpoint",
    "tool": "one spec",
    "value": "one destination in its normal form, with its kind",
    "voice": "a party that untrusted content came from",
}


def kinds_of_digests() -> str:
    return "\n".join(["| kind | of |", "|---|---|", *(f"| `{one}` | {DIGESTED[one]} |" for one in digests.KINDS)])


def document_rows() -> list[tuple[str, str]]:
    """Every key of the document in the order of its schema, with its type in words."""
    schema = document_schema()

    def resolved(node: dict[str, Any]) -> dict[str, Any]:
        return schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node

    def typed(node: dict[str, Any]) -> str:
        if "const" in node:
            return f"`{node['const']}`"
        if "enum" in node:
            return words(node["enum"])
        if node["type"] == "array":
            inner = resolved(node["items"])
            return "list of objects" if inner["type"] == "object" else "list of texts"
        return {"string": "text", "boolean": "true or false", "integer": "number", "object": "object"}[node["type"]]

    def walk(node: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
        for name, one in node.get("properties", {}).items():
            inner = resolved(one)
            here = f"{path}{name}"
            yield here, typed(inner)
            yield from walk(inner, f"{here}.")
            if inner.get("type") == "array":
                yield from walk(resolved(inner["items"]), f"{here}[].")

    return list(walk(resolved(schema), ""))


def commands() -> str:
    rows = [f"| `interlock {name}` | {COMMANDS[name].summary} |" for name in sorted(COMMANDS)]
    return "\n".join(["| command | what it does |", "|---|---|", *rows])


def meters() -> str:
    from interlock.serve.meters import METERS

    endings = {"counter": "_total"}
    rows = []
    for name, kind, labels, meaning in METERS:
        told = ", ".join(f"`{one}`" for one in labels)
        rows.append(f"| `interlock_{name}{endings.get(kind, '')}` | {kind} | {told} | {meaning} |")
    return "\n".join(["| metric | kind | labels | meaning |", "|---|---|---|---|", *rows])


def hook_faults() -> str:
    hosts = sorted(REACTIONS)
    rows = [f"| what goes wrong | how the command ends | {' | '.join(hosts)} |", "|---|---|" + "---|" * len(hosts)]
    for fault, ending in FAULTS.items():
        rows.append(f"| {fault} | {ending.value} | {' | '.join(reaction(host, fault).value for host in hosts)} |")
    return "\n".join(rows)


# --- what the pages say -----------------------------------------------------------------------------------------------


def block(page: Path, mark: str) -> str:
    text = page.read_text(encoding="utf-8")
    found = re.search(rf"<!-- {re.escape(mark)} -->\n\n(.*?)\n\n(?:<!-- end -->|`|#)", text, re.DOTALL)
    assert found, f"{page.name} has no block {mark!r}"
    return found.group(1)


def rows_of(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def attributes() -> str:
    rows = ["| attribute | meaning |", "|---|---|"]
    return "\n".join([*rows, *(f"| `{one.name}` | {one.meaning} |" for one in ATTRIBUTES)])


GENERATED: list[tuple[str, str, Callable[[], str]]] = [
    ("settings.md", "settings", settings),
    ("settings.md", "address_book", kinds_of_the_address_book),
    ("writing-policies.md", "builtins", builtins),
    ("cli.md", "commands", commands),
    ("hooks.md", "hook faults", hook_faults),
    ("journal.md", "attributes", attributes),
    ("serve.md", "meters", meters),
    ("classify.md", "catalogue", catalogue_table),
    ("classify.md", "proposals", measured_table),
    ("spec.md", "entries", journal_entries),
    ("spec.md", "digests", kinds_of_digests),
]


@pytest.mark.parametrize(("page", "name", "make"), GENERATED, ids=lambda part: part if isinstance(part, str) else "")
def test_generated(page: str, name: str, make: Callable[[], str]) -> None:
    path = DOCS / page
    if os.environ.get("INTERLOCK_WRITE_DOCS"):
        text = path.read_text(encoding="utf-8")
        pattern = rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)"
        path.write_text(
            re.sub(pattern, lambda m: f"{m[1]}\n{make()}\n\n{m[2]}", text, flags=re.DOTALL), encoding="utf-8"
        )
    assert block(path, f"generated: {name}") == make()


def test_the_document() -> None:
    told = [(row[0].strip("`"), row[1]) for row in rows_of(block(DOCS / "spec.md", "checked: document"))]
    assert told == document_rows()
    assert all(row[2] for row in rows_of(block(DOCS / "spec.md", "checked: document")))


def test_keys_of_the_manifest() -> None:
    rows = {row[0].strip("`"): row for row in rows_of(block(DOCS / "manifest.md", "checked: manifest keys"))}
    assert set(rows) == set(_Tool.model_fields)
    for name, one in _Tool.model_fields.items():
        assert rows[name][1] == ("yes" if one.is_required() else "no"), name
        if get_origin(one.annotation) not in (list, dict) and get_args(one.annotation):
            assert rows[name][2] == words(value for value in get_args(one.annotation) if value), name


def test_kinds_of_destinations() -> None:
    text = (DOCS / "manifest.md").read_text(encoding="utf-8")
    section = text.partition("### Kinds of destinations")[2].partition("###")[0]
    table = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
    told = {name for row in table for name in re.findall(r"`(\w+)`", row)}
    assert told == {kind.value for kind in Kind} - {"unknown"}


def test_kinds_of_artifacts() -> None:
    text = (DOCS / "manifest.md").read_text(encoding="utf-8")
    section = text.partition("### Artifacts")[2].partition("##")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(KINDS)


def test_keys_of_the_configuration() -> None:
    rows = rows_of(block(DOCS / "configuration.md", "checked: configuration keys"))
    told = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
    assert told == list(Configuration.model_fields)


def test_keys_of_the_bundle() -> None:
    """Each key in order, with its default."""
    rows = rows_of(block(DOCS / "configuration.md", "checked: bundle keys"))
    assert [row[0].strip("`") for row in rows] == list(BundleChoice.model_fields)
    for row, one in zip(rows, BundleChoice.model_fields.values(), strict=True):
        default = "must be there" if one.is_required() else "" if one.default == "" else f"`{json.dumps(one.default)}`"
        assert row[1] == default, row[0]


def test_keys_of_the_journal() -> None:
    """Each key with the kinds that take it and its default."""
    kinds = {"memory": MemoryChoice, "sqlite": SqliteChoice, "postgres": PostgresChoice}
    names = {name for model in kinds.values() for name in model.model_fields}
    rows = {row[0].strip("`"): row for row in rows_of(block(DOCS / "configuration.md", "checked: journal keys"))}
    assert set(rows) == names
    for name, row in rows.items():
        takers = [kind for kind, model in kinds.items() if name in model.model_fields]
        assert row[1] == ("all" if len(takers) == len(kinds) else ", ".join(takers)), name
        one = kinds[takers[0]].model_fields[name]
        default = "must be there" if one.is_required() else "" if one.default == "" else f"`{json.dumps(one.default)}`"
        assert row[2] == default, name


def test_keys_of_an_opa_server() -> None:
    rows = {row[0].strip("`"): row for row in rows_of(block(DOCS / "opa.md", "checked: opa keys"))}
    assert list(rows) == list(OpaChoice.model_fields)
    for name, one in OpaChoice.model_fields.items():
        default = "must be there" if one.is_required() else "" if one.default == "" else f"`{json.dumps(one.default)}`"
        assert rows[name][1] == default, name


def test_keys_of_the_collector() -> None:
    rows = {row[0].strip("`"): row for row in rows_of(block(DOCS / "configuration.md", "checked: otel keys"))}
    assert list(rows) == list(OtelChoice.model_fields)
    for name, one in OtelChoice.model_fields.items():
        default = "must be there" if one.is_required() else "" if one.default == "" else f"`{json.dumps(one.default)}`"
        assert rows[name][1] == default, name


def test_keys_of_an_mcp_server() -> None:
    rows = rows_of(block(DOCS / "mcp.md", "checked: mcp server"))
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row[0])) == sorted(
        UpstreamChoice.model_fields
    )


def test_faults_of_an_opa_server() -> None:
    rows = rows_of(block(DOCS / "opa.md", "checked: faults"))
    assert [(row[0].strip("`"), row[2]) for row in rows] == [(one, "out" if one in OUT else "wrong") for one in Fault]


def test_keys_of_approvals() -> None:
    """Each key with the channels that take it."""
    kinds = {"terminal": TerminalChannel, "store": StoreChannel, "pause": PauseChannel, "webhook": WebhookChannel}
    rows = {row[0].strip("`"): row for row in rows_of(block(DOCS / "approvals.md", "checked: approval keys"))}
    assert set(rows) == {name for model in kinds.values() for name in model.model_fields}
    for name, row in rows.items():
        takers = [kind for kind, model in kinds.items() if name in model.model_fields]
        assert row[1] == ("all" if len(takers) == len(kinds) else ", ".join(takers)), name


def test_keys_of_scenarios() -> None:
    rows = rows_of(block(DOCS / "spec.md", "checked: scenario keys"))
    told = {name for row in rows for name in re.findall(r"`(\w+)`", " ".join(row))}
    known = {name for model in (Scenario, Story, Step, CallStep, DocumentStep) for name in model.model_fields}
    known -= {"one", "asked"}
    assert known <= told


def test_limits_of_answers() -> None:
    text = (DOCS / "spec.md").read_text(encoding="utf-8")
    assert f"a list of at most {MAX_REMEDIES} lower-case names" in text


# --- dependencies -----------------------------------------------------------------------------------------------------

MODULES = {
    "ada-url": "ada_url",
    "email-validator": "email_validator",
    "gordon-to-regorus": "regorus",
    "jsonschema-rs": "jsonschema_rs",
    "ruamel.yaml": "ruamel",
    "typing-extensions": "typing_extensions",
}


@functools.cache
def importers() -> dict[str, set[str]]:
    """The files that import a top-level module, by its name. Every file is parsed once."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "interlock").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in names:
                found.setdefault(name.partition(".")[0], set()).add(path.relative_to(ROOT).as_posix())
    return found


def test_dependencies() -> None:
    """Each stands in the table, and is imported where the table says and nowhere else."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = sorted(re.match(r"[\w.-]+", one).group() for one in project["dependencies"])  # type: ignore[union-attr]
    rows = {row[0].strip("`"): row for row in rows_of(block(DOCS / "dependencies.md", "checked: dependencies"))}
    assert sorted(rows) == wanted
    for name, row in rows.items():
        places = re.findall(r"`([^`]+)`", row[3])
        found = importers().get(MODULES.get(name, name), set())
        assert found, f"{name} is imported nowhere"
        outside = {path for path in found if not any(path.startswith(place) for place in places)}
        assert not outside, f"{name} is also imported by {sorted(outside)}"
        unused = [place for place in places if not any(path.startswith(place) for path in found)]
        assert not unused, f"{name} is not imported by {unused}"
