"""What a session file costs, as ratios in one run: sessions of 100, 1,000 and 10,000 messages, there and back.

    python -m benchmarks.sessions [--json FILE] [--quick] [--folder DIR]

Linear means that the time per message stays: ratios are taken of the time per message in a session of N messages to
that in the shortest one of the same run; of what is done once, of the whole time. It is processor time, which a busy
machine does not stretch; what flushes cost on a real disk, the one of ``--folder``, is wall time and shown apart.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from interlock import Conversation, Guard, Interlock, Manifest, MemoryJournal, Message, Session, ToolUse
from interlock.stores.head_file import head_of
from interlock.stores.session_file import Disk, SessionFile

MANIFEST = Manifest.parse(
    {"version": 1, "tools": {"read": {"returns": ["private:files"], "egress": "none", "content": ["path"]}}}
)
TEXT = "A sentence of the kind that a model writes, about as long as this one is. " * 4
TURN = 4  # messages: the person's, a call, its result, the answer


class Unflushed(Disk):
    """Everything but the waiting, so that our own work can be told from the disk's."""

    def sync(self, descriptor: int) -> None:
        pass

    def sync_folder(self, folder: Path) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement of a session with ``messages`` messages.

    Attributes:
        ratio: of the time per message (or, of what is done once, of the time) to that of the shortest session.
    """

    name: str
    messages: int
    milliseconds: float
    per_message_us: float
    ratio: float


ONCE = ("messages_ever", "one more turn, recorded")


def turns(guard: Guard, messages: int, after: Callable[[], object] = lambda: None) -> None:
    """Say so many messages, with one guarded call a turn."""
    conversation = guard.conversation
    for number in range(messages // TURN):
        conversation.say(f"{number}: {TEXT}")
        outcome = guard.call("read", {"path": f"f{number}"}, id=f"c{number}", run=lambda **_: TEXT)
        conversation.push(Message.assistant("", ToolUse(f"c{number}", "read", {"path": f"f{number}"})))
        conversation.push(Message.results(outcome))
        conversation.push(Message.assistant(TEXT))
        after()


def session_in(folder: Path, name: str) -> tuple[Session, Guard]:
    session = Session.create(folder / name, Conversation.new())
    lock = Interlock(manifest=MANIFEST, journal=MemoryJournal())
    return session, lock.guard(session.conversation)


def timed(work: Callable[[], Any], clock: Callable[[], int] = time.process_time_ns) -> tuple[float, Any]:
    """Milliseconds that some work takes, and what it gives."""
    gc.collect()
    begun = clock()
    found = work()
    return (clock() - begun) / 1e6, found


def round_trip(folder: Path, messages: int, repeats: int) -> dict[str, list[float]]:
    """Milliseconds of each part, ``repeats`` times, and the size of the file."""
    found: dict[str, list[float]] = {}

    def keep(name: str, value: float) -> None:
        found.setdefault(name, []).append(value)

    for number in range(repeats):
        lock = Interlock(manifest=MANIFEST, journal=MemoryJournal())
        alone = lock.guard(Conversation.new())
        keep("said and guarded, without a session", timed(lambda g=alone: turns(g, messages))[0])
        session, guard = session_in(folder, f"once {number}")
        keep("said and guarded, then written at once", timed(lambda g=guard, s=session: _at_once(g, s, messages))[0])
        session, guard = session_in(folder, f"turns {number}")
        keep("said, guarded and recorded turn by turn", timed(lambda g=guard, s=session: _by_turn(g, s, messages))[0])
        path = session.path
        taken, session = timed(lambda p=path: Session.load(p))
        assert len(session.conversation) == messages
        assert not session.damage
        keep("load", taken)
        ever, everything = timed(session.messages_ever)
        assert len(everything) == messages
        keep("messages_ever", ever)
        keep("one more turn, recorded", timed(lambda s=session: _one_more(s))[0])
        session.close()
        found["file, kB"] = [(path.stat().st_size + head_of(path).stat().st_size) / 1024]
    return found


def _at_once(guard: Guard, session: Session, messages: int) -> None:
    turns(guard, messages)
    session.close()


def _by_turn(guard: Guard, session: Session, messages: int) -> None:
    before = session.conversation.snapshot()
    turns(guard, messages, lambda: session.record_run(before, session.conversation))
    session.close()


def _one_more(session: Session) -> None:
    before = session.conversation.snapshot()
    session.conversation.say(TEXT)
    session.record_run(before, session.conversation)


def memory(path: Path) -> tuple[float, float]:
    """kB that a loaded session holds, and the most that loading it took."""
    gc.collect()
    tracemalloc.start()
    session = Session.load(path)
    size, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    session.close()
    return size / 1024, peak / 1024


def flushed(folder: Path, writes: int) -> tuple[float, float]:
    """Milliseconds at the median of one acknowledged label on this disk, and of a bare write with fsync beside it."""
    session, guard = session_in(folder, "flushed")
    ours, bare = [], []
    descriptor = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT, 0o600)
    wall = time.perf_counter_ns
    for number in range(writes):
        ours.append(timed(lambda n=number: guard.admit("x", labels=["private:x"], source=f"n{n}"), wall)[0])
        bare.append(timed(lambda n=number: (os.pwrite(descriptor, b"x" * 300, n * 300), os.fsync(descriptor)), wall)[0])
    os.close(descriptor)
    session.close()
    return statistics.median(ours), statistics.median(bare)


def measure(folder: Path, lengths: tuple[int, ...], repeats: int, writes: int) -> tuple[list[Figure], dict[str, Any]]:
    figures: list[Figure] = []
    facts: dict[str, Any] = {}
    ours, bare = flushed(folder, writes)
    facts["one label acknowledged on this disk, ms (two flushes)"] = round(ours, 2)
    facts["a bare write with one fsync beside it, ms"] = round(bare, 2)
    facts["ratio"] = round(ours / bare, 2)
    shortest: dict[str, float] = {}
    _quiet(Unflushed())
    for messages in lengths:
        each = folder / f"{messages}"
        for name, values in round_trip(each, messages, 1 if messages > 1000 else repeats).items():
            best = min(values)
            if name.endswith("kB"):
                facts[f"{name}, {messages:,} messages"] = round(best, 1)
                continue
            per = best / messages * 1000
            counted = best if name in ONCE else per
            figures.append(Figure(name, messages, best, per, counted / shortest.setdefault(name, counted)))
        held, peak = memory(each / "turns 0")
        facts[f"held by a loaded session, kB, {messages:,} messages"] = round(held, 1)
        facts[f"at most while loading it, kB, {messages:,} messages"] = round(peak, 1)
        print(f"  measured: {messages:,} messages", file=sys.stderr)
    facts["python"] = platform.python_version()
    facts["cores"] = os.cpu_count()
    return sorted(figures, key=lambda one: one.name), facts


def _quiet(disk: Disk) -> None:
    for way in (SessionFile.create, SessionFile.load):
        way.__func__.__kwdefaults__["disk"] = disk  # type: ignore[attr-defined]  # the disk is no option of sessions


def show(figures: list[Figure], facts: dict[str, Any]) -> None:
    table = Table(title="Sessions there and back: processor time, without the waiting for the disk")
    for title in ("", "messages", "ms", "µs per message", "ratio to the shortest"):
        table.add_column(title, justify="left" if not title else "right")
    for one in figures:
        table.add_row(
            one.name, f"{one.messages:,}", f"{one.milliseconds:.1f}", f"{one.per_message_us:.1f}", f"{one.ratio:.2f}"
        )
    console = Console(width=120)
    console.print(table)
    for name, value in facts.items():
        console.print(f"{name}: {value}", highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--folder", type=Path, help="where to write the sessions (a temporary folder otherwise)")
    parser.add_argument("--quick", action="store_true", help="short sessions: does it run at all?")
    options = parser.parse_args()
    lengths, repeats, writes = ((40, 200), 1, 10) if options.quick else ((100, 1000, 10_000), 3, 100)
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        figures, facts = measure(folder, lengths, repeats, writes)
    finally:
        shutil.rmtree(folder)
    show(figures, facts)
    if options.json:
        options.json.write_text(
            json.dumps({"figures": [asdict(one) for one in figures], "facts": facts}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
