"""Tests that `pip install ./python` works offline, and that the installed package finds a library
in its own folder. Skipped without pip, venv and setuptools."""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import support
from support import FILES, ROOT

PROGRAM = """
import keel, pathlib, sys
assert pathlib.Path(keel.__file__).is_relative_to(sys.prefix), keel.__file__
assert (pathlib.Path(keel.__file__).parent / "py.typed").exists()
with keel.load(sys.argv[1]) as model:
    print(model.predict({"user": [17], "seen": [[3]]}))
"""


@unittest.skipUnless(all(map(importlib.util.find_spec, ("pip", "setuptools", "venv", "wheel"))),
                     "requires pip, setuptools, venv and wheel")
class InstallTest(support.TestCase):
    def test_is_installed_offline(self):
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("PYTHONPATH", "PYTHONWARNINGS")}
        with tempfile.TemporaryDirectory() as folder:
            source, home = pathlib.Path(folder, "python"), pathlib.Path(folder, "venv")
            shutil.copytree(ROOT / "python", source)  # setuptools writes a build folder
            # The environment's own pip would have to be downloaded or unpacked.
            self.run_program(sys.executable, "-m", "venv", "--system-site-packages",
                             "--without-pip", home, environment=environment)
            python = home / "bin/python3"
            self.run_program(python, "-m", "pip", "install", "--quiet", "--no-build-isolation",
                             "--no-index", source, environment=environment)
            first = self.run_program(python, "-c", PROGRAM, FILES / "tables.keras",
                                     environment=environment)
            (installed,) = home.glob("lib/python3*/site-packages/keel")
            shutil.copy(os.environ["KEEL_LIBRARY"], installed / "libkeel_c.so")
            del environment["KEEL_LIBRARY"]
            second = self.run_program(python, "-c", PROGRAM, FILES / "tables.keras",
                                      environment=environment)
            self.assertEqual(first, second)

    def run_program(self, *command, environment):
        got = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(got.returncode, 0, got.stdout + got.stderr)
        return got.stdout


if __name__ == "__main__":
    unittest.main()
