"""Signatures of bundles, in OPA's format: a token in ``.signatures.json`` that names every file with its hash.

What stands in the token decides nothing about how it is read: the algorithm, the key, its id and the scope are the
operator's, so a token that asks for another algorithm, or for none, is no signature. Every file in the bundle must be
named, and every named file must be there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, get_args

from interlock.errors import Misconfigured, NotCanonical, PolicyError
from interlock.model.canonical import parse
from interlock.model.configuration import Algorithm

SIGNATURES: Final = ".signatures.json"
MAX_KEY_BYTES: Final = 64 << 10
ALGORITHMS: Final[tuple[str, ...]] = get_args(Algorithm)
_HASHES: Final = {"SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512"}  # OPA also takes MD5 and SHA-1


class BadSignature(PolicyError):
    """A bundle is not what the holder of the key signed."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the operator, and how it is used.

    Attributes:
        secret: PEM, or for ``HS…`` the secret as it is, byte for byte.
        where: how errors call it; the secret itself is in no message.
        key_id: told to verifiers that know several keys; a token that names another one is refused.
        scope: what the signature is for; must be equal on both sides.
    """

    secret: bytes = field(repr=False)
    where: str
    algorithm: Algorithm = "RS256"
    key_id: str = ""
    scope: str = ""


def read_key(path: Path, algorithm: Algorithm = "RS256", key_id: str = "", scope: str = "") -> Key:
    """A key out of a file.

    Raises:
        Misconfigured: it can't be read.
    """
    try:
        with path.open("rb") as file:
            secret = file.read(MAX_KEY_BYTES + 1)
    except OSError as error:
        raise Misconfigured(f"{path}: the key can't be read: {error.strerror}") from None
    if len(secret) > MAX_KEY_BYTES:
        raise Misconfigured(f"{path}: larger than {MAX_KEY_BYTES} bytes, so it is no key")
    return Key(secret, str(path), algorithm, key_id, scope)


def signed(files: Mapping[str, bytes], key: Key) -> bytes:
    """The contents of ``.signatures.json`` for these files.

    Raises:
        Misconfigured: the key does not fit its algorithm, or is too weak.
        PolicyError: a structured file is no JSON that has one meaning.
    """
    jwt = _jwt()
    usable = _usable(jwt, key, private=True)
    listed = [
        {"name": name, "hash": file_hash(name, data, "SHA-256"), "algorithm": "SHA-256"}
        for name, data in sorted(files.items())
        if name != SIGNATURES
    ]
    claims: dict[str, Any] = {"files": listed}
    if key.key_id:
        claims["keyid"] = key.key_id  # for OPA before 1.0, which looked here
    if key.scope:
        claims["scope"] = key.scope
    headers = {"kid": key.key_id} if key.key_id else None
    # No time stands in it: the same files and key give the same token, with algorithms that use no chance.
    token = jwt.encode(claims, usable, algorithm=key.algorithm, headers=headers)
    return json.dumps({"signatures": [token]}, indent=1).encode() + b"\n"


def check_signature(files: Mapping[str, bytes], key: Key, shown: str) -> None:
    """Hold a bundle's files against its signature.

    Raises:
        BadSignature: it is unsigned, or anything differs from what was signed.
        Misconfigured: the key does not fit its algorithm, or is too weak.
    """
    jwt = _jwt()
    usable = _usable(jwt, key, private=False)
    token = _token(files, shown)
    try:
        header = jwt.get_unverified_header(token)
        # INVARIANT: the algorithm is the operator's. Guards against alg none and a public key used as a secret.
        claims = jwt.decode(token, usable, algorithms=[key.algorithm], options={"verify_aud": False})
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
        raise BadSignature(
            f"{shown}: the signature is not one by {key.where} with {key.algorithm} ({type(error).__name__})"
        ) from None
    named = header.get("kid") or claims.get("keyid") or ""
    if key.key_id and named and named != key.key_id:
        raise BadSignature(f"{shown}: signed with the key {named!r}, and {key.key_id!r} is the one that counts")
    if claims.get("scope", "") != key.scope:
        raise BadSignature(f"{shown}: signed for the scope {claims.get('scope', '')!r}, not for {key.scope!r}")
    _hold(files, _listed(claims.get("files"), shown), shown)


def _token(files: Mapping[str, bytes], shown: str) -> str:
    data = files.get(SIGNATURES)
    if data is None:
        raise BadSignature(f"{shown}: not signed; sign it with `interlock bundle sign`")
    try:
        value = parse(data)
    except NotCanonical as error:
        raise BadSignature(f"{shown}: {SIGNATURES} is unreadable: {error}") from None
    tokens = value.get("signatures") if isinstance(value, dict) and set(value) <= {"signatures", "plugin"} else None
    if not isinstance(tokens, list) or len(tokens) != 1 or not isinstance(tokens[0], str):
        raise BadSignature(f"{shown}: {SIGNATURES} must hold exactly one token")
    if isinstance(value, dict) and value.get("plugin", "_default") not in ("", "_default"):
        raise BadSignature(f"{shown}: signed by a plugin of OPA, which can't be checked here")
    return tokens[0]


def _listed(found: Any, shown: str) -> dict[str, tuple[str, str]]:
    """Hash and its algorithm by name of file."""
    listed: dict[str, tuple[str, str]] = {}
    for one in found if isinstance(found, list) else [None]:
        name, value, algorithm = (
            one.get(key) if isinstance(one, dict) else None for key in ("name", "hash", "algorithm")
        )
        if not isinstance(name, str) or not isinstance(value, str) or not isinstance(algorithm, str):
            raise BadSignature(f"{shown}: the signature has no list of files")
        name = name.removeprefix("/")
        if name in listed:
            raise BadSignature(f"{shown}: the signature names {name} twice")
        if algorithm not in _HASHES:
            raise BadSignature(f"{shown}: {name} is signed with the hash {algorithm!r}; use SHA-256 or better")
        listed[name] = (algorithm, value)
    return listed


def _hold(files: Mapping[str, bytes], listed: Mapping[str, tuple[str, str]], shown: str) -> None:
    there = set(files) - {SIGNATURES}
    for name in sorted(there - set(listed)):
        raise BadSignature(f"{shown}: {name} is not signed; it was added afterwards")
    for name in sorted(set(listed) - there):
        raise BadSignature(f"{shown}: {name} was signed and is missing")
    for name, (algorithm, wanted) in sorted(listed.items()):
        if file_hash(name, files[name], algorithm) != wanted.lower():
            raise BadSignature(f"{shown}: {name} is not what was signed")


# --- hashes -----------------------------------------------------------------------------------------------------------


def file_hash(name: str, data: bytes, algorithm: str) -> str:
    """OPA's hash of a file: of its bytes, or for data and manifest of its JSON without what means nothing.

    Raises:
        PolicyError: YAML data, for which OPA's conversion would have to be guessed, or not JSON with one meaning.
    """
    base = name.rpartition("/")[2]
    if base in ("data.yaml", "data.yml"):
        raise BadSignature(f"{name}: YAML data can't be checked; keep data in data.json")
    content = _canonical(name, data) if base in ("data.json", ".manifest") else data
    return hashlib.new(_HASHES[algorithm], content).hexdigest()


class _Number(str):
    """A number as it is written: OPA hashes the text, so 1.0 and 1 differ."""


def _canonical(name: str, data: bytes) -> bytes:
    try:
        text = data.decode("utf-8")  # left to itself, Python's reader would take UTF-16 too
        parse(text)  # refuses repeated keys, depth, lone surrogates and other things that readers differ about
        value = json.loads(text, parse_int=_Number, parse_float=_Number)
    except (NotCanonical, ValueError) as error:
        raise BadSignature(f"{name}: not JSON with one meaning: {error}") from None
    return "".join(_walked(value)).encode()


def _walked(value: Any) -> list[str]:
    """What OPA feeds to its hash: keys in order, no space, primitives as Go's encoder writes them."""
    if isinstance(value, dict):
        inner = [[_text(key), ":", *_walked(value[key])] for key in sorted(value)]
    elif isinstance(value, list):
        inner = [_walked(one) for one in value]
    else:
        return [str(value) if isinstance(value, _Number) else _text(value)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    parts = [part for one in inner for part in (",", *one)]
    return [opening, *parts[1:], closing]


_SEPARATORS: Final = {0x2028: "\\u2028", 0x2029: "\\u2029"}  # Go escapes these two always


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).translate(_SEPARATORS)


