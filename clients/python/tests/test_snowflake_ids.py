import doctest
import json
import pickle
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path

import snowflake_ids
from snowflake_ids import FORMS, LAYOUTS, IdError, Layout, LayoutError, SnowflakeError, TextError, from_text, to_text

from .answers import wrong

VECTORS = Path(__file__).parents[2] / "vectors.json"
ID = 382304429472247813
MADE = datetime(2026, 11, 20, 23, 1, 18, 859000, timezone.utc)


class Vectors(unittest.TestCase):
    def test_answers_are_those_of_the_library(self):
        cases = json.loads(VECTORS.read_text())
        self.assertGreater(len(cases), 200)
        self.assertEqual(list(wrong(cases)), [])

    def test_a_wrong_answer_is_found(self):
        right = {"call": "layout", "layout": "default", "answer": [LAYOUTS["default"], str((1 << 63) - 1)]}
        self.assertEqual(list(wrong([right])), [])
        for other in ({"answer": ["", ""]}, {"answer": None, "error": "x"}):
            self.assertEqual(len(list(wrong([{**right, **other}]))), 1)
        bad = {"call": "layout", "layout": "x"}
        for other in ({"answer": ["", ""]}, {"error": "another"}):
            self.assertEqual(len(list(wrong([{**bad, **other}]))), 1)
        self.assertEqual(list(wrong([{**bad, "error": 'no built-in layout is named "x"'}])), [])


class Layouts(unittest.TestCase):
    def test_a_layout_is_a_value(self):
        layout = Layout("default")
        self.assertEqual(layout, Layout(str(layout)))
        self.assertEqual(hash(layout), hash(Layout(LAYOUTS["default"])))
        self.assertNotEqual(layout, Layout("twitter"))
        self.assertNotEqual(layout, str(layout))
        self.assertEqual(eval(repr(layout)), layout)
        self.assertEqual(pickle.loads(pickle.dumps(layout)), layout)
        self.assertEqual(layout.epoch, datetime(2024, 1, 1, tzinfo=timezone.utc))
        self.assertEqual(layout.last_time, datetime(2093, 9, 6, 15, 47, 35, 551000, timezone.utc))
        self.assertEqual([name for name in LAYOUTS if Layout(name).fits_double], ["cosid-js"])

    def test_decoding(self):
        layout = Layout("default")
        self.assertEqual(layout.decode(ID), (MADE, None, 7, 5))
        self.assertEqual((layout.datacenter(ID), layout.worker(ID), layout.sequence(ID)), (None, 7, 5))
        self.assertEqual(layout.encode(MADE, 7, 5), ID)
        for id in (-1, 1 << 63):
            with self.assertRaisesRegex(IdError, f"^{id} is not a snowflake ID: .* range from 0 to 9223372036854775807$"):
                layout.timestamp(id)
        for id in ("382304429472247813", 1.0, None):
            with self.assertRaises(TypeError):
                layout.timestamp(id)

    def test_age(self):
        layout = Layout("default")
        age = layout.age(layout.encode(datetime.now(timezone.utc) - timedelta(hours=1), 0))
        self.assertLess(abs(age - timedelta(hours=1)), timedelta(minutes=5))

    def test_times_have_a_zone(self):
        layout = Layout("default")
        for of_time in (layout.min_id, layout.max_id, layout.max_id_before, lambda at: layout.encode(at, 1)):
            with self.assertRaisesRegex(ValueError, "has no time zone"):
                of_time(datetime(2026, 1, 1))
        berlin = timezone(timedelta(hours=1))
        utc = datetime(2026, 1, 1, tzinfo=timezone.utc)
        self.assertEqual(layout.min_id(datetime(2026, 1, 1, 1, tzinfo=berlin)), layout.min_id(utc))

    def test_bounds_exist_for_every_time(self):
        layout = Layout("default")
        first, last = (end.replace(tzinfo=timezone.utc) for end in (datetime.min, datetime.max))
        self.assertEqual((layout.min_id(first), layout.max_id(first), layout.max_id_before(first)), (0, -1, -1))
        highest = (1 << 63) - 1
        self.assertEqual((layout.min_id(last), layout.max_id(last), layout.max_id_before(last)), (highest,) * 3)
        east, west = (timezone(timedelta(hours=hours)) for hours in (14, -12))
        self.assertEqual(layout.min_id(datetime.min.replace(tzinfo=east)), 0)
        self.assertEqual(layout.max_id(datetime.max.replace(tzinfo=west)), highest)


class Errors(unittest.TestCase):
    def test_all_are_value_errors(self):
        self.assertTrue(issubclass(SnowflakeError, ValueError))
        for raises, error in (
            (lambda: Layout("timestamp=41 worker=x"), LayoutError),
            (lambda: Layout("default").encode(MADE, 1024), IdError),
            (lambda: to_text(-1, "hex"), TextError),
            (lambda: to_text(1, "base16"), TextError),
            (lambda: from_text("1", "hex"), TextError),
        ):
            with self.assertRaises(error) as raised:
                raises()
            self.assertIsInstance(raised.exception, SnowflakeError)


class Whole:
    """A number that is no int, as those of numpy, whose arithmetic would end at 64 bits."""

    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number


class OtherNumbers(unittest.TestCase):
    def test_they_are_taken_as_int(self):
        layout = Layout("default")
        for form in FORMS:
            highest = (1 << 63) - 1
            self.assertEqual(to_text(Whole(highest), form), to_text(highest, form))
        made = layout.encode(MADE, Whole(7), Whole(5))
        self.assertEqual((made, type(made)), (ID, int))
        self.assertEqual(layout.decode(Whole(ID)), layout.decode(ID))
        self.assertTrue(layout.between(Whole(ID), MADE, MADE + timedelta(seconds=1)))

    def test_what_is_no_whole_number_is_refused(self):
        layout = Layout("default")
        for number in (1.0, "1", None):
            with self.assertRaises(TypeError):
                to_text(number, "hex")
            with self.assertRaises(TypeError):
                layout.between(number, MADE, MADE)
        for number in (1.0, "1"):
            with self.assertRaises(TypeError):
                layout.encode(MADE, number)


class Texts(unittest.TestCase):
    def test_texts(self):
        self.assertEqual(to_text(ID, "base62"), "0SExPrxHXPh")
        for form in FORMS:
            for id in (0, 1, ID, (1 << 63) - 1):
                self.assertEqual(from_text(to_text(id, form), form), id)


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(snowflake_ids))
    readme = str(Path(__file__).parents[1] / "README.md")
    tests.addTests(doctest.DocFileSuite(readme, module_relative=False))
    return tests
