"""A host that delivers what is released, as a program of its own. Holds no test.

``python -m tests.outbox.senders WHERE FILE ROUNDS [die]`` waits for a line, delivers, and writes one line into FILE for
each call that ran; with ``die`` the process ends in the middle of the first one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from interlock.gate.conversation import SystemClock
from tests.approvals.consumers import opened
from tests.outbox.box import staging


def main(arguments: list[str]) -> None:
    where, file, rounds, *rest = arguments
    store = opened(where)
    box = staging(store, SystemClock()).outbox()  # type: ignore[arg-type]  # a clock all the same

    def run(name: str, given: dict[str, Any]) -> str:
        with Path(file).open("a") as lines:
            lines.write(f"{name} {given['body']}\n")
        if rest:
            os._exit(9)
        return "sent"

    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(int(rounds)):
        box.deliver(run)
    print("done", flush=True)
    store.close()


if __name__ == "__main__":
    main(sys.argv[1:])
