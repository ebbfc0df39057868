"""Tests that keel.Client gets from `keel serve` the bits that keel.load() predicts. Skipped if the
program was built without the server."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

import support
import test_model
from support import BIN, FILES
from test_model import NUMBERS, STRINGS, bits, float32

import keel

MODELS = ("kinds", "ragged", "sparse", "tables")


def as_float32(value):
    if isinstance(value, list):
        return [as_float32(element) for element in value]
    return float32(value) if isinstance(value, float) else value


@unittest.skipIf(subprocess.run([BIN / "keel", "serve", "--help"], capture_output=True,
                                check=False).returncode, "this build has no server")
class ServerTest(support.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.folder.name)
        for name in MODELS:
            (root / name / "3").mkdir(parents=True)
            shutil.copy(FILES / f"{name}.keras", root / name / "3/model.keras")
        (root / "models.config").write_text("model_config_list {" + "".join(
            f'config {{ name: "{name}" base_path: "{root / name}" }}' for name in MODELS) + "}")
        cls.server = subprocess.Popen(
            [BIN / "keel", "serve", "--model_config_file", root / "models.config",
             "--rest_api_port=-1", "--port=0"], stderr=subprocess.PIPE, text=True)
        url = None
        for line in cls.server.stderr:
            url = url or re.search(r"serving REST at (http://\S+)", line)
            if re.search(r" ready\b", line):
                break
        # The log must be read, or the server has to drop lines.
        threading.Thread(target=cls.server.stderr.read, daemon=True).start()
        cls.client = keel.Client(url[1])

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.terminate()
        cls.server.wait(60)
        cls.server.stderr.close()
        cls.folder.cleanup()

    def check(self, name, inputs):
        """Compares the outputs of both protocols with those of the model."""
        with keel.load(FILES / f"{name}.keras") as model:
            expected = {key: bits(value) for key, value in model.predict(inputs).items()}
            signatures = model.signatures
        got = self.client.infer(name, inputs)
        self.assertEqual((got.model_name, got.model_version), (name, "3"))
        self.assertEqual({key: bits(value) for key, value in got.outputs.items()}, expected)
        utf8 = {key: value for key, value in inputs.items() if key != "string"}
        if len(utf8) == len(inputs):
            got = self.client.infer(name, inputs, binary=False).outputs
            self.assertEqual({key: bits(value) for key, value in got.items()}, expected)
        self.assertEqual({key: {str(spec) for spec in (*one.inputs.values(), *one.outputs.values())}
                          for key, one in self.client.signatures(name).items()},
                         {key: {str(spec) for spec in (*one.inputs.values(), *one.outputs.values())}
                          for key, one in signatures.items()})
        return expected

    def test_dense_inputs_of_every_dtype(self):
        self.check("kinds", {**NUMBERS, "string": STRINGS})

    def test_ragged_inputs(self):
        self.check("ragged", test_model.RaggedTest.ROWS)

    def test_sparse_inputs(self):
        case = test_model.SparseTest
        self.check("sparse", {name: (case.INDICES, values, case.SHAPE)
                              for name, values in case.VALUES.items()})

    def test_rows_and_columns(self):
        inputs = test_model.TABLES_INPUTS
        expected = self.check("tables", inputs)["score"]
        rows = [{"user": user, "seen": seen} for user, seen in zip(*inputs.values())]
        self.assertEqual(bits(as_float32(self.client.predict("tables", rows))), expected)
        got = self.client.predict("tables", inputs=inputs, version=3)
        self.assertEqual(bits(as_float32(got)), expected)
        seen = keel.Ragged([3, 5, 99, 5], [0, 1, 1, 4])
        got = self.client.predict("tables", inputs={**inputs, "seen": seen})
        self.assertEqual(bits(as_float32(got)), expected)

    def test_errors(self):
        inputs = test_model.TABLES_INPUTS
        for status, text, call in (
                (400, "20000", lambda: self.client.infer("tables", {
                    **inputs, "user": [[1], [20000], [2]]})),
                (404, "nobody", lambda: self.client.predict("nobody", [1])),
                (404, "9", lambda: self.client.predict("tables", [1], version=9))):
            self.assertEqual(self.refused(keel.ServerError, text, call).status, status)

    def test_status(self):
        self.assertTrue(self.client.live() and self.client.ready() and self.client.ready("kinds"))
        self.assertFalse(self.client.ready("nobody"))
        self.assertEqual([one["name"] for one in self.client.models()], sorted(MODELS))
        self.assertEqual(self.client.status("kinds")[0]["state"], "AVAILABLE")
        self.assertEqual(self.client.server_metadata()["version"], keel.__version__)
        self.assertIn("nv_inference_count", self.client.metrics())


if __name__ == "__main__":
    unittest.main()
