"""What can be wrong with a layout, an ID, or a text."""


class SnowflakeError(ValueError):
    """Any error of this package. All are ValueErrors."""


class LayoutError(SnowflakeError):
    """A text is no layout."""


class IdError(SnowflakeError):
    """A number is no ID of the layout, or parts do not make one."""


class TextError(SnowflakeError):
    """A text is no ID in the form, or a number has no text."""


# A longer text is shortened to this many bytes, or to the few fewer that end with a whole character.
_QUOTED = 128


def shortened(text: str) -> str:
    """The text as messages quote it: not longer than a message should be."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= _QUOTED:
        return text
    return encoded[:_QUOTED].decode("utf-8", "ignore") + "..."
