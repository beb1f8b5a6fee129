"""``interlock hook``, for ``--help``: the command itself never comes here, see :mod:`interlock.start`."""

from __future__ import annotations

from pathlib import Path

import click

from interlock.hook import DEADLINE, HOSTS, main


@click.command()
@click.argument("host", type=click.Choice(HOSTS))
@click.option("--config", type=click.Path(path_type=Path), help="The operator's configuration.")
@click.option("--deadline", type=float, default=DEADLINE, show_default=True, help="Seconds until the call is refused.")
@click.option("--alone", is_flag=True, help="Load everything for this event, instead of asking the resident worker.")
def hook(host: str, config: Path | None, deadline: float, alone: bool) -> None:
    """Answer one event of a coding agent, on standard input. `interlock install` writes who runs this.

    Standard output holds one JSON answer, with exit code 0, or nothing, with exit code 2: the call is refused.
    """
    given = [host, "--deadline", str(deadline), *(["--alone"] if alone else [])]
    main([*given, *(["--config", str(config)] if config else [])])
