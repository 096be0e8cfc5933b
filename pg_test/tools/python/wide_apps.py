"""Django's own applications with keys of type bigint. They say AutoField of themselves, and Django casts values of bulk inserts to the
type that the model has."""

from django.contrib.admin.apps import AdminConfig
from django.contrib.auth.apps import AuthConfig
from django.contrib.contenttypes.apps import ContentTypesConfig

WIDE = "django.db.models.BigAutoField"


class Admin(AdminConfig):
    default_auto_field = WIDE


class Auth(AuthConfig):
    default_auto_field = WIDE


class ContentTypes(ContentTypesConfig):
    default_auto_field = WIDE
