"""Put the decision logs of both sides beside each other, by the id that OPA gave each decision.

    python join.py OPA-LOG INTERLOCK-EXPORT

OPA's log says which rules answered what, Interlock's journal what followed from it: which call of which conversation it
was, and whether it was put in flight. Ends with exit code 1 when a decision that Interlock has is not in OPA's log, or
says something else there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


def logged_by_opa(path: Path) -> dict[str, Any]:
    """OPA's events by id; its log has other lines as well."""
    found = {}
    for line in path.read_text().splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("msg") == "Decision Log":
            found[event["decision_id"]] = event
    return found


def strictest(answers: dict[str, Any]) -> str:
    return max((one["verdict"] for one in answers.values()), key=STRICTNESS.__getitem__, default="deny")


def main(opa: Path, interlock: Path) -> int:
    theirs, missing, differing, joined = logged_by_opa(opa), 0, 0, 0
    for line in interlock.read_text().splitlines():
        ours = json.loads(line)
        name = ours["labels"].get("engine_decision_id", "")
        if not name:
            continue  # decided without the engine: a malformed call, or an engine that gave no answer
        event = theirs.get(name)
        if event is None:
            missing += 1
            continue
        same = strictest(event["result"]) == ours["result"]["verdict"]
        differing += not same
        joined += 1
        call, codes = ours["input"]["call"], ",".join(ours["result"]["codes"]) or "-"
        print(f"{name}  call {call['number']} {ours['input']['tool']['name']}: {ours['result']['verdict']} {codes}")
    print(f"{joined} decisions are on both sides, {missing} on ours alone, {differing} differ")
    return 1 if missing or differing or not joined else 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), Path(sys.argv[2])))
