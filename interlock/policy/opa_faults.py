"""The ways in which an OPA server does not answer, told apart by name.

Every one of them is a denial with the code ``engine_error``. The name goes to the logs and the counters, and decides
two things: whether asking again can help, and whether the server is *out* (nobody answered) or was *wrong* (somebody
answered, but not with an answer). Only when it is out may another engine speak in its place.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from interlock.errors import EngineUnavailable


class Fault(StrEnum):
    """Why there is no answer. The value is the ``kind`` of the :class:`~interlock.errors.EngineUnavailable`."""

    # The server is out: nobody answered.
    UNRESOLVED = "unresolved"
    REFUSED = "refused"
    RESET = "reset"
    PARTIAL_BODY = "partial_body"
    DEADLINE = "deadline"
    TOO_MANY_REQUESTS = "too_many_requests"
    UNAVAILABLE = "unavailable"
    BREAKER_OPEN = "breaker_open"
    # Somebody answered, and it is no answer.
    TLS = "tls"
    MALFORMED_HTTP = "malformed_http"
    REDIRECT = "redirect"
    UNAUTHORISED = "unauthorised"
    CLIENT_ERROR = "client_error"
    SERVER_ERROR = "server_error"
    STATUS = "status"
    CONTENT_TYPE = "content_type"
    CONTENT_ENCODING = "content_encoding"
    TOO_LARGE = "too_large"
    MALFORMED_ANSWER = "malformed_answer"
    UNDEFINED = "undefined"
    NO_REVISION = "no_revision"
    WRONG_REVISION = "wrong_revision"
    NO_DECISION_ID = "no_decision_id"
    # It was not asked.
    TOKEN = "token"  # noqa: S105 - the name of a fault, not a secret
    DOCUMENT = "document"
    CLIENT = "client"


OUT: Final = frozenset(
    {
        Fault.UNRESOLVED,
        Fault.REFUSED,
        Fault.RESET,
        Fault.PARTIAL_BODY,
        Fault.DEADLINE,
        Fault.TOO_MANY_REQUESTS,
        Fault.UNAVAILABLE,
        Fault.BREAKER_OPEN,
    }
)
# A query changes nothing, so asking again is safe; but after a deadline there is no time for it.
AGAIN: Final = OUT - {Fault.DEADLINE, Fault.BREAKER_OPEN}


class NoAnswer(EngineUnavailable):
    """An OPA server gave no answer that counts.

    ``after``: seconds that it asks to be left alone for.
    """

    def __init__(self, fault: Fault, problem: str, *, after: float = 0.0) -> None:
        super().__init__(problem, kind=fault.value)
        self.fault = fault
        self.after = after


def of_status(status: int, after: float) -> NoAnswer | None:
    """The fault that a status stands for; None for 200."""
    if status == 200:
        return None
    if 300 <= status < 400:
        # Followed, it would show the document to a host that nobody named.
        return NoAnswer(Fault.REDIRECT, f"it redirects ({status}), and redirects are not followed")
    if status in (401, 403):
        return NoAnswer(
            Fault.UNAUTHORISED, f"it refuses this client ({status}): look at the token and at its authz policy"
        )
    if status == 429:
        return NoAnswer(Fault.TOO_MANY_REQUESTS, "it has too many requests (429)", after=after)
    if status in (502, 503, 504):
        return NoAnswer(Fault.UNAVAILABLE, f"it is not available ({status})", after=after)
    if 400 <= status < 500:
        return NoAnswer(Fault.CLIENT_ERROR, f"it does not take the query ({status})")
    if status >= 500:
        return NoAnswer(Fault.SERVER_ERROR, f"it failed ({status}): an error in a policy, or in the server")
    return NoAnswer(Fault.STATUS, f"it answered with status {status}, which is no answer")


def of_exception(error: BaseException) -> NoAnswer:
    """The fault that an exception of the client, or of what it uses, stands for. Holds no text of the server's."""
    if isinstance(error, NoAnswer):
        return error
    import aiohttp

    name = type(error).__name__
    if any(isinstance(one, ssl.SSLError | ssl.CertificateError) for one in _chain(error)):
        return NoAnswer(Fault.TLS, f"no trusted connection ({_reason(error)})")
    match error:
        case aiohttp.ClientConnectorDNSError():
            return NoAnswer(Fault.UNRESOLVED, "its name can't be resolved")
        case aiohttp.ClientConnectorError():
            return NoAnswer(Fault.REFUSED, f"it takes no connection ({error.strerror or name})")
        case aiohttp.ClientPayloadError():
            return NoAnswer(Fault.PARTIAL_BODY, "the connection broke within the answer")
        case aiohttp.ClientConnectionError() | OSError():
            return NoAnswer(Fault.RESET, f"the connection broke ({name})")
        case aiohttp.ClientError() | ValueError():
            return NoAnswer(Fault.MALFORMED_HTTP, f"it does not speak HTTP ({name})")
        case _:
            return NoAnswer(Fault.CLIENT, f"the client raised {name}")


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and one not in seen:
            seen.append(one)
            waiting += [one.__cause__, one.__context__, getattr(one, "os_error", None)]
            waiting += [getattr(one, "certificate_error", None)]
    yield from seen


def _reason(error: BaseException) -> str:
    """OpenSSL's own name for what is wrong: it is one of a fixed list."""
    for one in _chain(error):
        said = getattr(one, "verify_message", "") or getattr(one, "reason", "")
        if isinstance(one, ssl.SSLError | ssl.CertificateError) and isinstance(said, str) and said:
            return said
    return type(error).__name__