# --- keys -------------------------------------------------------------------------------------------------------------

_CURVES: Final = {"ES256": 256, "ES384": 384, "ES512": 521}
_PEM: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----")


def _jwt() -> Any:
    try:
        import jwt
    except ImportError:
        raise ImportError("signatures of bundles need `pip install interlock[sign]`") from None
    return jwt


def _usable(jwt: Any, key: Key, *, private: bool) -> Any:
    """The key in the form that the library takes, if it is one for its algorithm and strong enough.

    Raises:
        Misconfigured: it is not.
    """
    kind = (_PEM.search(key.secret) or [b"", b""])[1].decode()
    if key.algorithm.startswith("HS"):
        needed = int(key.algorithm[2:]) // 8
        if kind or len(key.secret) < needed:
            problem = f"{key.algorithm} takes a secret of at least {needed} bytes, and no PEM"
            raise Misconfigured(f"{key.where}: {problem}; a public key is not secret")
        return key.secret
    if private == (not kind.endswith("PRIVATE KEY")) or kind == "CERTIFICATE":
        wanted = "private key to sign with" if private else "public key to verify with (PUBLIC KEY, no certificate)"
        raise Misconfigured(f"{key.where}: {key.algorithm} takes a PEM file with the {wanted}")
    try:
        usable = jwt.algorithms.get_default_algorithms()[key.algorithm].prepare_key(key.secret)
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise Misconfigured(f"{key.where}: not a key for {key.algorithm} ({type(error).__name__})") from None
    curve = _CURVES.get(key.algorithm)
    if usable.key_size != curve if curve else usable.key_size < 2048:
        wanted = f"the curve of {curve} bits" if curve else "at least 2048 bits"
        raise Misconfigured(f"{key.where}: {key.algorithm} takes a key of {wanted}, not of {usable.key_size}")
    return usable
