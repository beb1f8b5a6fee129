"""Hypothesis strategies for everything that the theorems quantify over. For our tests and for yours.

Two strategies make documents, as Cedar has two for its policies: :func:`documents` is well-typed and reaches deep,
:func:`hostile_documents` puts any JSON anywhere. The well-typed one alone is green on a policy that fails open.

:func:`tightenings` lists the single steps that make a document more dangerous (T5), and :func:`holes` lists every way
to leave out or retype one key (T6). They are lists and not draws, so that no step is left to luck.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import orjson
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from interlock.model.answers import ControlText
from interlock.model.calls import Call
from interlock.model.decisions import Verdict
from interlock.model.digests import Digest, digest
from interlock.model.entries import (
    Admitted,
    Answered,
    Asked,
    Checkpointed,
    ChildJoined,
    ChildOpened,
    Consumed,
    Decided,
    Drafted,
    Entry,
    Erased,
    Failed,
    Forked,
    Granted,
    Lapsed,
    Observed,
    Opened,
    Rejected,
    Released,
    Remembered,
    Resumed,
    Rewritten,
    RolledBack,
    Sent,
    Shadowed,
    Stood,
    Summarised,
    Taken,
    Transcribed,
    Typed,
    Voided,
)
from interlock.model.labels import Label, Leg, Source, Taint
from interlock.model.manifest import Manifest
from interlock.model.marks import EVERYTHING, heard_in, mark
from interlock.model.tools import Kind, ToolId, ToolSpec

Document = dict[str, Any]

# --- text and JSON ----------------------------------------------------------------------------------------------------


@cache
def texts(max_size: int = 12) -> SearchStrategy[str]:
    """Any text that has a canonical form: no lone surrogates, no NUL."""
    alphabet = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    return st.text(alphabet, max_size=max_size)


_BORDER: Final = 2**53


@cache
def json_leaves() -> SearchStrategy[Any]:
    """Canonical JSON values that hold no other values, with the borders of numbers."""
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-_BORDER, _BORDER),
        st.sampled_from([0, 1, -1, _BORDER, -_BORDER]),
        st.floats(-(2.0**53), 2.0**53, allow_nan=False, allow_infinity=False),
        texts(),
    )


@cache
def json_values(max_leaves: int = 8) -> SearchStrategy[Any]:
    """Any canonical JSON value."""
    return st.recursive(
        json_leaves(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(6), inner, max_size=3),
        max_leaves=max_leaves,
    )


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that is no JSON, with a name for error messages."""

    name: str


# Name → a value that must never get past the gate as an argument.
NOT_CANONICAL: Final[Mapping[str, Any]] = {
    "NUL": "secret-value\0tail",
    "NUL in a key": {"secret-value\0": 1},
    "lone high surrogate": "secret-value\ud800",
    "lone low surrogate": "\udc00secret-value",
    "surrogate in a key": {"secret-value\ud800": 1},
    "NaN": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "integer beyond 2**53": _BORDER + 1,
    "integer below -2**53": -_BORDER - 1,
    "huge integer": 10**400,
    "float beyond 2**53": 2.0**54,
    "float far beyond": 1e300,
    "tuple": ("secret-value",),
    "bytes": b"secret-value",
    "bytearray": bytearray(b"secret-value"),
    "set": {"secret-value"},
    "complex": 1j,
    "object": Opaque("secret-value"),
    "class": Opaque,
    "integer key": {1: "secret-value"},
    "none key": {None: "secret-value"},
    "boolean key": {True: "secret-value"},
    "tuple key": {("secret-value",): 1},
    "generator": iter(["secret-value"]),
}


def nested(depth: int, bottom: Any = 0, *, key: str = "") -> Any:
    """A value that is ``depth`` levels of lists deep, or of objects when ``key`` is given."""
    for _ in range(depth):
        bottom = {key: bottom} if key else [bottom]
    return bottom


# --- labels -----------------------------------------------------------------------------------------------------------

CATEGORIES: Final[Mapping[Leg, tuple[str, ...]]] = {
    Leg.UNTRUSTED: ("web", "mail", "server:x", "unknown"),
    Leg.PRIVATE: ("mail", "files", "credentials", "unknown"),
    Leg.EGRESS: ("channel", "unknown"),
}


