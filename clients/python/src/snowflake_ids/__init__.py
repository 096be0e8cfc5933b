"""Snowflake IDs of any layout, read and composed without the database.

>>> layout = Layout("default")
>>> layout.timestamp(382304429472247813)
datetime.datetime(2026, 11, 20, 23, 1, 18, 859000, tzinfo=datetime.timezone.utc)
>>> to_text(382304429472247813, "base62")
'0SExPrxHXPh'

The methods have the names of pg_snowflake's SQL functions, without their prefix.
"""

from .errors import IdError, LayoutError, SnowflakeError, TextError
from .layout import Field, Layout, Parts
from .notation import LAYOUTS
from .text import FORMS, from_text, to_text

__all__ = [
    "FORMS",
    "LAYOUTS",
    "Field",
    "IdError",
    "Layout",
    "LayoutError",
    "Parts",
    "SnowflakeError",
    "TextError",
    "from_text",
    "to_text",
]
