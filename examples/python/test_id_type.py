"""What drivers make of snowflake_id, a type that they do not know: text, until they are told."""

import unittest

import asyncpg
import psycopg
import sqlalchemy as sa
from psycopg.types import TypeInfo
from psycopg.types.numeric import IntLoader
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

KEY = 382304429472247813
TABLE = "CREATE TEMPORARY TABLE t (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), parent snowflake_id)"


def register(connection, _=None):
    """psycopg is told: from here on, values are int, as those of bigint are. With SQLAlchemy, at each new connection."""
    info = TypeInfo.fetch(connection, "snowflake_id")
    info.register(connection)
    connection.adapters.register_loader(info.oid, IntLoader)


async def register_with_asyncpg(connection):
    """The same, for asyncpg.create_pool(init=register_with_asyncpg), too."""
    await connection.set_type_codec(
        "snowflake_id",
        schema="public",
        format="binary",
        encoder=lambda number: number.to_bytes(8, "big", signed=True),
        decoder=lambda data: int.from_bytes(data, "big", signed=True),
    )


class Psycopg(unittest.TestCase):
    def test_text_until_it_is_told(self):
        connection = self.enterContext(psycopg.connect(autocommit=True))
        connection.execute(TABLE)
        connection.execute("INSERT INTO t VALUES (%s, %s)", [KEY, str(KEY)])
        query = "SELECT id, ARRAY[id], parent FROM t WHERE id = %s"
        self.assertEqual(connection.execute(query, [KEY]).fetchone(), (str(KEY), "{%s}" % KEY, str(KEY)))
        # Small numbers are sent as smallint.
        connection.execute("INSERT INTO t VALUES (%s, %s)", [5, 5])
        register(connection)
        self.assertEqual(connection.execute(query, [KEY]).fetchone(), (KEY, [KEY], KEY))
        self.assertEqual(connection.execute("SELECT id FROM t WHERE id = ANY(%s)", [[KEY, 6]]).fetchall(), [(KEY,)])
        self.assertIsInstance(connection.execute("INSERT INTO t DEFAULT VALUES RETURNING id").fetchone()[0], int)
        with connection.cursor().copy("COPY t (id) FROM STDIN") as copy:
            copy.write_row([KEY + 1])
        self.assertEqual(connection.execute("SELECT max(id) FROM t WHERE id < %s", [KEY + 2]).fetchone(), (KEY + 1,))


class Asyncpg(unittest.IsolatedAsyncioTestCase):
    async def test_text_until_it_is_told(self):
        connection = await asyncpg.connect()
        self.addAsyncCleanup(connection.close)
        await connection.execute(TABLE)
        insert, query = "INSERT INTO t VALUES ($1, $2)", "SELECT id, ARRAY[id] AS ids, parent FROM t WHERE id = $1"
        with self.assertRaises(asyncpg.DataError):
            await connection.execute(insert, KEY, KEY)
        await connection.execute(insert, str(KEY), str(KEY))
        # A condition has operators of bigint, and so a parameter of that type.
        self.assertEqual(tuple(await connection.fetchrow(query, KEY)), (str(KEY), [str(KEY)], str(KEY)))
        with self.assertRaises(asyncpg.InternalClientError):
            await connection.copy_records_to_table("t", records=[(str(KEY + 1), None)])
        await register_with_asyncpg(connection)
        await connection.execute(insert, KEY + 1, 5)
        await connection.copy_records_to_table("t", records=[(KEY + 2, KEY)])
        self.assertEqual(tuple(await connection.fetchrow(query, KEY)), (KEY, [KEY], KEY))
        several = "SELECT array_agg(id ORDER BY id) FROM t WHERE id = ANY($1)"
        self.assertEqual(await connection.fetchval(several, [KEY + 1, KEY + 2]), [KEY + 1, KEY + 2])


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "typed_orders"
    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, server_default=sa.FetchedValue())
    item: Mapped[str]


class SQLAlchemy(unittest.TestCase):
    def kind(self, engine):
        with Session(engine) as session:
            session.add(Order(item="lamp"))
            session.flush()
            session.commit()
            return type(session.scalars(sa.select(Order)).first().id)

    def test_text_until_the_driver_is_told(self):
        engine = sa.create_engine("postgresql+psycopg://", poolclass=sa.NullPool)
        with engine.begin() as connection:
            connection.execute(sa.text("DROP TABLE IF EXISTS typed_orders"))
            table = "CREATE TABLE typed_orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL)"
            connection.execute(sa.text(table))
        self.assertIs(self.kind(engine), str)
        sa.event.listen(engine, "connect", register)
        self.assertIs(self.kind(engine), int)
        with Session(engine) as session:
            key = session.scalars(sa.select(Order.id)).first()
            self.assertEqual(session.get(Order, key).id, key)
            self.assertEqual(session.scalars(sa.select(Order.id).where(Order.id.in_([key, 5]))).all(), [key])
