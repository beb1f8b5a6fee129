"""Facts with their labels, summaries, and the labels of artifacts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Bytes again. The text of a fact is in one column only, so that deleting it there deletes it."""

    def named(*names: str) -> list[sa.Column[bytes]]:
        return [sa.Column(name, sa.LargeBinary, primary_key=True) for name in names]

    def bodies(*names: str) -> list[sa.Column[bytes]]:
        return [sa.Column(name, sa.LargeBinary, nullable=False) for name in names]

    op.create_table(
        "interlock_facts",
        # An identity and no sequence of its own: whoever may insert needs no right beside that.
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), sa.Identity(), primary_key=True),
        *bodies("namespace", "fact"),
        sa.Column("revision", sa.BigInteger, nullable=False),
        *bodies("at", "content", "conversation"),
        sa.Column("first", sa.BigInteger, nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary),
        sa.Column("vector", sa.LargeBinary),
        *bodies("seal"),
        sa.UniqueConstraint("namespace", "fact"),
    )
    op.create_table(
        "interlock_fact_labels",
        *named("namespace", "fact"),
        sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
        *bodies("labels"),
    )
    op.create_table("interlock_summaries", *named("namespace", "conversation", "content"), *bodies("body"))
    op.create_table(
        "interlock_artifacts",
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        *bodies("artifact", "namespace", "labels", "digest"),
    )
    op.create_index("interlock_artifact_names", "interlock_artifacts", ["artifact"])
    op.create_table(
        "interlock_artifact_head",
        sa.Column("one", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        *bodies("digest", "whole"),
    )
    if op.get_bind().dialect.name == "sqlite":
        op.execute("CREATE VIRTUAL TABLE interlock_fact_words USING fts5(body, tokenize = 'unicode61')")
    else:
        op.execute("ALTER TABLE interlock_facts ADD COLUMN words tsvector")
        op.execute("CREATE INDEX interlock_fact_words ON interlock_facts USING gin (words)")
        _vectors()


def _vectors() -> None:
    """A column for pgvector, where the server has it and lets us; without it vectors are compared here, one by one."""
    connection = op.get_bind()
    if connection.execute(sa.text("SELECT 1 FROM pg_extension WHERE extname = 'vector'")).first() is None:
        if connection.execute(sa.text("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")).first() is None:
            return
        try:
            with connection.begin_nested():
                connection.execute(sa.text("CREATE EXTENSION vector"))
        except sa.exc.DBAPIError:
            return  # only a superuser may; the operator can create it before they migrate
    op.execute("ALTER TABLE interlock_facts ADD COLUMN embedding vector")
