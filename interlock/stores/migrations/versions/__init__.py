"""Revisions of the schema. A revision that was released is never changed."""
