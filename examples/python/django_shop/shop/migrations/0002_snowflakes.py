from django.db import migrations
from snowflake_field import MoveToSnowflake


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [
        MoveToSnowflake("invoice"),
        MoveToSnowflake("invoiceline"),
    ]