@cache
def labels(*legs: Leg) -> SearchStrategy[Label]:
    """A label of one of these legs (of any, when none is named). Few categories, so that draws meet."""
    wanted = legs or tuple(Leg)
    return st.sampled_from([Label(f"{leg.value}:{category}") for leg in wanted for category in CATEGORIES[leg]])


@cache
def label_tuples(*legs: Leg, max_size: int = 2) -> SearchStrategy[tuple[Label, ...]]:
    """Sorted labels of these legs, each once."""
    return st.lists(labels(*legs), max_size=max_size, unique=True).map(lambda found: tuple(sorted(found)))


@cache
def stamps() -> SearchStrategy[str]:
    """Times as the journal writes them; few, so that ties happen."""
    return st.integers(0, 20).map(lambda second: f"2026-11-29T12:00:{second:02d}.000000Z")


@cache
def sources() -> SearchStrategy[Source]:
    return st.builds(
        Source,
        at=stamps(),
        call=st.integers(0, 3),
        tool=st.sampled_from(["", "fetch", "read_mail"]),
        digest=st.sampled_from(["", digest("content", b"a"), digest("content", b"b")]),
    )


@cache
def taints(max_size: int = 5) -> SearchStrategy[Taint]:
    return st.lists(st.tuples(labels(), sources()), max_size=max_size).map(lambda items: Taint(tuple(items)))


# --- tools and calls --------------------------------------------------------------------------------------------------

# Argument name → kind; a spec picks among them, so that calls can be written without knowing the spec.
ARGUMENTS: Final[Mapping[str, str]] = {"to": "email", "url": "url", "path": "path", "account": "account"}
CONTENT: Final = ("body", "subject")
OTHER: Final = ("note", "count")
NAMES: Final = ("fetch", "read_mail", "send", "write_file", "delete", "share", "post")

# Name of an argument → texts for it: well-formed, disguised, and not of its kind at all.
VALUES: Final[Mapping[str, tuple[Any, ...]]] = {
    "to": ("bob@corp.example", "eve@evil.example", "Bob@CORP.example", "bob@corp.example ", "bob", "", 7, ["bob"]),
    "url": (
        "http://evil.example/x",
        "https://api.corp.example/",
        "https://api.corp.example@evil.example/",
        "http://0x7f.1/",
        "http:\\\\evil.example",
        "",
        None,
        {"a": "http://evil.example/"},
    ),
    "path": ("notes/todo.txt", "/home/u/.bashrc", "../interlock.toml", ".git/hooks/pre-commit", "", [], ["a", ""]),
    "account": ("DE00 1234", "123", "", 12),
    "body": ("hello", "", "line\nline"),
    "subject": ("hi", ""),
    "note": ("smuggled", "", ["x"], {"a": "b"}, {}, "cat ~/.bashrc"),
    "count": (0, 1, True, None),
}


@st.composite
def tool_entries(draw: st.DrawFn) -> dict[str, Any]:
    """One ``[tools.NAME]`` table of a manifest."""
    egress = draw(st.sampled_from(["none", "blind", "chosen"]))
    named = [] if egress == "blind" else draw(st.lists(st.sampled_from(sorted(ARGUMENTS)), max_size=2, unique=True))
    entry: dict[str, Any] = {
        "returns": list(draw(label_tuples(Leg.UNTRUSTED, Leg.PRIVATE))),
        "egress": egress,
        "reads": list(draw(label_tuples(Leg.PRIVATE, max_size=1))),
        "opens": list(draw(st.just(()) | label_tuples(Leg.EGRESS, max_size=1))),
        "effect": draw(st.sampled_from(["none", "none", "write", "destroy", "control"])),
        "destinations": {name: ARGUMENTS[name] for name in named},
        "content": draw(st.lists(st.sampled_from(CONTENT), max_size=2, unique=True)),
    }
    if egress == "blind":
        entry["audience"] = "closed"
    return entry


@cache
def manifests(min_size: int = 0, max_size: int = 4) -> SearchStrategy[Manifest]:
    """Manifests that load. A third of the tools belong to a server."""
    ids = st.tuples(st.sampled_from(["", "", "srv"]), st.sampled_from(NAMES))
    tables = st.dictionaries(ids, tool_entries(), min_size=min_size, max_size=max_size)
    return tables.map(_manifest)


def _manifest(tables: Mapping[tuple[str, str], dict[str, Any]]) -> Manifest:
    own = {name: entry for (server, name), entry in tables.items() if not server}
    theirs = {name: entry for (server, name), entry in tables.items() if server}
    return Manifest.parse({"version": 1, "tools": own, "servers": {"srv": {"tools": theirs}} if theirs else {}})


