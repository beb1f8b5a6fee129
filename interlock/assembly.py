"""The composition root: manifest, controls, engine, journal and clock become one Interlock."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from interlock.errors import ManifestError, Misconfigured, PolicyError
from interlock.gate.approval_steps import ApprovalRules
from interlock.gate.conversation import Conversation, SystemClock
from interlock.gate.draft_steps import OutboxRules
from interlock.gate.drivers import World
from interlock.gate.effects import Append, Effect
from interlock.gate.guard import Active, Guard
from interlock.gate.outbox import Outbox
from interlock.gate.steps import Rules
from interlock.gate.tools import Tool
from interlock.locks import LOCK
from interlock.model import manifest as manifests
from interlock.model.digests import digest
from interlock.model.document import Mode
from interlock.model.markup import Syntax, read
from interlock.model.operands import Operand
from interlock.model.origins import GROUNDING, Origin, address_book, allow_lists, named_values
from interlock.model.results import Outcome
from interlock.model.tools import ToolId, ToolSpec
from interlock.policy.bundle import Bundle, assemble
from interlock.policy.choice import chosen_engine
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.sources import Source, read_folder, shipped_directory, shipped_sources
from interlock.ports import Approver, Artifacts, Clock, DraftStore, Engine, Files, Journal, Operands, Questions, Store
from interlock.stores.choice import opened_store
from interlock.stores.memory import MemoryJournal
from interlock.stores.memory_artifacts import MemoryArtifacts
from interlock.stores.memory_drafts import MemoryDrafts
from interlock.stores.memory_questions import MemoryQuestions
from interlock.stores.operand_files import MAX_ALL, read_operand

if TYPE_CHECKING:  # loaded when they are needed: an agent that builds its manifest in code needs none of them
    import structlog

    from interlock.model.configuration import ApprovalChoice, Configuration, EmbeddedChoice, OpaChoice
    from interlock.model.scenario import Scenario
    from interlock.model.settings import Settings
    from interlock.policy.bundle_files import OpenBundle
    from interlock.telemetry import Telemetry

_LOGGER = logging.getLogger("interlock")


@cache
def _log() -> structlog.stdlib.BoundLogger:
    """Bound to the standard library's logging, whatever the application configured: structlog's own default prints to
    standard output, which is protocol for hooks and MCP servers. Loaded late: it takes a third of the import."""
    import structlog

    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        _LOGGER,
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[structlog.processors.add_log_level, structlog.processors.KeyValueRenderer(key_order=["event"])],
    )
    return logger


class Manifest(manifests.Manifest):
    """The manifest with its way to the file system; see :class:`interlock.model.manifest.Manifest`."""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a manifest from a ``.toml``, ``.yaml`` or ``.yml`` file.

        Raises:
            ManifestError: it can't be read or is wrong; the message names every place.
        """
        file = Path(path)
        manifest = cls.loads(_text(file, ManifestError), syntax=_syntax(file, ManifestError), where=_shown(file))
        return replace(manifest, paths=(os.path.abspath(file),))


