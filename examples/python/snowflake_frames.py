"""Snowflake IDs in polars and pandas. Times are computed from the column; a condition on the time is a range of IDs, so that files
of Parquet are read where the range is, and nowhere else.

    layout = Layout(connection.execute("SELECT snowflake_database_layout()").fetchone()[0])
"""

from snowflake_ids import Layout


class PolarsIds:
    """Expressions over a column of IDs: `PolarsIds(pl.col("id"), layout).timestamp()`."""

    def __init__(self, ids, layout: Layout):
        self.ids, self.layout = ids, layout

    def timestamp(self):
        """Datetime of microseconds, in UTC."""
        import polars as pl

        unit = 1 << self.layout.fields["timestamp"].shift
        micros = self.ids // unit * self.layout.tick_micros + self.layout.epoch_micros
        return micros.cast(pl.Datetime("us", "UTC"))

    def field(self, name):
        """`worker`, `datacenter` or `sequence`; null where the layout has no such field."""
        import polars as pl

        field = self.layout.fields.get(name)
        # The remainder is below 2^31.
        return (self.ids // (1 << field.shift) % (1 << field.width)).cast(pl.Int32) if field else pl.lit(None, pl.Int32)

    def between(self, since, until):
        """Whether an ID's time is at or after `since` and before `until`."""
        return self.ids.is_between(self.layout.min_id(since), self.layout.max_id_before(until))


class PandasIds:
    """The same of a Series of int64. What has NULLs must be Int64: as float64, IDs would be other IDs."""

    def __init__(self, ids, layout: Layout):
        if ids.dtype not in ("int64", "Int64"):
            raise TypeError(f"IDs are int64 or Int64, and not {ids.dtype}, which may not hold them exactly")
        self.ids, self.layout = ids, layout

    def timestamp(self):
        """datetime64[us, UTC]."""
        import pandas as pd

        unit = 1 << self.layout.fields["timestamp"].shift
        micros = self.ids // unit * self.layout.tick_micros + self.layout.epoch_micros
        times = micros.fillna(0).to_numpy("int64").astype("datetime64[us]")
        return pd.Series(times, self.ids.index).dt.tz_localize("UTC").mask(self.ids.isna())

    def field(self, name):
        """`worker`, `datacenter` or `sequence`; NA where the layout has no such field."""
        import pandas as pd

        field = self.layout.fields.get(name)
        if field is None:
            return pd.Series(pd.NA, self.ids.index, "Int32")
        return (self.ids // (1 << field.shift) % (1 << field.width)).astype("Int32")

    def between(self, since, until):
        """Whether an ID's time is at or after `since` and before `until`."""
        return self.ids.between(self.layout.min_id(since), self.layout.max_id_before(until))
