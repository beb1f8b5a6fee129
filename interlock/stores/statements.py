"""The statements of the SQL stores, the same for SQLite and PostgreSQL. Each that reads or writes names the namespace.

Only the last ones, which count for the operator, go over all of them.
"""

from __future__ import annotations

HEAD = "SELECT sequence, digest, labels, mac FROM interlock_heads WHERE namespace = ? AND conversation = ?"
SINCE = (
    "SELECT h.sequence, h.digest, h.labels, h.mac, e.sequence, e.body, e.digest FROM interlock_heads h"
    " LEFT JOIN interlock_entries e"
    " ON e.namespace = h.namespace AND e.conversation = h.conversation AND e.sequence > ?"
    " WHERE h.namespace = ? AND h.conversation = ? ORDER BY e.sequence LIMIT ?"
)
CHECKPOINT = "SELECT sequence, body FROM interlock_checkpoints WHERE namespace = ? AND conversation = ?"
OPEN = (
    "INSERT INTO interlock_heads (namespace, conversation, sequence, digest, version, labels, mac, stamp)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
# The compare-and-set of a write, though the row is locked as well: a lock that some day fails must not cost an entry.
ADVANCE = (
    "UPDATE interlock_heads SET sequence = ?, digest = ?, version = ?, labels = ?, mac = ?, stamp = ?"
    " WHERE namespace = ? AND conversation = ? AND sequence = ? AND digest = ? AND version = ?"
)
# The same compare-and-set and the entries in one statement, for a database that can.
AT_ONCE = (
    f"WITH moved AS ({ADVANCE} RETURNING 1)"  # noqa: S608 - constants only
    " INSERT INTO interlock_entries (namespace, conversation, sequence, body, digest)"
    " SELECT CAST(? AS BYTEA), CAST(? AS BYTEA), new.place, new.body, new.digest"
    " FROM moved, (VALUES {}) AS new (place, body, digest)"
)
ENTRY = "INSERT INTO interlock_entries (namespace, conversation, sequence, body, digest) VALUES (?, ?, ?, ?, ?)"
ENTRIES = (
    "SELECT sequence, body, digest FROM interlock_entries"
    " WHERE namespace = ? AND conversation = ? AND sequence > ? ORDER BY sequence LIMIT ?"
)
SAVE = (
    "INSERT INTO interlock_checkpoints (namespace, conversation, sequence, body) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (namespace, conversation) DO UPDATE SET sequence = excluded.sequence, body = excluded.body"
)
MESSAGE = (
    "INSERT INTO interlock_messages (namespace, conversation, place, entry, slot, body, retired)"
    " VALUES (?, ?, ?, ?, ?, ?, 0)"
)
RETIRE = (
    "UPDATE interlock_messages SET retired = ? WHERE namespace = ? AND conversation = ? AND retired = 0 AND place >="
    " (SELECT MIN(place) FROM (SELECT place FROM interlock_messages"
    " WHERE namespace = ? AND conversation = ? AND retired = 0 ORDER BY place DESC LIMIT ?) newest)"
)
COLUMNS = "SELECT place, entry, slot, body, retired FROM interlock_messages WHERE namespace = ? AND conversation = ?"
NEWEST = f"{COLUMNS} AND retired = 0 AND place > ? AND place < ? ORDER BY place DESC LIMIT ?"
OLDEST = f"{COLUMNS} AND place > ? ORDER BY place LIMIT ?"
ERASE = "UPDATE interlock_messages SET body = ? WHERE namespace = ? AND conversation = ? AND length(body) > 0"
ERASE_SUMMARIES = "UPDATE interlock_summaries SET body = ? WHERE namespace = ? AND conversation = ?"
NAMES = (
    "SELECT conversation FROM interlock_heads WHERE namespace = ? AND conversation > ? ORDER BY conversation LIMIT ?"
)
COUNT = "SELECT namespace, COUNT(*), SUM(sequence) FROM interlock_heads GROUP BY namespace ORDER BY namespace"
LAST = "SELECT stamp FROM interlock_heads WHERE namespace = ? ORDER BY stamp DESC LIMIT 1"
IDLE = (
    "SELECT conversation FROM interlock_heads WHERE namespace = ? AND stamp < ? AND conversation > ?"
    " ORDER BY conversation LIMIT ?"
)
COUNT_MESSAGES = "SELECT namespace, COUNT(*) FROM interlock_messages WHERE length(body) > 0 GROUP BY namespace"
ERASE_DRAFTS = "UPDATE interlock_drafts SET body = ? WHERE namespace = ? AND conversation = ?"
ERASE_QUESTIONS = "UPDATE interlock_questions SET body = ? WHERE namespace = ? AND conversation = ?"
