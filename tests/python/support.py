"""What the tests of the Python package share.

KEEL_TEST_FILES is a folder with the files of tool_fixtures and python_fixtures, KEEL_TEST_BIN the
folder of the programs. With KEEL_TEST_WITHOUT_NUMPY the tests run as if numpy was not installed.
"""
import os
import pathlib
import sys
import unittest

if os.environ.get("KEEL_TEST_WITHOUT_NUMPY"):
    sys.modules["numpy"] = None  # type: ignore[assignment]  # imports of it fail
try:
    import numpy as np
except ImportError:
    np = None

ROOT = pathlib.Path(__file__).parents[2]
CASES = ROOT / "tests/cases/keras_models"
FILES = pathlib.Path(os.environ.get("KEEL_TEST_FILES", "."))
BIN = pathlib.Path(os.environ.get("KEEL_TEST_BIN", "."))

needs_numpy = unittest.skipIf(np is None, "numpy is not installed")


def lists(value):
    """Nested lists of an array, of lists of arrays, or of lists."""
    if isinstance(value, list):
        return [lists(element) for element in value]
    return value.tolist() if hasattr(value, "tolist") else value


class TestCase(unittest.TestCase):
    def refused(self, kind, text, function, *arguments, **options):
        """Expects this error, with the text in its message."""
        with self.assertRaises(kind) as caught:
            function(*arguments, **options)
        self.assertIn(text, str(caught.exception))
        return caught.exception
