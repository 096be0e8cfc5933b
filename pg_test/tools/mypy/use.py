"""What a typed program may do with the package, and what it may not."""

from datetime import datetime, timedelta, timezone

from snowflake_ids import FORMS, LAYOUTS, Layout, Parts, SnowflakeError, from_text, to_text

layout = Layout(LAYOUTS["default"])
parts: Parts = layout.decode(1)
fields: list[int | None] = [parts.worker_id, layout.worker(1), layout.datacenter(1), layout.sequence(1)]
now: datetime = layout.timestamp(layout.encode(datetime.now(timezone.utc), 1))
bounds: list[int] = [layout.min_id(now), layout.max_id(now), layout.max_id_before(now), layout.highest_id]
age: timedelta = layout.age(1)
text: str = to_text(from_text("1", FORMS[0]), FORMS[0]) + str(layout)
error: ValueError = SnowflakeError(text)
width: int = layout.fields["worker"].width

# With --warn-unused-ignores, each of these must be an error.
layout.min_id(1795215678859)  # type: ignore[arg-type]
layout.timestamp("1")  # type: ignore[arg-type]
layout.encode(worker_id=1)  # type: ignore[call-arg]
