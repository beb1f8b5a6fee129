"""OPA's own public test cases, run by the embedded engine, and the ledger of how they come out (ADR 0060).

    python -m tests.agreement.opa_cases            compare with the ledger
    python -m tests.agreement.opa_cases --write    write the ledger anew

The cases stand in OPA's Go module. They are read where Go keeps it (`go env GOMODCACHE`, or the folder that
`INTERLOCK_TEST_OPA_MODULE` names), and `go mod download` fetches it if it is not there; nothing of them is copied
here. Of each case it is asked first
whether our loader would admit what it uses: builtins on the list, no `with`, no circle, nothing that only OPA parses.
What is admitted must come out as OPA's authors say, or stand in the ledger by name with a reason.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regorus

from interlock.errors import PolicyError
from interlock.policy.builtins import ALLOWED
from interlock.policy.checks import Checks
from interlock.policy.dialects import differing, refused
from interlock.policy.rego_ast import Module, parse_module
from interlock.policy.sources import Source

VERSION = "v1.22.3"
MODULE = "github.com/open-policy-agent/opa"
LEDGER = Path(__file__).with_name("opa_cases.toml")
CASES = Path("v1", "test", "cases", "testdata", "v1")


def module() -> Path | None:
    """Where the module is, or None when there is no Go to ask and no folder is named."""
    named = os.environ.get("INTERLOCK_TEST_OPA_MODULE")
    if named:
        return Path(named)
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
    if go is None:
        return None
    cache = subprocess.run([go, "env", "GOMODCACHE"], capture_output=True, text=True, check=False).stdout.strip()
    place = Path(cache) / f"{MODULE}@{VERSION}"
    if place.is_dir():
        return place
    command = [go, "mod", "download", "-json", f"{MODULE}@{VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    try:
        return Path(json.loads(done.stdout)["Dir"])
    except (ValueError, KeyError):
        return None


@dataclass(frozen=True)
class Case:
    folder: str
    note: str
    value: dict[str, Any]


def cases(root: Path) -> Iterator[Case]:
    # Read by the engine itself, ten times as fast as by the YAML of the tests; that gives the same ledger.
    reader = regorus.Engine()
    reader.add_policy("reader.rego", "package reader\n\nread := yaml.unmarshal(input)\n")
    for file in sorted((root / CASES).rglob("*.yaml")):
        reader.set_input_json(json.dumps(file.read_text(encoding="utf-8")))
        for value in json.loads(reader.eval_rule_as_json("data.reader.read"))["cases"]:
            yield Case(file.parent.name, str(value["note"]), value)


# --- what we admit ----------------------------------------------------------------------------------------------------


def not_admitted(case: Case) -> str:
    """Why the case is none of ours, in a word; empty when it is."""
    if not case.value.get("modules"):
        return "no module"
    modules: list[tuple[Source, Module]] = []
    for place, text in enumerate(case.value["modules"]):
        try:
            source = Source(f"m{place}.rego", text)
            modules.append((source, parse_module(source.path, text)))
        except PolicyError:
            return "does not parse"
        except BaseException as error:
            if "Panic" not in type(error).__name__:
                raise
            return "does not parse"
    checks = Checks(modules, {})
    for _, one in modules:
        for rule in one.rules:
            if rule.withs:
                return "with"
            if any(".".join(part or "?" for part in call.parts) not in ALLOWED for call in rule.calls) and any(
                not checks._is_function(one, call) and ".".join(part or "?" for part in call.parts) not in ALLOWED
                for call in rule.calls
            ):
                return "builtin"
            if any(refused(one, rule)):
                return "pattern"
    if any(checks._recursion()) or any(line for _, one in modules for line in checks._reserved(one)):
        return "circle or name"
    return ""


def warned(case: Case) -> bool:
    """Would `interlock check` say that engines differ?"""
    for place, text in enumerate(case.value["modules"]):
        one = parse_module(f"m{place}.rego", text)
        if any(True for rule in one.rules for _ in differing(one, rule)):
            return True
    return False


# --- how it comes out -------------------------------------------------------------------------------------------------

UNDEFINED = object()


def outcome(case: Case) -> str:
    """`passes`, or the way in which it does not: `errs`, `answers`, `differs`, `undefined`, `panics`."""
    wants_error = "want_error" in case.value or "want_error_code" in case.value
    try:
        found = said(case)
    except (RuntimeError, ValueError):
        return "passes" if wants_error else "errs"
    except BaseException as error:
        if "Panic" not in type(error).__name__:
            raise
        return "panics"
    if wants_error:
        # Without strict builtin errors OPA would find nothing; a case that says so may be undefined.
        return "passes" if not found else "answers"
    if "want_result" not in case.value:
        wanted = case.value.get("want_defined")
        return "passes" if wanted is None or bool(found) == wanted else "differs"
    wanted = case.value["want_result"] or []
    if alike(found, wanted, bool(case.value.get("sort_bindings"))):
        return "passes"
    return "undefined" if wanted and not found else "differs"


def said(case: Case) -> list[dict[str, Any]]:
    """The bindings of the query."""
    engine = regorus.Engine()
    for place, text in enumerate(case.value["modules"]):
        engine.add_policy(f"m{place}.rego", text)
    if case.value.get("data"):
        engine.add_data_json(json.dumps(case.value["data"]))
    if "input_term" in case.value:
        term = regorus.Engine()
        term.add_policy("t.rego", f"package t\n\nr := {case.value['input_term']}\n")
        engine.set_input_json(term.eval_rule_as_json("data.t.r"))
    elif "input" in case.value:
        engine.set_input_json(json.dumps(case.value["input"]))
    results = json.loads(engine.eval_query_as_json(case.value["query"])).get("result") or []
    return [
        {name: value for name, value in one.get("bindings", {}).items() if not name.startswith("__")}
        for one in results
        if all(expression.get("value", True) is not False for expression in one.get("expressions", []))
    ]


def alike(found: Any, wanted: Any, unordered: bool) -> bool:
    if isinstance(found, list) and isinstance(wanted, list):
        if unordered:
            found, wanted = (sorted(one, key=_order) for one in (found, wanted))
        return len(found) == len(wanted) and all(alike(a, b, unordered) for a, b in zip(found, wanted, strict=True))
    if isinstance(found, dict) and isinstance(wanted, dict):
        keys = {str(key): value for key, value in wanted.items()}
        return found.keys() == keys.keys() and all(alike(found[key], keys[key], unordered) for key in found)
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    return bool(found == wanted)


def _order(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


# --- the ledger -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """``folders``: folder → how many passed, did not pass, and are none of ours. ``failing``: name → how, and whether
    `interlock check` warns."""

    folders: dict[str, tuple[int, int, int]]
    outside: dict[str, int]
    failing: dict[str, str]


def run(root: Path) -> Run:
    counts: dict[str, Counter[str]] = {}
    outside: Counter[str] = Counter()
    failing: dict[str, str] = {}
    for case in cases(root):
        count = counts.setdefault(case.folder, Counter())
        why = not_admitted(case)
        if why:
            outside[why] += 1
            count["outside"] += 1
            continue
        how = outcome(case)
        count["passed" if how == "passes" else "failed"] += 1
        if how != "passes":
            failing[case.note] = f"{how}, warned" if warned(case) else how
    folders = {name: (one["passed"], one["failed"], one["outside"]) for name, one in sorted(counts.items())}
    return Run(folders, dict(sorted(outside.items())), dict(sorted(failing.items())))


def ledger() -> dict[str, Any]:
    return tomllib.loads(LEDGER.read_text(encoding="utf-8"))


def written(found: Run, reasons: dict[str, str]) -> str:
    lines = [
        f"# How the embedded engine comes out in the test cases of {MODULE}@{VERSION}.",
        "# Written by `python -m tests.agreement.opa_cases --write`; reasons are kept, and a new case has none until",
        "# somebody has looked at it, which test_opa_cases.py demands.",
        "",
        "[outside] # cases that our loader would refuse, by why",
        *(f"{json.dumps(why)} = {number}" for why, number in found.outside.items()),
        "",
        "[folders] # passed, not passed, refused by our loader",
        *(f"{name} = [{a}, {b}, {c}]" for name, (a, b, c) in found.folders.items()),
        "",
        "[failing] # case = [how, reason]",
        *(
            f"{json.dumps(note)} = [{json.dumps(how)}, {json.dumps(reasons.get(note, ''), ensure_ascii=False)}]"
            for note, how in found.failing.items()
        ),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    root = module()
    if root is None:
        print(f"there is no Go here to ask for {MODULE}", file=sys.stderr)
        return 2
    found = run(root)
    old = ledger() if LEDGER.exists() else {"failing": {}}
    text = written(found, {note: reason for note, (_, reason) in old["failing"].items()})
    if "--write" in arguments:
        LEDGER.write_text(text, encoding="utf-8")
    passed, failed, outside = (sum(one[place] for one in found.folders.values()) for place in range(3))
    print(f"{passed} passed, {failed} did not, {outside} use what our loader refuses")
    return 0 if LEDGER.read_text(encoding="utf-8") == text else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
