"""Heads, entries, checkpoints and messages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Everything that others chose is bytes: no collation compares it, and no text type cuts it at NUL."""

    def names() -> list[sa.Column[bytes]]:
        return [
            sa.Column("namespace", sa.LargeBinary, primary_key=True),
            sa.Column("conversation", sa.LargeBinary, primary_key=True),
        ]

    def numbered(name: str) -> sa.Column[int]:
        return sa.Column(name, sa.BigInteger, primary_key=True, autoincrement=False)

    op.create_table(
        "interlock_heads",
        *names(),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("labels", sa.LargeBinary, nullable=False),
        sa.Column("mac", sa.LargeBinary, nullable=False),
        sa.Column("stamp", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "interlock_entries",
        *names(),
        numbered("sequence"),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "interlock_checkpoints",
        *names(),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "interlock_messages",
        *names(),
        numbered("place"),
        sa.Column("entry", sa.BigInteger, nullable=False),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("retired", sa.BigInteger, nullable=False),
    )
    present = sa.text("retired = 0")
    op.create_index(
        "interlock_present",
        "interlock_messages",
        ["namespace", "conversation", "place"],
        unique=True,
        sqlite_where=present,
        postgresql_where=present,
    )
