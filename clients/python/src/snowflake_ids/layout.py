"""A layout: how the 63 bits of an ID are divided, how long a tick is, and when tick 0 begins."""

from __future__ import annotations

import operator
from datetime import datetime, timedelta, timezone
from typing import NamedTuple, Optional

from . import notation
from .errors import IdError

_MAX_BIGINT = (1 << 63) - 1
_MICROSECOND = timedelta(microseconds=1)


class Parts(NamedTuple):
    """The parts of an ID, as snowflake_decode() has them. None where the layout has no such field."""

    timestamp: datetime
    datacenter_id: Optional[int]
    worker_id: Optional[int]
    sequence: Optional[int]


class Field(NamedTuple):
    """The place of a field: `width` bits, of which the lowest is bit `shift`."""

    width: int
    shift: int

    @property
    def max(self) -> int:
        """The highest value."""
        return (1 << self.width) - 1

    def take(self, id: int) -> int:
        """The field's value in an ID."""
        return id >> self.shift & self.max


class Layout:
    """A layout, from the name of a built-in one, or from the notation that `SELECT snowflake_database_layout()` returns.

    Layouts do not change, compare equal by what they say, and can be keys of a dict."""

    __slots__ = ("_text", "epoch_micros", "fields", "highest_id", "tick_micros")

    fields: dict[str, Field]
    """The fields, from the highest to the lowest."""
    tick_micros: int
    """How long a tick lasts, in microseconds."""
    epoch_micros: int
    """When tick 0 begins, in microseconds since 1970."""
    highest_id: int
    """The highest ID."""

    def __init__(self, text: str) -> None:
        widths, tick, epoch = notation.parse(text)
        shift = sum(width for _, width in widths)
        self.highest_id = (1 << shift) - 1
        self.fields = {}
        for name, width in widths:
            shift -= width
            self.fields[name] = Field(width, shift)
        self.tick_micros = tick
        self.epoch_micros = epoch
        self._text = notation.write(widths, tick, epoch)

    def __str__(self) -> str:
        """The notation with nothing left out."""
        return self._text

    def __repr__(self) -> str:
        return f"Layout({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Layout) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    @property
    def epoch(self) -> datetime:
        """When tick 0 begins."""
        return _datetime(self.epoch_micros)

    @property
    def last_time(self) -> datetime:
        """The time of the last IDs: the start of the last tick."""
        return _datetime(self._start_of(self.fields["timestamp"].max))

    @property
    def fits_double(self) -> bool:
        """Whether JavaScript's numbers, and all else in double precision, hold all IDs exactly."""
        return self.highest_id < 1 << 53

    # An ID's parts.

    def timestamp(self, id: int) -> datetime:
        """The start of the ID's tick, in UTC."""
        return _datetime(self.timestamp_micros(id))

    def timestamp_micros(self, id: int) -> int:
        """The same in microseconds since 1970."""
        return self._start_of(self._check(id) >> self.fields["timestamp"].shift)

    def datacenter(self, id: int) -> int | None:
        """The datacenter; None where the layout has none."""
        return self._take("datacenter", id)

    def worker(self, id: int) -> int | None:
        """The worker; None where the layout has none."""
        return self._take("worker", id)

    def sequence(self, id: int) -> int | None:
        """The number within the tick; None where the layout has none."""
        return self._take("sequence", id)

    def decode(self, id: int) -> Parts:
        """All parts."""
        return Parts(self.timestamp(id), self.datacenter(id), self.worker(id), self.sequence(id))

    def age(self, id: int) -> timedelta:
        """The time from the ID until now."""
        return datetime.now(timezone.utc) - self.timestamp(id)

    def encode(
        self,
        timestamp: datetime,
        worker_id: int | None = None,
        sequence: int | None = 0,
        datacenter_id: int | None = None,
    ) -> int:
        """The ID of these parts. It need not be unique: for tests, and for rows that exist."""
        given = (("datacenter", datacenter_id), ("worker", worker_id), ("sequence", sequence))
        parts = [(name, None if value is None else operator.index(value)) for name, value in given]
        for name, value in parts:
            if value is not None and value < 0:
                raise IdError(f"{name} must not be negative: {value}")
        micros = _micros(timestamp)
        tick = (micros - self.epoch_micros) // self.tick_micros
        if not 0 <= tick <= self.fields["timestamp"].max:
            raise IdError(f'{notation.write_instant(micros)} is outside the time of the layout "{self}"')
        id = tick << self.fields["timestamp"].shift
        for name, value in parts:
            id |= self._put(name, value)
        return id

    # The IDs of a range of time. For every instant and every ID, comparing the ID with the bound is the same as
    # comparing the ID's time with the instant.

    def min_id(self, at: datetime) -> int:
        """The lowest ID whose time is at or after the given one: 0 before the epoch, and the highest bigint where
        there is none."""
        ticks = -((self.epoch_micros - _micros(at)) // self.tick_micros)
        if ticks <= 0:
            return 0
        timestamp = self.fields["timestamp"]
        return _MAX_BIGINT if ticks > timestamp.max else ticks << timestamp.shift

    def max_id(self, at: datetime) -> int:
        """The highest ID whose time is at or before the given one: -1 where there is none, and the layout's highest
        after its end."""
        return self._highest_until(_micros(at))

    def max_id_before(self, at: datetime) -> int:
        """The highest ID whose time is before the given one."""
        return self._highest_until(_micros(at) - 1)

    def between(self, id: int, since: datetime, until: datetime) -> bool:
        """Whether the time of an ID is at or after `since` and before `until`."""
        return self.min_id(since) <= operator.index(id) <= self.max_id_before(until)

    def _highest_until(self, micros: int) -> int:
        tick = (micros - self.epoch_micros) // self.tick_micros
        if tick < 0:
            return -1
        timestamp = self.fields["timestamp"]
        return (min(tick, timestamp.max) + 1 << timestamp.shift) - 1

    def _start_of(self, tick: int) -> int:
        return self.epoch_micros + tick * self.tick_micros

    def _check(self, id: int) -> int:
        id = operator.index(id)
        if not 0 <= id <= self.highest_id:
            raise IdError(
                f'{id} is not a snowflake ID: IDs of the layout "{self}" range from 0 to {self.highest_id}'
            )
        return id

    def _take(self, name: str, id: int) -> int | None:
        id = self._check(id)
        field = self.fields.get(name)
        return field and field.take(id)

    def _put(self, name: str, value: int | None) -> int:
        field = self.fields.get(name)
        if value is None:
            if field:
                raise IdError(f"the layout has a {name}, but none is given")
            return 0
        # A sequence of 0 is that of every ID of a layout that has none.
        if field is None and name != "sequence":
            raise IdError(f"the layout has no {name}, but one is given")
        max = field.max if field else 0
        if value > max:
            raise IdError(f"{name} {value} is above the layout's highest, {max}")
        return value << field.shift if field else 0


def _micros(at: datetime) -> int:
    """Microseconds since 1970."""
    if at.tzinfo is None or at.utcoffset() is None:
        raise ValueError(f"{at!r} has no time zone: for UTC, write .replace(tzinfo=timezone.utc)")
    return (at - notation.EPOCH_1970) // _MICROSECOND


def _datetime(micros: int) -> datetime:
    return notation.EPOCH_1970 + timedelta(microseconds=micros)
