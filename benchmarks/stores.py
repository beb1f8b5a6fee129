"""What a store costs: guarded calls per second, long conversations against short ones, and many conversations at once.

    python -m benchmarks.stores [--json FILE] [--quick] [--postgres DSN]      (TMPDIR says on which disk)

Without a dsn a throw-away PostgreSQL is started, if there is one (`scripts/postgres.py`). Rates depend on the disk and
on who else uses it: they say how stores compare in one run, and nothing about another machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import platform
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from interlock import Conversation, Guard, Interlock, Manifest, MemoryJournal
from interlock.conversations import Conversations
from interlock.model.digests import NO_DIGEST
from interlock.model.entries import Entry, Observed
from interlock.ports import Store
from interlock.stores.memory_store import MemoryStore
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import AT, decided

MANIFEST = Manifest.parse({"version": 1, "tools": {"note": {"returns": ["private:notes"], "egress": "none"}}})
NAMESPACE = "benchmark"


def opened(kind: str, where: str, durability: Any) -> Store:
    if kind == "memory":
        return MemoryStore()
    if kind == "sqlite":
        return SqliteStore(where, durability=durability)
    from interlock.stores.postgres import PostgresStore

    return PostgresStore(where, durability=durability, plaintext=True, connections=4)


def calls_per_second(kind: str, where: str, durability: str, seconds: float) -> float:
    """One process with a conversation of its own: both writes of each call are durable before it goes on."""
    store = opened(kind, where, durability)
    guard = _guard(store, Conversation(namespace=NAMESPACE))
    for _ in range(5):
        guard.call("note", {}, run=str)
    began = time.perf_counter()
    count = 0
    while time.perf_counter() - began < seconds:
        assert guard.call("note", {}, run=str).executed
        count += 1
    rate = count / (time.perf_counter() - began)
    store.close()
    return rate


def _guard(store: Any, conversation: Conversation) -> Guard:
    return Interlock(manifest=MANIFEST, journal=store).guard(conversation)


def rates(kind: str, where: str, durability: str, processes: int, seconds: float) -> float:
    """The median of the processes' rates, all at once."""
    if processes == 1:
        return calls_per_second(kind, where, durability, seconds)
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        jobs = [pool.submit(calls_per_second, kind, where, durability, seconds) for _ in range(processes)]
        return statistics.median(job.result() for job in jobs)


