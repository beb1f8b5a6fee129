"""``interlock prove``: laws of the controls on every abstract document, and of the manifest on every sequence."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn

from interlock.assembly import bundled, read_parts
from interlock.cli.output import config_argument, console, existing, json_option, print_json
from interlock.model.manifest import Manifest
from interlock.model.settings import parse_settings
from interlock.policy.bundle import Bundle, assemble
from interlock.policy.counterexamples import as_scenario, leak_scenario
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.prove import Counterexample, Proof, Search, prove_controls, prove_no_leak, search_sequences
from interlock.policy.sources import shipped_sources


@click.command()
@config_argument
@click.option("--shipped", is_flag=True, help="Prove the shipped controls, without any configuration.")
@click.option("--only", multiple=True, metavar="CODE", help="Of the controls, prove this one; may be given again.")
@click.option(
    "--write",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write each counterexample as a scenario file into this folder.",
)
@json_option
def prove(configuration: Path, shipped: bool, only: tuple[str, ...], write: Path | None, as_json: bool) -> None:
    """Prove that the controls are monotone and closed, and that no sequence of the manifest's tools leaks unasked.

    For every control, on every combination of what it reads: more exposure never loosens it (T5), and damaging the
    document never loosens it (T6). For all together: no call leaves with untrusted and private content to an ungrounded
    destination unless a person was asked. For the manifest: neither does any sequence of calls.

    Exit code 0: all of it holds; 1: there is a counterexample; 2: nothing could be proved.
    """
    bundle, manifest = _shipped() if shipped else _configured(existing(configuration))
    unknown = sorted(set(only) - bundle.controls.keys())
    if unknown:
        known = ", ".join(sorted(bundle.controls))
        raise click.BadParameter(f"there is no control {unknown[0]!r}; there are: {known}", param_hint="--only")
    engine = EmbeddedEngine(bundle)
    begun = time.perf_counter()
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), console=console(stderr=True), transient=True
    ) as progress:
        task = progress.add_task("controls")

        def tell(code: str, count: int) -> None:
            if count % 100 == 0:  # drawing each would take a tenth of the time
                progress.update(task, description=f"{code}: {count} documents")

        proofs = prove_controls(bundle, tell, only)
        progress.update(task, description="all together")
        documents, leak = prove_no_leak(bundle, engine.evaluate)
        progress.update(task, description="sequences")
        search = search_sequences(bundle, engine.evaluate, manifest) if manifest is not None else None
    seconds = time.perf_counter() - begun
    examples = [one for proof in proofs for one in proof.counterexamples] + ([leak] if leak is not None else [])
    files = _written(write, examples, search) if write is not None else []
    if as_json:
        print_json(_as_json(proofs, documents, leak, search, seconds))
    else:
        _show(proofs, documents, examples, search, seconds, files)
    raise SystemExit(1 if examples or (search is not None and (search.leak or not search.complete)) else 0)


def _shipped() -> tuple[Bundle, Manifest | None]:
    return assemble(shipped_sources(), parse_settings({})), None


def _configured(path: Path) -> tuple[Bundle, Manifest | None]:
    parts = read_parts(path)
    _, bundle = bundled(parts)
    return bundle, parts.manifest


def _written(folder: Path, examples: list[Counterexample], search: Search | None) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for one in examples:
        path = folder / f"{one.law.lower()}_{one.code.replace(' ', '_')}.yaml"
        path.write_text(as_scenario(one), encoding="utf-8")
        files.append(path)
    if search is not None and search.leak:
        path = folder / "leaking_sequence.yaml"
        path.write_text(leak_scenario(search.leak), encoding="utf-8")
        files.append(path)
    return files


def _show(
    proofs: list[Proof],
    documents: int,
    examples: list[Counterexample],
    search: Search | None,
    seconds: float,
    files: list[Path],
) -> None:
    out = console()
    for proof in proofs:
        bad = bool(proof.counterexamples)
        word = "[red]fails[/red]" if bad else "[green]holds[/green]"
        beyond = f"  (reads beyond the abstract space: {', '.join(proof.beyond)})" if proof.beyond else ""
        out.print(f"{word}  {proof.code:<24} T5, T6 on {proof.documents} documents{escape(beyond)}")
    word = "[red]fails[/red]" if any(one.law == "leak" for one in examples) else "[green]holds[/green]"
    out.print(f"{word}  {'all together':<24} nothing leaves unasked, on {documents} documents that would leak")
    if search is not None:
        word = "[red]fails[/red]" if search.leak or not search.complete else "[green]holds[/green]"
        end = "" if search.complete else ", and there were more: nothing is proved beyond them"
        out.print(f"{word}  {'sequences of tools':<24} {search.states} label sets, {search.documents} documents{end}")
    for one in examples:
        out.print(f"\n[red]{one.law}[/red] {escape(one.code)}: {one.says}")
        if one.law != "leak":
            out.print(f"  {one.verdicts[0]}: {escape(_said(one.weaker))}")
            out.print(f"  {one.verdicts[1]}: {escape(one.damage or _said(one.stronger))}")
        else:
            out.print(f"  allow: {escape(_said(one.stronger))}")
        if one.settings:
            out.print(f"  with settings {escape(str(dict(one.settings)))}")
    if search is not None and search.leak:
        out.print("\n[red]sequence[/red] that leaks:")
        for number, move in enumerate(search.leak, 1):
            grounded = "grounded" if move.grounded else "ungrounded"
            out.print(f"  {number}. {escape(str(move.spec.id))} ({grounded}): {move.verdict.value}")
    for path in files:
        out.print(f"wrote {escape(str(path))}")
    out.print(f"{seconds:.1f} s")


def _said(state: Any) -> str:
    """The values of a state that are not at their weakest, in words."""
    shown = []
    for name, value in state.items():
        if value in ((), "none", True, ("none", "none")):
            continue
        if name == "destinations":
            value = "talks back" if any(one["talks_back"] for one in value) else None
        if value is not None:
            text = "/".join(map(str, value)) if isinstance(value, tuple) else str(value)
            shown.append(f"{name}: {text}")
    return "; ".join(shown) or "nothing exposed"


def _as_json(
    proofs: list[Proof], documents: int, leak: Counterexample | None, search: Search | None, seconds: float
) -> dict[str, Any]:
    def example(one: Counterexample) -> dict[str, Any]:
        return {
            "law": one.law,
            "code": one.code,
            "says": one.says,
            "settings": dict(one.settings),
            "weaker": _said(one.weaker),
            "stronger": one.damage or _said(one.stronger),
            "verdicts": list(one.verdicts),
            "size": one.size,
        }

    return {
        "controls": [
            {
                "code": proof.code,
                "documents": proof.documents,
                "beyond": list(proof.beyond),
                "counterexamples": [example(one) for one in proof.counterexamples],
            }
            for proof in proofs
        ],
        "together": {"documents": documents, "counterexample": example(leak) if leak is not None else None},
        "sequences": None
        if search is None
        else {
            "label_sets": search.states,
            "documents": search.documents,
            "complete": search.complete,
            "leak": [[str(one.spec.id), one.grounded, one.verdict.value] for one in search.leak],
        },
        "seconds": round(seconds, 2),
    }
