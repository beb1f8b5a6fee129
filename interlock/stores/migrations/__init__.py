"""The schema of the SQL stores for Alembic, one revision after the other. Only an explicit migration runs them."""
