"""``interlock test``: Rego tests beside the controls, scenario files, coverage of proofs, and mutants."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as Xml

import click
from rich.markup import escape
from rich.progress import Progress

from interlock.assembly import bundled, interlock_for, interlock_with, read_configuration, read_parts
from interlock.cli.output import config_argument, console, existing, json_option, print_json
from interlock.errors import Misconfigured
from interlock.model.settings import parse_settings
from interlock.policy.bundle import assemble
from interlock.policy.rego_tests import Mutant, Suite, mutants, read_tests
from interlock.policy.sources import shipped_directory, shipped_sources
from interlock.scenarios import find_scenarios, run_file


@dataclass(frozen=True, slots=True)
class Result:
    """One test, Rego or story. ``problem`` is empty when it passed."""

    kind: str
    name: str
    where: str
    problem: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mutant and the test that caught it; empty when it survived."""

    mutant: Mutant
    caught_by: str


@click.command()
@config_argument
@click.option("--shipped", is_flag=True, help="Test the controls that Interlock ships, without any configuration.")
@click.option("--mutate", is_flag=True, help="Also loosen every line of the controls; each mutant must fail a test.")
@click.option("--junit", type=click.Path(path_type=Path), help="Write the results as JUnit XML to this file.")
@json_option
def test(configuration: Path, shipped: bool, mutate: bool, junit: Path | None, as_json: bool) -> None:
    """Run the Rego tests (test_* in *_test.rego) and the scenario files that CONFIGURATION names.

    Exit code 0: all passed, and every mutant was caught if --mutate was given; 1: not; 2: nothing could be run.
    """
    suite, files = _shipped() if shipped else _configured(existing(configuration))
    results = [*_rego(suite), *_stories(files)]
    if not results:
        raise Misconfigured(
            "no test was found: write *_test.rego beside your controls, or name a folder under scenarios"
        )
    ours = list(mutants(suite.bundle, own=shipped))
    proofs = [one for one in ours if one.kind == "proof dropped"]
    wanted = ours if mutate else proofs
    tried = _mutated(suite, files, wanted) if not any(one.problem for one in results) else []
    if junit is not None:
        _write_junit(junit, results)
    if as_json:
        print_json(_as_json(results, tried))
    else:
        _show(results, tried, mutate=mutate)
    survived = [one for one in tried if not one.caught_by]
    failed = any(one.problem for one in results)
    raise SystemExit(1 if failed or (mutate and survived) else 0)


def _shipped() -> tuple[Suite, list[Path]]:
    return Suite(assemble(shipped_sources(), parse_settings({})), read_tests(shipped_directory())), []


def _configured(path: Path) -> tuple[Suite, list[Path]]:
    configuration, folder = read_configuration(path)
    parts = read_parts(path)
    _, bundle = bundled(parts)
    tests = [source for one in parts.policies if one.is_dir() for source in read_tests(one)]
    files = [file for name in configuration.scenarios for file in find_scenarios(folder / name)]
    return Suite(bundle, tests), files


def _rego(suite: Suite) -> Iterator[Result]:
    results = suite.run()
    while True:
        begun = time.perf_counter()
        result = next(results, None)
        if result is None:
            return
        test = result.test
        seconds = time.perf_counter() - begun
        yield Result("rego", f"{test.package}.{test.name}", f"{test.path}:{test.line}", result.problem, seconds)


def _stories(files: Iterable[Path]) -> Iterator[Result]:
    for file in files:
        begun = time.perf_counter()
        for report in run_file(file, interlock_for):
            seconds, begun = time.perf_counter() - begun, time.perf_counter()
            problem = "; ".join(f"{one.place}: {one.problem}" for one in report.calls if one.problem)
            yield Result("scenario", f"{file.stem}.{report.name}", str(file), problem, seconds)


def _mutated(suite: Suite, files: Sequence[Path], tried: Sequence[Mutant]) -> list[Mutation]:
    """Each mutant against the Rego tests first, then against the scenarios that load the same controls."""
    found = []
    with Progress(console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("mutants", total=len(tried))
        for mutant in tried:
            caught = suite.catches(mutant)
            name = f"{caught.package}.{caught.name}" if caught is not None else _story_catches(files, mutant)
            found.append(Mutation(mutant, name))
            progress.advance(task)
    return found


def _story_catches(files: Sequence[Path], mutant: Mutant) -> str:
    for file in files:
        for report in run_file(file, lambda scenario, folder: interlock_with(scenario, folder, mutant.source)):
            if not report.passed:
                return f"{file.stem}.{report.name}"
    return ""


def _as_json(results: Sequence[Result], tried: Sequence[Mutation]) -> dict[str, object]:
    return {
        "passed": sum(not one.problem for one in results),
        "failed": sum(bool(one.problem) for one in results),
        "tests": [{"kind": o.kind, "name": o.name, "where": o.where, "problem": o.problem} for o in results],
        "mutants": [
            {
                "code": one.mutant.code,
                "where": f"{one.mutant.path}:{one.mutant.line}",
                "kind": one.mutant.kind,
                "what": one.mutant.what,
                "caught_by": one.caught_by,
            }
            for one in tried
        ],
    }


def _show(results: Sequence[Result], tried: Sequence[Mutation], *, mutate: bool) -> None:
    out = console()
    failed = [one for one in results if one.problem]
    for one in failed:
        out.print(f"[red]failed[/red] {escape(one.name)}  {escape(one.where)}\n       {escape(one.problem)}")
    rego = sum(one.kind == "rego" for one in results)
    out.print(f"{len(results) - len(failed)} passed, {len(failed)} failed ({rego} Rego, {len(results) - rego} stories)")
    if failed:
        return
    proofs = [one for one in tried if one.mutant.kind == "proof dropped"]
    covered = sum(bool(one.caught_by) for one in proofs)
    controls = {one.mutant.code for one in proofs}
    bare = {one.mutant.code for one in proofs if not one.caught_by}
    out.print(
        f"coverage: {len(controls - bare)} of {len(controls)} controls, {covered} of {len(proofs)} proofs:"
        " dropping any of those fails a test"
    )
    shown = tried if mutate else proofs
    for survivor in (one for one in shown if not one.caught_by):
        mutant = survivor.mutant
        out.print(f"[yellow]survived[/yellow] {escape(mutant.path)}:{mutant.line} {mutant.kind}: {escape(mutant.what)}")
    if mutate:
        caught = sum(bool(one.caught_by) for one in tried)
        out.print(f"mutants: {caught} of {len(tried)} caught")


def _write_junit(path: Path, results: Sequence[Result]) -> None:
    suite = Xml.Element(
        "testsuite",
        name="interlock",
        tests=str(len(results)),
        failures=str(sum(bool(one.problem) for one in results)),
        time=f"{sum(one.seconds for one in results):.3f}",
    )
    for one in results:
        case = Xml.SubElement(suite, "testcase", classname=one.kind, name=one.name, time=f"{one.seconds:.4f}")
        if one.problem:
            Xml.SubElement(case, "failure", message=one.problem).text = f"{one.where}: {one.problem}"
    path.write_bytes(Xml.tostring(suite, encoding="utf-8", xml_declaration=True))
