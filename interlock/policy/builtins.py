"""Builtins that a control may call: an allow-list.

In it is what depends on its arguments only and answers alike in every engine that we test. Outside stay the network,
the clock, chance, the process's environment, printing and parsing of policies: with them a decision could not be
replayed, or could leak. Outside, too, is what can make a result far larger than its arguments (``sprintf``
with a width, ``numbers.range``, ``concat``, ``replace``): it would end the process. And outside is what engines read
so differently that a control would mean another thing after a change of engine (ADR 0058): ``glob.match`` (``[^a]``
means the opposite, and ``**`` something else), ``object.subset`` (the embedded engine panics on an empty list and takes
any type), and ``all`` and ``any``, which OPA itself no longer loads. Where they differ at a margin that can be named,
``interlock check`` warns instead (``dialects.py``). A deny-list would have to be complete; this one only has to be
right.
"""

from __future__ import annotations

from typing import Final

ALLOWED: Final = frozenset(
    {
        # aggregates
        "count", "max", "min", "product", "sort", "sum",
        # arrays, objects, sets
        "array.concat", "array.reverse", "array.slice",
        "object.get", "object.keys", "object.remove", "object.union", "object.filter",
        "intersection", "union",
        # numbers
        "abs", "ceil", "floor", "round", "to_number",
        # text
        "contains", "endswith", "format_int", "indexof", "lower", "split",
        "startswith", "strings.any_prefix_match", "strings.any_suffix_match", "strings.reverse",
        "substring", "trim", "trim_left", "trim_prefix", "trim_right", "trim_space", "trim_suffix", "upper",
        "regex.match",
        # types
        "is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string", "type_name",
        # time that comes in as a value
        "time.parse_rfc3339_ns", "time.date", "time.clock", "time.weekday",
    }
)  # fmt: skip

# First names of builtins, allowed or not: a rule or an import of this name would hide which of the two is meant.
RESERVED: Final = frozenset(
    {name.partition(".")[0] for name in ALLOWED}
    | set(
        "base64 base64url bits cast_array cast_boolean cast_null cast_number cast_object cast_set cast_string concat"
        " all any crypto div eq equal glob gt gte hex http internal io json lt lte minus mul neq net opa or and plus"
        " print providers rand re_match rego rem replace semver set_diff sprintf trace units urlquery uuid walk"
        " yaml graph graphql".split()
    )
)
