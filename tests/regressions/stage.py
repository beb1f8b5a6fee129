"""What the regression tests share: one manifest, one Interlock, and short ways to ask it. Proves nothing by itself."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from interlock import Call, Conversation, Decision, Guard, Interlock, Manifest, MemoryJournal, Outcome
from interlock.model.entries import Decided, Entry, Observed, decode

MANIFEST = Manifest.parse(
    {
        "version": 1,
        "tools": {
            "fetch": {"returns": ["untrusted:web"], "egress": "chosen", "destinations": {"url": "url"}},
            "read_file": {"returns": ["private:files"], "egress": "none", "destinations": {"path": "path"}},
            "read_channel": {"returns": ["untrusted:chat"], "egress": "none", "destinations": {"channel": "channel"}},
            "send_email": {
                "returns": [],
                "egress": "chosen",
                "destinations": {"to": "email", "cc": "email"},
                "content": ["body", "subject"],
            },
            "post": {"returns": [], "egress": "chosen", "destinations": {"url": "url"}, "content": ["body"]},
            "get": {"returns": [], "egress": "chosen", "destinations": {"url": "url"}},
            "say": {"returns": [], "egress": "chosen", "destinations": {"channel": "channel"}, "content": ["body"]},
            "write": {
                "returns": [],
                "egress": "none",
                "effect": "write",
                "destinations": {"path": "path"},
                "content": ["text"],
            },
            "write_uri": {
                "returns": [],
                "egress": "none",
                "effect": "write",
                "destinations": {"uri": "url"},
                "content": ["text"],
            },
            "delete": {"returns": [], "egress": "none", "effect": "destroy", "destinations": {"path": "path"}},
            "bash": {"returns": ["private:files"], "egress": "chosen", "effect": "write"},
            "calc": {"returns": [], "egress": "none"},
        },
    }
)

# Everything but a receiver: under these, a send to somebody whom nobody named is denied.
BOTH = ("untrusted:web", "private:files")


@cache
def _plain() -> Interlock:
    return Interlock(manifest=MANIFEST, journal=MemoryJournal())


def interlock(**parts: Any) -> Interlock:
    """An Interlock of the manifest above; the same one when nothing else is asked for."""
    return Interlock(**{"manifest": MANIFEST, "journal": MemoryJournal(), **parts}) if parts else _plain()


def guarded(typed: str = "hello", labels: Iterable[str] = (), **parts: Any) -> Guard:
    """A guard of a new conversation in which this text was typed, and content with these labels has entered."""
    guard = interlock(**parts).guard(Conversation.user(typed))
    if labels:
        guard.admit("text", labels=labels, source="test")
    return guard


def decided(
    name: str, arguments: dict[str, Any], *, typed: str = "hello", labels: Iterable[str] = (), **parts: Any
) -> Decision:
    """What such a conversation's guard says to one call."""
    return guarded(typed, labels, **parts).preview(Call(name, arguments))


def says(decision: Decision) -> str:
    """A decision in one text: ``allow``, or the verdict and its codes."""
    return " ".join([decision.verdict.value, *decision.codes])


def call(guard: Guard, name: str, result: Any = "done", **arguments: Any) -> Outcome:
    """Call a tool that gives ``result``."""
    return guard.call(name, arguments, run=lambda **_: result)


def entries(guard: Guard) -> list[Entry]:
    """What the journal holds of the guard's conversation."""
    journal = guard._source().world.journal
    assert isinstance(journal, MemoryJournal)
    return [decode(sealed.body) for sealed in journal.entries(guard.conversation.id)]


def last(guard: Guard, kind: type[Decided] | type[Observed]) -> Any:
    """The last entry of a kind."""
    return next(entry for entry in reversed(entries(guard)) if isinstance(entry, kind))


def control(code: str, *rules: str, default: str = '{"verdict": "deny"}') -> str:
    """The text of a user's control: its default, and more rules."""
    return "\n".join([f"package controls.{code}", "", f"default verdict := {default}", "", *rules, ""])


def policies(folder: Path, text: str, name: str = "mine.rego") -> list[Path]:
    """A directory with one control file, as ``policies=`` takes it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8", newline="")
    return [folder]