def specs() -> SearchStrategy[ToolSpec]:
    """A declared tool."""
    return manifests(min_size=1, max_size=1).map(lambda manifest: next(iter(manifest)))


@cache
def arguments() -> SearchStrategy[dict[str, Any]]:
    """Well-formed arguments: known names with telling values, and now and then any JSON."""
    known = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in VALUES.items()})
    strange = st.dictionaries(texts(6), json_values(), max_size=2)
    return st.builds(lambda one, other: {**other, **one}, known, st.just({}) | strange)


@st.composite
def calls(draw: st.DrawFn, manifest: Manifest, call_id: str = "") -> Call:
    """A well-formed call of a declared or undeclared tool."""
    undeclared = ToolId("", "nobody_declared_this")
    tool = draw(st.sampled_from([*manifest.specs, undeclared]))
    return Call(tool.name, draw(arguments()), call_id, tool.server)


@st.composite
def batches(draw: st.DrawFn, manifest: Manifest, max_size: int = 4) -> list[Call]:
    """The calls of one turn, with ids of their own."""
    size = draw(st.integers(1, max_size))
    return [draw(calls(manifest, f"id-{place}")) for place in range(size)]


# --- journal entries --------------------------------------------------------------------------------------------------


@cache
def digests(kind: str = "content") -> SearchStrategy[Digest]:
    return st.sampled_from([digest(kind, bytes([n])) for n in range(4)])


# Few words and values, so that draws meet.
WORDS_HEARD: Final = ("alice", "bob corp example", "invoice 42", "")


@cache
def heard_words() -> SearchStrategy[str]:
    """Packed words of a text, of none, of too many, or that nobody wrote down."""
    return st.sampled_from(["", EVERYTHING, *map(heard_in, WORDS_HEARD)])


@cache
def vouched_values() -> SearchStrategy[str]:
    """A value that a result vouches for, as an `observed` entry holds it."""
    letters, values = st.sampled_from("tm"), st.sampled_from(WORDS_HEARD[:-1])
    return st.builds(lambda letter, value: f"{letter}{mark('text', value)} {heard_in(value)}", letters, values)


@cache
def records() -> SearchStrategy[str]:
    """A record that a result holds, with one name or made by the call."""
    ids, names = st.sampled_from(["1", "2"]), st.sampled_from([mark("phrase", "the plan"), "!"])
    return st.builds(lambda one, name: f"file {mark('id:file', one)} {name}", ids, names)


_CHILDREN: Final = ("c-8", "c-9")


# Few, so that answers find their questions and grants their calls.
_QUESTIONS: Final = ("q-1", "q-2")
_ASKED: Final = ("c-1", "")


def _about_questions() -> tuple[SearchStrategy[Entry], ...]:
    """Questions, answers, grants and standing approvals, in no sensible order."""
    question, call = st.sampled_from(_QUESTIONS), st.sampled_from([digest("call", one) for one in (b"x", b"y")])
    conversation, one = st.sampled_from(_ASKED), st.just
    return (
        st.builds(
            Asked,
            at=stamps(),
            question=question,
            conversation=conversation,
            number=st.integers(1, 5),
            uses=st.integers(0, 3),
            call=call,
            server=st.sampled_from(["", "srv"]),
            tool=st.sampled_from(NAMES),
            spec=digests("tool"),
            shown=label_tuples(),
            codes=st.just(("leak_guard",)),
            revision=one("r"),
            manifest=one("m"),
            operands=digests("operands"),
            shape=digests("shape"),
            body=digests("question"),
            expires=stamps(),
        ),
        st.builds(
            Answered,
            at=stamps(),
            question=question,
            answer=st.sampled_from(["approve", "refuse", "edit", "none"]),
            by=texts(4),
        ),
        st.builds(Granted, at=stamps(), question=question, conversation=conversation, call=call, expires=stamps()),
        st.builds(Consumed, at=stamps(), question=question, number=st.integers(1, 5), call=call),
        st.builds(Voided, at=stamps(), question=st.sampled_from([*_QUESTIONS, "s-1"]), why=texts(4)),
        st.builds(
            Stood,
            at=stamps(),
            standing=one("s-1"),
            conversation=conversation,
            question=question,
            server=one(""),
            tool=st.sampled_from(NAMES),
            spec=digests("tool"),
            destination=digests("value"),
            codes=st.sampled_from([("leak_guard",), ("trifecta",)]),
            revision=one("r"),
            manifest=one("m"),
            by=texts(4),
            expires=stamps(),
        ),
    )


