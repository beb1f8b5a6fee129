"""What provenance costs: deciding after 10 and after 10,000 messages of 2 kB, observing per kB, and memory.

    python -m benchmarks.provenance [--json FILE] [--quick]

The conversation reads mail: each message is 2 kB of a stranger's text with addresses, links and names in it, and has a
sender that the provider fills. Decided is a send to somebody whom a trusted directory named, with a link in its text
and an attached file, so that every table of the index is asked. Figures are CPU time of the thread, medians of one
run; ratios are what counts.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from interlock import Call, Conversation, Guard, Interlock, Manifest, MemoryJournal
from interlock.model.digests import Digest
from interlock.model.fields import look_at
from interlock.model.links import in_text
from interlock.model.marks import person_marks
from interlock.model.provenance import EMPTY, MAX_LAYER, MAX_LAYERS, Provenance, Stack, hearing, saying, vouching
from interlock.model.results import text_for_model
from interlock.model.state import State
from interlock.model.tools import ToolId

MAIL = {"sender": "metadata", "body": "untrusted"}
MANIFEST = Manifest.parse(
    {
        "version": 1,
        "tools": {
            "read_mail": {"returns": ["untrusted:mail", "private:mail"], "egress": "none", "fields": MAIL},
            "plain_mail": {"returns": ["private:mail"], "egress": "none"},
            "directory": {"returns": [], "egress": "none", "fields": {"**": "trusted"}},
            "send": {
                "returns": [],
                "egress": "chosen",
                "destinations": {"to": "email"},
                "objects": {"file": "id:file"},
                "content": ["body"],
            },
        },
    }
)
SEND = Call("send", {"to": "ann@staff.example", "file": "13", "body": "See https://corp.example/plan today."})


class Writer:
    """Mail as strangers write it: words of a large vocabulary, with addresses and links among them."""

    def __init__(self, seed: int = 7) -> None:
        self._chance = random.Random(seed)
        self._words = [
            f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("a", "ei", "o", "u") for c in ("n", "rt", "l", "sk")
        ]

    def letter(self, size: int = 2048) -> dict[str, str]:
        """One message."""
        parts: list[str] = []
        length = 0
        while length < size:
            word = self._word()
            parts.append(word)
            length += len(word) + 1
        return {"sender": f"{self._word()}@{self._word()}.example", "body": " ".join(parts)[:size]}

    def _word(self) -> str:
        one = self._chance.choice(self._words) + self._chance.choice(self._words)
        roll = self._chance.random()
        if roll < 0.01:
            return f"https://{one}.example/{self._chance.randrange(10**6)}"
        return f"{one}@mail.example" if roll < 0.02 else one


def microseconds(run: Callable[[], object], rounds: int, best_of: int = 1) -> float:
    """Median of single runs; of several measurements the best, since the machine has other work."""
    found = []
    for _ in range(best_of):
        times = []
        for _ in range(rounds):
            begin = time.thread_time_ns()
            run()
            times.append(time.thread_time_ns() - begin)
        found.append(statistics.median(times) / 1000)
    return min(found)


def read(guard: Guard, writer: Writer, number: int, tool: str = "read_mail") -> None:
    for _ in range(number):
        guard.call(tool, {}, run=writer.letter)


def opened() -> tuple[Guard, Conversation]:
    lock = Interlock(manifest=MANIFEST, journal=MemoryJournal())
    conversation = Conversation.user("Send file 13 and https://corp.example/plan to Ann when you have read my mail.")
    guard = lock.guard(conversation)
    guard.call("directory", {}, run=lambda: [{"name": "Ann", "address": "ann@staff.example"}])
    return guard, conversation


def index_bytes(index: Provenance) -> int:
    """Memory of a copy of the index that shares nothing."""
    gc.collect()
    tracemalloc.start()
    copied = replace(
        index,
        heard=bytes(bytearray(index.heard)),
        said=bytes(bytearray(index.said)),
        trusted=_copied(index.trusted),
        metadata=_copied(index.metadata),
        records=_copied(index.records),
    )
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert copied is not None
    return size


def _copied(stack: Stack) -> Stack:
    return tuple({Digest(f"{key}\0"[:-1]): copy.deepcopy(one) for key, one in layer.items()} for layer in stack)


def full_index() -> Provenance:
    """As large as an index ever gets: every layer of every stack full."""
    index = saying(hearing(EMPTY, "-"), "AAAAAA==")
    for number in range(MAX_LAYERS + 1):
        marks = [f"{number:011d}{place:011d}" for place in range(MAX_LAYER)]
        values = [f"{letter}{one} AQAAAA==" for letter in "tm" for one in marks]
        index = vouching(index, number, values, [f"file {one} {one}" for one in marks])
    return index


def measured(quick: bool) -> dict[str, Any]:
    rounds, long = (200, 1000) if quick else (1000, 10_000)
    writer, console = Writer(), Console(stderr=True)
    figures: dict[str, Any] = {"python": sys.version.split()[0], "messages": long}
    guard, conversation = opened()
    read(guard, writer, 10)
    console.print("deciding after 10 messages", style="dim")
    figures["decide after 10, µs"] = microseconds(lambda: guard.preview(SEND), rounds, 5)
    console.print(f"reading {long} messages", style="dim")
    begin = time.thread_time()
    read(guard, writer, long - 10)
    figures["one message read, whole call, µs"] = (time.thread_time() - begin) / (long - 10) * 1e6
    figures[f"decide after {long}, µs"] = microseconds(lambda: guard.preview(SEND), rounds, 5)
    figures["ratio"] = figures[f"decide after {long}, µs"] / figures["decide after 10, µs"]
    figures["verdict"] = guard.preview(SEND).verdict.value
    figures["index after them, kB"] = index_bytes(conversation.state.provenance) / 1024
    figures["largest index, kB"] = index_bytes(full_index()) / 1024
    letter = writer.letter(16 << 10)
    spec = MANIFEST.spec(ToolId("", "read_mail"))
    text = text_for_model(letter)
    looking = microseconds(lambda: look_at(spec, {}, letter, text, (), failed=False), rounds)
    seen = look_at(spec, {}, letter, text, (), failed=False)
    folding = microseconds(lambda: hearing(State().provenance, seen.heard), rounds)
    figures["looking at a result, µs per kB"] = looking / 16
    figures["remembering it, µs"] = folding
    figures["looking for links, µs per kB"] = microseconds(lambda: list(in_text(letter["body"])), rounds // 10) / 16
    typed = "Please send the minutes of the meeting with Alice to bob@corp.example and delete file 13. " * 11
    figures["typed text, µs per kB"] = microseconds(lambda: person_marks(typed), rounds // 10) * 1024 / len(typed)
    plain, _ = opened()
    read(plain, writer, 200, "plain_mail")
    begin = time.thread_time()
    read(plain, writer, 500, "plain_mail")
    figures["one message read without provenance, whole call, µs"] = (time.thread_time() - begin) / 500 * 1e6
    return figures


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", type=Path, help="write the figures there")
    arguments.add_argument("--quick", action="store_true", help="fewer messages and rounds")
    given = arguments.parse_args()
    figures = measured(given.quick)
    table = Table("figure", "value")
    for name, value in figures.items():
        table.add_row(name, f"{value:.2f}" if isinstance(value, float) else str(value))
    Console().print(table)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
