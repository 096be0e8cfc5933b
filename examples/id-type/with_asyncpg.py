"""What asyncpg makes of snowflake_id: text, until it is told how to write and read it, which it is for each connection."""

import asyncio

import asyncpg

KEY = 382304429472247813


async def register(connection):
    """From here on, values are int, as those of bigint are; for asyncpg.create_pool(init=register), too."""
    await connection.set_type_codec(
        "snowflake_id",
        schema="public",
        format="binary",
        encoder=lambda number: number.to_bytes(8, "big", signed=True),
        decoder=lambda data: int.from_bytes(data, "big", signed=True),
    )


async def refused(error, call):
    try:
        await call
    except error:
        return
    raise AssertionError("not refused")


async def main():
    connection = await asyncpg.connect()
    await connection.execute("CREATE TEMPORARY TABLE t (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), parent snowflake_id)")
    insert, query = "INSERT INTO t VALUES ($1, $2)", "SELECT id, ARRAY[id] AS ids, parent FROM t WHERE id = $1"
    await refused(asyncpg.DataError, connection.execute(insert, KEY, KEY))
    await connection.execute(insert, str(KEY), str(KEY))
    # A condition has operators of bigint, and so a parameter of that type.
    assert tuple(await connection.fetchrow(query, KEY)) == (str(KEY), [str(KEY)], str(KEY))
    await refused(asyncpg.InternalClientError, connection.copy_records_to_table("t", records=[(str(KEY + 1), None)]))
    await register(connection)
    await connection.execute(insert, KEY + 1, 5)
    await connection.copy_records_to_table("t", records=[(KEY + 2, KEY)])
    assert tuple(await connection.fetchrow(query, KEY)) == (KEY, [KEY], KEY)
    assert await connection.fetchval("SELECT array_agg(id ORDER BY id) FROM t WHERE id = ANY($1)", [KEY + 1, KEY + 2]) == [KEY + 1, KEY + 2]
    await connection.close()
    print("seen: asyncpg")


asyncio.run(main())
