"""The operator's configuration file, and the file with which a workspace may narrow it.

``interlock.toml`` belongs to the operator: manifest, controls, settings, bundle, engine, journal. A *narrowing* file
belongs to a project and travels with its text, so it can be written by whoever writes the project: it may add labels,
controls and denials, and make settings stricter. Nothing in it can widen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from interlock.errors import ManifestError, Misconfigured, Refused
from interlock.model.labels import Label, Leg, label, leg_of
from interlock.model.manifest import Manifest, only_legs
from interlock.model.proxies import ProxyChoice
from interlock.model.settings import SETTING_VALUES, Settings
from interlock.model.tools import Effect, Egress, ToolId, ToolSpec
from interlock.model.validation import explained

_STRICT: Final = ConfigDict(extra="forbid", strict=True, frozen=True)


class ConfigurationError(Misconfigured):
    """A configuration or narrowing file is wrong; the message names the file and the place."""


# A day is the longest that anything waits for a person.
Seconds: TypeAlias = Annotated[int, Field(ge=1, le=86_400)]


class EmbeddedChoice(BaseModel):
    """In this process."""

    model_config = _STRICT
    kind: Literal["embedded"] = "embedded"


_Seconds: TypeAlias = Annotated[float, Field(ge=0.01, le=60, allow_inf_nan=False)]


class OpaChoice(BaseModel):
    """An OPA server that has the same policies. Files are relative to the configuration."""

    model_config = _STRICT
    kind: Literal["opa"]
    url: str
    revision: str = ""
    revision_at_least: str = ""
    bundle: str = ""
    entrypoint: str = "interlock.entrypoint.answers"
    decision_log: bool = False
    deadline: _Seconds = 1.0
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    connections: Annotated[int, Field(ge=1, le=1000)] = 32
    breaker_failures: Annotated[int, Field(ge=1, le=1000)] = 5
    breaker_seconds: _Seconds = 1.0
    token_file: str = ""
    ca_file: str = ""
    client_cert: str = ""
    client_key: str = ""
    plaintext: bool = False
    fallback: Literal["", "embedded"] = ""

    @model_validator(mode="after")
    def _one_revision(self) -> OpaChoice:
        if bool(self.revision) == bool(self.revision_at_least):
            raise ValueError(
                'say which revision may answer: revision = "same" (as the policies here), "any" or an exact one; or'
                " revision_at_least"
            )
        return self

    @property
    def files(self) -> tuple[str, ...]:
        """What it reads; whoever can change one of them can decide who answers."""
        return tuple(one for one in (self.token_file, self.ca_file, self.client_cert, self.client_key) if one)


EngineChoice: TypeAlias = Annotated[EmbeddedChoice | OpaChoice, Field(discriminator="kind")]


Algorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "HS256", "HS384", "HS512"
]


class BundleChoice(BaseModel):
    """An archive with all controls and settings, and the key that it must be signed with. Files are relative to the
    configuration."""

    model_config = _STRICT
    file: Annotated[str, Field(min_length=1)]
    key_file: str = ""
    algorithm: Algorithm = "RS256"
    key_id: str = ""
    scope: str = ""

    @model_validator(mode="after")
    def _a_key_for_it(self) -> BundleChoice:
        if not self.key_file and self.model_fields_set - {"file"}:
            raise ValueError("key_file is missing: without a key nothing would be verified")
        return self

    @property
    def files(self) -> tuple[str, ...]:
        """What it reads; whoever can change one of them can decide what is allowed."""
        return tuple(one for one in (self.file, self.key_file) if one)


class MemoryChoice(BaseModel):
    """In this process only: chosen by name, so that nobody is surprised by what is forgotten."""

    model_config = _STRICT
    kind: Literal["memory"]


class SqliteChoice(BaseModel):
    """One file for the processes of one machine. ``path`` is relative to the configuration."""

    model_config = _STRICT
    kind: Literal["sqlite"]
    path: Annotated[str, Field(min_length=1)]
    durability: Literal["full", "process"] = "full"
    key_file: str = ""


class PostgresChoice(BaseModel):
    """A database for many processes. Its dsn stands here, or in an environment variable that ``dsn_from`` names."""

    # No message and no listing of it shows the dsn, in which a password may stand.
    model_config = {**_STRICT, "hide_input_in_errors": True}
    kind: Literal["postgres"]
    dsn: Annotated[str, Field(repr=False)] = ""
    dsn_from: str = ""
    durability: Literal["full", "process"] = "full"
    connections: Annotated[int, Field(ge=1, le=1000)] = 8
    plaintext: bool = False
    key_file: str = ""

    @model_validator(mode="after")
    def _one_dsn(self) -> PostgresChoice:
        if bool(self.dsn) == bool(self.dsn_from):
            raise ValueError("give dsn, or the name of an environment variable as dsn_from")
        return self


JournalChoice: TypeAlias = Annotated[MemoryChoice | SqliteChoice | PostgresChoice, Field(discriminator="kind")]


class OtelChoice(BaseModel):
    """A collector that spans of guarded calls go to. ``headers_from`` names an environment variable: ``k=v,k2=v2``."""

    model_config = _STRICT
    endpoint: Annotated[str, Field(min_length=1)]
    headers_from: str = ""
    service: Annotated[str, Field(min_length=1)] = "interlock"
    queue: Annotated[int, Field(ge=1, le=1_000_000)] = 2048
    timeout: Annotated[float, Field(gt=0, le=600, strict=False)] = 10.0
    plaintext: bool = False


class TerminalChannel(BaseModel):
    """The terminal that the agent runs at. ``seconds``: how long is waited; ``expiry``: how long a yes is good."""

    model_config = _STRICT
    channel: Literal["terminal"]
    seconds: Seconds = 120
    expiry: Seconds = 900


class StoreChannel(BaseModel):
    """Somebody answers with ``interlock approvals``, from another terminal; needs a store on disk."""

    model_config = _STRICT
    channel: Literal["store"]
    seconds: Seconds = 600
    expiry: Seconds = 900


class PauseChannel(BaseModel):
    """The host pauses and answers by itself (``guard.answer``)."""

    model_config = _STRICT
    channel: Literal["pause"]
    expiry: Seconds = 900


class WebhookChannel(BaseModel):
    """A service is told, signed, and its signed answer taken at ``listen`` (``host:port``), or by a host's server."""

    model_config = _STRICT
    channel: Literal["webhook"]
    url: Annotated[str, Field(min_length=1)]
    secret_file: Annotated[str, Field(min_length=1)]
    listen: str = ""
    seconds: Seconds = 600
    expiry: Seconds = 900


