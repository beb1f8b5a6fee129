"""What a webhook signs, both ways: HMAC-SHA256 over what it is, when it was and every byte of it.

A question that is signed can't be sent back as an answer, and an answer is good for a few minutes and for one question.
Whoever has the secret may approve: keep it where only the service and the agent's host can read it.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, Literal

from interlock.errors import Misconfigured, Refused

TIMESTAMP: Final = "Interlock-Timestamp"
SIGNATURE: Final = "Interlock-Signature"
WINDOW: Final = 300
MIN_SECRET: Final = 32

Purpose = Literal["question", "answer"]


def strong(secret: bytes) -> bytes:
    """The secret. Raises Misconfigured: it is none, or too short to be one."""
    if type(secret) is not bytes or len(secret) < MIN_SECRET:
        raise Misconfigured(f"approvals.secret_file: a secret has at least {MIN_SECRET} bytes")
    return secret


def signature(secret: bytes, purpose: Purpose, timestamp: str, body: bytes) -> str:
    """The value of the signature's header."""
    message = f"interlock/{purpose}/v1\0{timestamp}\0".encode() + body
    return "v1=" + hmac.new(secret, message, hashlib.sha256).hexdigest()


def headers(secret: bytes, purpose: Purpose, now: float, body: bytes) -> dict[str, str]:
    """Both headers of a signed message."""
    timestamp = str(int(now))
    return {TIMESTAMP: timestamp, SIGNATURE: signature(secret, purpose, timestamp, body)}


def check(secret: bytes, purpose: Purpose, timestamp: str, given: str, body: bytes, now: float) -> None:
    """Refuse what is not signed, or was signed at another time than now.

    Raises:
        Refused: says which of both.
    """
    wanted = signature(secret, purpose, timestamp, body)
    # Compared as bytes: text that is not ASCII would raise.
    if not hmac.compare_digest(wanted.encode(), given.encode("utf-8", "surrogatepass")):
        raise Refused("the signature does not fit")
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        raise Refused("the timestamp is no number of seconds")
    if abs(now - int(timestamp)) > WINDOW:
        raise Refused(f"the timestamp is more than {WINDOW} seconds away; a recorded answer can't be used again")
