"""What SQLAlchemy makes of snowflake_id: text, until the driver is told how to load it. The model says BigInteger."""

import sqlalchemy as sa
from psycopg.types import TypeInfo
from psycopg.types.numeric import IntLoader
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

KEY = 382304429472247813


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "typed_orders"
    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, server_default=sa.FetchedValue())
    item: Mapped[str]


def register(connection, record):
    info = TypeInfo.fetch(connection, "snowflake_id")
    info.register(connection)
    connection.adapters.register_loader(info.oid, IntLoader)


def kind(engine):
    with Session(engine) as session:
        session.add(Order(item="lamp"))
        session.flush()
        session.commit()
        return type(session.scalars(sa.select(Order)).first().id)


engine = sa.create_engine("postgresql+psycopg://", poolclass=sa.NullPool)
with engine.begin() as connection:
    connection.execute(sa.text("DROP TABLE IF EXISTS typed_orders"))
    connection.execute(sa.text("CREATE TABLE typed_orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL)"))
assert kind(engine) is str
sa.event.listen(engine, "connect", register)
assert kind(engine) is int
with Session(engine) as session:
    key = session.scalars(sa.select(Order.id)).first()
    assert session.get(Order, key).id == key
    assert session.scalars(sa.select(Order.id).where(Order.id.in_([key, 5]))).all() == [key]
print("seen: sqlalchemy")
