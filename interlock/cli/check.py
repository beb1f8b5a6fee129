"""``interlock check``: would it load, and what looks wrong although it would."""

from __future__ import annotations

from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

from interlock.assembly import Parts, bundled, outbox_rules, read_parts
from interlock.cli.output import config_argument, console, existing, json_option, print_json
from interlock.errors import InterlockError
from interlock.model.manifest_lint import Finding, lint_manifest, names_nothing
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.lint import constants, lint_bundle
from interlock.policy.rego_tests import find_tests, read_tests


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
        EmbeddedEngine(bundle)
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
    findings = [
        *_shadow(parts, configuration),
        *lint_manifest(parts.manifest),
        *lint_bundle(bundle),
        *names_nothing(constants(bundle), parts.manifest),
    ]
    if as_json:
        shown = [{"rule": one.rule, "where": one.where, "message": one.message} for one in findings]
        print_json({"loads": True, "errors": [], "findings": shown, "revision": bundle.revision})
    else:
        _show(findings)
        own = sum(text.own for text in bundle.controls.values())
        console().print(
            f"loads: {len(parts.manifest)} tools, {own} shipped controls, {len(bundle.controls) - own} of your own,"
            f" revision {bundle.revision[7:19]}; {len(findings)} finding{'' if len(findings) == 1 else 's'}"
        )
    raise SystemExit(1 if findings and strict else 0)


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
