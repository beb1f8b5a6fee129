"""One JSON value, one sequence of bytes.

Arguments are hostile: what a fast JSON library would quietly change is refused before it can be decided on
in one form and executed in another. Refused are NaN and infinities, integers beyond 2**53 (engines disagree
about them), NUL (some engines cut strings there), lone surrogates (they have no UTF-8), keys that are not
strings, repeated keys, anything that is not JSON, more than 64 levels and more than 1 MiB.

``1`` and ``1.0`` are different values here, and so are a composed and a decomposed é: nothing is normalised.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import orjson

from interlock.errors import NotCanonical

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MAX_DEPTH: Final = 64
MAX_BYTES: Final = 1 << 20
MAX_INTEGER: Final = 2**53


def check(value: object, path: str = "$", depth: int = 0) -> None:
    """Refuse everything that has no canonical form.

    Raises:
        NotCanonical: with the path of the first offending place. The value itself is not in the message.
    """
    kind = type(value)
    if kind is str:
        _check_text(value, path)  # type: ignore[arg-type]  # `kind` is exact, mypy can't see it
    elif value is None or kind is bool:
        return
    elif kind is int:
        if not -MAX_INTEGER <= value <= MAX_INTEGER:  # type: ignore[operator]  # an int, see above
            raise NotCanonical(path, "integer beyond 2**53; pass it as a string")
    elif kind is float:
        if value != value or value in (float("inf"), float("-inf")):
            raise NotCanonical(path, "NaN and infinities are not JSON")
        if abs(value) > MAX_INTEGER and value.is_integer():  # type: ignore[arg-type,attr-defined]  # a float
            # Engines print such a float as an integer that they then disagree about.
            raise NotCanonical(path, "number beyond 2**53; pass it as a string")
    elif kind is list or kind is dict:
        if depth >= MAX_DEPTH:
            raise NotCanonical(path, f"deeper than {MAX_DEPTH} levels")
        if kind is list:
            for index, item in enumerate(value):  # type: ignore[arg-type,var-annotated]  # a list
                check(item, f"{path}[{index}]", depth + 1)
        else:
            for key, item in value.items():  # type: ignore[attr-defined]  # a dict
                if type(key) is not str:
                    raise NotCanonical(path, f"keys must be strings, not {type(key).__name__}")
                _check_text(key, f"{path} (a key)")
                check(item, f"{path}.{key}" if key.isidentifier() else f"{path}[…]", depth + 1)
    else:
        raise NotCanonical(path, f"{kind.__name__} is not a JSON type; pass plain JSON values")


def _check_text(text: str, path: str) -> None:
    if "\0" in text:
        raise NotCanonical(path, "NUL in text")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise NotCanonical(path, "lone surrogate in text") from None


def canonical(value: object) -> bytes:
    """The canonical bytes of a JSON value: UTF-8, keys sorted, no spaces.

    Returns:
        At most 1 MiB. ``parse(canonical(v))`` equals ``v``, and equal bytes mean equal values.

    Raises:
        NotCanonical: the value has no canonical form, or is too large.
    """
    check(value)
    return pack(value)


def pack(value: object) -> bytes:
    """Like :func:`canonical` for values that we built ourselves and need not be searched again."""
    data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if len(data) > MAX_BYTES:
        raise NotCanonical("$", f"larger than {MAX_BYTES} bytes")
    return data


def unpack(data: bytes) -> Any:
    """A fresh value out of canonical bytes: changing it never changes what was frozen."""
    return orjson.loads(data)


def parse(text: str | bytes) -> Json:
    """Read JSON that a stranger wrote.

    Raises:
        NotCanonical: not JSON, a repeated key (``{"to":"a","to":"b"}`` would silently keep one), or a value
            that :func:`check` refuses.
    """
    if len(text) > MAX_BYTES:
        raise NotCanonical("$", f"larger than {MAX_BYTES} bytes")
    try:
        value: Json = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except NotCanonical:
        raise
    except RecursionError:
        raise NotCanonical("$", f"deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:  # JSONDecodeError, bad UTF-8, and integers with too many digits
        raise NotCanonical("$", f"not JSON ({type(error).__name__})") from None
    check(value)
    return value


def _unique(pairs: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise NotCanonical("$", "a key stands twice in one object")
        found[key] = value
    return found


def _no_constant(name: str) -> Json:
    raise NotCanonical("$", f"{name} is not JSON")
