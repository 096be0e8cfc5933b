import json
from datetime import datetime, timedelta, timezone
from io import StringIO

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import IntegrityError, connection, models
from django.db.migrations.executor import MigrationExecutor
from django.db.models.expressions import DatabaseDefault
from django.forms import inlineformset_factory, modelform_factory
from django.test import TestCase, TransactionTestCase
from django.test.utils import CaptureQueriesContext, isolate_apps
from shop.models import Customer, Invoice, InvoiceLine, Order
from snowflake_field import SnowflakeTimestamp, created_at

PUBLISHED = 382304429472247813


def columns(table):
    """Type and default of a table's columns."""
    query = """
        SELECT column_name, data_type, CASE is_identity WHEN 'YES' THEN 'identity' ELSE column_default END
        FROM information_schema.columns WHERE table_name = %s"""
    with connection.cursor() as cursor:
        cursor.execute(query, [table])
        return {name: (type, default) for name, type, default in cursor.fetchall()}


def is_recent(key):
    """Whether the key is a snowflake of now; a small number would be one of the epoch."""
    return abs(created_at(key) - datetime.now(timezone.utc)) < timedelta(hours=1)


SNOWFLAKE = ("bigint", "snowflake_next()")


class Keys(TestCase):
    def setUp(self):
        self.customer = Customer.objects.create(name="Ada")

    def many(self):
        return [Order(customer=self.customer, item=f"item {n}") for n in range(5000)]

    def test_the_key_comes_back(self):
        self.assertEqual(Customer.objects.get(name="Ada").pk, self.customer.pk)
        self.assertTrue(is_recent(self.customer.pk))

    def test_columns(self):
        self.assertEqual(columns("shop_customer")["id"], SNOWFLAKE)
        self.assertEqual(columns("shop_order")["id"], SNOWFLAKE)
        self.assertEqual(columns("shop_order")["customer_id"], ("bigint", None))

    def test_many_are_one_statement(self):
        orders = self.many()
        with CaptureQueriesContext(connection) as queries:
            Order.objects.bulk_create(orders)
        self.assertEqual(sum(query["sql"].startswith("INSERT") for query in queries), 1)
        stored = dict(Order.objects.values_list("pk", "item"))
        self.assertEqual({order.pk: order.item for order in orders}, stored)
        self.assertEqual(len(stored), 5000)

    def test_an_unsaved_parent_is_noticed_and_saved_first(self):
        order = Order(customer=Customer(name="Grace"), item="lamp")
        self.assertIsNone(order.customer.pk)
        with self.assertRaisesMessage(ValueError, "unsaved related object"):
            order.save()
        order.customer.save()
        order.save()
        self.assertEqual(Order.objects.get().customer.name, "Grace")

    def test_the_admin_adds_and_changes_a_customer_with_orders(self):
        self.client.force_login(User.objects.create_superuser("admin"))
        form = {
            "name": "Grace",
            "order_set-TOTAL_FORMS": "2",
            "order_set-INITIAL_FORMS": "0",
            "order_set-0-item": "lamp",
            "order_set-1-item": "desk",
        }
        self.assertContains(self.client.get("/admin/shop/customer/add/"), "order_set-0-item")
        self.assertRedirects(self.client.post("/admin/shop/customer/add/", form), "/admin/shop/customer/")
        grace = Customer.objects.get(name="Grace")
        lamp, desk = grace.order_set.order_by("pk")
        self.assertEqual([lamp.item, desk.item], ["lamp", "desk"])
        change = f"/admin/shop/customer/{grace.pk}/change/"
        self.assertContains(self.client.get(change), f'value="{desk.pk}"')
        form |= {
            "order_set-INITIAL_FORMS": "2",
            "order_set-0-id": lamp.pk,
            "order_set-0-customer": grace.pk,
            "order_set-1-id": desk.pk,
            "order_set-1-customer": grace.pk,
            "order_set-1-item": "chair",
        }
        self.assertRedirects(self.client.post(change, form), "/admin/shop/customer/")
        changed = grace.order_set.order_by("pk").values_list("pk", "item")
        self.assertEqual(list(changed), [(lamp.pk, "lamp"), (desk.pk, "chair")])

    def test_keys_survive_json(self):
        order = Order.objects.create(pk=PUBLISHED, customer=self.customer, item="lamp")
        text = json.dumps(order.as_json())
        self.assertIn(f'"{PUBLISHED}"', text)
        self.assertEqual(Order.objects.get(pk=json.loads(text)["id"]), order)
        self.assertNotEqual(int(float(PUBLISHED)), PUBLISHED, "a JavaScript number cannot hold it")

    def test_the_time_is_read_from_the_key(self):
        Order.objects.bulk_create(self.many())
        for order in Order.objects.annotate(timestamp=SnowflakeTimestamp("pk")):
            self.assertEqual(order.created_at, order.timestamp)
        hour_ago = datetime.now(timezone.utc) - timedelta(hours=1)
        recent = Order.objects.alias(timestamp=SnowflakeTimestamp("pk")).filter(timestamp__gte=hour_ago)
        self.assertEqual(recent.count(), 5000)


