"""The package's answers to calls that are written as JSON, to compare them with those of the library in PostgreSQL. Numbers
are texts there, as JSON's are not exact everywhere.

    python -m tests.answers < cases.json      compares the answers with those that the file has
"""

import json
import sys
from datetime import datetime, timedelta, timezone

from snowflake_ids import Layout, SnowflakeError, from_text, to_text

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def at(micros):
    return EPOCH + timedelta(microseconds=int(micros))


def number(text):
    return None if text is None else int(text)


def text(value):
    return None if value is None else str(value)


def call(case):
    layout = Layout(case["layout"]) if "layout" in case else None
    if case["call"] == "layout":
        return [str(layout), str(layout.highest_id)]
    if case["call"] == "decode":
        parts = layout.decode(int(case["id"]))
        assert layout.encode(*parts[:1], *parts[2:], parts.datacenter_id) == int(case["id"])
        assert parts.timestamp.utcoffset() == timedelta(0)
        micros = (parts.timestamp - EPOCH) // timedelta(microseconds=1)
        return [text(value) for value in (micros, *parts[1:])]
    if case["call"] == "encode":
        worker, sequence, datacenter = (number(case[name]) for name in ("worker", "sequence", "datacenter"))
        return [str(layout.encode(at(case["at"]), worker, sequence, datacenter))]
    if case["call"] == "bounds":
        time = at(case["at"])
        return [str(bound) for bound in (layout.min_id(time), layout.max_id(time), layout.max_id_before(time))]
    if case["call"] == "between":
        return [str(layout.between(int(case["id"]), at(case["since"]), at(case["until"]))).lower()]
    if case["call"] == "to_text":
        return [to_text(int(case["id"]), case["form"])]
    if case["call"] == "from_text":
        return [str(from_text(case["text"], case["form"]))]
    raise AssertionError(case)


def wrong(cases):
    """The cases whose answer is another one here. Where a case has the text of an error, that of the package has it, too."""
    for case in cases:
        try:
            answer, expected = call(case), case.get("answer")
        except SnowflakeError as error:
            answer, expected = str(error), case.get("error")
            if expected is not None and expected in answer:
                continue
        if answer != expected:
            yield {**case, "here": answer}


if __name__ == "__main__":
    cases = json.load(sys.stdin)
    for case in wrong(cases):
        print(json.dumps(case))
    print(f"{len(cases)} compared")
