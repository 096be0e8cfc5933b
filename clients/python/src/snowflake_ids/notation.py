"""Layouts as text: the name of a built-in one, or `timestamp=41 worker=10 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from .errors import LayoutError, shortened

LAYOUTS: dict[str, str] = {
    "default": "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z",
    "twitter": "timestamp=41 datacenter=5 worker=5 sequence=12 tick=1ms epoch=2010-11-04T01:42:54.657Z",
    "discord": "timestamp=41 worker=5 datacenter=5 sequence=12 tick=1ms epoch=2015-01-01T00:00:00Z",
    "instagram": "timestamp=40 worker=13 sequence=10 tick=1ms epoch=2011-08-24T21:07:01.721Z",
    "mastodon": "timestamp=47 sequence=16 tick=1ms epoch=1970-01-01T00:00:00Z",
    "sonyflake": "timestamp=39 sequence=8 worker=16 tick=10ms epoch=2014-09-01T00:00:00Z",
    "sonyflake2": "timestamp=39 sequence=8 worker=16 tick=10ms epoch=2025-01-01T00:00:00Z",
    "leaf": "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2010-11-04T01:42:54.657Z",
    "bwmarrin": "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2010-11-04T01:42:54.657Z",
    "baidu": "timestamp=28 worker=22 sequence=13 tick=1s epoch=2016-05-19T16:00:00Z",
    "cosid": "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2019-12-24T16:00:00Z",
    "cosid-js": "timestamp=41 worker=3 sequence=9 tick=1ms epoch=2019-12-24T16:00:00Z",
    "yitter": "timestamp=47 worker=6 sequence=6 tick=1ms epoch=2020-02-19T18:20:02Z",
    "tsid": "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2020-01-01T00:00:00Z",
    "cockroach": "timestamp=48 worker=15 tick=10us epoch=2015-01-01T00:00:00Z",
    "pgedge": "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2023-01-01T00:00:00Z",
}
"""The built-in layouts."""

FIELDS = ("timestamp", "datacenter", "worker", "sequence")
EPOCH_1970 = datetime(1970, 1, 1, tzinfo=timezone.utc)

_DEFAULT_TICK = 1000
_DEFAULT_EPOCH = 1_704_067_200_000_000
_LONGEST = 256
_MAX_WRITTEN = 253_402_300_799_999_999  # 9999-12-31T23:59:59.999999Z
_MAX_TICK = 60_000_000
_MAX_FIELD_WIDTH = 31
_UNITS = (("s", 1_000_000), ("ms", 1000), ("us", 1))
_BLANKS = re.compile(r"[^ \t\n\f\r]+")
_NUMBER = re.compile(r"0|[1-9][0-9]*")
_TICK = re.compile(r"(0|[1-9][0-9]*)(s|ms|us)")
_INSTANT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{3}|[0-9]{6}))?Z")

Widths = list[tuple[str, int]]


def parse(text: str) -> tuple[Widths, int, int]:
    """The fields with their widths, the tick and the epoch in microseconds."""
    if len(text.encode("utf-8", "replace")) > _LONGEST:
        raise LayoutError(f"a layout has at most {_LONGEST} bytes")
    if text in LAYOUTS:
        text = LAYOUTS[text]
    elif "=" not in text:
        raise LayoutError(f'no built-in layout is named "{shortened(text)}", at character 1')
    widths: Widths = []
    tick: int | None = None
    epoch: int | None = None
    for word in _BLANKS.finditer(text):
        key, equals, value = word.group().partition("=")
        at_key = f", at character {word.start() + 1}"
        at_value = f", at character {word.start() + len(key) + 2}"
        if not equals:
            raise LayoutError(f'"{shortened(key)}" is not of the form key=value{at_key}')
        if key in ("tick", "epoch"):
            if (tick if key == "tick" else epoch) is not None:
                raise LayoutError(f"{key} is given twice{at_key}")
            if key == "tick":
                tick = _parse_tick(value)
                if tick is None:
                    raise LayoutError(f'"{shortened(value)}" is not a tick such as 1ms, 10ms or 1s{at_value}')
            else:
                epoch = _parse_instant(value)
                if epoch is None:
                    message = f'"{shortened(value)}" is not an instant such as 2024-01-01T00:00:00Z{at_value}'
                    raise LayoutError(message)
        elif key in FIELDS:
            if tick is not None or epoch is not None:
                raise LayoutError(f"field {key} stands after tick or epoch{at_key}")
            if not _NUMBER.fullmatch(value) or int(value) >= 1 << 32:
                raise LayoutError(f'"{shortened(value)}" is not a number of bits{at_value}')
            widths.append((key, int(value)))
        else:
            raise LayoutError(f'"{shortened(key)}" is not a field, nor tick or epoch{at_key}')
    tick = _DEFAULT_TICK if tick is None else tick
    epoch = _DEFAULT_EPOCH if epoch is None else epoch
    _check(widths, tick, epoch)
    return widths, tick, epoch


def _parse_tick(text: str) -> int | None:
    match = _TICK.fullmatch(text)
    if not match:
        return None
    micros = int(match[1]) * dict(_UNITS)[match[2]]
    return micros if micros < 1 << 63 else None


def _parse_instant(text: str) -> int | None:
    match = _INSTANT.fullmatch(text)
    if not match:
        return None
    try:
        whole = datetime.fromisoformat(match[1]).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    micros = (whole - EPOCH_1970) // timedelta(microseconds=1) + int((match[2] or "").ljust(6, "0"))
    # Other spellings of an instant are refused.
    return micros if write_instant(micros) == text else None


def _check(widths: Widths, tick: int, epoch: int) -> None:
    shift = 0
    seen = set()
    for field, width in reversed(widths):
        if field in seen:
            raise LayoutError(f"field {field} is given twice")
        if width == 0:
            raise LayoutError(f"field {field} must have at least 1 bit")
        if field != "timestamp" and width > _MAX_FIELD_WIDTH:
            raise LayoutError(f"field {field} has {width} bits, more than {_MAX_FIELD_WIDTH}")
        if width > 63 - shift:
            total = sum(width for _, width in widths)
            raise LayoutError(f"the fields have {total} bits together, more than 63")
        seen.add(field)
        shift += width
    if "timestamp" not in seen:
        raise LayoutError("field timestamp is missing")
    if widths[0][0] != "timestamp":
        raise LayoutError("the timestamp must be the first field, so that IDs sort by time")
    if not 1 <= tick <= _MAX_TICK:
        raise LayoutError("a tick must last between 1us and 60s")
    if epoch + (tick << widths[0][1]) > _MAX_WRITTEN + 1:
        raise LayoutError("the timestamp would run on beyond the year 9999: give it fewer bits")


def write(widths: Widths, tick: int, epoch: int) -> str:
    """The notation with nothing left out."""
    fields = " ".join(f"{field}={width}" for field, width in widths)
    unit, length = next((unit, length) for unit, length in _UNITS if tick % length == 0)
    return f"{fields} tick={tick // length}{unit} epoch={write_instant(epoch)}"


def write_instant(micros: int) -> str:
    """Three or six decimals where they are not zero."""
    if micros < 0:
        return f"{-micros} us before 1970"
    if micros > _MAX_WRITTEN:
        return f"{micros} us after 1970"
    instant = EPOCH_1970 + timedelta(microseconds=micros)
    precision = "seconds" if micros % 1_000_000 == 0 else "milliseconds" if micros % 1000 == 0 else "microseconds"
    return instant.replace(tzinfo=None).isoformat(timespec=precision) + "Z"
