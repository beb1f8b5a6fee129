"""The statements of the SQL stores, the same for SQLite and PostgreSQL. Each that reads or writes names the namespace.

Only the last ones, which count for the operator, go over all of them.
"""

from __future__ import annotations

HEAD = "SELECT sequence, digest, labels, mac, version FROM interlock_heads WHERE namespace = ? AND conversation = ?"
SINCE = (
    "SELECT h.sequence, h.digest, h.labels, h.mac, h.version, e.sequence, e.body, e.digest FROM interlock_heads h"
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
BASE = "SELECT sequence, digest, state, kept, keeping FROM interlock_bases WHERE namespace = ? AND conversation = ?"
SET_BASE = (
    "INSERT INTO interlock_bases (namespace, conversation, sequence, digest, state, kept, keeping)"
    " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (namespace, conversation) DO UPDATE SET sequence = excluded.sequence,"
    " digest = excluded.digest, state = excluded.state, kept = excluded.kept, keeping = excluded.keeping"
)
KEEP = "INSERT INTO interlock_kept (namespace, conversation, sequence, body, digest) VALUES (?, ?, ?, ?, ?)"
KEPT = (
    "SELECT sequence, body, digest FROM interlock_kept"
    " WHERE namespace = ? AND conversation = ? AND sequence > ? ORDER BY sequence LIMIT ?"
)
# In one statement, so in one snapshot: an entry that is moved meanwhile is in one of the two.
SOME_ENTRIES = (
    "SELECT sequence, body FROM interlock_entries WHERE namespace = ? AND conversation = ? AND sequence IN ({0})"
    " UNION ALL"
    " SELECT sequence, body FROM interlock_kept WHERE namespace = ? AND conversation = ? AND sequence IN ({0})"
)
DROP = "DELETE FROM interlock_entries WHERE namespace = ? AND conversation = ? AND sequence <= ?"
DROP_CHECKPOINT = "DELETE FROM interlock_checkpoints WHERE namespace = ? AND conversation = ? AND sequence <= ?"
# Like ADVANCE, but nobody has used the conversation: it is as old as it was.
ADVANCE_UNUSED = ADVANCE.replace(", stamp = ?", "")
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
CONTENTS = "SELECT COUNT(*) FROM interlock_messages WHERE namespace = ? AND conversation = ? AND length(body) > 0"
ERASE_SUMMARIES = "UPDATE interlock_summaries SET body = ? WHERE namespace = ? AND conversation = ?"
# What is left of a conversation whose head is gone. Its name is free for nobody.
OWNED = ("entries", "messages", "checkpoints", "bases", "kept")
_LEFT = " UNION ALL ".join(
    f"SELECT 1 FROM interlock_{one} WHERE namespace = ? AND conversation = ?"  # noqa: S608 - constants only
    for one in OWNED
)
LEFT = f"{_LEFT} LIMIT 1"
_WITHOUT = "SELECT 1 FROM interlock_heads h WHERE h.namespace = x.namespace AND h.conversation = x.conversation"
_HEADLESS = " UNION ".join(
    f"SELECT x.namespace, x.conversation FROM interlock_{one} x WHERE NOT EXISTS ({_WITHOUT})"  # noqa: S608 - constants
    for one in OWNED
)
HEADLESS = f"{_HEADLESS} ORDER BY 1, 2 LIMIT ?"
NAMES = (
    "SELECT conversation FROM interlock_heads WHERE namespace = ? AND conversation > ? ORDER BY conversation LIMIT ?"
)
COUNT = "SELECT namespace, COUNT(*), SUM(sequence) FROM interlock_heads GROUP BY namespace ORDER BY namespace"
COUNT_DROPPED = "SELECT namespace, SUM(sequence) FROM interlock_bases GROUP BY namespace"
LAST = "SELECT stamp FROM interlock_heads WHERE namespace = ? ORDER BY stamp DESC LIMIT 1"
IDLE = (
    "SELECT conversation FROM interlock_heads WHERE namespace = ? AND stamp < ? AND conversation > ?"
    " ORDER BY conversation LIMIT ?"
)
IS_IDLE = "SELECT 1 FROM interlock_heads WHERE namespace = ? AND conversation = ? AND stamp < ?"
ACTIVE = "SELECT COUNT(*) FROM interlock_heads WHERE namespace = ? AND stamp >= ?"
COUNT_MESSAGES = "SELECT namespace, COUNT(*) FROM interlock_messages WHERE length(body) > 0 GROUP BY namespace"
ERASE_DRAFTS = "UPDATE interlock_drafts SET body = ? WHERE namespace = ? AND conversation = ?"
ERASE_QUESTIONS = "UPDATE interlock_questions SET body = ? WHERE namespace = ? AND conversation = ?"