class Migrations(TransactionTestCase):
    def migrate(self, name):
        executor = MigrationExecutor(connection)
        executor.migrate([("shop", name)])
        return executor.loader.project_state([("shop", name)]).apps

    def test_models_need_no_further_migration(self):
        call_command("makemigrations", "--check", "--dry-run", stdout=StringIO())

    def test_a_key_moves_and_moves_back(self):
        for serial in [False, True]:
            with self.subTest(serial=serial):
                self.moves(serial)

    def moves(self, serial):
        old = self.migrate("0001_initial")
        self.assertEqual(columns("shop_invoice")["id"], ("integer", "identity"))
        self.assertEqual(columns("shop_invoiceline")["id"], ("bigint", "identity"))
        if serial:
            with connection.cursor() as cursor:
                cursor.execute("""
                    ALTER TABLE shop_invoice ALTER id DROP IDENTITY;
                    CREATE SEQUENCE shop_invoice_id_seq OWNED BY shop_invoice.id;
                    ALTER TABLE shop_invoice ALTER id SET DEFAULT nextval('shop_invoice_id_seq')""")
        first = old.get_model("shop", "invoice").objects.create(number="1")
        old.get_model("shop", "invoiceline").objects.create(invoice=first, text="lamp")
        self.assertLess(first.pk, 1000)

        self.migrate("0002_snowflakes")
        self.assertEqual(columns("shop_invoice")["id"], SNOWFLAKE)
        self.assertEqual(columns("shop_invoiceline")["id"], SNOWFLAKE)
        self.assertEqual(columns("shop_invoiceline")["invoice_id"], ("bigint", None))
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_class WHERE relkind = 'S' AND relname LIKE 'shop%'")
            self.assertEqual(cursor.fetchone(), (0,))
        self.assertEqual(InvoiceLine.objects.get(text="lamp").invoice_id, first.pk)
        second = Invoice.objects.create(number="2")
        InvoiceLine.objects.create(invoice=second, text="desk")
        self.assertTrue(is_recent(second.pk))

        # Back to integer, which has no room for a snowflake.
        second.delete()
        self.migrate("0001_initial")
        self.assertEqual(columns("shop_invoice")["id"], ("integer", "identity"))
        self.assertEqual(columns("shop_invoiceline")["id"], ("bigint", "identity"))
        self.assertEqual(columns("shop_invoiceline")["invoice_id"], ("integer", None))
        third = old.get_model("shop", "invoice").objects.create(number="3")
        self.assertEqual(third.pk, first.pk + 1)
        third.delete()
        old.get_model("shop", "invoice").objects.all().delete()
        self.migrate("0002_snowflakes")


class DbDefault(TransactionTestCase):
    """What README.md says about keys by db_default. test_shop.Keys shows that SnowflakeAutoField has none of that."""

    @isolate_apps("shop")
    def test_what_does_not_work(self):
        class Base(models.Model):
            id = models.BigIntegerField(primary_key=True, db_default=models.Func(function="snowflake_next"))

            class Meta:
                abstract = True
                app_label = "shop"

        class Parent(Base):
            name = models.TextField()

        class Child(Base):
            parent = models.ForeignKey(Parent, models.CASCADE)

        for model in Parent, Child:
            with connection.schema_editor() as editor:
                editor.create_model(model)

        with self.subTest("objects have no key after bulk_create"):
            (parent,) = Parent.objects.bulk_create([Parent(name="Ada")])
            self.assertIsInstance(parent.pk, DatabaseDefault)
        with self.subTest("forms ask for the key"):
            self.assertIn("id", modelform_factory(Parent, fields="__all__").base_fields)
        with self.subTest("a new object's form fails where it has inlines"), self.assertRaises(TypeError):
            str(inlineformset_factory(Parent, Child, fields="__all__")(instance=Parent()))
        with self.subTest("a child of an unsaved parent is inserted with NULL"):
            child = Child(parent=Parent(name="Ada"))
            child.parent.save()
            with self.assertRaisesMessage(IntegrityError, "null value in column"):
                child.save()
