"""One lock for the short critical sections of this process, safe across fork.

It guards steps of microseconds (joining an entry to an in-memory journal, binding a conversation). A fork waits for
it, so a child never inherits it locked by a thread that the child does not have.
"""

from __future__ import annotations

import os
import threading

LOCK = threading.RLock()

if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)
