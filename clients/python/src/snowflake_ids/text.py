"""IDs as text, in the forms that URLs, files and other systems use. Each form has one text for an ID."""

from __future__ import annotations

import operator
from typing import NamedTuple, Optional

from .errors import TextError, shortened

_LONGEST = 64
_UPPER_LOWER = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BASE_64_URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


class _Form(NamedTuple):
    alphabet: str
    width: Optional[int] = None
    """The number of digits, with leading zeros; None where there are no leading zeros."""
    padding: int = 0
    """How many zero bits follow those of the number, to fill the last digit."""
    any_case: bool = False
    aliases: str = ""
    """Pairs of a character and the digit that it is read as."""

    def digits(self) -> dict[str, int]:
        """The characters that are read, with their values."""
        values = {digit: value for value, digit in enumerate(self.alphabet)}
        for alias, digit in zip(self.aliases[::2], self.aliases[1::2]):
            values[alias] = values[digit]
        if self.any_case:
            for character, value in list(values.items()):
                values[character.lower()] = values[character.upper()] = value
        return values


_FORMS = {
    "decimal": _Form("0123456789", 19),
    "hex": _Form("0123456789abcdef", 16, any_case=True),
    "base32": _Form("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 13, any_case=True, aliases="O0I1L1"),
    "base36": _Form("0123456789abcdefghijklmnopqrstuvwxyz", any_case=True),
    "base58": _Form("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 11),
    "base58-bwmarrin": _Form("123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"),
    "base62": _Form(_UPPER_LOWER, 11),
    "base64url": _Form(_BASE_64_URL, 11, padding=2),
    "shortcode": _Form(_BASE_64_URL),
}
_DIGITS = {name: form.digits() for name, form in _FORMS.items()}

FORMS: tuple[str, ...] = tuple(_FORMS)
"""The names of the forms."""


def _form(name: str) -> _Form:
    if name not in _FORMS:
        raise TextError(f'"{shortened(name)}" is not a text form; use one of {", ".join(FORMS)}')
    return _FORMS[name]


def to_text(id: int, form: str) -> str:
    """Writes an ID in the given text form."""
    alphabet, width, padding, _, _ = _form(form)
    # The numbers of numpy end at 64 bits.
    id = operator.index(id)
    if not 0 <= id < 1 << 63:
        raise TextError(f"{id} has no text form: IDs range from 0 to {(1 << 63) - 1}")
    number = id << padding
    text = ""
    while number or len(text) < (width or 1):
        number, digit = divmod(number, len(alphabet))
        text = alphabet[digit] + text
    return text


def from_text(text: str, form: str) -> int:
    """Reads an ID that is written in the given text form."""
    alphabet, width, padding, _, _ = _form(form)
    digits = _DIGITS[form]

    def error(problem: str) -> TextError:
        return TextError(f'"{shortened(text)}" is not a snowflake ID in the form {form}: {problem}')

    if len(text.encode("utf-8", "replace")) > _LONGEST:
        raise error(f"the text has more than {_LONGEST} bytes, and an ID at most 19 characters")
    number = 0
    for at, character in enumerate(text, 1):
        if character not in digits:
            raise error(f'character {at}, "{character}", is no digit of the form')
        number = number * len(alphabet) + digits[character]
    if width is not None and len(text) != width:
        raise error(f"the text has {len(text)} characters, and the form {width}")
    if width is None and len(text) != 1 and (not text or digits[text[0]] == 0):
        raise error("the form has at least one digit, and no leading zeros")
    if number & (1 << padding) - 1:
        raise error("the last character has bits below the number")
    number >>= padding
    if number >= 1 << 63:
        raise error(f"the number is above {(1 << 63) - 1}")
    return number
