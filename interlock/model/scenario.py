"""Scenario files: stories of calls with the verdict that each must get.

One file is one case. Its stories share a manifest and settings; an attack stands beside an honest twin, so that a rule
that stops the one can't do it by stopping the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from interlock.errors import Misconfigured
from interlock.model.validation import explained

_STRICT: Final = ConfigDict(extra="forbid", strict=True)


class ScenarioError(Misconfigured):
    """A scenario file is wrong; the message names the file and the place."""


class Expected(BaseModel):
    """What a call must get. ``code`` and ``causes`` are checked when given; causes are the labels, in any order."""

    model_config = _STRICT
    expect: Literal["allow", "ask", "deny"]
    code: str = ""
    causes: list[str] | None = None


class CallStep(Expected):
    """One proposed call, and what its tool answers when it runs."""

    call: str
    server: str = ""
    arguments: Any = Field(default_factory=dict)
    result: Any = "ok"
    external: bool = True
    fails: bool = False


class DocumentStep(Expected):
    """A document that is asked of the engine as it stands, without a gate: what a search for disagreements found.

    Attributes:
        document: JSON text, since what engines part over may be how something is written.
        answers: if given, what every control must answer, as the engine writes it.
    """

    document: str
    answers: dict[str, Any] | None = None


class Step(BaseModel):
    """One step of a story: exactly one of its keys."""

    model_config = _STRICT
    user: str | None = None
    pasted: str | None = None
    admit: str | None = None
    labels: list[str] = []
    source: str = "scenario"
    batch: list[CallStep] | None = None
    one: CallStep | None = None
    asked: DocumentStep | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        """``call: …`` and ``document: …`` stand directly in the step."""
        for key, name in (("call", "one"), ("document", "asked")):
            if isinstance(value, dict) and key in value:
                return {name: value}
        return value

    @model_validator(mode="after")
    def _exactly_one(self) -> Step:
        given = [
            name for name in ("user", "pasted", "admit", "batch", "one", "asked") if getattr(self, name) is not None
        ]
        if len(given) != 1:
            raise ValueError("a step is one of user, pasted, admit, call, batch, document")
        return self

    @property
    def calls(self) -> list[CallStep]:
        return [self.one] if self.one is not None else (self.batch or [])


class Story(BaseModel):
    """A conversation from its first word on."""

    model_config = _STRICT
    kind: Literal["attack", "honest"]
    says: str
    steps: list[Step] = Field(min_length=1)


class Scenario(BaseModel):
    """One file.

    Either ``configuration`` names an ``interlock.toml``, or ``manifest`` is a path or the mapping itself; ``policies``
    are directories of the user's own controls. Paths are relative to the file. ``settings`` are laid over those of the
    configuration. ``now`` is the time of the story: verdicts must not depend on when somebody runs it.
    """

    model_config = _STRICT
    version: Annotated[int, Field(ge=1, le=1)]
    case: str = ""
    title: str
    configuration: str = ""
    manifest: str | dict[str, Any] | None = None
    now: str = "2026-11-30T12:00:00Z"
    settings: dict[str, Any] = {}
    policies: list[str] = []
    stories: dict[str, Story] = Field(min_length=1)

    @model_validator(mode="after")
    def _one_source(self) -> Scenario:
        if bool(self.configuration) == (self.manifest is not None):
            raise ValueError("name either a configuration or a manifest")
        datetime.fromisoformat(self.now)
        return self

    @property
    def time(self) -> datetime:
        """``now``, in UTC when it says no zone."""
        now = datetime.fromisoformat(self.now)
        return now if now.tzinfo else now.replace(tzinfo=UTC)


def parse_scenario(document: Mapping[str, Any], where: str) -> Scenario:
    """Read a scenario strictly.

    Raises:
        ScenarioError: every problem with its place.
    """
    try:
        return Scenario.model_validate(dict(document))
    except ValidationError as error:
        raise ScenarioError(explained(error, where)) from None
