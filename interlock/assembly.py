"""The composition root: manifest, controls, engine, journal and clock become one Interlock."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import structlog

from interlock.errors import ManifestError, Misconfigured
from interlock.gate.conversation import Conversation, SystemClock
from interlock.gate.drivers import World
from interlock.gate.guard import Guard
from interlock.gate.steps import Rules
from interlock.gate.tools import Tool
from interlock.model import manifest as manifests
from interlock.model.origins import address_book
from interlock.model.results import Outcome
from interlock.model.scenario import Scenario
from interlock.model.settings import parse_settings
from interlock.policy.bundle import assemble, read_sources, shipped_sources
from interlock.policy.embedded import EmbeddedEngine
from interlock.ports import Clock, Engine, Files, Journal
from interlock.stores.memory import MemoryJournal

_LOGGER = logging.getLogger("interlock")
# Bound to the standard library's logging, whatever the application configured: structlog's own default prints to
# standard output, which is protocol for hooks and MCP servers.
_log: structlog.stdlib.BoundLogger = structlog.wrap_logger(
    _LOGGER,
    wrapper_class=structlog.stdlib.BoundLogger,
    processors=[structlog.processors.add_log_level, structlog.processors.KeyValueRenderer(key_order=["event"])],
)


class Manifest(manifests.Manifest):
    """The manifest with its way to the file system; see :class:`interlock.model.manifest.Manifest`."""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a manifest from a ``.toml``, ``.yaml`` or ``.yml`` file.

        Raises:
            ManifestError: it can't be read or is wrong; the message names every place.
        """
        file = Path(path)
        syntaxes = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}
        syntax = syntaxes.get(file.suffix)
        if syntax is None:
            raise ManifestError(f"{file}: a manifest is a .toml, .yaml or .yml file")
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ManifestError(f"{file}: can't be read: {error}") from None
        return cls.loads(text, syntax="toml" if syntax == "toml" else "yaml", where=str(file))


class LocalFiles:
    """Resolves paths on this machine, without opening anything."""

    def resolve(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Absolute paths after links and dots. A path that is no path here is left out: it stays in as written."""
        found = []
        for path in paths:
            try:
                found.append(os.path.realpath(os.path.expanduser(path)))
            except (OSError, ValueError):
                continue
        return tuple(found)


class Interlock:
    """A security interlock for the tool calls of agents.

    One object serves any number of conversations and threads. Whatever is wrong with its configuration is an error
    here, never at the first call.
    """

    def __init__(
        self,
        *,
        manifest: manifests.Manifest | None = None,
        tools: Iterable[Tool] = (),
        policies: Iterable[str | os.PathLike[str]] = (),
        settings: Mapping[str, Any] | None = None,
        engine: Engine | None = None,
        journal: Journal | None = None,
        clock: Clock | None = None,
        files: Files | None = None,
        protected: Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        """
        Args:
            manifest: what the tools may return and where they may send.
            tools: functions wrapped by ``@tool``, which carry their own specs.
            policies: directories of the user's own controls, beside the shipped ones.
            settings: of the shipped controls; unknown ones are refused.
            engine: answers documents; by default the embedded one with the shipped and the given controls.
            journal: where decisions are recorded; by default in memory, which is said once in the log.
            protected: more files and folders that only Interlock's operator may change (the manifest's, for example).

        Raises:
            Misconfigured: nothing was built. Neither manifest nor tools: an interlock that knows no tool is a mistake.
        """
        specs = [one.spec for one in tools]
        if manifest is None and not specs:
            raise Misconfigured("an Interlock needs a manifest or tools; without them every call would be unknown")
        self.manifest = (manifest or Manifest({})).joined(specs)
        parsed = parse_settings(settings or {})
        directories = [Path(one) for one in policies]
        if engine is None:
            sources = [*shipped_sources(), *(source for one in directories for source in read_sources(one))]
            engine = EmbeddedEngine(assemble(sources, parsed))
        if not engine.controls:
            raise Misconfigured("the engine has no control, so nothing could ever be allowed")
        self.engine = engine
        if journal is None:
            journal = MemoryJournal()
            _say_once_that_memory_forgets()
        self.journal = journal
        own = [*directories, *(Path(one) for one in protected)]
        self._world = World(engine, journal, clock or SystemClock(), files or LocalFiles())
        self._rules = Rules(
            manifest=self.manifest,
            controls=engine.controls,
            revision=engine.revision,
            engine=engine.name,
            operator=address_book(parsed.address_book.model_dump()),
            protected=tuple(os.path.realpath(one) for one in own),
        )

    def guard(self, conversation: Conversation) -> Guard:
        """The guard of one conversation. Guards of the same conversation share its taint.

        Raises:
            WrongJournal: the conversation writes to another journal already.
        """
        return Guard(conversation, self._world, self._rules, _decided)


def interlock_for(scenario: Scenario, folder: Path) -> Interlock:
    """The Interlock that a scenario file asks for; its paths are relative to the folder of the file."""
    inline = scenario.manifest
    manifest = Manifest.load(folder / inline) if isinstance(inline, str) else Manifest.parse(inline, "manifest")
    policies = [folder / one for one in scenario.policies]
    return Interlock(manifest=manifest, policies=policies, settings=scenario.settings, journal=MemoryJournal())


_said: list[bool] = []


def _say_once_that_memory_forgets() -> None:
    if not _said:
        _said.append(True)
        _log.info(
            "the journal is in memory: taint and decisions are lost when this process ends; pass journal= to keep them"
        )


def _decided(outcome: Outcome) -> None:
    """Log a refusal, at no cost when nobody listens. Holds no argument values."""
    if _LOGGER.isEnabledFor(logging.INFO):
        _log.info("decided", tool=outcome.tool, verdict=outcome.verdict.value, code=outcome.decision.code)
