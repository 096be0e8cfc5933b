"""Prints what Alembic's autogenerate would do to a database, one operation a line.

The model is either the table `orders`, as the database has it, or empty.
"""

import sys

import sqlalchemy as sa
from alembic.autogenerate import produce_migrations, render_python_code
from alembic.runtime.migration import MigrationContext

model, schemas = sys.argv[1:]
metadata = sa.MetaData()
if model == "orders":
    sa.Table(
        "orders",
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True, server_default=sa.text("snowflake_next()"), autoincrement=False),
        sa.Column("note", sa.Text),
    )

# libpq's environment variables name the server.
engine = sa.create_engine("postgresql+psycopg://")
with engine.connect() as connection:
    context = MigrationContext.configure(
        connection,
        opts={
            "include_schemas": schemas == "all",
            "compare_type": True,
            "compare_server_default": True,
            "target_metadata": metadata,
        },
    )
    script = produce_migrations(context, metadata)
    print(render_python_code(script.upgrade_ops))