def long_against_short(kind: str, where: str, length: int, calls: int) -> tuple[float, float, float]:
    """Median microseconds of a guarded call after 100 entries and after ``length``, taken in turns; and loading."""
    store = opened(kind, where, "process")
    view = store.within(NAMESPACE)
    guards = []
    for entries in (100, length):
        conversation = Conversation(namespace=NAMESPACE)
        guard = _guard(store, conversation)
        number = 1
        while number * 2 < entries:
            batch: list[Entry] = []
            for _ in range(min(1000, entries // 2)):
                batch += [decided(number), Observed(AT, number, True, NO_DIGEST, 0)]
                number += 1
            view.append(conversation.id, batch)
        guards.append(guard)
    times: list[list[float]] = [[], []]
    for _ in range(calls):
        for guard, taken in zip(guards, times, strict=True):
            began = time.perf_counter()
            guard.call("note", {}, run=str)
            taken.append(time.perf_counter() - began)
    store.close()
    loading = 0.0
    if kind != "memory":  # which nobody loads again
        again = opened(kind, where, "process")
        began = time.perf_counter()
        again.within(NAMESPACE).state(guards[1].conversation.id)
        loading = time.perf_counter() - began
        again.close()
    short, long = (statistics.median(one) * 1e6 for one in times)
    return short, long, loading * 1e3


def resident(kind: str, where: str, conversations: int) -> float:
    """Megabytes of a process that guards so many open conversations, each with a turn behind it."""
    store = opened(kind, where, "process")
    kept = Conversations(store, NAMESPACE)
    lock = Interlock(manifest=MANIFEST, journal=store)
    open_ones = []
    for number in range(conversations):
        stored = kept.new(f"Look at https://site{number}.example/ and note what it says.")
        guard = lock.guard(stored.conversation)
        for _ in range(3):
            guard.call("note", {}, run=str)
        stored.record_turn()
        open_ones.append((stored, guard))
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    store.close()
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _fresh(kind: str, folder: Path, dsn: str, number: list[int]) -> str:
    number[0] += 1
    if kind == "sqlite":
        path = folder / f"{number[0]}.db"
        SqliteStore.migrate(path)
        return str(path)
    if kind == "postgres":
        import psycopg
        from psycopg.conninfo import make_conninfo

        from interlock.stores.postgres import PostgresStore

        name = f"benchmark_{os.getpid()}_{number[0]}"
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        found = make_conninfo(dsn, options=f"-csearch_path={name}")
        PostgresStore.migrate(found, plaintext=True)
        return found
    return ""


def measured(dsn: str, quick: bool) -> dict[str, Any]:
    seconds, length, calls, many = (0.5, 2000, 30, 50) if quick else (4.0, 100_000, 300, 1000)
    kinds = ["memory", "sqlite", *(["postgres"] if dsn else [])]
    found: dict[str, Any] = {"rates": [], "long": [], "resident": []}
    number = [0]
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in kinds:
            for durability in ("full", "process") if kind != "memory" else ("none",):
                where = _fresh(kind, folder, dsn, number)
                one = rates(kind, where, durability, 1, seconds)
                eight = rates(kind, where, durability, 8, seconds)
                found["rates"].append({"store": kind, "durability": durability, "1": one, "8": eight})
                print(f"{kind} {durability}: {one:.0f} and {eight:.0f} calls/s per process", file=sys.stderr)
        for kind in kinds:
            where = _fresh(kind, folder, dsn, number)
            short, long, loading = long_against_short(kind, where, length, calls)
            found["long"].append({"store": kind, "100": short, str(length): long, "loading_ms": loading})
            print(f"{kind}: {short:.0f} and {long:.0f} µs, ratio {long / short:.2f}", file=sys.stderr)
            # In a process of its own, so that it holds nothing else.
            with ProcessPoolExecutor(1, mp_context=spawn) as pool:
                held = pool.submit(resident, kind, _fresh(kind, folder, dsn, number), many).result()
            found["resident"].append({"store": kind, "conversations": many, "MB": held})
            print(f"{kind}: {many} conversations, {held:.0f} MB", file=sys.stderr)
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        found["resident"].append({"store": "(nothing stored)", "conversations": 0, "MB": pool.submit(empty).result()})
    return {**found, "python": platform.python_version(), "cores": os.cpu_count(), "quick": quick}


def empty() -> float:
    """What a process holds that has one conversation in memory: what the others are to be compared with."""
    conversation = Conversation(namespace=NAMESPACE)
    Interlock(manifest=MANIFEST, journal=MemoryJournal()).guard(conversation).call("note", {}, run=str)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def show(found: dict[str, Any]) -> None:
    out = Console(width=120)
    table = Table("store", "durability", "calls/s, 1 process", "calls/s each of 8", title="Guarded calls")
    for one in found["rates"]:
        table.add_row(one["store"], one["durability"], f"{one['1']:.0f}", f"{one['8']:.0f}")
    out.print(table)
    table = Table("store", "entries", "µs per call", "ratio", "loading, ms", title="Long conversations")
    for one in found["long"]:
        length = next(key for key in one if key.isdigit() and key != "100")
        table.add_row(one["store"], "100", f"{one['100']:.0f}", "", "")
        ratio = f"{one[length] / one['100']:.2f}"
        table.add_row(one["store"], length, f"{one[length]:.0f}", ratio, f"{one['loading_ms']:.0f}")
    out.print(table)
    table = Table("store", "open conversations", "resident MB", title="Memory")
    for one in found["resident"]:
        table.add_row(one["store"], str(one["conversations"]), f"{one['MB']:.0f}")
    out.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="short runs, to see that it works")
    parser.add_argument("--postgres", default="", help="a dsn instead of a throw-away server")
    given = parser.parse_args()
    with ExitStack() as stack:
        dsn = given.postgres
        if not dsn and importlib.util.find_spec("psycopg"):
            sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
            import postgres

            if postgres.programs() is not None:
                dsn = stack.enter_context(postgres.Cluster()).dsn
        found = measured(dsn, given.quick)
    show(found)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
