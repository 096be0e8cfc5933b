from django.db import models
from snowflake_field import created_at


# Keys by DEFAULT_AUTO_FIELD, from the first migration on.


class Customer(models.Model):
    name = models.TextField()


class Order(models.Model):
    customer = models.ForeignKey(Customer, models.CASCADE)
    item = models.TextField()

    @property
    def created_at(self):
        return created_at(self.pk)

    def as_json(self):
        """The key as text: JavaScript reads a number of 63 bits as another number."""
        return {"id": str(self.pk), "item": self.item}


# Tables from before. Migration 0002 has moved their keys.


class Invoice(models.Model):
    number = models.TextField()


class InvoiceLine(models.Model):
    invoice = models.ForeignKey(Invoice, models.CASCADE)
    text = models.TextField()
