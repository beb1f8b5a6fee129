"""A token that the key had signed for something else passed as the signature of any file of heads.

Heads are signed without being in the token. A token that brings its own contents was checked against these, and the
file of heads was looked at by nobody.
Mutation that this file catches: no look at what the signature was over.
"""

from __future__ import annotations

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from interlock.errors import Tampered
from interlock.stores import signing

KEY = Ed25519PrivateKey.generate()
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize("payload", [b"something else", b"the heads"])
def test_a_token_with_its_own_contents_signs_no_heads(payload: bytes) -> None:
    token = jwt.PyJWS().encode(payload, KEY, "EdDSA", headers={"typ": signing.TYPE})
    with pytest.raises(Tampered):
        signing.check(b"the heads", token, PEM)


def test_a_detached_signature_does() -> None:
    signing.check(b"the heads", signing.sign(b"the heads", PEM), PEM)
    with pytest.raises(Tampered):
        signing.check(b"other heads", signing.sign(b"the heads", PEM), PEM)