# Few, so that releases and deliveries find their drafts.
_DRAFTS: Final = ("d-1", "d-2")


def _about_drafts() -> tuple[SearchStrategy[Entry], ...]:
    """Drafts and what became of them, in no sensible order."""
    draft, call = st.sampled_from(_DRAFTS), st.sampled_from([digest("call", one) for one in (b"x", b"y")])
    conversation, one = st.sampled_from(_ASKED), st.just
    return (
        st.builds(
            Drafted,
            at=stamps(),
            draft=draft,
            conversation=conversation,
            number=st.integers(1, 5),
            call=call,
            server=st.sampled_from(["", "srv"]),
            tool=st.sampled_from(NAMES),
            spec=digests("tool"),
            shown=label_tuples(),
            codes=st.just(("leak_guard",)),
            revision=one("r"),
            manifest=one("m"),
            operands=digests("operands"),
            shape=digests("shape"),
            body=digests("draft"),
            length=st.integers(0, 9),
            expires=stamps(),
        ),
        st.builds(
            Released,
            at=stamps(),
            draft=draft,
            conversation=conversation,
            call=call,
            shown=label_tuples(),
            codes=st.just(("leak_guard",)),
            revision=one("r"),
            manifest=one("m"),
            operands=digests("operands"),
            by=texts(4),
        ),
        st.builds(Rejected, at=stamps(), draft=draft, by=texts(4)),
        st.builds(Lapsed, at=stamps(), draft=draft, why=texts(4)),
        st.builds(Taken, at=stamps(), draft=draft, number=st.integers(1, 5), call=call),
    )


