"""Sessions of Django and SQLAlchemy that stay connected while a table is moved: writes and reads by both for each line of the input.

Their models have the wider type already: with that of the old column, they cast each key to integer. For each line, prints one: "ok", or what failed, with the SQLSTATE. After an error, the same connection goes on.
"""

import os
import sys

import django
import psycopg
from django.conf import settings
from django.db import connection, models
from sqlalchemy import BigInteger, ForeignKey, Text, create_engine, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship
from sqlalchemy.pool import StaticPool

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": os.environ["PGHOST"],
            "USER": os.environ["PGUSER"],
            "NAME": os.environ["PGDATABASE"],
            # Prepared by the server, as a pool does.
            "OPTIONS": {"server_side_binding": True},
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
)
django.setup()


class Customer(models.Model):
    name = models.TextField()

    class Meta:
        app_label = "shop"
        db_table = "customers"
        managed = False


class Bill(models.Model):
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE)
    note = models.TextField(null=True)

    class Meta:
        app_label = "shop"
        db_table = "bills"
        managed = False


class Base(DeclarativeBase):
    pass


class AlchemyCustomer(Base):
    __tablename__ = "customers"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    bills: Mapped[list["AlchemyBill"]] = relationship()


class AlchemyBill(Base):
    __tablename__ = "bills"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    customer_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("customers.id"))
    note: Mapped[str | None] = mapped_column(Text)


def by_django():
    customer = Customer.objects.create(name="django")
    bill = Bill.objects.create(customer=customer, note="n")
    Bill.objects.filter(pk=bill.pk).update(note="m")
    assert Bill.objects.select_related("customer").get(pk=bill.pk).customer.pk == customer.pk
    Bill.objects.bulk_create([Bill(customer=customer) for _ in range(3)])
    assert Bill.objects.filter(customer=customer).count() == 4


engine = create_engine("postgresql+psycopg://", poolclass=StaticPool)


def by_sqlalchemy():
    with Session(engine) as session:
        customer = AlchemyCustomer(name="sqlalchemy", bills=[AlchemyBill(note="n"), AlchemyBill()])
        session.add(customer)
        session.commit()
        customer.bills[0].note = "m"
        session.commit()
        key = customer.id
    with Session(engine) as session:
        found = session.scalars(select(AlchemyBill).join(AlchemyCustomer).where(AlchemyCustomer.id == key)).all()
        assert sorted(bill.note or "" for bill in found) == ["", "m"]


for _ in sys.stdin:
    failed = []
    for work in [by_django, by_sqlalchemy]:
        # More than the five times after which the driver prepares a statement.
        for _ in range(7):
            try:
                work()
            except (psycopg.Error, django.db.Error, DBAPIError) as error:
                cause = getattr(error, "orig", None) or error.__cause__ or error
                failed.append(f"{work.__name__}: {cause.sqlstate}: {str(cause).splitlines()[0]}")
                if connection.connection is not None and work is by_django:
                    connection.connection.rollback()
    print("; ".join(dict.fromkeys(failed)) or "ok", flush=True)
