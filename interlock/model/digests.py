"""Digests that say what they are digests of.

Every digest is SHA-256 over ``interlock/<kind>/v1``, a NUL and the bytes, so that the digest of a call can
never stand where the digest of an entry is expected (as leaf and node differ in RFC 6962).
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final, NewType

Digest = NewType("Digest", str)

NO_DIGEST: Final = Digest("")

KINDS: Final = (
    "artifact",
    "bundle",
    "call",
    "content",
    "decision",
    "document",
    "entry",
    "fact",
    "kept",
    "manifest",
    "message",
    "parcel",
    "pin",
    "state",
    "tool",
    "value",
    "voice",
)
_PREFIX: Final = {kind: hashlib.sha256(f"interlock/{kind}/v1\0".encode()) for kind in KINDS}


def digest(kind: str, data: bytes) -> Digest:
    """``sha256:`` and 64 hex digits. ``kind`` is one of :data:`KINDS`; any other raises ``KeyError``."""
    state = _PREFIX[kind].copy()
    state.update(data)
    return Digest("sha256:" + state.hexdigest())


def content_digest(text: str) -> Digest:
    """Digest of text that a tool or a person produced; lone surrogates are kept apart from ``?``."""
    return digest("content", text.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=4096)
def voice_digest(voice: str) -> Digest:
    """Digest of a party that content came from: a host can be made to carry a secret, so the journal holds no names."""
    return digest("voice", voice.encode("utf-8", "surrogatepass"))
