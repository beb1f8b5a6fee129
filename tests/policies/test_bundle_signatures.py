"""Proves that a signature holds what was signed, by the key and in the way that the operator said, and nothing else.

Every algorithm signs and verifies; every change to a signed bundle, to its token or to the key is refused. What OPA
itself makes of the same files stands in test_bundles_in_opa.py.

Mutations that it is shown to catch (scripts/mutate.py): the algorithm taken from the token, files that are not named
passed over, named files that are missing passed over, the scope not compared.
"""

from __future__ import annotations

import base64
import builtins
import gzip
import hashlib
import hmac
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest

from interlock.errors import Misconfigured, PolicyError
from interlock.policy.archives import files_of, written
from interlock.policy.bundle_files import DATA, MANIFEST
from interlock.policy.signatures import (
    ALGORITHMS,
    SIGNATURES,
    BadSignature,
    Key,
    check_signature,
    file_hash,
    read_key,
    signed,
)
from tests.ids import stable
from tests.policies.bundling import keys, pair, plain_files

TRIFECTA = "interlock/controls/trifecta/trifecta.rego"


def sealed(algorithm: Any = "RS256", **more: str) -> dict[str, bytes]:
    files = plain_files()
    return {**files, SIGNATURES: signed(files, keys(algorithm, **more)[0])}


def with_token(token: str | list[str], **more: Any) -> dict[str, bytes]:
    tokens = [token] if isinstance(token, str) else token
    return {**plain_files(), SIGNATURES: json.dumps({"signatures": tokens, **more}).encode()}


def claims(**more: Any) -> dict[str, Any]:
    files = plain_files().items()
    listed = [{"name": name, "hash": file_hash(name, data, "SHA-256"), "algorithm": "SHA-256"} for name, data in files]
    return {"files": listed, **more}


def token(payload: dict[str, Any], algorithm: str = "RS256", **headers: Any) -> str:
    return jwt.encode(payload, pair("RS")[0], algorithm=algorithm, headers=headers or None)


def part(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def refused(files: dict[str, bytes], key: Key, why: str) -> None:
    with pytest.raises(BadSignature, match=why):
        check_signature(files, key, "it")


# --- every algorithm --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_holds(algorithm: Any) -> None:
    files = sealed(algorithm, key_id="k1", scope="read")
    again = files_of(written(files), "it")
    check_signature(again, keys(algorithm, key_id="k1", scope="read")[1], "it")
    for other in ALGORITHMS:
        if other != algorithm:
            refused(again, keys(other, key_id="k1", scope="read")[1], f"not one by public.pem with {other}")
    again[TRIFECTA] += b"\n"
    refused(again, keys(algorithm, key_id="k1", scope="read")[1], "trifecta.rego is not what was signed")


def test_without_chance_the_same_files_give_the_same_token() -> None:
    assert sealed()[SIGNATURES] == sealed()[SIGNATURES]
    assert sealed("HS256")[SIGNATURES] == sealed("HS256")[SIGNATURES]


def test_white_space_of_data_means_nothing() -> None:
    """As in OPA: what the data says is signed, not how it is written."""
    files = sealed()
    files[DATA] = json.dumps(json.loads(files[DATA]), indent=3).encode()
    check_signature(files, keys()[1], "it")


# --- changed bundles --------------------------------------------------------------------------------------------------

Change = Callable[[dict[str, bytes]], object]


def _swap(files: dict[str, bytes]) -> None:
    one, other = TRIFECTA, TRIFECTA.replace("trifecta", "lockdown")
    files[one], files[other] = files[other], files[one]


def _setting(files: dict[str, bytes]) -> None:
    data = json.loads(files[DATA])
    data["settings"]["trifecta"] = "ask"
    files[DATA] = json.dumps(data).encode()


CHANGES: dict[str, tuple[Change, str]] = {
    "a file changed": (lambda files: files.update({TRIFECTA: files[TRIFECTA] + b" "}), "is not what was signed"),
    "a file added": (lambda files: files.update({"x.rego": b"package controls.x\n"}), "x.rego is not signed"),
    "data added": (lambda files: files.update({"controls/data.json": b"{}"}), "is not signed"),
    "a file removed": (lambda files: files.pop(TRIFECTA), "was signed and is missing"),
    "two files exchanged": (_swap, "is not what was signed"),
    "a file moved": (lambda files: files.update({"x.rego": files.pop(TRIFECTA)}), "x.rego is not signed"),
    "the manifest edited": (lambda files: files.update({MANIFEST: b'{"roots":[]}'}), "manifest is not what was signed"),
    "a setting changed": (_setting, "data.json is not what was signed"),
    "a key of the data twice": (
        lambda files: files.update({DATA: files[DATA][:-1] + b',"settings":{}}'}),
        "not JSON with one meaning",
    ),
    "data in UTF-16": (lambda files: files.update({DATA: files[DATA].decode().encode("utf-16")}), "not JSON with one"),
    "YAML data": (lambda files: files.update({"data.yaml": b"{}"}), "is not signed"),
    "no signature": (lambda files: files.pop(SIGNATURES), "not signed"),
    "an empty signature": (lambda files: files.update({SIGNATURES: b""}), "unreadable"),
    "no token": (lambda files: files.update({SIGNATURES: b'{"signatures":[]}'}), "exactly one token"),
    "a list": (lambda files: files.update({SIGNATURES: b"[]"}), "exactly one token"),
}


@pytest.mark.parametrize("what", CHANGES, ids=stable)
@pytest.mark.parametrize("algorithm", ["RS256", "HS256"])
def test_a_changed_bundle_is_refused(algorithm: Any, what: str) -> None:
    change, why = CHANGES[what]
    files = sealed(algorithm)
    change(files)
    refused(files, keys(algorithm)[1], why)


def test_every_byte_of_a_token_counts() -> None:
    """But for the last characters of a part, whose lowest bits are no bits of its bytes."""
    files = sealed("HS256")
    text = json.loads(files[SIGNATURES])["signatures"][0]
    for place in range(0, len(text) - 1, 97):
        if text[place] == "." or text[place + 1] == ".":
            continue
        other = "A" if text[place] != "A" else "B"
        refused(with_token(text[:place] + other + text[place + 1 :]), keys("HS256")[1], "not one by")


def test_every_byte_of_an_archive_counts() -> None:
    """One byte changed anywhere, and the checksum of the compression made right: refused, or it meant nothing."""
    files = sealed("HS256")
    plain = gzip.decompress(written(files))
    step = 13 if os.environ.get("INTERLOCK_PROFILE") == "deep" else 257
    refusals = 0
    for place in range(0, len(plain), step):
        changed = plain[:place] + bytes([plain[place] ^ 0x20]) + plain[place + 1 :]
        try:
            found = files_of(gzip.compress(changed, 0), "it")
            check_signature(found, keys("HS256")[1], "it")
        except PolicyError:
            refusals += 1
        else:
            assert found == files or {DATA, MANIFEST} >= {name for name in files if found[name] != files[name]}
    assert refusals > 0.95 * len(range(0, len(plain), step))


# --- tokens that say how they want to be read -------------------------------------------------------------------------


def _confused() -> str:
    """Signed with the public key, which anybody has, as if it were a secret."""
    body = f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims())}"
    return f"{body}.{part(hmac.digest(pair('RS')[1], body.encode(), 'sha256'))}"


