"""Signatures over files of heads, so that others than who holds a secret can check them: detached JWS (RFC 7797).

The algorithm is the key's (Ed25519: EdDSA; P-256: ES256), never what the signature says of itself.
"""

from __future__ import annotations

from typing import Any, Final

from interlock.errors import Misconfigured, Tampered

TYPE: Final = "interlock-heads"


def sign(data: bytes, pem: bytes) -> str:
    """A detached signature.

    Args:
        pem: a private key, Ed25519 or P-256.

    Raises:
        Misconfigured: it is none.
        ImportError: the extra `sign` is not installed.
    """
    jws, algorithm, key = _prepared(pem)
    if not hasattr(key, "sign"):
        raise Misconfigured("the key is a public one; signing needs the private key")
    made: str = jws.PyJWS().encode(data, key, algorithm, headers={"typ": TYPE}, is_payload_detached=True)
    return made


def check(data: bytes, signature: str, pem: bytes) -> None:
    """Was this signed with the private half of this key?

    Raises:
        Tampered: it was not.
        Misconfigured: the key is none.
        ImportError: the extra `sign` is not installed.
    """
    jws, algorithm, key = _prepared(pem)
    public = key.public_key() if hasattr(key, "public_key") else key
    try:
        read = jws.PyJWS().decode_complete(signature.strip(), public, algorithms=[algorithm], detached_payload=data)
        # INVARIANT: a token that brings a payload of its own says nothing about this data.
        fits = read["header"].get("typ") == TYPE and read["header"].get("b64") is False and read["payload"] == data
    except (jws.PyJWTError, ValueError, TypeError):
        fits = False
    if not fits:
        raise Tampered(0, "the heads are not what was signed with this key")


def _prepared(pem: bytes) -> tuple[Any, str, Any]:
    try:
        import jwt
        from jwt import algorithms
        from jwt.exceptions import InvalidKeyError
    except ImportError as error:
        raise ImportError("signatures over heads need `pip install interlock[sign]`") from error
    if not getattr(algorithms, "has_crypto", False):
        raise ImportError("signatures over heads need `pip install interlock[sign]`")
    candidates = {
        "EdDSA": algorithms.OKPAlgorithm(),
        "ES256": algorithms.ECAlgorithm(algorithms.ECAlgorithm.SHA256),
    }
    for name, one in candidates.items():
        try:
            key: Any = one.prepare_key(pem)
        except (InvalidKeyError, ValueError, TypeError):
            continue
        curve = getattr(getattr(key, "curve", None), "name", "secp256r1")
        if curve == "secp256r1":
            return jwt, name, key
    raise Misconfigured("the key is no PEM file of an Ed25519 or P-256 key without a password")