class LocalFiles:
    """Resolves paths on this machine, without opening anything."""

    def __init__(self, base: str | os.PathLike[str] = ".") -> None:
        """``base``: the folder that relative paths in the tools' arguments are relative to."""
        self._base = os.path.realpath(base)

    def resolve(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Absolute paths after links and dots. A path that is no path here is left out: it stays in as written."""
        found = []
        for path in paths:
            try:
                found.append(os.path.realpath(os.path.join(self._base, os.path.expanduser(path))))
            except (OSError, ValueError):
                continue
        return tuple(found)

    def operands(self, paths: Sequence[str]) -> tuple[Operand, ...]:
        """See :meth:`interlock.ports.Operands.operands`. Here files are opened and read, once a person is asked."""
        found, room = [], MAX_ALL
        for path in paths:
            found.append(read_operand(path, self._base, room))
            room -= found[-1].size
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Parts:
    """What an Interlock is made of, read anew by every reload.

    Attributes:
        policies: directories or archives of the user's own controls.
        guests: the same, brought by a workspace.
        settings: of the shipped controls, and under ``controls`` those of the user's.
        protected: files and folders that only the operator may change.
        unavailable: declared tools that may not run here.
        engine: which engine answers; the embedded one when none was chosen.
        folder: what the files of the engine are relative to.
        opened: the bundle that holds the operator's controls and settings, if they come in one.
        outbox: names of tools whose calls are drafted; for ``outbox_seconds`` a draft may be sent.
        mode: ``shadow`` records decisions and enforces none of them.
    """

    manifest: manifests.Manifest
    policies: tuple[Path, ...] = ()
    guests: tuple[Path, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    protected: tuple[Path, ...] = ()
    unavailable: frozenset[ToolId] = frozenset()
    engine: EmbeddedChoice | OpaChoice | None = None
    folder: Path = field(default_factory=Path)
    opened: OpenBundle | None = None
    outbox: tuple[str, ...] = ()
    outbox_seconds: float = 86_400.0
    mode: Mode = "enforce"


@dataclass(frozen=True, slots=True)
class _Watched(World):
    """A world that tells an observer what was written, once it is on record."""

    telemetry: Telemetry | None = None

    def answer(self, effect: Effect) -> Any:
        """See :meth:`interlock.gate.drivers.World.answer`."""
        reply = World.answer(self, effect)
        if isinstance(effect, Append) and self.telemetry is not None:
            self.telemetry.watch(effect.conversation, effect.entries, reply)
        return reply


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
        journal: Journal | Store | None = None,
        clock: Clock | None = None,
        files: Files | None = None,
        artifacts: Artifacts | None = None,
        telemetry: Telemetry | None = None,
        protected: Iterable[str | os.PathLike[str]] = (),
        approver: Approver | None = None,
        approvals: ApprovalRules | None = None,
        outbox: Iterable[str] = (),
        outbox_seconds: float = 86_400.0,
        mode: Mode = "enforce",
    ) -> None:
        """
        Args:
            manifest: what the tools may return and where they may send.
            tools: functions wrapped by ``@tool``, which carry their own specs.
            policies: directories or archives of the user's own controls, beside the shipped ones.
            settings: of the shipped controls; unknown ones are refused.
            engine: answers documents; by default the embedded one with the shipped and the given controls.
            journal: where decisions are recorded: a journal, or a store, in which each conversation has its namespace.
                By default in memory, which is said once in the log.
            files: resolves paths in arguments; by default on this machine, relative to the current folder. Give
                ``LocalFiles(base)`` when the tools work in another one.
            artifacts: which labels are on what agents write and read (``writes_to`` and ``reads_from`` in the
                manifest); by default in the database of the store that is the journal, else in memory. A record that
                nobody has begun can vouch for nothing: whatever is read there is every leg.
            telemetry: told of every guarded call after it is on record, to make spans of it (``interlock.telemetry``).
            protected: more files and folders that only Interlock's operator may change.
            approver: a way to a person, who is asked about calls that the policy asks about. Without one such calls are
                denied, because nobody answers.
            approvals: how long is waited, and how long a yes is good. Given without an approver, ``propose`` makes
                questions that ``guard.answer`` answers, for hosts that pause meanwhile.
            outbox: tools (``name`` or ``server/name``) whose calls are drafted instead of made: a person releases them,
                and the host delivers them; see :meth:`outbox`. A draft may be sent for ``outbox_seconds``.
            mode: ``shadow`` decides and records, and every call runs all the same; said in the log at each start.

        Raises:
            Misconfigured: nothing was built. Neither manifest nor tools: an interlock that knows no tool is a mistake.
        """
        specs = [one.spec for one in tools]
        if manifest is None and not specs:
            raise Misconfigured("an Interlock needs a manifest or tools; without them every call would be unknown")
        parts = Parts(
            (manifest or Manifest({})).joined(specs),
            policies=_paths("policies", policies),
            settings=dict(settings or {}),
            protected=_paths("protected", protected),
            outbox=_names("outbox", outbox),
            outbox_seconds=float(outbox_seconds),
            mode=mode,
        )
        if mode not in ("enforce", "shadow"):
            raise Misconfigured(f"mode is 'enforce' or 'shadow', not {mode!r}")
        if engine is not None and (parts.policies or set(parts.settings) - {"address_book"}):
            raise Misconfigured(
                "an engine that is given brings its own controls and settings; leave policies and settings out"
            )
        self._approving(approver, approvals)
        self._begin(lambda: parts, engine, journal, clock, files, artifacts, telemetry)

    @classmethod
    def load(
        cls,
        configuration: str | os.PathLike[str],
        *,
        workspace: str | os.PathLike[str] | None = None,
        tools: Iterable[Tool] = (),
        journal: Journal | Store | None = None,
        clock: Clock | None = None,
        files: Files | None = None,
        artifacts: Artifacts | None = None,
        telemetry: Telemetry | None = None,
        approver: Approver | None = None,
        defaults: manifests.Manifest | None = None,
        protected: Iterable[str | os.PathLike[str]] = (),
    ) -> Self:
        """Build from the operator's ``interlock.toml``.

        Args:
            workspace: a narrowing file of a project: it may add labels, controls and denials, and nothing else.
            journal: instead of the one that the file names. A reload never opens another one.
            telemetry: instead of the collector that the file names; the same holds for it.
            approver: instead of the channel that the file names. A reload never opens another one.
            defaults: specs of a host's own tools; what the file declares itself stands in their place.
            protected: more files and folders that only Interlock's operator may change.

        Raises:
            Misconfigured: any file is wrong, or the store was not migrated; nothing was built.
            JournalUnavailable: the store can't be reached.
        """
        specs = [one.spec for one in tools]
        operators = os.path.abspath(configuration)
        narrowing = None if workspace is None else os.path.abspath(workspace)
        opened = None
        chosen, folder = read_configuration(operators)
        if telemetry is None and chosen.otel is not None:
            from interlock.telemetry import exporting  # loaded late: few need it

            telemetry = exporting(chosen.otel)
        if journal is None:
            opened = journal = opened_store(chosen.journal, folder) if chosen.journal is not None else None
        try:
            more = _paths("protected", protected)

            def parts() -> Parts:  # read anew by each reload
                found = read_parts(operators, narrowing, specs, defaults)
                return replace(found, protected=(*found.protected, *more))

            self = cls._of(parts, None, journal, clock, files, artifacts, telemetry)
            self._asking(chosen.approvals, folder, approver)
            return self
        except BaseException:
            if isinstance(opened, Store):
                opened.close()
            raise

    @classmethod
    def _of(
        cls,
        read: Callable[[], Parts],
        engine: Engine | None,
        journal: Journal | Store | None,
        clock: Clock | None,
        files: Files | None = None,
        artifacts: Artifacts | None = None,
        telemetry: Telemetry | None = None,
    ) -> Self:
        self = cls.__new__(cls)
        self._begin(read, engine, journal, clock, files, artifacts, telemetry)
        return self

    def _begin(
        self,
        read: Callable[[], Parts],
        engine: Engine | None,
        journal: Journal | Store | None,
        clock: Clock | None,
        files: Files | None,
        artifacts: Artifacts | None,
        telemetry: Telemetry | None,
    ) -> None:
        if not hasattr(self, "_approver"):
            self._approving(None, None)
        if journal is None:
            journal = MemoryJournal()
            _say_once_that_memory_forgets()
        self._read = read
        self._engine = engine
        self._world = (journal, clock or SystemClock(), files or LocalFiles())
        self._artifacts = artifacts or _artifacts_beside(journal)
        self._telemetry = telemetry
        self._questions = _questions_beside(journal)
        self._drafts = _drafts_beside(journal)
        self._listed: dict[str, frozenset[str]] = {}
        self._active = self._assembled()

    def _approving(self, approver: Approver | None, approvals: ApprovalRules | None) -> None:
        self._approver = approver
        self._approvals = approvals or (ApprovalRules() if approver is not None else None)

    def _asking(self, choice: ApprovalChoice | None, folder: Path, approver: Approver | None) -> None:
        """Whom the operator's file lets ask. Without ``[approvals]`` and without an approver nobody is asked."""
        rules = None
        if choice is not None:
            from interlock.approvals.choice import approver_of, rules_of  # loaded late: few processes ask anybody

            rules = rules_of(choice)
            if approver is None:
                approver = approver_of(choice, folder, self.journal, self._questions, self._world[1])
        self._approving(approver, rules)
        self._active = self._assembled()

    @property
    def telemetry(self) -> Telemetry | None:
        """Who is told of guarded calls, and how many of them it had to drop; close it when the process ends."""
        return self._telemetry

    @property
    def manifest(self) -> manifests.Manifest:
        return self._active.rules.manifest

    @property
    def engine(self) -> Engine:
        return self._active.world.engine

    @property
    def journal(self) -> Journal | Store:
        return self._active.world.journal

    def guard(self, conversation: Conversation) -> Guard:
        """The guard of one conversation. Guards of the same conversation share its taint.

        Raises:
            WrongJournal: the conversation writes to another journal already.
        """
        return Guard(conversation, lambda: self._active, _decided)

    def outbox(self, namespace: str = "default") -> Outbox:
        """What is drafted in a namespace: a person releases or rejects it, and the host delivers it.

        Raises:
            Refused: not a namespace.
        """
        return Outbox(lambda: (self._active.world, self._active.rules), namespace)

    def reload(self) -> str:
        """Read configuration, manifest files and controls again, and replace all of them or nothing.

        Returns:
            The new revision. Guards use it from their next call on; taint is not touched.

        Raises:
            Misconfigured: something is wrong; what was in force stays in force.
        """
        active = self._assembled()
        with LOCK:  # what was listed while the files were read counts too
            self._active = active
            self._apply_lists()
        return self._active.rules.revision

    def listed(self, server: str, tools: Iterable[str]) -> None:
        """Say which tools of a server are what the operator declared. Whatever else the manifest says of that server
        is void from now on, until the next call: those tools have every leg (T7). Holds across reloads.

        Servers of which this is never said stand as declared.
        """
        with LOCK:
            self._listed = {**self._listed, server: frozenset(tools)}
            self._apply_lists()

    def _apply_lists(self) -> None:
        now = self._active
        manifest = self._declared.standing(self._listed)
        self._active = replace(now, rules=replace(now.rules, manifest=manifest))

    def _assembled(self) -> Active:
        parts = self._read()
        bundle_settings, bundle = bundled(parts)
        engine = (
            self._engine if self._engine is not None else chosen_engine(parts.engine, parts.folder, bundle, _silent)
        )
        if not engine.controls:
            raise Misconfigured("the engine has no control, so nothing could ever be allowed")
        journal, clock, files = self._world
        rules = Rules(
            manifest=parts.manifest,
            controls=engine.controls,
            revision=engine.revision,
            engine=engine.name,
            operator=address_book(bundle_settings.address_book.model_dump()),
            protected=_protected(parts, getattr(journal, "files", ())),
            unavailable=parts.unavailable,
            looks_at=getattr(engine, "looks_at", None),
            lists=allow_lists(bundle_settings.own_domains, bundle_settings.hosts, bundle_settings.roots),
            grounding=GROUNDING | ({Origin.METADATA} if bundle_settings.metadata == "grounds" else frozenset()),
            approvals=self._approvals,
            outbox=outbox_rules(parts),
            book=named_values(bundle_settings.address_book.model_dump()),
            mode=parts.mode,
        )
        if parts.mode == "shadow" and getattr(self, "_mode", "") != "shadow":
            _LOGGER.warning(
                "SHADOW MODE: decisions are recorded and not enforced, and every call runs; remove the setting mode to"
                " enforce them"
            )
        self._mode = parts.mode
        world = World(engine, journal, clock, files, artifacts=self._artifacts, drafts=self._drafts)
        if self._telemetry is not None:
            world = _Watched(
                engine, journal, clock, files, artifacts=self._artifacts, drafts=self._drafts, telemetry=self._telemetry
            )
        if rules.outbox is not None:
            world = replace(world, operands=files if isinstance(files, Operands) else None)
        if self._approvals is not None:
            operands = files if isinstance(files, Operands) else None
            world = replace(world, operands=operands, approver=self._approver, questions=self._questions)
        self._declared = parts.manifest  # last: what a failed reload read must not count
        return Active(world, rules)


def _artifacts_beside(journal: Journal | Store) -> Artifacts:
    """The record of artifacts in the database of a store, or one in memory, which can vouch for nothing."""
    if getattr(journal, "database", None) is None:
        return MemoryArtifacts()
    from interlock.stores.sql_artifacts import SqlArtifacts  # loaded late, like the store itself
    from interlock.stores.sql_store import SqlStore

    return SqlArtifacts(journal) if isinstance(journal, SqlStore) else MemoryArtifacts()


def _questions_beside(journal: Journal | Store) -> Questions:
    """Open questions in the database of a store, where other processes find them, or in memory."""
    if getattr(journal, "database", None) is None:
        return MemoryQuestions()
    from interlock.stores.sql_questions import SqlQuestions
    from interlock.stores.sql_store import SqlStore

    return SqlQuestions(journal) if isinstance(journal, SqlStore) else MemoryQuestions()


def _drafts_beside(journal: Journal | Store) -> DraftStore:
    """Drafts in the database of a store, where other processes find them, or in memory."""
    if getattr(journal, "database", None) is None:
        return MemoryDrafts()
    from interlock.stores.sql_drafts import SqlDrafts
    from interlock.stores.sql_store import SqlStore

    return SqlDrafts(journal) if isinstance(journal, SqlStore) else MemoryDrafts()


def drafts_only(journal: Journal | Store, namespace: str) -> Outbox:
    """The outbox of a store without anybody's rules: what is in it can be shown and rejected."""
    from interlock.approvals.elsewhere import unruled

    world = replace(unruled(journal, SystemClock()), drafts=_drafts_beside(journal))
    return Outbox(lambda: (world, None), namespace)


def outbox_rules(parts: Parts) -> OutboxRules | None:
    """Which tools are drafted. Raises Misconfigured: one of them is not declared, so its calls would be sent."""
    found = set()
    for name in parts.outbox:
        server, slash, tool = name.partition("/")
        one = ToolId(server, tool) if slash else ToolId("", name)
        if one not in parts.manifest.specs:
            raise Misconfigured(f"outbox: no tool is called {name!r}; correct the name, or its calls would be sent")
        found.add(one)
    if found and not 0 < parts.outbox_seconds <= 30 * 86_400:
        raise Misconfigured("outbox: a draft may be sent for at most 30 days")
    return OutboxRules(frozenset(found), parts.outbox_seconds) if found else None


def _names(name: str, given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise Misconfigured(f"{name} takes a list of names, not one name; write [{given!r}]")
    return tuple(given)


def _paths(name: str, given: Iterable[str | os.PathLike[str]]) -> tuple[Path, ...]:
    """Paths out of an option. A single text is an iterable too, of letters, each of which would name some file."""
    if isinstance(given, str | bytes | os.PathLike):
        raise Misconfigured(f"{name} takes a list of paths, not one path; write [{os.fspath(given)!r}]")
    # Absolute from the start: a reload after a change of folder must read the same files, not a stranger's.
    return tuple(Path(os.path.abspath(Path(one).expanduser())) for one in given)


def _protected(parts: Parts, records: Iterable[Path]) -> tuple[str, ...]:
    """Everything that decides: the operator's files, the shipped controls, the store, and this package's own code. Both
    as named and as the file system resolves them, each control's file for itself: a link must not leave its target
    unguarded."""
    package = Path(__file__).resolve().parent
    folders = (*parts.policies, *parts.guests, package, shipped_directory())
    named = [*folders, *parts.protected, *records, *map(Path, parts.manifest.paths)]
    named += [file for folder in (*parts.policies, *parts.guests) for file in folder.rglob("*")]
    found = {place for one in named for place in (*_hops(os.path.abspath(one)), os.path.realpath(one))}
    if os.path.sep in found:
        raise Misconfigured(
            "protected: the root of the file system would forbid every change; name the folders you mean"
        )
    return tuple(sorted(found))


def _hops(path: str) -> set[str]:
    """A path and every link on the way to what it leads to: whoever replaces one of them replaces the file."""
    found = {path}
    waiting = [path]
    while waiting and len(found) < 1000:  # links in a circle lead nowhere
        parts = Path(waiting.pop()).parts
        for length in range(2, len(parts) + 1):
            prefix = os.path.join(*parts[:length])
            if os.path.islink(prefix):
                target = os.path.join(os.path.dirname(prefix), os.readlink(prefix), *parts[length:])
                further = {prefix, os.path.abspath(target)} - found
                found |= further
                waiting += further - {prefix}
    return found


def bundled(parts: Parts) -> tuple[Settings, Bundle]:
    """The shipped controls and those that are named, with settings, checked.

    Raises:
        Misconfigured: any of it is wrong.
    """
    from interlock.model.settings import parse_settings

    parsed = parse_settings(parts.settings)
    opened = parts.opened
    if opened is not None and not (parts.policies or parts.guests) and parts.settings == opened.settings:
        return parsed, opened.bundle
    sources = list(shipped_sources() if opened is None else opened.bundle.sources)
    schemas: list[Source] = [] if opened is None else list(opened.bundle.schemas)
    for place, guest in (*((one, False) for one in parts.policies), *((one, True) for one in parts.guests)):
        folder = read_folder(_shown(os.path.abspath(place)))
        sources += [replace(one, guest=guest) for one in folder.sources]
        if guest and folder.schemas:
            raise PolicyError(
                f"{folder.schemas[0].path}: a workspace can't declare settings, the operator's controls might read them"
            )
        schemas += folder.schemas
    return parsed, assemble(sources, parsed, schemas)


def read_configuration(path: str | os.PathLike[str]) -> tuple[Configuration, Path]:
    """The configuration and the folder that its paths are relative to.

    Raises:
        ConfigurationError: it can't be read or is wrong.
    """
    from interlock.model.configuration import ConfigurationError, parse_configuration

    file, shown = Path(path), _shown(path)
    document = read(_text(file, ConfigurationError), _syntax(file, ConfigurationError), shown, ConfigurationError)
    return parse_configuration(document, shown), file.parent


def read_parts(
    path: str | os.PathLike[str],
    workspace: str | os.PathLike[str] | None = None,
    specs: Iterable[ToolSpec] = (),
    defaults: manifests.Manifest | None = None,
) -> Parts:
    """Everything that a configuration names, narrowed by a workspace's file if there is one.

    Raises:
        Misconfigured: any file can't be read or is wrong.
    """
    from interlock.model.configuration import ConfigurationError, narrow, parse_narrowing
    from interlock.model.settings import parse_settings

    configuration, folder = read_configuration(path)
    inline = {"version": 1, "tools": configuration.tools, "servers": configuration.servers}
    manifest = Manifest.parse(inline, str(path)).joined(specs)
    for name in configuration.manifest:
        manifest = manifest.joined(Manifest.load(folder / name), str(folder / name))
    if defaults is not None:
        known = manifest.specs
        manifest = manifest.joined([spec for spec in defaults if spec.id not in known], "the host's own tools")
    if not len(manifest):
        raise ConfigurationError(f'{path}: no tool is declared; write [tools.NAME], or manifest = ["tools.toml"]')
    policies = [folder / one for one in configuration.policies]
    protected = [Path(path), *(folder / one for one in configuration.manifest)]
    key_file = getattr(configuration.journal, "key_file", "")
    protected += [folder / key_file] if key_file else []
    protected += [folder / one for one in getattr(configuration.engine, "files", ())]
    opened = _opened(configuration, folder, str(path))
    if configuration.mcp is not None and configuration.mcp.pins:
        protected.append(folder / configuration.mcp.pins)
    if configuration.bundle is not None:
        protected += [folder / one for one in configuration.bundle.files]
    settings = configuration.settings if opened is None else opened.settings
    secret_file = getattr(configuration.approvals, "secret_file", "")
    protected += [folder / secret_file] if secret_file else []
    parts = Parts(
        manifest,
        policies=tuple(policies),
        settings=settings,
        protected=tuple(protected),
        engine=configuration.engine,
        folder=folder,
        opened=opened,
        mode=configuration.mode,
    )
    if configuration.outbox is not None:
        seconds = float(configuration.outbox.expiry)
        parts = replace(parts, outbox=tuple(configuration.outbox.tools), outbox_seconds=seconds)
    if workspace is None:
        return parts
    file, shown = Path(workspace), _shown(workspace)
    document = read(_text(file, ConfigurationError), _syntax(file, ConfigurationError), shown, ConfigurationError)
    narrowing = parse_narrowing(document, shown)
    narrowed = narrow(manifest, parse_settings(settings), narrowing, shown)
    settings = {**settings, **narrowing.settings}
    return replace(
        parts,
        manifest=narrowed.manifest,
        guests=tuple(file.parent / one for one in narrowing.policies),
        settings=settings,
        protected=(*protected, file),
        unavailable=narrowed.denied,
    )


def _opened(configuration: Configuration, folder: Path, where: str) -> OpenBundle | None:
    """The bundle that a configuration names, verified with the key that it names."""
    from interlock.model.configuration import ConfigurationError

    choice = configuration.bundle
    if choice is None:
        return None
    if configuration.policies or configuration.settings:
        raise ConfigurationError(f"{where}: the bundle holds controls and settings; leave policies and settings out")
    from interlock.policy.bundle_files import open_bundle  # loaded late: most configurations name folders
    from interlock.policy.signatures import read_key

    key = None
    if choice.key_file:
        key = read_key(folder / choice.key_file, choice.algorithm, choice.key_id, choice.scope)
    return open_bundle(folder / choice.file, key)


def _shown(path: str | os.PathLike[str]) -> str:
    """How errors call a file: relative to the current folder when it lies in it."""
    file = Path(path)
    here = Path.cwd()
    return str(file.relative_to(here)) if file.is_relative_to(here) else str(file)


def _text(file: Path, error: type[Misconfigured]) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        what = problem.strerror if isinstance(problem, OSError) else "not UTF-8"
        raise error(f"{_shown(file)}: can't be read: {what}") from None


def _syntax(file: Path, error: type[Misconfigured]) -> Syntax:
    if file.suffix == ".toml":
        return "toml"
    if file.suffix in (".yaml", ".yml"):
        return "yaml"
    raise error(f"{file}: must be a .toml, .yaml or .yml file")


@dataclass(frozen=True, slots=True)
class FixedClock:
    """Always tells the same time: for scenarios, whose verdicts must not depend on when they are run."""

    time: datetime

    def now(self) -> datetime:
        """See :meth:`interlock.ports.Clock.now`."""
        return self.time


def interlock_for(scenario: Scenario, folder: Path) -> Interlock:
    """The Interlock that a scenario file asks for; its paths are relative to the folder of the file."""
    parts = scenario_parts(scenario, folder)
    return Interlock._of(lambda: parts, None, MemoryJournal(), FixedClock(scenario.time))


def scenario_parts(scenario: Scenario, folder: Path) -> Parts:
    """What the Interlock of a scenario is made of.

    Raises:
        Misconfigured: any file that it names is wrong.
    """
    policies = tuple(folder / one for one in scenario.policies)
    if scenario.configuration:
        # The embedded engine, whichever the configuration names: a story is told without a server. And what it expects
        # is what is decided, so it is told as if decisions were enforced.
        parts = replace(read_parts(folder / scenario.configuration), engine=None, mode="enforce")
        return replace(parts, policies=(*parts.policies, *policies), settings={**parts.settings, **scenario.settings})
    inline = scenario.manifest
    manifest = Manifest.load(folder / inline) if isinstance(inline, str) else Manifest.parse(inline or {}, "manifest")
    return Parts(manifest, policies=policies, settings=scenario.settings)


def shipped_scenarios() -> Path:
    """Where the shipped stories of attacks are: inside an installed package, or among the tests of a checkout.

    Raises:
        Misconfigured: they are not there.
    """
    package = Path(__file__).resolve().parent
    for place in (package / "_scenarios", package.parent / "tests" / "scenarios"):
        if place.is_dir():
            return place
    raise Misconfigured("the shipped scenarios are not installed; install interlock again, or name a folder of attacks")


def interlock_with(scenario: Scenario, folder: Path, source: Source) -> Interlock:
    """The Interlock of a scenario with one file of its bundle replaced: a mutant, which no loader would let pass."""

    def mutant(engine: Engine) -> Engine:
        assert isinstance(engine, EmbeddedEngine)
        swapped = tuple(source if one.path == source.path else one for one in engine.bundle.sources)
        revision = digest("bundle", engine.revision.encode() + source.text.encode())
        return EmbeddedEngine(replace(engine.bundle, sources=swapped, revision=revision), ask_samples=False)

    return interlock_recording(scenario, folder, mutant)[0]


_E = TypeVar("_E", bound=Engine)


def interlock_recording(scenario: Scenario, folder: Path, wrap: Callable[[Engine], _E]) -> tuple[Interlock, _E]:
    """The Interlock of a scenario around another engine, which is made from its own."""
    parts = scenario_parts(scenario, folder)
    engine = wrap(EmbeddedEngine(bundled(parts)[1]))
    return Interlock._of(lambda: parts, engine, MemoryJournal(), FixedClock(scenario.time)), engine


def interlock_over(parts: Parts, engine: Engine, clock: Clock, files: Files) -> Interlock:
    """An Interlock of these parts around an engine that was made from them, with a journal in memory."""
    return Interlock._of(lambda: parts, engine, MemoryJournal(), clock, files)


_said: list[bool] = []


def _say_once_that_memory_forgets() -> None:
    if not _said:
        _said.append(True)
        _LOGGER.warning(
            "the journal is in memory: taint and decisions are lost when this process ends; pass journal= to keep them"
        )


def _silent(kind: str, problem: str) -> None:
    """Log that an OPA server gave no answer that counts, and why."""
    _log().warning("no answer", kind=kind, problem=problem)


def _decided(outcome: Outcome) -> None:
    """Log a refusal, at no cost when nobody listens. Holds no argument values."""
    if _LOGGER.isEnabledFor(logging.INFO):
        shadow = {} if outcome.decision.enforced else {"enforced": False}
        _log().info("decided", tool=outcome.tool, verdict=outcome.verdict.value, code=outcome.decision.code, **shadow)
