import json
import unittest

import orders_sqlalchemy as orders
import sqlalchemy as sa
from orders_sqlalchemy import Base, Order
from sqlalchemy.orm import Mapped, Session, mapped_column, orm_insert_sentinel

MANY = [f"item {n}" for n in range(5000)]


class Plain(Base):
    """Without the sentinel."""

    __tablename__ = "plain"
    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, server_default=sa.text("snowflake_next()"))
    item: Mapped[str]


class WithIdentity(Base):
    """What SQLAlchemy does for a key that is no snowflake."""

    __tablename__ = "with_identity"
    id: Mapped[int] = mapped_column(sa.BigInteger, sa.Identity(), primary_key=True)
    item: Mapped[str]


class WithColumn(Base):
    """The way of SQLAlchemy 2.0, which does not know monotonic functions: a column of its own as the sentinel."""

    __tablename__ = "with_column"
    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, server_default=sa.text("snowflake_next()"))
    item: Mapped[str]
    _sentinel: Mapped[int] = orm_insert_sentinel()


# libpq's environment variables name the server.
engine = sa.create_engine("postgresql+psycopg://")


class Orders(unittest.TestCase):
    def setUp(self):
        Base.metadata.drop_all(engine)
        Base.metadata.create_all(engine)
        self.session = self.enterContext(Session(engine))
        self.statements()

    def statements(self):
        """How many INSERT statements the server has executed since the last call."""
        return self.session.scalar(sa.text("SELECT test.insert_statements()"))

    def stored(self):
        return [tuple(row) for row in self.session.execute(sa.text("SELECT id, item FROM orders ORDER BY id"))]

    def test_the_key_comes_back(self):
        order = orders.add(self.session, "lamp")
        self.assertEqual(self.stored(), [(order.id, "lamp")])

    def test_many_are_few_statements(self):
        many = orders.add_many(self.session, MANY)
        self.assertEqual(self.statements(), 5)
        self.assertEqual(self.stored(), [(order.id, order.item) for order in many])

    def test_many_without_objects_are_few_statements(self):
        keys = orders.insert_many(self.session.connection(), MANY)
        self.assertEqual(self.statements(), 5)
        self.assertEqual(self.stored(), list(zip(keys, MANY)))

    def test_how_many_statements_other_definitions_take(self):
        for model, statements in [(Plain, 5000), (WithIdentity, 5), (WithColumn, 5)]:
            many = [model(item=item) for item in MANY]
            self.session.add_all(many)
            self.session.flush()
            self.assertEqual(self.statements(), statements, model)
            stored = self.session.execute(sa.select(model.id, model.item)).all()
            self.assertEqual({row.id: row.item for row in stored}, {row.id: row.item for row in many})

    def test_the_column_has_the_default(self):
        query = "SELECT column_default FROM information_schema.columns WHERE table_name = 'orders' AND column_name = 'id'"
        self.assertEqual(self.session.scalar(sa.text(query)), "snowflake_next()")

    def test_keys_survive_json(self):
        order = Order(id=382304429472247813, item="lamp")
        text = json.dumps(order.as_json())
        self.assertIn('"382304429472247813"', text)
        self.assertEqual(int(json.loads(text)["id"]), order.id)
        self.assertNotEqual(int(float(order.id)), order.id, "a JavaScript number cannot hold it")

    def test_the_time_is_read_from_the_key(self):
        layout = orders.layout(self.session)
        orders.add_many(self.session, MANY)
        for order, timestamp in self.session.execute(sa.select(Order, sa.func.snowflake_timestamp(Order.id))):
            self.assertEqual(layout.timestamp(order.id), timestamp)
