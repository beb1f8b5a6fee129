"""What the cases share: the tools of the stories, an Interlock around them, and two ways to arm a conversation.

Proves nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from interlock import Conversation, Guard, Interlock, Manifest, MemoryJournal, Message, Outcome
from interlock.model.canonical import pack
from interlock.model.entries import Entry, decode
from interlock.model.settings import parse_settings
from interlock.policy.bundle import Bundle, assemble
from interlock.policy.sources import Source, shipped_sources
from interlock.ports import Journal

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = Manifest.load(ROOT / "tests" / "scenarios" / "manifest.toml")

# The control of an operator, up to the body of its only proof.
CONTROL = 'package controls.mine\n\ndefault verdict := {"verdict": "deny"}\n\nverdict := {"verdict": "allow"} if '
EVIL = {"to": "eve@evil.test", "subject": "x", "body": "the plan"}


def locked(manifest: Manifest | Mapping[str, Any] = MANIFEST, **options: Any) -> Interlock:
    """An Interlock with a journal of its own."""
    whole = manifest if isinstance(manifest, Manifest) else Manifest.parse({"version": 1, "tools": dict(manifest)})
    return Interlock(manifest=whole, journal=MemoryJournal(), **options)


@cache
def shared() -> Interlock:
    """The stories' tools under the shipped controls as they come, for every case that changes nothing about them."""
    return locked()


def fresh(lock: Interlock | None = None, typed: str = "") -> Guard:
    """A guard of a new conversation, in which the person may have typed something."""
    return (lock or shared()).guard(Conversation.user(typed) if typed else Conversation.new())


def armed(lock: Interlock | None = None, typed: str = "") -> Guard:
    """A guard of a conversation that has read a stranger's text and private files, by calls that were allowed."""
    guard = fresh(lock, typed)
    assert did(guard, "read_attachment", {"name": "a.pdf"}).executed
    assert did(guard, "read_file", {"path": "plan.txt"}).executed
    assert set(guard.conversation.taint) == {"untrusted:attachment", "private:files"}
    return guard


def did(guard: Guard, name: str, arguments: Any = None, result: Any = "ok", server: str = "") -> Outcome:
    """One call that gives, if it runs, this result; an exception is raised inside the tool."""

    def run(**_: Any) -> Any:
        if isinstance(result, BaseException):
            raise result
        return result

    return guard.call(name, arguments, run=run, server=server)


def rewritten(guard: Guard, *messages: Message) -> None:
    """A host shortens its transcript in place, as compaction does: nothing but these messages is left."""
    guard.conversation.rewrite(messages)


def got(outcome: Outcome) -> tuple[str, str]:
    """Verdict and first code."""
    return outcome.verdict.value, outcome.decision.code


def entries(guard: Guard, journal: Journal) -> list[Entry]:
    """What the journal holds of a conversation."""
    assert isinstance(journal, MemoryJournal)
    return [decode(sealed.body) for sealed in journal.entries(guard.conversation.id)]


class Engine:
    """An engine that says what a function says, under the names of the shipped controls."""

    name = "test"
    revision = "test"
    looks_at = None

    def __init__(self, say: Callable[[bytes], Any]) -> None:
        self.controls = shared().engine.controls
        self._say = say

    def evaluate(self, document: bytes) -> Any:
        """What the function gives, raised if it is an exception."""
        said = self._say(document)
        if isinstance(said, BaseException):
            raise said
        return said


def bundle(*texts: str, **settings: Any) -> Bundle:
    """The shipped controls with those of these files."""
    given = [Source(f"mine/{place}.rego", text) for place, text in enumerate(texts)]
    return assemble([*shipped_sources(), *given], parse_settings(settings))


def all_allow() -> bytes:
    """The answer of an engine in which nothing objects."""
    return pack({code: {"verdict": "allow"} for code in shared().engine.controls})


def mine(folder: Path, body: str, name: str = "mine") -> Path:
    """A folder with one control of the operator, whose only proof has this body."""
    folder.mkdir(parents=True, exist_ok=True)
    text = CONTROL.replace("controls.mine", f"controls.{name}") + "{\n\t" + body + "\n}\n"
    (folder / f"{name}.rego").write_text(text, encoding="utf-8")
    return folder
