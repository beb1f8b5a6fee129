"""What is measured: a preset of the shipped policies, a manifest, and somebody who answers questions, or nobody."""

from __future__ import annotations

import json
import logging
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.agentdojo.gates import APPROVERS, AllowAll, DenyAll, Gate, Guarded, Person
from benchmarks.agentdojo.replay import Watch
from interlock import Interlock, MemoryJournal
from interlock.ports import Journal

FOLDER = Path(__file__).parent / "suites"

# Every control that asks or denies on its own, with what a preset is without it. Read by the ablation.
STEERED = (
    "destructive",
    "steered_destination",
    "steered_object",
    "steered_party",
    "steered_link",
    "self_only",
    "split_exfiltration",
)


@dataclass(frozen=True)
class Setup:
    """One row of a table.

    Attributes:
        preset: of the shipped policies; `allow-all` and `deny-all` are no policies but the two ends of the scale.
        settings: that are written beside the preset.
        internal: the manifest calls colleagues' chat messages internal.
        approver: who answers what is asked.
        worlds: `clean`, `poisoned`, or both; none for honest work only.
    """

    name: str
    preset: str
    settings: dict[str, Any] = field(default_factory=dict, hash=False)
    internal: bool = False
    approver: str = "none"
    worlds: tuple[str, ...] = ("clean",)

    def differs(self, suite: str) -> bool:
        """Is this suite another than it is without the variant? What is not need not be measured twice."""
        return not self.internal or suite == "slack"

    def manifests(self, suite: str) -> list[Path]:
        """The files that say what the suite's tools do."""
        files = [FOLDER / suite / "manifest.toml"]
        if suite == "slack":
            files.append(FOLDER / suite / ("messages_internal.toml" if self.internal else "messages.toml"))
        return files

    def configuration(self, suite: str) -> dict[str, Any]:
        """The operator's `interlock.toml`, as data."""
        known = tomllib.loads((FOLDER / suite / "operator.toml").read_text(encoding="utf-8"))
        settings = {**known, "preset": self.preset, **self.settings}
        return {"version": 1, "manifest": [str(one) for one in self.manifests(suite)], "settings": settings}

    def lock(self, suite: str, journal: Journal | None = None, person: Person | None = None) -> Interlock:
        """The interlock that the operator's files ask for."""
        logging.getLogger("interlock").setLevel(logging.ERROR)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "interlock.yaml"
            file.write_text(json.dumps(self.configuration(suite)), encoding="utf-8")  # JSON is YAML
            return Interlock.load(file, journal=journal, approver=person)

    def gates(self, suite: str) -> tuple[Callable[[str], Gate], Watch]:
        """What makes the gate of one conversation, and what notices leaving credentials."""
        if self.preset == "allow-all":
            return lambda _: AllowAll(), Watch()
        if self.preset == "deny-all":
            return lambda _: DenyAll(), Watch()
        lock, journal, person = _kept(self, suite)

        def conversation(prompt: str) -> Gate:
            journal.renew()
            return Guarded(lock, prompt, person)

        return conversation, watch(lock)


class Renewed:
    """A journal in memory that holds one conversation at a time; thousands would fill it."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Forget the last conversation: it is over."""
        self._inner = MemoryJournal()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@cache
def _kept(setup: Setup, suite: str) -> tuple[Interlock, Renewed, Person]:
    journal, person = Renewed(), Person(APPROVERS[setup.approver])
    return setup.lock(suite, journal, person), journal, person


def watch(lock: Interlock) -> Watch:
    """Which tools bring credentials, and with which something leaves, as the manifest has it."""
    secret = {one.id.name for one in lock.manifest if "private:credentials" in map(str, one.returns)}
    sends = {one.id.name for one in lock.manifest if one.egress.value != "none"}
    return Watch(frozenset(secret), frozenset(sends))


BOTH = ("clean", "poisoned")
ASK_ALL = {"trifecta": "ask", "open_channel": "ask", "secret_read": "ask", "secret_egress": "ask"}

ENDS = (Setup("no interlock", "allow-all", worlds=BOTH), Setup("nothing runs", "deny-all"))
PRESETS = (
    Setup("strict", "strict", worlds=BOTH),
    Setup("strict, chat internal", "strict", internal=True, worlds=BOTH),
    Setup("convenient", "convenient", worlds=BOTH),
    Setup("convenient, chat internal", "convenient", internal=True, worlds=BOTH),
    Setup("trifecta-only", "trifecta-only"),
)
LOCKDOWN = (Setup("lockdown", "lockdown"),)
PEOPLE = (
    Setup("strict, attentive", "strict", approver="attentive", worlds=BOTH),
    Setup("strict, rubber stamp", "strict", approver="rubber stamp", worlds=BOTH),
    Setup("strict, all asked, nobody", "strict", settings=ASK_ALL, worlds=BOTH),
    Setup("strict, all asked, attentive", "strict", settings=ASK_ALL, approver="attentive", worlds=BOTH),
    Setup("strict, all asked, rubber stamp", "strict", settings=ASK_ALL, approver="rubber stamp", worlds=BOTH),
)
ABLATION = tuple(
    Setup(f"strict without {control}", "strict", settings={control: "off"}) for control in (*STEERED, "secret_read")
)
EVERY = (*ENDS, *PRESETS, *PEOPLE, *LOCKDOWN, *ABLATION)
