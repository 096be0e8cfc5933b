"""Prints the models that Django's inspectdb makes of a database. The arguments are options of inspectdb."""

import os
import sys

import django
from django.conf import settings
from django.core.management import call_command

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": os.environ["PGHOST"],
            "USER": os.environ["PGUSER"],
            "NAME": os.environ["PGDATABASE"],
        }
    }
)
django.setup()
call_command("inspectdb", *sys.argv[1:])
