"""What the gate costs per call, as ratios in one run.

    python -m benchmarks.gate [--json FILE] [--svg FILE] [--quick]

Every figure is taken in this process, one after the other; the bare evaluation that it is divided by is taken in the
same run. Numbers of another machine or another hour mean nothing beside these.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from interlock import Call, Conversation, Guard, Interlock, Manifest, MemoryJournal, ToolResult
from interlock.model.settings import parse_settings
from interlock.policy.bundle import assemble
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.sources import shipped_sources
from interlock.scenarios import RecordingEngine

MANIFEST = Manifest.parse(
    {
        "version": 1,
        "tools": {
            "note": {"returns": [], "egress": "none", "content": ["text"]},
            "read": {"returns": ["private:files"], "egress": "none", "content": ["path"]},
            "fetch": {"returns": ["untrusted:web"], "egress": "chosen", "destinations": {"url": "url"}},
            "send": {"returns": [], "egress": "chosen", "destinations": {"to": "email"}, "content": ["body"]},
        },
    }
)
# 1 kB of arguments to somebody whom the person named, in a conversation that has every leg.
ARGUMENTS = {"to": "bob@colleagues.example", "body": "x" * 960}


class Forgetful(EmbeddedEngine):
    """The embedded engine, asked for every call: nothing is remembered."""

    def __init__(self) -> None:
        super().__init__(assemble(shipped_sources(), parse_settings({})))
        self.looks_at = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement in microseconds per call. ``over`` is what its ratio is taken to."""

    name: str
    p50: float
    p99: float
    samples: int
    ratio: float | None = None
    over: str = ""


