"""``interlock demo``: an agent with real tools is attacked twice, without Interlock and with it.

Everything is real but the model: pages, files, mail and the attacker's server are on loopback, and what has left is
read off the receivers. Needs no key, no network and nothing that runs beforehand.
"""

from __future__ import annotations

import json
import time

import click

from interlock.cli.demo.scenarios import STORIES


@click.command()
@click.option("--json", "as_data", is_flag=True, help="Print what happened as JSON.")
@click.option(
    "--scenario",
    "names",
    metavar="NAME",
    multiple=True,
    type=click.Choice(list(STORIES)),
    help=f"Play only this story; may be given again. One of {', '.join(STORIES)}.",
)
@click.pass_context
def demo(ctx: click.Context, as_data: bool, names: tuple[str, ...]) -> None:
    """Attack an agent that has real tools, without Interlock and with it.

    Exit code 0: every attack got the secret out without Interlock and none with it, and all honest work was done alike
    in both runs. Exit code 1: it was not so; standard error says which story broke which promise.
    """
    # Imported here so that --help needs neither the extra nor the time.
    from rich.console import Console

    from interlock.cli.demo.show import as_json, tell
    from interlock.cli.demo.stage import play

    start = time.perf_counter()
    results = list(play(dict.fromkeys(names or STORIES)))
    if as_data:
        click.echo(json.dumps(as_json(results), indent=2))
    else:
        tell(Console(highlight=False), results, time.perf_counter() - start, every_story=bool(names))
    broken = [f"{one.scenario.name}: {promise}" for one in results for promise in one.broken]
    for line in broken:
        click.echo(f"interlock: the demo does not show what it promises: {line}", err=True)
    ctx.exit(1 if broken else 0)
