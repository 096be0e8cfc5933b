from django.contrib import admin

from .models import Customer, Order


class OrderInline(admin.TabularInline):
    model = Order


@admin.register(Customer)
class CustomerAdmin(admin.ModelAdmin):
    inlines = [OrderInline]
