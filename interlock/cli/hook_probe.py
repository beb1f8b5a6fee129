"""The probe: does the command that a host would run really stop a call that is known to be bad?"""

from __future__ import annotations

import json
import secrets
import subprocess
from dataclasses import dataclass
from typing import Any, Final

from interlock.integrations.coding_agents import PROTOCOLS, Kind

PATIENCE: Final = 60

# Of each host: what harms nobody, and a write to the host's own settings, which nothing may do.
_HONEST: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "claude-code": ("Bash", {"command": "pwd"}),
    "codex": ("Bash", {"command": "pwd"}),
    "gemini": ("run_shell_command", {"command": "pwd"}),
    "cursor": ("Shell", {"command": "pwd"}),
}
_BAD: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "claude-code": ("Write", {"file_path": ".claude/settings.json", "content": "{}"}),
    "codex": ("apply_patch", {"command": "*** Update File: .codex/hooks.json"}),
    "gemini": ("write_file", {"file_path": ".gemini/settings.json", "content": "{}"}),
    "cursor": ("Write", {"path": ".cursor/hooks.json", "content": "{}"}),
}


@dataclass(frozen=True, slots=True)
class Probed:
    """One thing that was tried. ``problem`` is empty when it went as it must."""

    what: str
    problem: str


def probe(host: str, command: str) -> list[Probed]:
    """Run the installed command as the host would: by a shell, with an event on standard input."""
    session = f"interlock-probe-{secrets.token_hex(8)}"
    names = {kind: name for name, kind in reversed(list(PROTOCOLS[host].events.items()))}

    def event(kind: Kind, **more: Any) -> bytes:
        said = {PROTOCOLS[host].session: session, "hook_event_name": names[kind], "cwd": "/", **more}
        return json.dumps(said).encode()

    def call(tool: str, arguments: dict[str, Any]) -> bytes:
        return event("before", tool_name=tool, tool_input=arguments, tool_use_id=f"probe_{secrets.token_hex(8)}")

    return [
        Probed("a new session is taken note of", _must(command, event("start", source="startup"), "pass")),
        Probed("an honest call passes", _must(command, call(*_HONEST[host]), "pass")),
        Probed("a write to the settings that hold this hook is denied", _must(command, call(*_BAD[host]), "deny")),
        Probed("a tool that nobody declared does not run unasked", _must(command, call("probe_unknown", {}), "deny")),
        Probed("an event that is no event is refused", _must(command, b"{}", "refuse")),
    ]


def _must(command: str, body: bytes, what: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the command that the host has in its settings, which is tried here
            ["/bin/sh", "-c", command], input=body, capture_output=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the command did not run ({type(error).__name__})"
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    why = said[-1] if said else "it said nothing"
    if done.returncode not in (0, 2):
        return f"it ended with exit code {done.returncode}: {why}"
    if what == "refuse":
        return "" if done.returncode == 2 and not done.stdout and said else "it was answered"
    if done.returncode == 2:
        return f"no decision: {why}"
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return "standard output held no JSON"
    if what == "pass":
        return "" if answer == {} else "it was refused"
    inner = answer.get("hookSpecificOutput", answer)
    verdict = inner.get("permissionDecision") or inner.get("permission") or inner.get("decision")
    return "" if verdict == "deny" else "IT WAS NOT DENIED"
