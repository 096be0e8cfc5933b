import json

from django.test import TestCase
from shop.models import Customer, Order

PUBLISHED = 382304429472247813


class Api(TestCase):
    def setUp(self):
        self.customer = Customer.objects.create(pk=PUBLISHED, name="Ada")

    def send(self, method, path, body=None):
        response = getattr(self.client, method)(path, json.dumps(body), content_type="application/json")
        return response.status_code, json.loads(response.content)

    def get(self, path):
        return json.loads(self.client.get(path, headers={"Accept": "application/json"}).content)

    def test_keys_are_text_both_ways(self):
        status, order = self.send("post", "/api/orders/", {"customer": str(PUBLISHED), "item": "lamp"})
        stored = Order.objects.get()
        self.assertEqual((status, order), (201, {"id": str(stored.pk), "customer": str(PUBLISHED), "item": "lamp"}))
        self.assertEqual(stored.customer, self.customer)
        self.assertEqual(self.get("/api/orders/"), [order])
        self.assertEqual(self.get(f"/api/orders/{order['id']}/"), order)
        expected = {"id": str(PUBLISHED), "name": "Ada", "order_set": [order["id"]]}
        self.assertEqual(self.get(f"/api/customers/{PUBLISHED}/"), expected)

    def test_what_came_back_is_written_again(self):
        order = Order.objects.create(customer=self.customer, item="lamp")
        path = f"/api/orders/{order.pk}/"
        changed = self.get(path) | {"item": "desk"}
        self.assertEqual(self.send("put", path, changed), (200, changed))
        self.assertEqual(Order.objects.get().customer_id, PUBLISHED)

    def test_other_keys_are_refused(self):
        for key in (PUBLISHED, float(PUBLISHED), "x", "", "-1", "1.0", "٣", str(1 << 63), None, True, [str(PUBLISHED)]):
            with self.subTest(key):
                status, error = self.send("post", "/api/orders/", {"customer": key, "item": "lamp"})
                self.assertEqual((status, list(error)), (400, ["customer"]))
        status, error = self.send("post", "/api/orders/", {"customer": str(PUBLISHED + 1), "item": "lamp"})
        self.assertEqual(status, 400)
        self.assertIn("does not exist", error["customer"][0])
