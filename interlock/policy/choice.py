"""From the operator's ``[engine]`` to an engine. What a kind needs is imported when it is chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.errors import Misconfigured
from interlock.policy.bundle import Bundle
from interlock.policy.embedded import EmbeddedEngine
from interlock.ports import Engine

if TYPE_CHECKING:
    from interlock.model.configuration import EmbeddedChoice, OpaChoice
    from interlock.policy.opa import OpaEngine

SAME = "same"
ANY = "any"


def chosen_engine(
    choice: EmbeddedChoice | OpaChoice | None, folder: Path, bundle: Bundle, said: Callable[[str, str], None]
) -> Engine:
    """The engine that was chosen, for a bundle.

    Args:
        folder: what its files are relative to.
        said: told the kind and the text of everything that is no answer of an OPA server.

    Raises:
        Misconfigured: it can't work as it is configured, or the bundle does not load. Connects to nothing.
        ImportError: the extra that it needs is not installed.
    """
    embedded = EmbeddedEngine(
        bundle
    )  # also where another one answers: it finds what does not load, and is the fallback
    if choice is None or choice.kind == "embedded":
        return embedded
    engine = opa_engine(choice, folder, bundle, said)
    if not choice.fallback:
        return engine
    from interlock.policy.fallback import FallbackEngine

    return FallbackEngine(engine, embedded)


def opa_engine(choice: OpaChoice, folder: Path, bundle: Bundle, said: Callable[[str, str], None]) -> OpaEngine:
    """The engine over a server alone. Raises Misconfigured and ImportError, see :func:`chosen_engine`."""
    from interlock.policy.opa import Contract, Limits, OpaEngine
    from interlock.policy.opa_client import OpaServer
    from interlock.policy.revisions import Demand, orderable

    if choice.revision_at_least and not orderable(choice.revision_at_least):
        raise Misconfigured(
            f"engine.revision_at_least: {choice.revision_at_least!r} holds no number, so nothing is later than it"
        )
    exact = {SAME: bundle.revision, ANY: ""}.get(choice.revision, choice.revision)

    def file(name: str) -> Path | None:
        return folder / name if name else None

    server = OpaServer(
        url=choice.url,
        entrypoint=choice.entrypoint,
        ca_file=file(choice.ca_file),
        client_cert=file(choice.client_cert),
        client_key=file(choice.client_key),
        token_file=file(choice.token_file),
        plaintext=choice.plaintext,
        connections=choice.connections,
    )
    return OpaEngine(
        bundle,
        server,
        contract=Contract(Demand(exact, choice.revision_at_least), choice.bundle, choice.decision_log),
        limits=Limits(choice.deadline, choice.retries, choice.breaker_failures, choice.breaker_seconds),
        said=said,
    )
