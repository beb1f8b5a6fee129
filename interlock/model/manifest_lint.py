"""What looks wrong in a manifest that loads: findings for `interlock check`, never decisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from interlock.model.manifest import Manifest
from interlock.model.tools import Effect, Egress, ToolSpec, looks_like_receiver, words


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. ``rule`` is its name, ``where`` a file with line or a tool."""

    rule: str
    where: str
    message: str


# Words of places where what one party writes another can read.
_SHARED: Final = frozenset(
    "post publish comment share push upload commit label tag issue wiki page gist queue topic calendar event invite"
    " branch release package metadata status message review".split()
)
_COMMANDS: Final = frozenset("command cmd commandline shell script".split())


def lint_manifest(manifest: Manifest) -> Iterator[Finding]:
    """All findings, in order of tools."""
    for spec in manifest:
        yield from _receivers(spec)
        yield from _unclassified(spec)
        yield from _shared(spec)
        yield from _commands(spec)


def _named(spec: ToolSpec) -> set[str]:
    """Arguments that stand in some role, by themselves or with one of their fields."""
    return {path.partition(".")[0] for path in spec.roles}


def _receivers(spec: ToolSpec) -> Iterator[Finding]:
    if spec.egress is not Egress.NONE:
        return
    named = _named(spec)
    for argument in spec.arguments:
        if argument not in named and looks_like_receiver(argument):
            yield Finding(
                "receiver-without-egress",
                f"tool {spec.id}",
                f'argument {argument!r} looks like a receiver, but egress is "none"; write egress = "chosen" with'
                " destinations, or list the argument under content if nothing leaves",
            )


def _unclassified(spec: ToolSpec) -> Iterator[Finding]:
    if spec.egress is Egress.NONE:
        return
    if not spec.destinations and not spec.content and spec.egress is Egress.CHOSEN:
        yield Finding(
            "nothing-classified",
            f"tool {spec.id}",
            "sends, but neither destinations nor content are named: it can never be grounded, and every text argument"
            " counts as smuggled",
        )
    named = _named(spec)
    loose = [argument for argument in spec.arguments if argument not in named]
    if loose:
        yield Finding(
            "unclassified-argument",
            f"tool {spec.id}",
            f"sends, and {', '.join(map(repr, loose))} stand under neither destinations nor content; a call that fills"
            " them with text is never grounded",
        )


def _shared(spec: ToolSpec) -> Iterator[Finding]:
    if spec.egress is not Egress.NONE or spec.opens:
        return
    named = words(spec.id.name)
    if spec.effect is not Effect.NONE and named & _SHARED:
        yield Finding(
            "shared-place",
            f"tool {spec.id}",
            f"writes ({spec.effect.value}) to what others may read ({', '.join(sorted(named & _SHARED))}), but"
            ' declares no egress; write egress = "chosen" unless nobody else can read it',
        )


def _commands(spec: ToolSpec) -> Iterator[Finding]:
    for argument in spec.content:
        if words(argument) & _COMMANDS:
            yield Finding(
                "command-as-content",
                f"tool {spec.id}",
                f"{argument!r} looks like a command line, but stands under content, which is not searched for protected"
                " files; leave it out of content",
            )


def names_nothing(constants: Iterable[tuple[str, str, str]], manifest: Manifest) -> Iterator[Finding]:
    """Constants in controls that no tool or label of this manifest matches: a rename that left a rule behind.

    Args:
        constants: where, what kind (``tool``, ``server`` or ``category``), and the word.
    """
    tools = {spec.id.name for spec in manifest}
    servers = {spec.id.server for spec in manifest}
    labels = {one for spec in manifest for one in (*spec.private, *spec.untrusted, *spec.opens)}
    known = {
        "tool": tools,
        "server": servers,
        "category": {one.partition(":")[2] for one in labels}
        | {"unknown", "paste", "image", "memory", "channel", "credentials"},
    }
    for where, kind, word in constants:
        if word not in known[kind]:
            yield Finding(
                "matches-nothing",
                where,
                f"no {kind} of the manifest is called {word!r}, so this condition never matches; correct the name",
            )
