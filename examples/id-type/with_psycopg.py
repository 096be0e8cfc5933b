"""What psycopg 3 makes of snowflake_id: text, until it is told how to load it."""

import psycopg
from psycopg.types import TypeInfo
from psycopg.types.numeric import IntLoader

KEY = 382304429472247813


def register(connection):
    """From here on, values are int, as those of bigint are."""
    info = TypeInfo.fetch(connection, "snowflake_id")
    info.register(connection)
    connection.adapters.register_loader(info.oid, IntLoader)


with psycopg.connect(autocommit=True) as connection:
    connection.execute("CREATE TEMPORARY TABLE t (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), parent snowflake_id)")
    connection.execute("INSERT INTO t VALUES (%s, %s)", [KEY, str(KEY)])
    query = "SELECT id, ARRAY[id], parent FROM t WHERE id = %s"
    assert connection.execute(query, [KEY]).fetchone() == (str(KEY), "{%s}" % KEY, str(KEY))
    # Small numbers are sent as smallint.
    connection.execute("INSERT INTO t VALUES (%s, %s)", [5, 5])
    register(connection)
    assert connection.execute(query, [KEY]).fetchone() == (KEY, [KEY], KEY)
    assert connection.execute("SELECT id FROM t WHERE id = ANY(%s)", [[KEY, 6]]).fetchall() == [(KEY,)]
    assert isinstance(connection.execute("INSERT INTO t DEFAULT VALUES RETURNING id").fetchone()[0], int)
    with connection.cursor().copy("COPY t (id) FROM STDIN") as copy:
        copy.write_row([KEY + 1])
    assert connection.execute("SELECT max(id) FROM t WHERE id < %s", [KEY + 2]).fetchone() == (KEY + 1,)
print("seen: psycopg")
