"""Django's own applications: makes their tables (the argument is "migrate"), or uses them after they were adopted ("use")."""

import os
import sys

import django
from django.conf import settings
from django.core.management import call_command

APPS = {
    "migrate": ["django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes"],
    "use": ["wide_apps.Admin", "wide_apps.Auth", "wide_apps.ContentTypes"],
}

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": os.environ["PGHOST"],
            "USER": os.environ["PGUSER"],
            "NAME": os.environ["PGDATABASE"],
        }
    },
    INSTALLED_APPS=[*APPS[sys.argv[1]], "django.contrib.sessions", "django.contrib.messages"],
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    SECRET_KEY="a test",
    USE_TZ=True,
)
django.setup()

if sys.argv[1] == "migrate":
    call_command("migrate", verbosity=0)

from django.contrib.admin.models import ADDITION, LogEntry  # noqa: E402
from django.contrib.auth.models import Group, Permission, User  # noqa: E402
from django.contrib.contenttypes.models import ContentType  # noqa: E402

for name in ["anna", "boris"]:
    user = User.objects.create_user(f"{name} {sys.argv[1]}", password="x")
    group = Group.objects.create(name=f"group of {user.username}")
    user.groups.add(group)
    group.permissions.add(*Permission.objects.all()[:5])
    LogEntry.objects.create(
        user=user,
        content_type=ContentType.objects.get_for_model(Group),
        object_id=str(group.pk),
        object_repr=str(group),
        action_flag=ADDITION,
        change_message="",
    )
    assert User.objects.get(groups__pk=group.pk).pk == user.pk
Permission.objects.bulk_create(
    Permission(name=f"{n}", codename=f"{sys.argv[1]} {n}", content_type=ContentType.objects.first()) for n in range(3)
)
print(" ".join(str(pk) for pk in User.objects.order_by("pk").values_list("pk", flat=True)))
call_command("migrate", verbosity=0)
