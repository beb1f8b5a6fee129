"""`interlock serve` under load: lost labels, wrong verdicts, and latency beside bare OPA's in the same run.

    python -m benchmarks.serve [--json FILE] [--seconds 60] [--rate 200]

Starts a throw-away PostgreSQL, a real OPA (`scripts/opa.py`) and two `interlock serve` processes above both. A load
generator (`benchmarks/serve_load.py`) in a process of its own sends each request to either of the two, and knows by
itself what each answer must be. Exit code 1 when anything was lost, wrong, denied for a failure, turned away or broken.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Each of these must be 0, or the run has failed. A denial because something failed is safe, but no answer.
FAILURES = ("lost_labels", "wrong_verdicts", "denied_by_failure", "failed", "journals_broken")
CONFIGURATION = """
version = 1

[engine]
kind = "opa"
url = "{opa}"
revision = "same"
decision_log = true
deadline = 5.0 # the machine is shared, and a decision that OPA is late for is a denial, which fails the run

[journal]
kind = "postgres"
dsn_from = "SERVE_DSN"
plaintext = true
durability = "{durability}"

[tools.fetch]
returns = ["untrusted:web"]
egress = "chosen"
destinations = {{ url = "url" }}

[tools.read_file]
returns = ["private:files"]
egress = "none"

[tools.send_email]
returns = []
egress = "chosen"
destinations = {{ to = "email" }}
content = ["body"]
"""
CALLERS = """
version = 1

[[callers]]
principal = "load"
namespace = "load"
rights = ["decide", "speak", "metrics"]
token = "{digest}"
"""


def interlock(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "interlock.cli", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"interlock {' '.join(arguments)}: {done.stderr}")
    return done.stdout


@contextmanager
def serving(folder: Path, spent: list[float]) -> Iterator[str]:
    """One `interlock serve`; gives its address. Ends it as an operator would, and it must end well."""
    command = [sys.executable, "-m", "interlock.cli", "serve", "--listen", "127.0.0.1:0", "--callers", "callers.toml"]
    command += ["--per-caller", "256", "--queue", "256"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("interlock serve did not start")
        before = _processor_seconds(process.pid)
        try:
            yield f"http://{json.loads(line)['listening']}"
        finally:
            spent.append(_processor_seconds(process.pid) - before)
            process.terminate()
            if process.wait(60):
                raise RuntimeError(f"interlock serve ended with {process.returncode}")


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(seconds: float, rate: float, durability: str, dsn: str = "") -> dict[str, Any]:
    """One run. Raises RuntimeError when something of it could not be started."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import opa
    import postgres

    from interlock.model.canonical import pack
    from interlock.policy.samples import SAMPLES

    spent: list[float] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["SERVE_DSN"] = dsn or stack.enter_context(postgres.Cluster()).dsn
        (folder / "interlock.toml").write_text(CONFIGURATION.format(opa="http://127.0.0.1:1", durability=durability))
        interlock(folder, "bundle", "build", "--out", "bundle.tar.gz")
        server = stack.enter_context(
            opa.Server(opa.provided(), "--bundle", str(folder / "bundle.tar.gz"), "--set", "decision_logs.console=true")
        )
        (folder / "interlock.toml").write_text(CONFIGURATION.format(opa=server.url, durability=durability))
        interlock(folder, "store", "migrate")
        token = json.loads(interlock(folder, "serve", "--new-token"))
        (folder / "callers.toml").write_text(CALLERS.format(digest=token["digest"]))
        (folder / "callers.toml").chmod(0o600)
        addresses = [stack.enter_context(serving(folder, spent)) for _ in range(2)]
        spec = {
            "services": addresses,
            "token": token["token"],
            "opa": f"{server.url}/v1/data/interlock/entrypoint/answers",
            "document": json.loads(pack({"input": next(iter(SAMPLES.values()))})),
            "seconds": seconds,
            "rate": rate,
        }
        (folder / "spec.json").write_text(json.dumps(spec))
        before = os.getloadavg()
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, str(ROOT / "benchmarks" / "serve_load.py"), str(folder / "spec.json")],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found: dict[str, Any] = json.loads(done.stdout)
        found["wall_seconds"] = round(time.perf_counter() - began, 1)
        found["load_average"] = {"before": before[0], "after": os.getloadavg()[0]}
        verified = json.loads(interlock(folder, "journal", "verify", "--json"))
        found["journals_broken"] = len(verified["broken"])
        found["decisions_logged_by_opa"] = server.log().count('"msg":"Decision Log"')
    return {
        **found,
        "processor_ms_per_request": round(sum(spent) * 1e3 / found["requests"], 1),
        "durability": durability,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def table(found: dict[str, Any]) -> str:
    """As it stands in docs/benchmarks.md."""
    rows = ["| request | count | p50 ms | p95 ms | p99 ms | worst ms |", "|---|---|---|---|---|---|"]
    for name, one in found["latency_ms"].items():
        rows.append(f"| {name} | {one['count']:,} | {one['p50']} | {one['p95']} | {one['p99']} | {one['worst']} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=200.0, help="requests per second, over both processes")
    parser.add_argument("--durability", choices=["full", "process"], default="full")
    parser.add_argument("--postgres", default="", help="a dsn instead of a throw-away server")
    given = parser.parse_args()
    found = measured(given.seconds, given.rate, given.durability, given.postgres)
    print(table(found))
    print({key: value for key, value in found.items() if key != "latency_ms"})
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    bad = [f"{name}: {found[name]:,}" for name in FAILURES if found[name]]
    if bad:
        print(f"the run has failed: {', '.join(bad)}", file=sys.stderr)
        raise SystemExit(1)


if __name__ == "__main__":
    main()
