"""What commands share: a console for people, JSON for machines, and where files are looked for."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from interlock.errors import Misconfigured

config_argument = click.argument(
    "configuration", type=click.Path(path_type=Path), default=Path("interlock.toml"), required=False
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")


def console(*, stderr: bool = False) -> Console:
    """A console that honours NO_COLOR and pipes; at a pipe it is wide enough that no message is broken."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else 200, highlight=False, soft_wrap=not stream.isatty())


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def existing(path: Path) -> Path:
    """A configuration that must be there.

    Raises:
        Misconfigured: it is not; the message says how to begin.
    """
    if not path.is_file():
        raise Misconfigured(f"{path}: no such file; `interlock init` writes a starter, or name another file")
    return path
