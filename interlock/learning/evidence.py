"""What records show: every call with what the policy would say of it today, and whom it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from interlock.assembly import LocalFiles, Parts, bundled, interlock_over
from interlock.learning.records import Record
from interlock.model.canonical import unpack
from interlock.model.decisions import Verdict
from interlock.model.digests import Digest, digest
from interlock.policy.embedded import EmbeddedEngine
from interlock.replay import Assumptions, Noticed, Side, replay
from interlock.replay.player import Ticking
from interlock.scenarios import RecordingEngine

# Who vouches already; and who has named it so that nobody should.
VOUCHED: Final = frozenset({"user", "operator", "trusted"})
STRANGERS: Final = frozenset({"untrusted", "mixed"})


@dataclass(frozen=True, slots=True)
class Seen:
    """One call of a record, judged today.

    Attributes:
        document: what the policy was asked; None when the call was refused before.
        approved: a person said yes to this very call, ``refused`` no.
    """

    record: str
    number: int
    tool: str
    verdict: Verdict
    codes: tuple[str, ...]
    document: Mapping[str, Any] | None
    approved: bool
    refused: bool

    @property
    def destinations(self) -> Sequence[Mapping[str, Any]]:
        return () if self.document is None else self.document["call"]["destinations"]

    @property
    def loose(self) -> list[Mapping[str, Any]]:
        """Receivers that nobody vouches for."""
        return [one for one in self.destinations if one["origin"] not in VOUCHED]

    @property
    def steered(self) -> bool:
        """Did a stranger name a receiver, does one talk back, or did a person say no? Then it must stay refused."""
        return self.refused or any(one["origin"] in STRANGERS or one["talks_back"] for one in self.destinations)


def survey(records: Sequence[Record], parts: Parts, now: datetime, folder: Path) -> list[Seen]:
    """Replay all records that have messages; every call in order, by record."""
    enforcing = replace(parts, mode="enforce")
    bundle = bundled(enforcing)[1]
    found: list[Seen] = []
    for record in records:
        if record.talk is None:
            continue
        engine, clock = RecordingEngine(EmbeddedEngine(bundle, ask_samples=False)), Ticking(now)
        lock = interlock_over(enforcing, engine, clock, LocalFiles(folder))
        lines = [line for (line,) in replay(record.talk, [Side(lock, clock)], Assumptions(), Noticed())]
        documents = {digest("document", one): one for one, _ in engine.documents}
        for place, line in enumerate(lines, 1):
            raw = documents.get(Digest(line.document))
            document = None if raw is None else unpack(raw)
            call = "" if document is None else document["call"]["digest"]
            found.append(
                Seen(
                    record.name,
                    place,
                    line.tool,
                    line.verdict,
                    line.codes,
                    document,
                    call in record.approved,
                    call in record.refused,
                )
            )
    return found
