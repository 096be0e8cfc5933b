"""Keys as text in the JSON of Django REST framework: JavaScript reads a number of 63 bits as another number. Copy this file into your
project, and derive serializers from SnowflakeModelSerializer."""

from rest_framework import serializers
from snowflake_field import SnowflakeAutoField


class SnowflakeField(serializers.Field):
    """A key: text in JSON, int in Python. JSON's numbers are refused, as they may have been another number before."""

    default_error_messages = {"invalid": "A key is text, such as \"382304429472247813\"."}

    def to_representation(self, value):
        return str(value)

    def to_internal_value(self, data):
        if isinstance(data, str) and data.isascii() and data.isdecimal() and int(data) < 1 << 63:
            return int(data)
        self.fail("invalid")


class SnowflakeRelatedField(serializers.PrimaryKeyRelatedField):
    """A foreign key."""

    def __init__(self, **kwargs):
        super().__init__(**{"pk_field": SnowflakeField(), **kwargs})


class SnowflakeModelSerializer(serializers.ModelSerializer):
    """A ModelSerializer whose primary and foreign keys are text."""

    serializer_field_mapping = {**serializers.ModelSerializer.serializer_field_mapping, SnowflakeAutoField: SnowflakeField}
    serializer_related_field = SnowflakeRelatedField
