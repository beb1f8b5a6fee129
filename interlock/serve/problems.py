"""Answers that are no success. Each reads as a denial, and none holds a value of the request or a place in our code."""

from __future__ import annotations

from typing import Any, Final

GATE_ERROR: Final = "gate_error"


class Problem(Exception):
    """A request that is not answered as it was asked.

    Attributes:
        status: of HTTP.
        error: a word for programs.
        message: for people: what happened, and what to do next.
        retry_after: seconds after which the same request may be sent again; 0 when it is of no use.
        code: ``gate_error``, or ``engine_error`` when the engine is to blame.
    """

    def __init__(self, status: int, error: str, message: str, *, retry_after: int = 0, code: str = GATE_ERROR) -> None:
        super().__init__(message)
        self.status = status
        self.error = error
        self.message = message
        self.retry_after = retry_after
        self.code = code

    def body(self, request: str) -> dict[str, Any]:
        """As :class:`interlock.serve.shapes.Failure`."""
        return {
            "verdict": "deny",
            "run": False,
            "decision": False,
            "code": self.code,
            "error": self.error,
            "message": self.message,
            "request": request,
        }


def not_found() -> Problem:
    """The same for what is not there and for what is somebody else's."""
    return Problem(404, "not_found", "there is no such thing here")


def busy(why: str, status: int = 503) -> Problem:
    """Too much to do; nothing was done."""
    return Problem(status, "busy", f"{why}; nothing was done, send it again later", retry_after=1)
