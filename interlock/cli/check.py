"""``interlock check``: would it load, and what looks wrong although it would."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape
from rich.table import Table

from interlock.assembly import Parts, bundled, outbox_rules, read_parts
from interlock.cli.output import config_argument, console, existing, json_option, print_json
from interlock.errors import InterlockError
from interlock.model.manifest_lint import Finding, lint_manifest, names_nothing
from interlock.policy.choice import chosen_engine, opa_engine
from interlock.policy.lint import constants, lint_bundle
from interlock.policy.rego_tests import find_tests, read_tests

if TYPE_CHECKING:
    from interlock.policy.bundle import Bundle
    from interlock.policy.opa_probe import Probe


@click.command()
@config_argument
@click.option("--workspace", type=click.Path(path_type=Path), help="A narrowing file to check together with it.")
@click.option("--strict", is_flag=True, help="Findings fail too, not only errors.")
@json_option
def check(configuration: Path, workspace: Path | None, strict: bool, as_json: bool) -> None:
    """Check CONFIGURATION (interlock.toml): everything that would refuse to load, then everything that looks wrong.

    Exit code 0: it loads; 1: it loads, but there are findings and --strict was given; 2: it does not load.
    """
    try:
        parts = read_parts(existing(configuration), workspace)
        _, bundle = bundled(parts)
        chosen_engine(parts.engine, parts.folder, bundle, _unheard)
        outbox_rules(parts)
        for one in (*parts.policies, *parts.guests):
            if one.is_dir():
                find_tests(read_tests(one))  # a control in a file named *_test.rego would be loaded by nobody
    except InterlockError as error:
        if as_json:
            print_json({"loads": False, "errors": str(error).splitlines(), "findings": []})
        else:
            for line in str(error).splitlines():
                console().print(f"[red]error[/red] {escape(line)}")
        raise SystemExit(2) from None
    found = _probed(parts, bundle)
    findings = [
        *(Finding("engine", "engine.url", one) for one in (found.problems if found else ())),
        *_shadow(parts, configuration),
        *lint_manifest(parts.manifest),
        *lint_bundle(bundle),
        *names_nothing(constants(bundle), parts.manifest),
    ]
    if as_json:
        shown = [{"rule": one.rule, "where": one.where, "message": one.message} for one in findings]
        told = {"loads": True, "errors": [], "findings": shown, "revision": bundle.revision}
        print_json({**told, "engine": asdict(found)} if found else told)
    else:
        _show(findings)
        if found and found.version:
            console().print(
                f"OPA {escape(found.version)} at {escape(found.url)} answers from"
                f" {escape(found.revision) or 'no revision'}, {'with' if found.logged else 'without'} a decision log,"
                f" in {found.milliseconds:.1f} ms"
            )
        own = sum(text.own for text in bundle.controls.values())
        console().print(
            f"loads: {len(parts.manifest)} tools, {own} shipped controls, {len(bundle.controls) - own} of your own,"
            f" revision {bundle.revision[7:19]}; {len(findings)} finding{'' if len(findings) == 1 else 's'}"
        )
    raise SystemExit(1 if findings and strict else 0)


def _probed(parts: Parts, bundle: Bundle) -> Probe | None:
    """What an OPA server says, if one was chosen. That it is out is a finding: an agent would start, and be denied."""
    if parts.engine is None or parts.engine.kind != "opa":
        return None
    from interlock.policy.opa_probe import probe

    return probe(opa_engine(parts.engine, parts.folder, bundle, _unheard))


def _unheard(kind: str, problem: str) -> None:
    """The probe tells it."""


def _shadow(parts: Parts, configuration: Path) -> list[Finding]:
    if parts.mode != "shadow":
        return []
    return [
        Finding("shadow-mode", f"{configuration}: mode", "decisions are recorded and not enforced: every call runs")
    ]


def _show(findings: list[Finding]) -> None:
    if not findings:
        return
    table = Table(show_edge=False, pad_edge=False)
    for title in ("finding", "where", "what"):
        table.add_column(title, overflow="fold")
    for one in findings:
        table.add_row(f"[yellow]{one.rule}[/yellow]", escape(one.where), escape(one.message))
    console().print(table)
