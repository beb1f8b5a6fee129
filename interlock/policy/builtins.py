"""Builtins that a control may call: an allow-list.

In it is what depends on its arguments only and answers alike in every engine that we test. Outside stay the network,
the clock, chance, the process's environment, printing and parsing of policies: with them a decision could not be
replayed, or could leak. A deny-list would have to be complete; this one only has to be right.
"""

from __future__ import annotations

from typing import Final

ALLOWED: Final = frozenset(
    {
        # aggregates
        "all", "any", "count", "max", "min", "product", "sort", "sum",
        # arrays, objects, sets
        "array.concat", "array.reverse", "array.slice",
        "object.get", "object.keys", "object.remove", "object.union", "object.filter", "object.subset",
        "intersection", "union",
        # numbers
        "abs", "ceil", "floor", "round", "numbers.range", "to_number",
        # text
        "concat", "contains", "endswith", "format_int", "indexof", "lower", "replace", "split", "sprintf",
        "startswith", "strings.any_prefix_match", "strings.any_suffix_match", "strings.reverse",
        "substring", "trim", "trim_left", "trim_prefix", "trim_right", "trim_space", "trim_suffix", "upper",
        "regex.match", "glob.match",
        # types
        "is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string", "type_name",
        # time that comes in as a value
        "time.parse_rfc3339_ns", "time.date", "time.clock", "time.weekday",
    }
)  # fmt: skip
