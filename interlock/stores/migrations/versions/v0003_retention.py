"""Where shortened journals begin, and which of their dropped entries stay beside."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Bytes, as everywhere. A base is one row, and is replaced when its journal is shortened again."""

    def names() -> list[sa.Column[bytes]]:
        return [sa.Column(name, sa.LargeBinary, primary_key=True) for name in ("namespace", "conversation")]

    def bodies(*names: str) -> list[sa.Column[bytes]]:
        return [sa.Column(name, sa.LargeBinary, nullable=False) for name in names]

    op.create_table(
        "interlock_bases",
        *names(),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        *bodies("digest", "state"),
        sa.Column("kept", sa.BigInteger, nullable=False),
        *bodies("keeping"),
    )
    op.create_table(
        "interlock_kept",
        *names(),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        *bodies("body", "digest"),
    )
