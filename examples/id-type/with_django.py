"""What Django makes of snowflake_id in a table of its own: text, until the driver is told how to load it."""

import os

import django
from django.conf import settings

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": os.environ["PGHOST"],
            "PORT": os.environ.get("PGPORT", ""),
            "USER": os.environ["PGUSER"],
            "NAME": os.environ["PGDATABASE"],
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()

from django.db import connection, models
from django.db.backends.signals import connection_created
from psycopg.types import TypeInfo
from psycopg.types.numeric import IntLoader


class Order(models.Model):
    item = models.TextField()

    class Meta:
        app_label = "shop"
        db_table = "typed_orders"
        managed = False


def register(connection, **_):
    """For an AppConfig's ready(): connection_created.connect(register)."""
    info = TypeInfo.fetch(connection.connection, "snowflake_id")
    info.register(connection.connection)
    connection.connection.adapters.register_loader(info.oid, IntLoader)


with connection.cursor() as cursor:
    cursor.execute("DROP TABLE IF EXISTS typed_orders")
    cursor.execute("CREATE TABLE typed_orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL)")
order = Order.objects.create(item="lamp")
assert isinstance(order.pk, str), order.pk
connection.close()
connection_created.connect(register)
order = Order.objects.create(item="lamp")
assert isinstance(order.pk, int), order.pk
assert Order.objects.get(pk=order.pk) == order
assert list(Order.objects.filter(pk__in=[order.pk, 5])) == [order]
print("seen: django")
