"""``@tool``: a function that refuses to run without a permit.

The wrapper is the last door: whoever gets hold of the function (another middleware, a retry, a test) can't run it
around the gate. Inside ``with guard:`` a direct call goes through the guard; under a permit of the gate it runs.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from interlock.errors import ManifestError, NotCanonical, NotPermitted
from interlock.gate.guard import Guard, active
from interlock.gate.permits import enter
from interlock.model.canonical import canonical, unpack
from interlock.model.manifest import Manifest
from interlock.model.results import Outcome
from interlock.model.tools import ToolId, ToolSpec


class Tool:
    """A function with its spec. Made by :func:`tool`; callable like the function."""

    def __init__(self, function: Callable[..., Any], spec: ToolSpec) -> None:
        functools.update_wrapper(self, function, updated=())
        del self.__dict__["__wrapped__"]  # the way round the permit
        self._function = function
        self._signature = self.__signature__ = inspect.signature(function)
        self.spec = spec

    @property
    def name(self) -> str:
        return self.spec.id.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run under a permit for exactly these arguments, or through the guard around this code.

        Raises:
            NotPermitted: neither is there, or the guard refused; ``for_model`` says why.
        """
        arguments = self._arguments(args, kwargs)
        if enter(self.spec.id, arguments):
            return self._function(*args, **kwargs)
        return _passed(self._guard().call(self.name, arguments, run=self, server=self.spec.id.server))

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name as they were given; defaults are not filled in, so that the digest is the call's."""
        bound = dict(self._signature.bind(*args, **kwargs).arguments)
        for name, parameter in self._signature.parameters.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                bound.update(bound.pop(name, {}))
        return bound

    def _guard(self) -> Guard:
        guard = active()
        if guard is None:
            raise NotPermitted(
                f"{self.name!r} runs only through Interlock:"
                f" use `with guard:` around the call, or guard.call(…, run={self.name})"
            )
        return guard


class AsyncTool(Tool):
    """Like :class:`Tool` for a coroutine function."""

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """See :meth:`Tool.__call__`."""
        arguments = self._arguments(args, kwargs)
        if enter(self.spec.id, arguments):
            return await self._function(*args, **kwargs)
        return _passed(await self._guard().acall(self.name, arguments, run=self, server=self.spec.id.server))


def _passed(outcome: Outcome) -> Any:
    """What the caller of a function expects: the result, or an exception."""
    if outcome.error is not None:
        raise outcome.error
    if not outcome.executed:
        raise NotPermitted(f"{outcome.tool!r} was not run: {outcome.decision.code}", outcome.for_model)
    return outcome.result


def tool(
    *,
    returns: Iterable[str],
    egress: str,
    reads: Iterable[str] = (),
    opens: Iterable[str] = (),
    destinations: Mapping[str, str] | None = None,
    objects: Mapping[str, str] | None = None,
    parties: Mapping[str, str] | None = None,
    content: Iterable[str] = (),
    writes_to: Mapping[str, str] | None = None,
    reads_from: Mapping[str, str] | None = None,
    effect: str = "none",
    audience: str = "",
    fields: Mapping[str, str | list[str]] | None = None,
    ids: Mapping[str, Any] | None = None,
    keep: str = "",
    when: Iterable[Mapping[str, Any]] = (),
    name: str = "",
    server: str = "",
) -> Callable[[Callable[..., Any]], Tool]:
    """Declare a function as a tool, with the same words as a manifest entry.

    ``returns`` and ``egress`` must be given: silence promises nothing (T7). The name is the function's unless given.

    Raises:
        ManifestError: the declaration is wrong, or names an argument that the function does not have.
    """
    entry: dict[str, Any] = {
        "returns": list(returns),
        "egress": egress,
        "reads": list(reads),
        "opens": list(opens),
        "destinations": dict(destinations or {}),
        "objects": dict(objects or {}),
        "parties": dict(parties or {}),
        "content": list(content),
        "writes_to": dict(writes_to or {}),
        "reads_from": dict(reads_from or {}),
        "effect": effect,
        "audience": audience,
        "fields": dict(fields or {}),
        "ids": dict(ids or {}),
        "keep": keep,
        "when": [dict(one) for one in when],
    }

    def wrap(function: Callable[..., Any]) -> Tool:
        if isinstance(function, Tool):
            raise ManifestError(f"@tool on {function.name!r}: it is a tool already; declare it once")
        named = name or function.__name__
        where = f"@tool on {function.__qualname__}"
        description = inspect.getdoc(function) or ""
        signature = inspect.signature(function)
        paths = [path for role in ("destinations", "objects", "parties", "content") for path in entry[role]]
        artifacts = {*entry["writes_to"], *entry["reads_from"]} - {"*"}
        _check_arguments(where, signature, [path.partition(".")[0] for path in (*paths, *sorted(artifacts))])
        # The signature is part of the spec's digest: a function that takes other arguments is another tool.
        takes = [one.name for one in signature.parameters.values() if one.kind not in _VARIADIC]
        whole = {**entry, "arguments": takes, "description": json.dumps([description, str(signature)])}
        whole["defaults"] = {one.name: _default(one.default) for one in signature.parameters.values() if _has(one)}
        tools = {named: whole}
        document = {"version": 1, "servers": {server: {"tools": tools}}} if server else {"version": 1, "tools": tools}
        spec = Manifest.parse(document, where).spec(ToolId(server, named))
        return (AsyncTool if inspect.iscoroutinefunction(function) else Tool)(function, spec)

    return wrap


def _has(one: inspect.Parameter) -> bool:
    return one.default is not inspect.Parameter.empty


def _default(value: Any) -> Any:
    """The default of an argument as a person is shown it; what is no JSON has no form that stays the same."""
    try:
        return unpack(canonical(value))
    except (NotCanonical, RecursionError):
        return "(a default that is no JSON value)"


_VARIADIC = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


def _check_arguments(where: str, signature: inspect.Signature, names: Iterable[str]) -> None:
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in signature.parameters.values()):
        return
    missing = sorted(set(names) - set(signature.parameters))
    if missing:
        raise ManifestError(f"{where}: the function has no argument {', '.join(map(repr, missing))}")
