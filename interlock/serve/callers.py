"""Who may ask: callers by token or certificate, each with the namespace that is theirs.

The file is read again whenever it changes. While it can't be read, or is wrong, nobody is known: a file that names
nobody any more must not leave yesterday's names in force.

A token has 256 bits of chance, so a plain digest of it is enough at rest; what does not look like a token of ours is
not even looked up, and no password can be used as one.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
import threading
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from interlock.errors import Misconfigured, Refused
from interlock.model.names import namespace_name
from interlock.model.validation import explained

PREFIX: Final = "ilk_"
_TOKEN: Final = re.compile(r"ilk_[A-Za-z0-9_-]{43}")
_DIGEST: Final = r"^sha256:[0-9a-f]{64}$"
_STRICT: Final = ConfigDict(extra="forbid", strict=True, frozen=True)

Right = Literal["decide", "speak", "metrics"]


class Caller(BaseModel):
    """Somebody who may ask.

    Attributes:
        principal: name for the log.
        namespace: whose conversations they reach, and nobody else's.
        rights: ``decide``: begin conversations, propose, observe, admit, preview, inspect. ``speak``: hand in what the
            person typed, which vouches for destinations. ``metrics``: read ``/metrics``.
        token: ``sha256:…`` of a bearer token.
        subject: of a client certificate, as RFC 4514 writes it. With both, both are needed.
    """

    model_config = _STRICT
    principal: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.@/:-]+$")]
    namespace: str
    rights: Annotated[list[Right], Field(min_length=1)]
    token: Annotated[str, Field(pattern=_DIGEST)] = ""
    subject: Annotated[str, Field(max_length=1024)] = ""

    @model_validator(mode="after")
    def _known_by_something(self) -> Caller:
        if not self.token and not self.subject:
            raise ValueError("give token, subject, or both")
        try:
            namespace_name(self.namespace)
        except Refused as error:
            raise ValueError(str(error)) from None
        return self


class CallersFile(BaseModel):
    """``callers.toml``."""

    model_config = _STRICT
    version: Annotated[int, Field(ge=1, le=1)]
    callers: Annotated[list[Caller], Field(min_length=1)]

    @model_validator(mode="after")
    def _each_once(self) -> CallersFile:
        for one, other in ((a, b) for n, a in enumerate(self.callers) for b in self.callers[n + 1 :]):
            if (one.token and one.token == other.token) or (
                one.subject and one.subject == other.subject and not (one.token and other.token)
            ):
                raise ValueError(f"{one.principal!r} and {other.principal!r} are known by the same thing")
        return self


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token, which is shown once, and what the file holds of it."""

    token: str
    digest: str


def new_token() -> NewToken:
    """A token that nobody has had."""
    token = PREFIX + secrets.token_urlsafe(32)
    return NewToken(token, digest_of(token))


def digest_of(token: str) -> str:
    """What the file holds of a token."""
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


def read_callers(path: Path) -> tuple[Caller, ...]:
    """Read the file.

    Raises:
        Misconfigured: it can't be read, others may write it, or it is wrong.
    """
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{path}: can't be read ({type(error).__name__})") from None
    if os.name == "posix" and mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Misconfigured(f"{path}: others may write it, and so let themselves in; chmod go-w {path}")
    try:
        found = CallersFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise Misconfigured(f"{path}: {error}") from None
    except ValidationError as error:
        raise Misconfigured(explained(error, str(path))) from None
    return tuple(found.callers)


class Callers:
    """The callers of a file, as it is now. Safe between threads."""

    def __init__(self, path: Path) -> None:
        """Raises Misconfigured: see :func:`read_callers`; later nobody is known instead."""
        self._path = path
        self._lock = threading.Lock()
        self._mark: object = self._seen()
        self._callers = read_callers(path)
        self.problem = ""

    def _seen(self) -> object:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev)

    def now(self) -> tuple[Caller, ...]:
        """All callers; none while the file is wrong, and then ``problem`` says why."""
        mark = self._seen()
        with self._lock:
            # A file that is wrong is read again each time: it may be in the middle of being written.
            if mark is None or mark != self._mark or self.problem:
                try:
                    self._callers, self.problem = read_callers(self._path), ""
                except Misconfigured as error:
                    self._callers, self.problem = (), str(error)
                self._mark = mark
            return self._callers

    def known_by(self, token: str, subject: str) -> Caller | None:
        """The caller with this token and this certificate; nobody is known by nothing.

        Every entry is compared, in constant time each, so that how long it takes says nothing.
        """
        digest = digest_of(token) if _TOKEN.fullmatch(token) else ""
        found: Caller | None = None
        for one in self.now():
            by_token = hmac.compare_digest(one.token.encode(), digest.encode()) if digest else False
            by_subject = hmac.compare_digest(one.subject.encode(), subject.encode()) if subject else False
            if (by_token if one.token else not token) and (by_subject if one.subject else True):
                found = one
        return found


_SHORT: Final = {
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}


def subject_of(certificate: object) -> str:
    """The subject of a verified certificate, as RFC 4514 writes it: most significant part last."""
    parts = certificate.get("subject", ()) if isinstance(certificate, dict) else ()
    written = []
    for several in reversed(tuple(parts)):
        written.append("+".join(f"{_SHORT.get(name, name)}={_escaped(value)}" for name, value in several))
    return ",".join(written)


def _escaped(value: str) -> str:
    text = re.sub(r'([,+"\\<>;=])', r"\\\1", value).replace("\0", r"\00")
    if text[:1] in ("#", " "):
        text = "\\" + text
    return f"{text[:-1]}\\ " if text.endswith(" ") and len(value) > 1 else text