def _changed(index: int, **more: Any) -> dict[str, Any]:
    payload = claims()
    payload["files"][index].update(more)
    return payload


TOKENS: dict[str, tuple[Callable[[], str | list[str]], str]] = {
    "no algorithm": (lambda: f"{part({'alg': 'none'})}.{part(claims())}.", "not one by"),
    "no algorithm, in capitals": (lambda: f"{part({'alg': 'NONE'})}.{part(claims())}.", "not one by"),
    "the public key as a secret": (_confused, "not one by"),
    "another algorithm of the same key": (lambda: token(claims(), "RS512"), "not one by"),
    "PSS instead": (lambda: token(claims(), "PS256"), "not one by"),
    "a key of its own": (
        lambda: jwt.encode(claims(), pair("RS-other")[0], "RS256", headers={"jwk": {"kty": "oct", "k": "AA"}}),
        "not one by",
    ),
    "no signature": (lambda: token(claims()).rpartition(".")[0] + ".", "not one by"),
    "two parts": (lambda: token(claims()).rpartition(".")[0], "not one by"),
    "no token": (lambda: "x", "not one by"),
    "two tokens": (lambda: [token(claims()), token(claims())], "exactly one"),
    "no files": (lambda: token({}), "no list of files"),
    "an empty list of files": (lambda: token({"files": []}), "is not signed"),
    "files that are no list": (lambda: token({"files": {"a": "b"}}), "no list of files"),
    "files without hashes": (lambda: token({"files": [{"name": DATA}]}), "no list of files"),
    "a file named twice": (lambda: token({"files": [*claims()["files"], claims()["files"][0]]}), "twice"),
    "a file named twice, with a slash": (
        lambda: token({"files": [*claims()["files"], {**claims()["files"][0], "name": "/.manifest"}]}),
        "twice",
    ),
    "MD5": (lambda: token(_changed(0, algorithm="MD5")), "SHA-256 or better"),
    "SHA-1": (lambda: token(_changed(0, algorithm="SHA-1")), "SHA-256 or better"),
    "another hash": (lambda: token(_changed(0, hash="0" * 64)), "is not what was signed"),
    "a scope that nobody configured": (lambda: token(claims(scope="write")), "scope 'write'"),
    "expired": (lambda: token(claims(exp=int(time.time()) - 10)), "not one by"),
    "not yet valid": (lambda: token(claims(nbf=int(time.time()) + 1000)), "not one by"),
}


@pytest.mark.parametrize("what", TOKENS, ids=stable)
def test_what_a_token_wants_counts_for_nothing(what: str) -> None:
    make, why = TOKENS[what]
    refused(with_token(make()), keys()[1], why)