@cache
def entries(max_number: int = 5) -> SearchStrategy[Entry]:
    """Any entry, in no sensible order: numbers repeat, and outcomes come for calls that nobody made."""
    number = st.integers(1, max_number)
    voices = st.lists(digests("voice"), max_size=2, unique=True).map(lambda found: tuple(sorted(found)))
    return st.one_of(
        st.builds(
            Opened,
            at=stamps(),
            conversation=st.sampled_from(["c-1", "c-2"]),
            namespace=texts(4),
            parent=st.sampled_from(["", "c-0"]),
            labels=label_tuples(),
            typed=st.lists(digests("value"), max_size=2, unique=True).map(tuple),
            texts=st.lists(digests(), max_size=2, unique=True).map(tuple),
            voices=voices,
            heard=st.booleans(),
            doubts=st.lists(digests("call"), max_size=2, unique=True).map(tuple),
        ),
        st.builds(
            Typed,
            at=stamps(),
            content=digests(),
            length=st.integers(0, 9),
            values=st.lists(digests("value"), max_size=3, unique=True).map(tuple),
        ),
        st.builds(
            Admitted,
            at=stamps(),
            source=texts(6),
            labels=label_tuples(),
            content=digests(),
            length=st.integers(0, 9),
            voices=voices,
            words=heard_words(),
        ),
        st.builds(
            Decided,
            at=stamps(),
            number=number,
            call_id=texts(6),
            server=st.sampled_from(["", "srv"]),
            tool=st.sampled_from(NAMES),
            call=digests("call"),
            verdict=st.sampled_from(["allow", "allow", "ask", "deny"]),
            codes=st.lists(st.sampled_from(["trifecta", "leak_guard"]), max_size=2, unique=True).map(tuple),
            version=st.integers(0, 9),
            private=label_tuples(Leg.PRIVATE),
            untrusted=label_tuples(Leg.UNTRUSTED),
            opens=label_tuples(Leg.EGRESS),
            voices=voices,
            unheard=st.sampled_from([False, False, True]),
            said=heard_words(),
            receivers=voices,
        ),
        st.builds(
            Shadowed,
            at=stamps(),
            number=number,
            call_id=texts(6),
            server=st.just(""),
            tool=st.sampled_from(NAMES),
            call=digests("call"),
            verdict=st.sampled_from(["allow", "ask", "deny"]),
            codes=st.just(("trifecta",)),
            version=st.integers(0, 9),
            private=label_tuples(Leg.PRIVATE),
            untrusted=label_tuples(Leg.UNTRUSTED),
            opens=label_tuples(Leg.EGRESS),
            voices=voices,
        ),
        st.builds(
            Observed,
            at=stamps(),
            number=number,
            external=st.booleans(),
            content=digests(),
            length=st.integers(0, 9),
            labels=label_tuples(),
            exact=st.booleans(),
            words=heard_words(),
            vouched=st.lists(vouched_values(), max_size=2, unique=True).map(tuple),
            records=st.lists(records(), max_size=2, unique=True).map(tuple),
        ),
        st.builds(
            Failed,
            at=stamps(),
            number=number,
            external=st.booleans(),
            error=st.sampled_from(["ValueError", "TimeoutError"]),
            labels=label_tuples(),
            doubt=st.booleans(),
        ),
        st.builds(Resumed, at=stamps(), why=texts(6), labels=label_tuples()),
        st.builds(Rewritten, at=stamps(), before=st.integers(0, 9), after=st.integers(0, 9)),
        st.builds(
            RolledBack,
            at=stamps(),
            before=st.integers(0, 9),
            after=st.integers(0, 9),
            kept=st.integers(0, 9),
        ),
        st.builds(Forked, at=stamps(), conversation=st.sampled_from(_CHILDREN)),
        st.builds(
            Transcribed,
            at=stamps(),
            turn=st.integers(0, 9),
            keep=st.integers(0, 9),
            contents=st.lists(digests("message"), max_size=2).map(tuple),
        ),
        *_about_questions(),
        *_about_drafts(),
        st.builds(Erased, at=stamps(), messages=st.integers(0, 9)),
        st.builds(Checkpointed, at=stamps(), state=digests("state")),
        st.builds(ChildOpened, at=stamps(), conversation=st.sampled_from(_CHILDREN), labels=label_tuples()),
        st.builds(
            ChildJoined,
            at=stamps(),
            conversation=st.sampled_from(_CHILDREN),
            labels=label_tuples(),
            voices=voices,
            heard=st.booleans(),
        ),
        st.builds(
            Summarised,
            at=stamps(),
            covered=st.integers(0, 9),
            labels=label_tuples(),
            content=digests(),
            length=st.integers(0, 9),
            anew=st.booleans(),
            tail=st.lists(digests("message"), max_size=2).map(tuple),
        ),
        st.builds(
            Remembered,
            at=stamps(),
            fact=texts(4),
            revision=st.integers(1, 9),
            first=st.integers(0, 9),
            end=st.integers(0, 9),
            labels=label_tuples(),
            content=digests(),
            length=st.integers(0, 9),
        ),
        st.builds(
            Sent, at=stamps(), parcel=texts(4), labels=label_tuples(), content=digests(), length=st.integers(0, 9)
        ),
    )


# --- documents --------------------------------------------------------------------------------------------------------

_DIGEST: Final = "sha256:" + "0" * 64
KINDS: Final = tuple(kind.value for kind in Kind)
VOUCHED: Final = ("receivers", "objects", "parties", "links", "targets")
ORIGINS: Final = ("user", "operator", "trusted", "metadata", "designated", "mixed", "untrusted", "unseen")
GROUNDING: Final = ("user", "operator", "trusted")
# How a call changes things, from harmless on. The document says `control` in both places or in none.
EFFECTS: Final = (
    ("none", "none"),
    ("add", "none"),
    ("write", "none"),
    ("destroy", "none"),
    ("control", "agent"),
    ("control", "interlock"),
)
EGRESSES: Final = ("none", "blind", "chosen")


# Every list of at most two categories. Emptiness is what most proofs test, so nearly half of the draws are empty.
_LISTS: Final[Mapping[Leg, list[list[str]]]] = {
    leg: [sorted(pair) for size in (1, 2) for pair in itertools.combinations(known, size)]
    for leg, known in CATEGORIES.items()
}


@cache
def _categories(leg: Leg) -> SearchStrategy[list[str]]:
    found = _LISTS[leg]
    return st.sampled_from([[]] * (len(found) * 3 // 4) + found).map(list)


@cache
def _legs() -> SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({leg.value: _categories(leg) for leg in Leg})


@cache
def destination_parts() -> SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "argument": st.sampled_from(["to", "url", ""]),
            "kind": st.sampled_from(KINDS),
            "value": st.sampled_from(["bob@corp.example", "", "x"]),
            "origin": st.sampled_from(ORIGINS),
            "talks_back": st.booleans(),
        }
    )