ApprovalChoice: TypeAlias = Annotated[
    TerminalChannel | StoreChannel | PauseChannel | WebhookChannel, Field(discriminator="channel")
]


class OutboxChoice(BaseModel):
    """Tools whose calls are drafted, as ``name`` or ``server/name``; ``expiry``: for how long a draft may be sent."""

    model_config = _STRICT
    tools: Annotated[list[str], Field(min_length=1)]
    expiry: Annotated[int, Field(ge=1, le=30 * 86_400)] = 86_400


class Configuration(BaseModel):
    """``interlock.toml``. Paths are relative to the file. Tools may stand here, in ``manifest`` files, or in both."""

    model_config = _STRICT
    version: Annotated[int, Field(ge=1, le=1)]
    mode: Literal["enforce", "shadow"] = "enforce"
    manifest: list[str] = []
    policies: list[str] = []
    scenarios: list[str] = []
    settings: dict[str, Any] = {}
    bundle: BundleChoice | None = None
    engine: EngineChoice = Field(default_factory=EmbeddedChoice)
    journal: JournalChoice | None = None
    otel: OtelChoice | None = None
    approvals: ApprovalChoice | None = None
    outbox: OutboxChoice | None = None
    mcp: ProxyChoice | None = None
    tools: dict[str, Any] = {}
    servers: dict[str, Any] = {}


class NarrowedTool(BaseModel):
    """Labels to add to a declared tool, and stronger classes for it."""

    model_config = _STRICT
    returns: list[str] = []
    reads: list[str] = []
    opens: list[str] = []
    egress: Literal["none", "blind", "chosen"] = "none"
    effect: Literal["none", "add", "write", "destroy", "control"] = "none"