def test_honest_tokens_of_others() -> None:
    check_signature(with_token(token(claims())), keys()[1], "it")
    check_signature(with_token(token(claims()), plugin="_default"), keys()[1], "it")
    check_signature(with_token(token(claims(iss="ci", iat=1, aud="opa"))), keys()[1], "it")
    mixed = claims()
    for one, algorithm in zip(mixed["files"], ("SHA-384", "SHA-512"), strict=False):
        one.update(algorithm=algorithm, hash=file_hash(one["name"], plain_files()[one["name"]], algorithm).upper())
    check_signature(with_token(token(mixed)), keys()[1], "it")


def test_ids_of_keys_and_scopes() -> None:
    named = sealed(key_id="k1")
    check_signature(named, keys(key_id="k1")[1], "it")
    check_signature(named, keys()[1], "it")  # the operator has one key: it is that one, whatever it is called
    refused(named, keys(key_id="k2")[1], "'k2' is the one that counts")
    refused(with_token(token(claims(keyid="k1"))), keys(key_id="k2")[1], "'k2' is the one")
    header = jwt.get_unverified_header(json.loads(named[SIGNATURES])["signatures"][0])
    assert header["kid"] == "k1"
    refused(sealed(), keys(scope="read")[1], "not for 'read'")
    refused(sealed(scope="read"), keys()[1], "for the scope 'read'")
    refused(with_token(token(claims()), plugin="mine"), keys()[1], "plugin")
    refused(with_token(token(claims()), more=1), keys()[1], "exactly one token")


def test_another_key_is_another_key() -> None:
    refused(sealed(), keys(kind="RS-other")[1], "not one by")


# --- keys -------------------------------------------------------------------------------------------------------------


def _rsa(part: int) -> bytes:
    return pair("RS")[part]


BAD_KEYS: dict[str, tuple[str, Any, Callable[[], bytes]]] = {
    "public to sign": ("sign", "RS256", lambda: _rsa(1)),
    "private to verify": ("verify", "RS256", lambda: _rsa(0)),
    "RSA for a curve": ("sign", "ES256", lambda: _rsa(0)),
    "a curve for RSA": ("verify", "RS256", lambda: pair("ES256")[1]),
    "another curve": ("sign", "ES384", lambda: pair("ES256")[0]),
    "another curve to verify": ("verify", "ES512", lambda: pair("ES256")[1]),
    "too weak": ("sign", "RS256", lambda: pair("weak")[0]),
    "too weak to verify": ("verify", "PS512", lambda: pair("weak")[1]),
    "PEM as a secret": ("verify", "HS256", lambda: _rsa(1)),
    "a short secret": ("sign", "HS256", lambda: b"a short secret"),
    "a secret too short for its hash": ("verify", "HS512", lambda: b"x" * 63),
    "no PEM": ("verify", "RS256", lambda: b"hello"),
    "half a PEM": ("verify", "RS256", lambda: _rsa(1)[:100]),
    "a certificate": ("verify", "RS256", lambda: _rsa(1).replace(b"PUBLIC KEY", b"CERTIFICATE")),
    "nothing": ("sign", "HS256", lambda: b""),
}


@pytest.mark.parametrize("what", BAD_KEYS, ids=stable)
def test_a_key_fits_its_algorithm_or_is_none(what: str) -> None:
    act, algorithm, make = BAD_KEYS[what]
    secret = make()
    key = Key(secret, "the-key", algorithm)
    with pytest.raises(Misconfigured, match="the-key") as caught:
        signed(plain_files(), key) if act == "sign" else check_signature(sealed(), key, "it")
    assert not secret or secret.decode("latin-1") not in str(caught.value) + repr(key)


def test_keys_are_read_byte_for_byte(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"x" * 40 + b"\n")
    assert read_key(file, "HS256").secret == b"x" * 40 + b"\n"
    with pytest.raises(Misconfigured, match="can't be read"):
        read_key(tmp_path / "none")


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name == "jwt":
            raise ImportError(name)
        return real(name, *more)

    files, key = sealed(), keys()[1]
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install interlock\[sign\]"):
        check_signature(files, key, "it")


# --- hashes -----------------------------------------------------------------------------------------------------------


def test_hashes_of_structured_files() -> None:
    plain = hashlib.sha256('{"a":[1.0,-0,1E5,true,null],"b":"é\\u2028<&>\\b\\f\x7f"}'.encode()).hexdigest()
    text = ' {"b": "\\u00e9\\u2028<&>\\b\\f\x7f", "a": [1.0, -0, 1E5, true, null] }\n'
    assert file_hash("x/data.json", text.encode(), "SHA-256") == plain
    assert file_hash(".manifest", text.encode(), "SHA-256") == plain
    assert file_hash("other.json", text.encode(), "SHA-256") == hashlib.sha256(text.encode()).hexdigest()
    with pytest.raises(PolicyError, match="YAML"):
        file_hash("data.yml", b"a: 1", "SHA-256")
