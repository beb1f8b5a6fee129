"""Putting a bundle where OPA polls it: a file that a web server shows, or an address that takes a PUT.

OPA asks again and again whether the bundle changed, by its entity tag. So equal bytes are not written again, a file is
exchanged as a whole and durably, and an upload says which version it replaces: of two people who push at once, one is
told. What was put is read back, since what counts is what OPA gets.
"""

from __future__ import annotations

import ipaddress
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from interlock.errors import Conflict, Misconfigured, Unavailable
from interlock.policy.sources import MAX_ARCHIVE_BYTES

TIMEOUT: Final = 30.0


@dataclass(frozen=True, slots=True)
class Access:
    """How an address is spoken to.

    Attributes:
        token_file: holds a bearer token.
        ca_file: the authority that signed the server's certificate, if it is not a public one.
        plaintext: speak HTTP to another machine.
        read_back: fetch what was put; off for addresses that only take.
    """

    token_file: Path | None = None
    ca_file: Path | None = None
    plaintext: bool = False
    read_back: bool = True


def put_file(data: bytes, target: Path) -> bool:
    """Exchange a file as a whole. True when it changed.

    Raises:
        Unavailable: it can't be written; what was there is still there.
    """
    try:
        if target.is_file() and target.read_bytes() == data:
            return False  # its time stays, and with it the tag that servers make of it
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)  # a web server of another user reads it
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        _settle(target.parent)
    except OSError as error:
        raise Unavailable(f"{target}: can't be written: {error.strerror}; what was there is still there") from None
    return True


def _settle(folder: Path) -> None:
    """Make the new name durable, where folders can be opened."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put_address(data: bytes, address: str, access: Access) -> bool:
    """Upload by PUT. True when it changed.

    Redirects are not followed and proxies of the environment are not used: the token is for this server.

    Raises:
        Misconfigured: the address or a file of the access is wrong, or HTTP would leave this machine.
        Conflict: somebody else pushed meanwhile; look at what is there now.
        Unavailable: the server did not take it, or gives something else back.
    """
    headers = _checked(address, access)
    httpx = _httpx()
    try:
        verify = _verifying(access) if address.startswith("https:") else True
        with httpx.Client(trust_env=False, follow_redirects=False, timeout=TIMEOUT, verify=verify) as client:
            before, tag = _fetched(client, address, headers) if access.read_back else (None, "")
            if before == data:
                return False
            condition = (
                {"If-Match": tag} if tag else {"If-None-Match": "*"} if before is None and access.read_back else {}
            )
            typed = {"Content-Type": "application/gzip"}
            headed = {**headers, **typed, **condition}
            # Nothing but the status is read: what a server says about it may never end.
            with client.stream("PUT", address, content=data, headers=headed) as answer:
                status = answer.status_code
            if status == 412:
                raise Conflict(f"{_shown(address)}: somebody else pushed meanwhile; look at it, and push again")
            if status not in (200, 201, 202, 204):
                raise Unavailable(f"{_shown(address)}: the server answered {status} to the PUT")
            if access.read_back and _fetched(client, address, headers)[0] != data:
                raise Unavailable(f"{_shown(address)}: what was put is not what the server gives back")
    except httpx.HTTPError as error:
        raise Unavailable(
            f"{_shown(address)}: no answer ({type(error).__name__}); it may have the bundle or not"
        ) from None
    return True


def _fetched(client: Any, address: str, headers: dict[str, str]) -> tuple[bytes | None, str]:
    """What is there now, with its tag; None when nothing is."""
    with client.stream("GET", address, headers=headers) as answer:
        if answer.status_code == 404:
            return None, ""
        if answer.status_code != 200:
            raise Unavailable(f"{_shown(address)}: the server answered {answer.status_code} when asked what is there")
        found, due = bytearray(), time.monotonic() + TIMEOUT
        # As it was sent: a server that marks .gz files as compressed must not make us compare what they hold.
        for piece in answer.iter_raw():
            found += piece
            if len(found) > MAX_ARCHIVE_BYTES:
                raise Unavailable(f"{_shown(address)}: what is there is larger than any bundle")
            if time.monotonic() > due:
                raise Unavailable(f"{_shown(address)}: what is there did not come within {TIMEOUT:g} s")
        tag = answer.headers.get("ETag", "")
    return bytes(found), "" if tag.startswith("W/") else tag  # a weak tag can't be a condition of PUT


def _checked(address: str, access: Access) -> dict[str, str]:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.fragment:
        raise Misconfigured(
            f"{_shown(address)}: not an address to push to; write https://host/path, without a password"
        )
    if parts.scheme == "http" and not access.plaintext and not _here(parts.hostname):
        raise Misconfigured(
            f"{_shown(address)}: HTTP to another machine can be read and changed; use https, or --plaintext"
        )
    headers = {"Accept-Encoding": "identity"}
    if access.token_file is not None:
        try:
            token = access.token_file.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            token = ""
        if not token.isprintable() or not token or " " in token:
            raise Misconfigured(f"{access.token_file}: holds no token that can be read")
        headers["Authorization"] = f"Bearer {token}"
    return headers


def _here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _shown(address: str) -> str:
    """An address for messages, without the query, which may hold a key."""
    return address.partition("?")[0].rpartition("@")[2]


def _verifying(access: Access) -> Any:
    import ssl

    try:
        return ssl.create_default_context(cafile=None if access.ca_file is None else str(access.ca_file))
    except (OSError, ssl.SSLError) as error:
        raise Misconfigured(f"{access.ca_file}: no certificates can be read from it ({type(error).__name__})") from None


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise ImportError("pushing to an address needs `pip install interlock[push]`") from None
    return httpx
