from rest_framework import routers, viewsets
from snowflake_serializer import SnowflakeModelSerializer

from .models import Customer, Order


class OrderSerializer(SnowflakeModelSerializer):
    class Meta:
        model = Order
        fields = ["id", "customer", "item"]


class CustomerSerializer(SnowflakeModelSerializer):
    class Meta:
        model = Customer
        fields = ["id", "name", "order_set"]
        read_only_fields = ["order_set"]


class OrderViewSet(viewsets.ModelViewSet):
    queryset = Order.objects.order_by("pk")
    serializer_class = OrderSerializer


class CustomerViewSet(viewsets.ModelViewSet):
    queryset = Customer.objects.order_by("pk")
    serializer_class = CustomerSerializer


router = routers.SimpleRouter()
router.register("orders", OrderViewSet)
router.register("customers", CustomerViewSet)
