"""T12: one artifact under two names was two, and what was written under the one came back clean under the other.

A table with and without its schema; a name with an alias behind it, for a tool that builds a statement of it; an
address with and without encryption, or with escapes; a file in another case or normal form, on a file system to which
they are one; a relative path that nobody resolved; a pattern for a tool that expands it; an address `file:…`. Each has
one key now, or none: then it is any of its kind when written and every leg when read. A path of keys (`file.path`,
`edits.path`) under `writes_to` and `reads_from` is followed; it used to count as an argument that is not there.
"""

from __future__ import annotations

import pytest

from interlock import Guard, Interlock, Manifest, MemoryJournal
from interlock.stores.memory_artifacts import MemoryArtifacts
from tests.cases.desk import did, fresh, shared

KINDS = ("path", "url", "table", "key")
PLAIN = {"returns": [], "egress": "none"}
MANIFEST = Manifest.parse(
    {
        "version": 1,
        "tools": {
            **{f"write_{kind}": {**PLAIN, "writes_to": {"at": kind}} for kind in KINDS},
            **{f"read_{kind}": {**PLAIN, "reads_from": {"at": kind}} for kind in KINDS},
            "edit": {**PLAIN, "writes_to": {"edits.path": "path"}},
            "view": {**PLAIN, "reads_from": {"file.path": "path"}},
        },
    }
)

SAME = [
    ("table", "notes", "public.notes"),
    ("table", "db.public.notes", '"NOTES"'),
    ("table", "notes", "notes n"),
    ("table", "notes", "notes--"),
    ("table", "notes", "notes#"),
    ("table", "notes", "notes/**/"),
    ("table", "notes", "notes, others"),
    ("table", "notes", "note*"),
    ("table", "`a.b.notes`", "a.b.notes"),
    ("table", "x" * 63, "x" * 64),
    ("table", "\u00e9t\u00e9", "e\u0301te\u0301"),
    ("table", "\uff4e\uff4f\uff54\uff45\uff53", "notes"),
    ("url", "https://wiki.example/a", "http://wiki.example/a"),
    ("url", "https://wiki.example/a", "https://WIKI.example./%61?b#c"),
    ("url", "https://wiki.example/Team/a", "https://wiki.example/team/A/"),
    ("url", "https://wiki.example/a", "https://wiki.example/x/../a"),
    ("url", "https://wiki.example/a", "wiki.example/a"),
    ("path", "/srv/Notes.txt", "/srv/notes.TXT"),
    ("path", "/srv/\u00e9", "/srv/e\u0301"),
    ("path", "/srv/\u212bx", "/srv/\u00e5X"),
    ("path", "/srv/notes.txt", "/srv/n?tes.*"),
    ("path", "/srv/a/notes.txt", "/srv/*/notes.txt"),
    ("path", "/srv/notes.txt", "/srv/{notes,x}.txt"),
    ("path", "/srv/notes.txt", "/srv/[n]otes.txt"),
    ("path", "/srv/notes.txt", "file:///srv/notes.txt"),
    ("path", "/srv/notes.txt", "FILE:/srv/notes.txt"),
    ("path", "/srv/notes.txt", "/srv/x/../notes.txt"),
    ("path", "/srv/notes.txt", "//srv//./notes.txt"),
]


@pytest.fixture
def lock() -> Interlock:
    """Names become keys before any record is asked, so one kind of record does for all."""
    artifacts = MemoryArtifacts(whole=True)
    return Interlock(manifest=MANIFEST, engine=shared().engine, journal=MemoryJournal(), artifacts=artifacts)


def stained(lock: Interlock) -> Guard:
    guard = fresh(lock)
    guard.admit("x", labels=["private:plan"], source="plan")
    return guard


def reads(lock: Interlock, kind: str, name: str) -> bool:
    """Does somebody who reads it hold what was written, or every leg, or nothing since it is refused?"""
    guard = fresh(lock)
    outcome = did(guard, f"read_{kind}", {"at": name})
    return not outcome.executed or "private:plan" in guard.conversation.taint


@pytest.mark.parametrize(("kind", "written", "read"), SAME, ids=lambda text: ascii(text)[:30])
def test_t12_two_names_of_one_artifact(kind: str, written: str, read: str, lock: Interlock) -> None:
    assert did(stained(lock), f"write_{kind}", {"at": written}).executed
    assert reads(lock, kind, read)


@pytest.mark.parametrize(("kind", "read", "written"), SAME, ids=lambda text: ascii(text)[:30])
def test_t12_and_the_other_way_round(kind: str, read: str, written: str, lock: Interlock) -> None:
    if kind == "path" and any(one in written for one in "*?[{"):
        return  # a pattern names what is read; what is written has that very name
    assert did(stained(lock), f"write_{kind}", {"at": written}).executed
    assert reads(lock, kind, read)


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("table", "notes", "public.others"),
        ("table", "my-project.data.notes", "my-project.data.others"),
        ("url", "https://wiki.example/a", "https://wiki.example/ab"),
        ("url", "https://wiki.example/a", "https://other.example/a"),
        ("path", "/srv/a/notes.txt", "/srv/a/others.txt"),
        ("path", "/srv/a/notes.txt", "/srv/b/[id].txt"),
        ("key", "Notes", "notes"),
    ],
)
def test_honest_two_artifacts_are_two(kind: str, one: str, other: str, lock: Interlock) -> None:
    assert did(stained(lock), f"write_{kind}", {"at": one}).executed
    guard = fresh(lock)
    assert did(guard, f"read_{kind}", {"at": other}).executed
    assert not guard.conversation.taint


def test_t12_paths_of_keys_are_followed(lock: Interlock) -> None:
    edits = [{"path": "/srv/a.txt", "text": "x"}, {"path": ["/srv/b.txt", "/srv/c.txt"]}]
    assert did(stained(lock), "edit", {"edits": edits}).executed
    for name, held in (("a", True), ("b", True), ("c", True), ("d", False)):
        guard = fresh(lock)
        assert did(guard, "view", {"file": {"path": f"/srv/{name}.txt"}}).executed
        assert ("private:plan" in guard.conversation.taint) is held
    for arguments in ({}, {"file": "/srv/d.txt"}, {"file": {}}, {"file": {"path": 3}}):
        assert not did(fresh(lock), "view", arguments).executed


@pytest.mark.parametrize("edits", [[], [{}], [{"path": "/srv/a.txt"}, {"text": "x"}], "x", None])
def test_t12_what_is_missing_in_one_of_them_is_anything(edits: object, lock: Interlock) -> None:
    assert did(stained(lock), "edit", {"edits": edits}).executed
    assert reads(lock, "path", "/anywhere/else.txt")
