"""The tests of django_shop: Django runs them itself, in a database that it makes for them."""

import os
import subprocess
import sys
import unittest


class Django(unittest.TestCase):
    def test_shop(self):
        command = [sys.executable, "-m", "django", "test", "--noinput"]
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "settings"}
        subprocess.run(command, cwd="django_shop", env=environment, check=True)