@cache
def named_parts() -> SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "argument": st.sampled_from(["file", "body", ""]),
            "kind": st.sampled_from(KINDS),
            "noun": st.sampled_from(["", "file"]),
            "value": st.sampled_from(["13", "", "x"]),
            "origin": st.sampled_from(ORIGINS),
        }
    )


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """A document that fits its schema.

    What the builder never breaks holds here too: ``tool.effect`` is ``control`` exactly when ``call.control`` is not
    ``none``. Everything else is free, more than the builder is.
    """
    effect, control = draw(st.sampled_from(EFFECTS))
    tool_labels = st.sampled_from([[], ["private:mail"], ["untrusted:web"], ["private:files", "untrusted:mail"]]).map(
        list
    )
    return {
        "schema": 1,
        "now": "2026-11-29T12:00:00Z",
        "conversation": {"id": "c-1", "namespace": draw(st.sampled_from(["default", "x"])), "parent": ""},
        "exposure": draw(_legs()),
        "forecast": {**draw(_legs()), "credentials": draw(st.booleans())},
        "tool": {
            "server": draw(st.sampled_from(["", "srv"])),
            "name": draw(st.sampled_from(NAMES)),
            "known": draw(st.booleans()),
            "digest": _DIGEST,
            "returns": draw(tool_labels),
            "reads": draw(tool_labels),
            "opens": draw(st.sampled_from([[], ["egress:channel"], ["egress:unknown"]]).map(list)),
            "egress": draw(st.sampled_from(EGRESSES)),
            "effect": effect,
            "audience": draw(st.sampled_from(["", "closed", "self"])),
        },
        "call": {
            "digest": _DIGEST,
            "arguments": draw(st.sampled_from([{}, {}, {}, {"to": "x", "n": [1, None, {"a": True}]}]).map(dict)),
            "siblings": draw(st.integers(0, 3)),
            "destinations": draw(st.lists(destination_parts(), max_size=2)),
            "grounded": draw(st.booleans()),
            "unclassified": draw(st.sampled_from([[], ["note"], ["a", "b"]]).map(list)),
            "labels": draw(_legs()),
            "control": control,
            "objects": draw(st.lists(named_parts(), max_size=1)),
            "parties": draw(st.lists(named_parts(), max_size=1)),
            "links": draw(st.lists(named_parts(), max_size=1)),
            "vouched": {name: draw(st.booleans()) for name in VOUCHED},
            "credentials": draw(st.booleans()),
            "drip": draw(st.booleans()),
        },
        "mode": draw(st.sampled_from(["enforce", "shadow"])),
    }


# Values that a proof would like to see, each in shapes that are not quite it. Every JSON type is here.
PROOF_SHAPED: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    1,
    "",
    "none",
    "blind",
    "agent",
    "off",
    "true",
    "false",
    [],
    ["none"],
    [False],
    [True],
    [[]],
    [{"talks_back": False}],
    {},
    {"a": False},
    {"": []},
    {"0": "none"},
    {"a": {"talks_back": False}},
    {"none": True, "write": True},
)


@cache
def hostile_documents() -> SearchStrategy[Any]:
    """Any JSON, and well-typed documents in which any JSON stands anywhere, with keys left out and added."""
    broken = st.builds(
        _broken, documents(), st.lists(st.tuples(st.integers(0, 10**6), _strange()), min_size=1, max_size=4)
    )
    return broken | json_values()


@cache
def _strange() -> SearchStrategy[Any]:
    return st.just(_GONE) | st.sampled_from(PROOF_SHAPED) | json_values(4)


_GONE: Final = Opaque("gone")


