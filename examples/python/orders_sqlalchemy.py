"""Orders whose keys PostgreSQL makes by DEFAULT snowflake_next(), with SQLAlchemy 2.1."""

from snowflake_ids import Layout
from sqlalchemy import BigInteger, func, insert, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"

    # Two words save 4,995 of 5,000 statements: keys rise in the order of the rows (monotonic), so SQLAlchemy can tell by
    # the key which row of a bulk INSERT got which one (insert_sentinel), and need not insert them one by one.
    id: Mapped[int] = mapped_column(
        BigInteger,
        primary_key=True,
        server_default=func.snowflake_next(monotonic=True),
        insert_sentinel=True,
    )
    item: Mapped[str]

    def as_json(self):
        """The key as text: JavaScript reads a number of 63 bits as another number."""
        return {"id": str(self.id), "item": self.item}


def add(session, item):
    """Adds an order, which then has its key."""
    order = Order(item=item)
    session.add(order)
    session.flush()
    return order


def add_many(session, items):
    """Adds orders, 1,000 by each statement (insertmanyvalues_page_size). They then have their keys."""
    orders = [Order(item=item) for item in items]
    session.add_all(orders)
    session.flush()
    return orders


def insert_many(connection, items):
    """The same without objects. Returns the keys in the order of the items."""
    statement = insert(Order).returning(Order.id, sort_by_parameter_order=True)
    return list(connection.execute(statement, [{"item": item} for item in items]).scalars())


def layout(session):
    """The layout of the database's keys, which reads them. It never changes, so a program asks once."""
    return Layout(session.scalar(select(func.snowflake_database_layout())))
