"""What stands between the model and the tools in a run: nothing, a wall, or Interlock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from interlock import Conversation, Interlock
from interlock.model.results import text_for_model
from interlock.model.tools import ToolId

Run = Callable[[], Any]
# Says whether a person would approve a call that was asked about, given the call and whether the honest task needs it.
Approver = Callable[[str, dict[str, Any], bool], bool]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one call.

    Attributes:
        verdict: `allow`, `ask` or `deny`, before any approval.
        code: of the strictest control that objected.
        executed: was the tool entered, by verdict or by approval?
        shown: what the model sees; the refusal when it was not executed.
        approved: it ran because a person said yes.
    """

    verdict: str
    code: str
    executed: bool
    shown: str
    approved: bool = False


class Gate(Protocol):
    """One conversation's gate."""

    def call(self, name: str, arguments: dict[str, Any], run: Run, needed: bool) -> Answer: ...


def nobody(name: str, arguments: dict[str, Any], needed: bool) -> bool:
    """Nobody answers, so what is asked does not run."""
    del name, arguments, needed
    return False


def attentive(name: str, arguments: dict[str, Any], needed: bool) -> bool:
    """Approves what the honest task needs and nothing else."""
    del name, arguments
    return needed


def rubber_stamp(name: str, arguments: dict[str, Any], needed: bool) -> bool:
    """Approves everything."""
    del name, arguments, needed
    return True


APPROVERS: dict[str, Approver] = {"none": nobody, "attentive": attentive, "rubber stamp": rubber_stamp}


class AllowAll:
    """No interlock at all: every figure is measured against it."""

    def call(self, name: str, arguments: dict[str, Any], run: Run, needed: bool) -> Answer:
        del name, arguments, needed
        try:
            return Answer("allow", "allowed", True, text_for_model(run()))
        except Exception as error:  # what a tool raises is text for the model, as AgentDojo's own executor has it
            return Answer("allow", "allowed", True, f"{type(error).__name__}: {error}")


class DenyAll:
    """Nothing runs."""

    def call(self, name: str, arguments: dict[str, Any], run: Run, needed: bool) -> Answer:
        del name, arguments, run, needed
        return Answer("deny", "deny_all", False, "refused")


class Guarded:
    """Interlock, by its public face."""

    def __init__(self, lock: Interlock, prompt: str, approver: Approver) -> None:
        self._guard = lock.guard(Conversation.user(prompt))
        self._manifest = lock.manifest
        self._approver = approver

    def call(self, name: str, arguments: dict[str, Any], run: Run, needed: bool) -> Answer:
        outcome = self._guard.call(name, arguments, run=lambda **_: run())
        verdict, code = outcome.verdict.value, outcome.decision.code
        if verdict == "ask" and self._approver(name, arguments, needed):
            return Answer(verdict, code, True, self._approved(name, run), approved=True)
        return Answer(verdict, code, outcome.executed, outcome.for_model)

    def _approved(self, name: str, run: Run) -> str:
        """Run a call that a person approved.

        This version has no channel for approvals, so the tool is run here and what it brings enters by `admit`, with
        the labels that the manifest declares for the tool. What such a call makes (a file, a user) is therefore not
        known to have been made in this conversation, which can only cost a question more.
        """
        try:
            content = text_for_model(run())
        except Exception as error:
            content = f"{type(error).__name__}: {error}"
        spec = self._manifest.spec(ToolId("", name))
        labels = [str(one) for one in (*spec.returns, *spec.reads)]
        return self._guard.admit(content, labels=labels, source=f"approved call of {name}") if labels else content
