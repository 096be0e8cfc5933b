"""What Django makes of snowflake_id, in a table that is not of its migrations: text, until the driver is told how to load it."""

from django.db import connection, models
from django.db.backends.signals import connection_created
from django.test import TransactionTestCase
from django.test.utils import isolate_apps
from psycopg.types import TypeInfo
from psycopg.types.numeric import IntLoader


def register(connection, **_):
    """For an AppConfig's ready(): connection_created.connect(register)."""
    info = TypeInfo.fetch(connection.connection, "snowflake_id")
    info.register(connection.connection)
    connection.connection.adapters.register_loader(info.oid, IntLoader)


class IdType(TransactionTestCase):
    @isolate_apps("shop")
    def test_text_until_the_driver_is_told(self):
        class Order(models.Model):
            id = models.BigAutoField(primary_key=True)
            item = models.TextField()

            class Meta:
                app_label = "shop"
                db_table = "typed_orders"
                managed = False

        with connection.cursor() as cursor:
            table = "CREATE TABLE typed_orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL)"
            cursor.execute(table)
        self.assertIsInstance(Order.objects.create(item="lamp").pk, str)
        connection.close()
        connection_created.connect(register)
        self.addCleanup(connection.close)
        self.addCleanup(connection_created.disconnect, register)
        order = Order.objects.create(item="lamp")
        self.assertIsInstance(order.pk, int)
        self.assertEqual(Order.objects.get(pk=order.pk), order)
        self.assertEqual(list(Order.objects.filter(pk__in=[order.pk, 5])), [order])