class Narrowing(BaseModel):
    """A workspace's file: what it adds."""

    model_config = _STRICT
    version: Annotated[int, Field(ge=1, le=1)]
    deny: list[str] = []
    policies: list[str] = []
    settings: dict[str, str] = {}
    tools: dict[str, NarrowedTool] = {}


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What is left after narrowing. ``denied`` tools are unavailable."""

    manifest: Manifest
    settings: Settings
    denied: frozenset[ToolId]


def parse_configuration(document: Mapping[str, Any], where: str) -> Configuration:
    """Read a configuration strictly. Raises ConfigurationError with every problem and its place."""
    return _parsed(Configuration, document, where)


def parse_narrowing(document: Mapping[str, Any], where: str) -> Narrowing:
    """Read a narrowing file strictly. Raises ConfigurationError with every problem and its place."""
    return _parsed(Narrowing, document, where)


_Kind = TypeVar("_Kind", bound=BaseModel)


def _parsed(kind: type[_Kind], document: Mapping[str, Any], where: str) -> _Kind:
    try:
        return kind.model_validate(dict(document))
    except ValidationError as error:
        raise ConfigurationError(explained(error, where)) from None


def narrow(manifest: Manifest, settings: Settings, file: Narrowing, where: str) -> Narrowed:
    """Apply a narrowing file.

    Raises:
        ConfigurationError: it names a tool that nobody declared, or would loosen a setting.
    """
    specs = dict(manifest.specs)
    problems: list[str] = []
    for name, change in file.tools.items():
        spec = specs.get(_tool(name))
        if spec is None:
            problems.append(f"{where}: tools.{name}: no such tool; a workspace can't declare tools, only narrow them")
            continue
        try:
            specs[spec.id] = _narrowed(f"{where}: tools.{name}", spec, change)
        except ManifestError as error:
            problems.append(str(error))
        except Refused as error:
            problems.append(f"{where}: tools.{name}: {error}")
    denied = set()
    for name in file.deny:
        meant = [tool for tool in specs if name in (str(tool), tool.name if not tool.server else None)]
        if not meant:
            problems.append(f"{where}: deny: no tool is called {name!r}; correct the name, or the denial stops nothing")
        denied.update(meant)
    values: dict[str, Any] = {}
    for name, value in file.settings.items():
        problem = _loosens(name, value, settings)
        if problem:
            problems.append(f"{where}: settings.{name}: {problem}")
        values[name] = value
    if problems:
        raise ConfigurationError("\n".join(problems))
    return Narrowed(type(manifest)(specs), settings.model_copy(update=values), frozenset(denied))


def _tool(name: str) -> ToolId:
    server, slash, tool = name.partition("/")
    return ToolId(server, tool) if slash else ToolId("", name)


def _narrowed(place: str, spec: ToolSpec, change: NarrowedTool) -> ToolSpec:
    """The tool with what the workspace adds: in every clause of it too, and in every field of its results."""
    strangers = tuple(one for one in map(label, change.returns) if leg_of(one) is Leg.UNTRUSTED)
    fields = tuple(replace(one, labels=tuple(sorted({*one.labels, *strangers}))) for one in spec.fields)
    when = tuple(replace(one, spec=_narrowed(place, one.spec, change)) for one in spec.when)

    def more(field: str, *legs: Leg) -> tuple[Label, ...]:
        added = tuple(label(one) for one in getattr(change, field))
        only_legs(place, field, added, *legs)
        known: tuple[Label, ...] = getattr(spec, field)
        return (*known, *added)

    return replace(
        spec,
        returns=more("returns", Leg.UNTRUSTED, Leg.PRIVATE),
        reads=more("reads", Leg.PRIVATE),
        opens=more("opens", Leg.EGRESS),
        egress=max(spec.egress, Egress(change.egress), key=list(Egress).index),
        effect=max(spec.effect, Effect(change.effect), key=list(Effect).index),
        fields=fields if strangers else spec.fields,
        ids=() if strangers else spec.ids,
        when=when,
    )


# From strict to loose; a workspace may go to the left only.
_STRICTER: Final = ("deny", "ask", "off")
_METADATA: Final = ("ignored", "grounds")


def _loosens(name: str, value: str, settings: Settings) -> str:
    allowed = SETTING_VALUES.get(name)
    if allowed is None or name == "preset":
        names = ", ".join(sorted(SETTING_VALUES.keys() - {"preset"}))
        return f"a workspace can change {names} only, and only to something stricter"
    if value not in allowed:
        return f"{value!r} is not one of {', '.join(allowed)}"
    current = getattr(settings, name)
    order = _METADATA if name == "metadata" else _STRICTER
    if order.index(value) > order.index(current):
        return f"the operator says {current!r}; {value!r} would be looser"
    return ""