def _broken(document: Document, changes: Sequence[tuple[int, Any]]) -> Any:
    whole = copy.deepcopy(document)
    for pick, value in changes:
        places = list(_places(whole))
        if not places:
            break
        container, key = places[pick % len(places)]
        if value is _GONE:
            del container[key]
        else:
            container[key] = copy.deepcopy(value)
    return whole


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key or index) at or below a value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield value, key
            yield from _places(item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield value, index
            yield from _places(item)


# --- T5: one step more dangerous --------------------------------------------------------------------------------------


def tightenings(document: Document) -> Iterator[tuple[str, Document]]:
    """Every document that is one step more dangerous than this one, with the name of the step."""

    def changed(name: str, *changes: tuple[str, Any]) -> tuple[str, Document]:
        whole = orjson.loads(orjson.dumps(document))
        for path, value in changes:
            *parents, key = path.split(".")
            inner = whole
            for parent in parents:
                inner = inner[parent]
            inner[key] = value
        return name, whole

    yield from _more_labels(document, changed)
    yield from _worse_tool(document, changed)
    yield from _worse_call(document, changed)


def _more_labels(document: Document, changed: Any) -> Iterator[tuple[str, Document]]:
    for leg, category in [(leg, one) for leg, known in CATEGORIES.items() for one in known]:
        exposed = sorted({*document["exposure"][leg.value], category})
        ahead = sorted({*document["forecast"][leg.value], category})
        changes: list[tuple[str, Any]] = [(f"forecast.{leg.value}", ahead)]
        if leg is Leg.PRIVATE and category in ("credentials", "unknown"):
            changes.append(("forecast.credentials", True))
        yield changed(f"forecast + {leg.value}:{category}", *changes)
        changes.append((f"exposure.{leg.value}", exposed))
        yield changed(f"exposure + {leg.value}:{category}", *changes)
        own = sorted({*document["call"]["labels"][leg.value], category})
        if leg is Leg.PRIVATE and category in ("credentials", "unknown"):
            changes.append(("call.credentials", True))
        yield changed(f"own labels + {leg.value}:{category}", (f"call.labels.{leg.value}", own), *changes)
    yield changed("credentials", ("forecast.credentials", True))


def _worse_tool(document: Document, changed: Any) -> Iterator[tuple[str, Document]]:
    tool, call = document["tool"], document["call"]
    yield changed("undeclared", ("tool.known", False))
    if tool["audience"] != "self":
        yield changed("the person sees it", ("tool.audience", "self"))
    for egress in EGRESSES[EGRESSES.index(tool["egress"]) + 1 :]:
        yield changed(f"egress {egress}", ("tool.egress", egress))
    place = EFFECTS.index((tool["effect"], call["control"]))
    for effect, control in EFFECTS[place + 1 :]:
        yield changed(f"effect {effect} {control}", ("tool.effect", effect), ("call.control", control))
    for name, more in (
        ("returns", "untrusted:web"),
        ("returns", "private:mail"),
        ("reads", "private:mail"),
        ("opens", "egress:channel"),
    ):
        yield changed(f"{name} + {more}", (f"tool.{name}", sorted({*tool[name], more})))


def _worse_call(document: Document, changed: Any) -> Iterator[tuple[str, Document]]:
    call = document["call"]
    yield changed("not grounded", ("call.grounded", False))
    yield changed("it drips", ("call.drip", True))
    yield changed("it reads credentials", ("call.credentials", True))
    for name in VOUCHED:
        yield changed(f"nobody vouches for {name}", (f"call.vouched.{name}", False))
    yield changed("one more unclassified", ("call.unclassified", sorted({*call["unclassified"], "x"})))
    yield changed("one more sibling", ("call.siblings", call["siblings"] + 1))
    found = call["destinations"]
    for place, one in enumerate(found):
        before, after = found[:place], found[place + 1 :]
        yield changed("it talks back", ("call.destinations", [*before, {**one, "talks_back": True}, *after]))
        for origin in ORIGINS:
            if origin not in GROUNDING:
                worse = [*before, {**one, "origin": origin}, *after]
                yield changed(f"origin {origin}", ("call.destinations", worse), ("call.grounded", False))
    stranger = {"argument": "", "kind": "unknown", "value": "", "origin": "unseen", "talks_back": True}
    yield changed("a stranger", ("call.destinations", [*found, stranger]), ("call.grounded", False))
    yield changed("no destination", ("call.destinations", []), ("call.grounded", False))


# --- T6: one key missing or of another type ---------------------------------------------------------------------------


def holes(document: Document) -> Iterator[tuple[str, Document]]:
    """Every document in which one key of an object is missing or has another JSON type. Arguments are opaque."""
    for path in _keys(document, ()):
        name = ".".join(map(str, path))
        whole = orjson.loads(orjson.dumps(document))
        container = whole
        for part in path[:-1]:
            container = container[part]
        before = container.pop(path[-1])
        yield f"{name} left out", whole
        for other in PROOF_SHAPED:
            if json_type(other) == json_type(before):
                continue
            container[path[-1]] = other
            yield f"{name} := {other!r}", whole


def _keys(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key)
            if (*path, key) != ("call", "arguments"):
                yield from _keys(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _keys(item, (*path, index))


def json_type(value: Any) -> str:
    """The JSON type of a value; an integer and a float are both numbers."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return {int: "number", float: "number", str: "string", list: "array", dict: "object"}[type(value)]


# --- settings ---------------------------------------------------------------------------------------------------------

# Every combination of the settings that decide something; the first is the default.
SETTINGS: Final[tuple[dict[str, str], ...]] = tuple(
    {"trifecta": trifecta, "leak_guard": leak, "open_channel": channel}
    for trifecta, leak, channel in itertools.product(("deny", "ask"), ("off", "ask", "deny"), ("deny", "ask"))
)

# Combinations that hold every value of every setting: enough where controls are compared one by one, since none of the
# shipped controls reads two settings.
COVERING: Final = (0, SETTINGS.index({"trifecta": "ask", "leak_guard": "ask", "open_channel": "ask"}), 4)


def settings_id(values: Mapping[str, str]) -> str:
    return "-".join(values.values())


# --- abstract rules (T3, T4) ------------------------------------------------------------------------------------------

# Six words after Cedar's abstract policies: what a control can do when it is asked.
RULES: Final = ("allow", "ask", "deny", "undefined", "error", "malformed")

# What a control could answer that is no answer.
MALFORMED: Final[tuple[Any, ...]] = (
    {},
    None,
    True,
    "allow",
    [],
    ["allow"],
    {"verdict": None},
    {"verdict": True},
    {"verdict": "Allow"},
    {"verdict": "allow "},
    {"verdict": "ALLOW"},
    {"verdict": ["allow"]},
    {"verdict": {"verdict": "allow"}},
    {"verdict": ""},
    {"verdict": "permit"},
    {"verdict": "allow", "reason": "x"},
    {"verdict": "allow", "Verdict": "allow"},
    {"verdict": "allow", "remedies": None},
    {"verdict": "allow", "remedies": "new_conversation"},
    {"verdict": "allow", "remedies": {}},
    {"verdict": "allow", "remedies": [1]},
    {"verdict": "allow", "remedies": ["Not A Code"]},
    {"verdict": "allow", "remedies": ["x"] * 17},
    {"remedies": []},
)


@dataclass(frozen=True, slots=True)
class AbstractRule:
    """One control of a policy that is only words: what it does, and, when it is malformed, what it says."""

    word: str
    value: Any = None


@cache
def abstract_rules(max_size: int = 6) -> SearchStrategy[list[AbstractRule]]:
    one = st.sampled_from(RULES).flatmap(
        lambda word: (
            st.sampled_from(MALFORMED).map(lambda value: AbstractRule(word, value))
            if word == "malformed"
            else st.just(AbstractRule(word))
        )
    )
    return st.lists(one, max_size=max_size)


def well_formed_rules(max_size: int = 6) -> SearchStrategy[list[AbstractRule]]:
    return st.lists(st.sampled_from(RULES[:3]).map(AbstractRule), max_size=max_size)


def rule_texts(rules: Sequence[AbstractRule]) -> dict[str, ControlText]:
    """What the loader would know of these controls."""
    return {code: ControlText(code, code, f"{code} objects", f"{code} objects") for code in codes(rules)}


def codes(rules: Sequence[AbstractRule]) -> list[str]:
    return [f"rule_{place}" for place in range(len(rules))]


def rule_answer(rules: Sequence[AbstractRule]) -> bytes:
    """What an engine would answer for these rules.

    Raises:
        RuntimeError: one of them is an error, as an engine would.
    """
    if any(rule.word == "error" for rule in rules):
        raise RuntimeError("a rule failed")
    said = {
        code: rule.value if rule.word == "malformed" else {"verdict": rule.word}
        for code, rule in zip(codes(rules), rules, strict=True)
        if rule.word != "undefined"
    }
    return orjson.dumps(said)


def expected_verdict(rules: Sequence[AbstractRule]) -> Verdict:
    """By T4: whatever is not a clear word denies, and nobody is not a clear word."""
    words = {rule.word for rule in rules}
    if not words or not words <= {"allow", "ask", "deny"} or "deny" in words:
        return Verdict.DENY
    return Verdict.ASK if "ask" in words else Verdict.ALLOW
