"""``interlock init``: a starter directory that passes ``check`` and ``test`` as it is written."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click
from rich.markup import escape

from interlock.cli.output import console
from interlock.errors import Misconfigured

# Where each file of the starter goes.
_FILES = {
    "interlock.toml": "interlock.toml",
    "business_hours.rego": "controls/business_hours/business_hours.rego",
    "business_hours_test.rego": "controls/business_hours/business_hours_test.rego",
    "business_hours.md": "controls/business_hours/business_hours.md",
    "samples.json": "controls/business_hours/samples.json",
    "settings.schema.json": "controls/settings.schema.json",
    "mail.yaml": "scenarios/mail.yaml",
    "ci.yml": "ci/interlock.yml",
}


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), default=Path())
def init(directory: Path) -> None:
    """Write a starter into DIRECTORY: configuration, one control with test, page and samples, a scenario, a CI job.

    Nothing that exists is overwritten.
    """
    there = [place for place in _FILES.values() if (directory / place).exists()]
    if there:
        raise Misconfigured(f"{directory / there[0]} exists already; nothing was written")
    starter = files("interlock.cli.starter")
    for name, place in _FILES.items():
        target = directory / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(starter.joinpath(name).read_text(encoding="utf-8"), encoding="utf-8")
        console().print(f"wrote {escape(str(target))}")
    where = "" if directory == Path() else f" {escape(str(directory / 'interlock.toml'))}"
    console().print(f"\nnext: interlock check{where}, interlock test{where}, interlock prove{where}")
