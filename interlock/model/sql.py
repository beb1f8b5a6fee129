"""What one SQL statement does, as a maintained parser reads it: for ``when: sql`` clauses only.

The parser must understand everything in the statement. A function, command or source of rows that is not known to be
harmless (``pg_read_file``, ``dblink``, ``COPY … TO PROGRAM``) keeps all of the tool's legs.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final

MAX_SQL: Final = 16 << 10


def is_dialect(name: str) -> bool:
    """Does the parser know this dialect? An empty name is the one that all have in common."""
    if not name:
        return True
    from sqlglot.dialects.dialect import Dialect

    return Dialect.get(name) is not None


def only_does(text: Any, verbs: Collection[str], tables: Collection[str], dialect: str = "") -> bool:
    """Is this one statement with these verbs and tables only?"""
    if not isinstance(text, str) or len(text) > MAX_SQL or (not text.isprintable() and not _spaced(text)):
        return False
    return _only_does(text, frozenset(verbs), frozenset(tables), dialect)


def _spaced(text: str) -> bool:
    return all(char.isprintable() or char in "\n\t\r" for char in text)


# Functions of values: they read no files, call nobody and change nothing. Everything else is not verified.
_FUNCTIONS: Final = frozenset(
    "Abs And Avg Case Cast Ceil Coalesce Concat Count CurrentDate CurrentTimestamp Date DateAdd DateDiff DateSub"
    " Extract Floor Greatest GroupConcat If Least Length Lower Max Min Mod Nullif Or Round StrPosition Substring Sum"
    " Trim Upper Xor Year Month Day TryCast Like ILike".split()
)
_VERBS: Final = {"Select": "select", "Insert": "insert", "Update": "update", "Delete": "delete"}
# Sets of selects; the selects in them are counted one by one.
_SETS: Final = frozenset("Union Intersect Except Subquery With CTE".split())
_REFUSED: Final = frozenset(
    "Into Lock Command Anonymous AnonymousAggFunc Parameter SessionParameter Placeholder Copy Pragma Set Use Lateral"
    " Unnest TableFromRows Hint Transaction Commit Rollback Merge Create Drop Alter AlterTable TruncateTable"
    " Attach Detach LoadData Export Grant Execute Kill Describe Show Returning".split()
)


@lru_cache(maxsize=1024)
def _only_does(text: str, verbs: frozenset[str], tables: frozenset[str], dialect: str) -> bool:
    import sqlglot
    from sqlglot import exp

    # What it can't read it tells the log, statement and all; here that is an answer and no news.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    try:
        statements = sqlglot.parse(text, read=dialect or None)
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
        return False
    if len(statements) != 1 or statements[0] is None or type(statements[0]).__name__ not in {*_VERBS, *_SETS}:
        return False
    whole = statements[0]
    for node in whole.walk():
        kind = type(node).__name__
        if kind in _REFUSED or _VERBS.get(kind, "select") not in (*verbs, "select"):
            return False
        if kind == "Select" and "select" not in verbs:
            return False
        if isinstance(node, exp.Func) and kind not in _FUNCTIONS:
            return False
        if isinstance(node, exp.DDL | exp.DML) and kind not in {*_VERBS, *_SETS}:
            return False
        if isinstance(node, exp.With) and node.parent is not whole:
            return False  # a name that is defined further in must not stand for a table further out
    return _only_known(whole, tables)


def _only_known(whole: Any, tables: frozenset[str]) -> bool:
    """Are all sources of rows named tables, or queries that were defined before them?

    ``with users as (select * from users) …`` reads the table `users`: a definition does not know its own name.
    """
    from sqlglot import exp

    defined: set[str] = set()
    inside: set[int] = set()
    for one in whole.find_all(exp.CTE):
        found = list(one.this.find_all(exp.Table))
        if not all(_is_known(table, tables, defined) for table in found):
            return False
        inside.update(map(id, found))
        defined.add(one.alias_or_name.lower())
    return all(_is_known(table, tables, defined) for table in whole.find_all(exp.Table) if id(table) not in inside)


def _is_known(table: Any, tables: frozenset[str], defined: set[str]) -> bool:
    """Is it one of the named tables, with exactly the qualification that the operator wrote, or a defined query?"""
    if type(table.this).__name__ != "Identifier":
        return False  # a function, a file or a stage in the place of a table
    full = ".".join(part.name for part in table.parts).lower()
    return full in tables or (len(table.parts) == 1 and full in defined)
