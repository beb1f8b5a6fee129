"""One shortening of a stored journal, in a process that can be struck between any two statements. Holds no test.

Like :mod:`tests.faults.turns_that_die`, whose lines it reads and whose answers it gives.
"""

from __future__ import annotations

import os
import sys

from tests.faults.turns_that_die import NAMESPACE, Boundaries, _die, opened

AT = "2026-11-29T12:00:00.000000Z"


def main() -> None:
    for line in sys.stdin:
        kind, where, conversation, place = line.rstrip("\n").split("\t")
        child = os.fork()
        if not child:
            boundaries = Boundaries(int(place), _die)
            view = opened(kind, where, boundaries).within(NAMESPACE)
            view.trim(conversation, through=view.head(conversation).sequence - 3, at=AT)
            os.write(1, b"shortened\n")
            os.write(1, f"places {boundaries.count}\n".encode())
            os._exit(0)
        _, status = os.waitpid(child, 0)
        os.write(1, f"end {status}\n".encode())


if __name__ == "__main__":
    main()