def timed(work: Callable[[], object], samples: int) -> tuple[float, float]:
    """Median and 99th percentile of single calls, in microseconds. Warmed up, with the collector as it is in use."""
    for _ in range(max(50, samples // 20)):
        work()
    taken = []
    clock = time.perf_counter_ns
    for _ in range(samples):
        begun = clock()
        work()
        taken.append(clock() - begun)
    return statistics.median(taken) / 1000, statistics.quantiles(taken, n=100)[98] / 1000


def send(**_: object) -> str:
    return "sent"


def prepared(lock: Interlock, earlier: int = 0) -> Guard:
    """A guard of a conversation with every leg but a standing channel, and some calls behind it."""
    guard = lock.guard(Conversation.user("Mail the summary of https://example.com/a to bob@colleagues.example"))
    guard.call("fetch", {"url": "https://example.com/a"}, run=lambda url: url)
    guard.call("read", {"path": "a"}, run=lambda path: path)
    assert guard.preview(Call("send", ARGUMENTS)).verdict == "allow"
    for number in range(earlier):
        guard.call("note", {"text": f"n{number}"}, run=lambda text: text)
    return guard


def the_document(lock: Interlock) -> bytes:
    """The document that the measured call is decided on."""
    recording = RecordingEngine(lock.engine)
    guard = prepared(Interlock(manifest=MANIFEST, engine=recording, journal=MemoryJournal()))
    guard.preview(Call("send", ARGUMENTS))
    return recording.documents[-1][0]


def measure(samples: int, lengths: tuple[int, ...]) -> tuple[list[Figure], dict[str, Any]]:
    """All figures, and facts that are not times."""
    journal = MemoryJournal()
    lock = Interlock(manifest=MANIFEST, journal=journal)
    forgetful = Interlock(manifest=MANIFEST, engine=Forgetful(), journal=MemoryJournal())
    found: list[Figure] = []

    document = the_document(lock)
    engine = lock.engine
    bare = timed(lambda: json.loads(engine.evaluate(document)), samples)
    found.append(Figure("bare evaluation, JSON both ways", *bare, samples))

    def figure(
        name: str, work: Callable[[], object], over: tuple[float, str] | None = None, count: int = samples
    ) -> float:
        p50, p99 = timed(work, count)
        ratio = None if over is None else p50 / over[0]
        found.append(Figure(name, p50, p99, count, ratio, "" if over is None else over[1]))
        progress(name)
        return p50

    call = figure("bare call of the tool", lambda: send(**ARGUMENTS))
    guard = prepared(lock)
    once = figure(
        "guarded call, remembered", lambda: guard.call("send", ARGUMENTS, run=send), (bare[0], "bare evaluation")
    )
    other = prepared(forgetful)
    figure("guarded call, evaluated", lambda: other.call("send", ARGUMENTS, run=send), (bare[0], "bare evaluation"))
    figure("preview, remembered", lambda: guard.preview(Call("send", ARGUMENTS)), (once, "guarded call"))

    by_length = {}
    for length in lengths:
        long = prepared(lock, length)
        name = f"after {length:,} earlier calls"
        over = (by_length[lengths[0]], f"after {lengths[0]:,}") if by_length else None
        by_length[length] = figure(name, lambda g=long: g.call("send", ARGUMENTS, run=send), over)  # type: ignore[misc]

    for size in (1, 100):
        text = "y" * 1024 * size
        figure(f"observing {size} kB, with propose", lambda t=text: _observed(guard, t))  # type: ignore[misc]

    found.append(asyncio.run(_async(lock, samples, once)))
    progress("async")
    for name, guards in (
        ("8 threads, 8 conversations, per call", [prepared(lock) for _ in range(8)]),
        ("8 threads, 1 conversation, per call", [prepared(lock)] * 8),
    ):
        each = _threads(guards, samples // 4)
        found.append(Figure(name, each, each, samples // 4 * 8, each / once, "guarded call"))
        progress(name)

    facts = {
        "bare call of the tool, µs": round(call, 3),
        "import interlock beyond the interpreter, ms": _import_time("from interlock import Interlock"),
        "interlock --version beyond the interpreter, ms": _import_time(
            "from interlock.cli import main\ntry: main(['--version'])\nexcept SystemExit: pass"
        ),
        "first Interlock() in a process, ms": _import_time(
            "from interlock import Interlock, Manifest\nInterlock(manifest=Manifest.parse({'version': 1, 'tools': {'a':"
            " {'returns': [], 'egress': 'none'}}}))"
        ),
        f"memory per conversation after {lengths[-1]:,} calls, kB": _memory(lock, lengths[-1]),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    return found, facts


def _observed(guard: Guard, text: str) -> object:
    ticket = guard.propose(Call("note", {"text": "n"}, id="n"))
    return guard.observe(ticket, "n", ToolResult(text))


async def _async(lock: Interlock, samples: int, once: float) -> Figure:
    async def tool(**_: object) -> str:
        return "sent"

    guard = prepared(lock)
    taken = []
    for number in range(samples + 50):
        begun = time.perf_counter_ns()
        await guard.acall("send", ARGUMENTS, run=tool)
        if number >= 50:
            taken.append(time.perf_counter_ns() - begun)
    p50 = statistics.median(taken) / 1000
    return Figure(
        "guarded call, async", p50, statistics.quantiles(taken, n=100)[98] / 1000, samples, p50 / once, "sync"
    )


def _threads(guards: list[Guard], each: int) -> float:
    """Wall time per call over all threads: they share one interpreter, so 1.0 of the sync call is the best there is."""

    def work(guard: Guard) -> None:
        for _ in range(each):
            guard.call("send", ARGUMENTS, run=send)

    threads = [threading.Thread(target=work, args=(guard,)) for guard in guards]
    begun = time.perf_counter_ns()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return (time.perf_counter_ns() - begun) / 1000 / (each * len(guards))


def _import_time(code: str) -> float:
    """Milliseconds that a fresh interpreter takes for some code beyond an empty one; the best of seven."""

    def best(program: str) -> float:
        taken = []
        for _ in range(7):
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
            taken.append(time.perf_counter() - begun)
        return min(taken)

    return round((best(code) - best("pass")) * 1000, 1)


def _memory(lock: Interlock, calls: int) -> float:
    gc.collect()
    tracemalloc.start()
    guard = prepared(lock, calls)
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert guard.conversation.taint
    return round(size / 1024, 1)


def progress(name: str) -> None:
    print(f"  measured: {name}", file=sys.stderr)


def show(figures: list[Figure], facts: dict[str, Any]) -> None:
    table = Table(title="Cost of one guarded call with 1 kB of arguments, journal in memory (µs)")
    for title in ("", "p50", "p99", "ratio", "to"):
        table.add_column(title, justify="left" if title in ("", "to") else "right")
    for one in figures:
        ratio = "" if one.ratio is None else f"{one.ratio:.2f}"
        table.add_row(one.name, f"{one.p50:.1f}", f"{one.p99:.1f}", ratio, one.over)
    console = Console(width=110)
    console.print(table)
    for name, value in facts.items():
        console.print(f"{name}: {value}", highlight=False)


def svg(figures: list[Figure]) -> str:
    """A bar chart: median as a bar, 99th percentile as a line at its end."""
    shown = [one for one in figures if one.p50 > 1]
    widest = max(one.p99 for one in shown)
    row, left, width = 26, 290, 520
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{row * len(shown) + 50}">',
        "<style>text { font: 13px sans-serif }</style>",
        '<text x="8" y="20">Microseconds per call: median (bar), 99th percentile (line)</text>',
    ]
    for place, one in enumerate(shown):
        y = 36 + place * row
        bar, line = one.p50 / widest * width, one.p99 / widest * width
        lines += [
            f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{one.name}</text>',
            f'<rect x="{left}" y="{y + 3}" width="{bar:.1f}" height="14" fill="#4477aa"/>',
            f'<line x1="{left + bar:.1f}" x2="{left + line:.1f}" y1="{y + 10}" y2="{y + 10}" stroke="#aa3377"/>',
            f'<text x="{left + line + 6:.1f}" y="{y + 14}">{one.p50:.0f} / {one.p99:.0f}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--svg", type=Path, help="write the chart to this file")
    parser.add_argument("--quick", action="store_true", help="few samples: does it run at all?")
    options = parser.parse_args()
    samples, lengths = (300, (10, 100)) if options.quick else (5000, (10, 1000, 10_000))
    figures, facts = measure(samples, lengths)
    show(figures, facts)
    if options.json:
        options.json.write_text(
            json.dumps({"figures": [asdict(one) for one in figures], "facts": facts}, indent=2) + "\n"
        )
    if options.svg:
        options.svg.write_text(svg(figures))


if __name__ == "__main__":
    main()
