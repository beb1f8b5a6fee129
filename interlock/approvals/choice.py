"""From the operator's ``[approvals]`` to a channel. What a kind needs is imported when it is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from interlock.errors import Misconfigured
from interlock.gate.approval_steps import ApprovalRules
from interlock.ports import Approver, Clock, Journal, Questions, Store

if TYPE_CHECKING:
    from interlock.model.configuration import PauseChannel, StoreChannel, TerminalChannel, WebhookChannel


def rules_of(choice: TerminalChannel | StoreChannel | PauseChannel | WebhookChannel) -> ApprovalRules:
    """How long is waited and how long a yes is good."""
    return ApprovalRules(float(getattr(choice, "seconds", choice.expiry)), float(choice.expiry))


def approver_of(
    choice: TerminalChannel | StoreChannel | PauseChannel | WebhookChannel,
    folder: Path,
    journal: Journal | Store,
    questions: Questions,
    clock: Clock,
) -> Approver | None:
    """The channel that was chosen; None when the host answers.

    Args:
        folder: what paths are relative to.

    Raises:
        Misconfigured: what it needs is not there.
        ImportError: the extra that it needs is not installed.
    """
    if choice.channel == "pause":
        return None
    if choice.channel == "terminal":
        from interlock.approvals.terminal import Terminal

        return Terminal()
    if not isinstance(journal, Store) or getattr(journal, "database", None) is None:
        raise Misconfigured(
            f'approvals.channel: "{choice.channel}" needs a store that others can open; write [journal] with kind ='
            ' "sqlite" or "postgres"'
        )
    if choice.channel == "store":
        from interlock.approvals.elsewhere import Elsewhere

        return Elsewhere(journal)
    from interlock.approvals.elsewhere import Desk
    from interlock.approvals.webhook import Callbacks, CallbackServer, Webhook

    secret = _secret(folder, choice.secret_file)
    approver = Webhook(choice.url, secret, journal)
    if choice.listen:
        host, colon, port = choice.listen.rpartition(":")
        if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
            raise Misconfigured("approvals.listen: write host:port, such as 127.0.0.1:8091")
        approver.server = CallbackServer(
            Callbacks(secret, lambda namespace: Desk(journal, questions, clock, namespace)), host, int(port)
        )
    return approver


def _secret(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes().strip()
    except OSError as error:
        raise Misconfigured(f"approvals.secret_file: {name}: can't be read: {error.strerror}") from None
