"""``python -m interlock.cli``: the same as the ``interlock`` command."""

from __future__ import annotations

from interlock.cli import main

main()
