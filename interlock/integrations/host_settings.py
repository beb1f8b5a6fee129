"""The settings of coding agents, as far as hooks stand in them: written, found again and taken out. Pure.

What somebody else wrote there is kept as it is. Ours is known by the module that it runs.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from interlock.errors import Misconfigured

MARK: Final = "-m interlock.hook "
HOST_SECONDS: Final = 15  # the hook's own deadline is shorter


@dataclass(frozen=True, slots=True)
class Form:
    """How a host writes hooks.

    Attributes:
        file: its settings, from the person's home.
        local: the same in a project.
        events: what we must hear; without one of them something would be missed.
        flat: handlers stand under their event, without groups and matchers.
    """

    file: str
    local: str
    events: tuple[str, ...]
    flat: bool = False


FORMS: Final[Mapping[str, Form]] = MappingProxyType(
    {
        "claude-code": Form(
            ".claude/settings.json",
            ".claude/settings.json",
            (
                "PreToolUse",
                "PostToolUse",
                "PostToolUseFailure",
                "UserPromptSubmit",
                "SessionStart",
                "SubagentStart",
                "SubagentStop",
                "PreCompact",
                "Stop",
            ),
        ),
        "codex": Form(
            ".codex/hooks.json",
            ".codex/hooks.json",
            ("PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart"),
        ),
        "gemini": Form(
            ".gemini/settings.json",
            ".gemini/settings.json",
            ("BeforeTool", "AfterTool", "BeforeAgent", "SessionStart"),
        ),
        "cursor": Form(
            ".cursor/hooks.json",
            ".cursor/hooks.json",
            ("preToolUse", "postToolUse", "postToolUseFailure", "beforeSubmitPrompt", "sessionStart"),
            flat=True,
        ),
    }
)


def handler(host: str, command: str) -> dict[str, Any]:
    """One hook, set to block where the host can be told so."""
    if host == "cursor":
        return {"command": command, "timeout": HOST_SECONDS, "failClosed": True}
    made: dict[str, Any] = {"type": "command", "command": command, "timeout": HOST_SECONDS}
    if host == "claude-code":
        made["onFailure"] = "block"
    if host == "gemini":
        made["timeout"] = HOST_SECONDS * 1000  # milliseconds
    return made


def merged(settings: Mapping[str, Any], host: str, command: str) -> dict[str, Any]:
    """The settings with our hooks, once, behind whatever else stands there.

    Raises:
        Misconfigured: its hooks are not what the host would understand; nothing is guessed.
    """
    new = without(settings, host)
    if host == "cursor":
        new.setdefault("version", 1)
    hooks = new.setdefault("hooks", {})
    for event in FORMS[host].events:
        ours: dict[str, Any] = handler(host, command)
        hooks.setdefault(event, []).append(ours if FORMS[host].flat else {"matcher": "*", "hooks": [ours]})
    return new


def without(settings: Mapping[str, Any], host: str) -> dict[str, Any]:
    """The settings without our hooks. Raises Misconfigured, see :func:`merged`."""
    new = copy.deepcopy(dict(settings))
    hooks = new.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(one, list) for one in hooks.values()):
        raise Misconfigured(f"the hooks in the settings of {host} are not lists by event; correct them first")
    for event, groups in list(hooks.items()):
        kept: list[Any] = []
        for group in groups:
            inner = group.get("hooks") if isinstance(group, dict) else None
            if isinstance(inner, list):
                left = [one for one in inner if not _is_ours(one)]
                if left or not inner:
                    kept.append({**group, "hooks": left})
            elif not _is_ours(group):
                kept.append(group)
        if kept or not groups:
            hooks[event] = kept
        else:
            del hooks[event]
    if not hooks and "hooks" in new and settings.get("hooks"):
        del new["hooks"]
    return new


def _is_ours(one: object) -> bool:
    return isinstance(one, dict) and isinstance(one.get("command"), str) and MARK in one["command"]


def ours(settings: Mapping[str, Any], event: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Our handlers of an event, each with the matcher that it stands under."""
    hooks = settings.get("hooks")
    groups = hooks.get(event) if isinstance(hooks, dict) else None
    for group in groups if isinstance(groups, list) else ():
        if not isinstance(group, dict):
            continue
        inner = group.get("hooks")
        for one in inner if isinstance(inner, list) else [group]:
            if _is_ours(one):
                yield str(group.get("matcher", "*")), one


def findings(settings: Mapping[str, Any], host: str, command: str) -> list[str]:
    """What is wrong with our hooks in these settings; nothing when all of them are there and set to block."""
    wrong: list[str] = []
    if settings.get("disableAllHooks") is True:
        wrong.append("disableAllHooks is true, so no hook runs; take it out")
    general = settings.get("hooksConfig")
    if isinstance(general, dict) and general.get("enabled") is False:
        wrong.append("hooksConfig.enabled is false, so no hook runs; take it out")
    for event in FORMS[host].events:
        found = list(ours(settings, event))
        if not found:
            wrong.append(f"no hook for {event}; run `interlock install {host}`")
        for matcher, one in found:
            if one != handler(host, command):
                wrong.append(f"the hook for {event} is not as installed; run `interlock install {host}`")
            if matcher not in ("*", ""):
                wrong.append(f"the hook for {event} is for {matcher!r} only; its matcher must be *")
    return wrong
