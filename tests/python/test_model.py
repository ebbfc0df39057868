"""Tests keel.load() and what it returns: predictions, signatures, weights, errors, threads."""
import array
import gc
import json
import math
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref

import support
from support import BIN, CASES, FILES, lists, needs_numpy, np

import keel
from keel import _library

KINDS = FILES / "kinds.keras"
NUMBERS = {  # values at the limits of each dtype
    "float32": [[1.5, -0.0], [math.inf, 1.401298464324817e-45]],
    "float64": [[0.1, -0.0], [-math.inf, 5e-324]],
    "int32": [[-2**31, 2**31 - 1], [0, 7]],
    "int64": [[-2**63, 2**63 - 1], [0, 2**53 + 1]],
    "bool": [[True, False], [False, True]],
    "uint8": [[0, 255], [1, 2]],
    "int8": [[-128, 127], [1, 2]],
}
STRINGS = [[b"", "日本"], [b"\xff\0x", "a" * 300]]
AS_BYTES = [[b"", "日本".encode()], [b"\xff\0x", b"a" * 300]]
TABLES_INPUTS = {"user": [[17], [19999], [4]], "seen": [[3], [], [5, 99, 5]]}


def bits(value):
    """The bits of floats in nested lists, which also tell -0.0 from 0.0."""
    if isinstance(value, keel.Sparse):
        return [bits(value.indices), bits(value.values), list(value.shape)]
    value = lists(value)
    if isinstance(value, list):
        return [bits(element) for element in value]
    return struct.pack("<d", value) if isinstance(value, float) else value


def predicted_by_tool(model, inputs):
    """The outputs of `keel predict` by name, for inputs as it reads them."""
    with tempfile.TemporaryDirectory() as folder:
        rows, out = pathlib.Path(folder, "rows.json"), pathlib.Path(folder, "out.json")
        rows.write_text(json.dumps({"inputs": inputs}))
        subprocess.run([BIN / "keel", "predict", model, rows, "--output", out], check=True,
                       stdout=subprocess.DEVNULL)
        return {entry["name"]: entry for entry in json.loads(out.read_text())["outputs"]}


def nested(shape, data):
    """Nested lists of a flat list."""
    for size in reversed(shape[1:]):
        data = [data[i:i + size] for i in range(0, len(data), size)]
    return data


def from_file(entry):
    """The value of an input in a file of `keel predict`."""
    if "row_splits" in entry:
        return keel.Ragged(nested(entry["shape"], entry["data"]), entry["row_splits"])
    return nested(entry["shape"], entry["data"])


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


class DtypeTest(support.TestCase):
    def setUp(self):
        self.model = keel.load(KINDS)
        self.addCleanup(self.model.close)
        self.inputs = {**NUMBERS, "string": STRINGS}

    def check(self, inputs):
        got = self.model.predict(inputs)
        self.assertEqual({name: bits(value) for name, value in got.items()}, {
            f"{name}_out": bits(value) for name, value in {**NUMBERS, "string": AS_BYTES}.items()})
        return got

    def test_passes_every_dtype_as_lists(self):
        got = self.check(self.inputs)
        for name in NUMBERS:
            if np is not None:
                self.assertEqual(got[name + "_out"].dtype, name)
                self.assertEqual(got[name + "_out"].shape, (2, 2))
                self.assertTrue(got[name + "_out"].flags.writeable)
                self.assertTrue(got[name + "_out"].flags.owndata)

    def test_passes_every_dtype_as_tuples(self):
        self.check({name: tuple(map(tuple, value)) for name, value in self.inputs.items()})

    @needs_numpy
    def test_passes_every_dtype_as_arrays(self):
        arrays = {name: np.array(value, name) for name, value in NUMBERS.items()}
        arrays["string"] = np.array(STRINGS, object)
        got = self.check(arrays)
        self.assertEqual(got["string_out"].dtype, object)
        self.check({name: np.asfortranarray(value) for name, value in arrays.items()})
        self.check({name: np.repeat(value, 2, axis=0)[::2] for name, value in arrays.items()})
        self.check({name: list(value) for name, value in arrays.items()})
        self.check({name: [list(row) for row in value] for name, value in arrays.items()})
        big_endian = {name: arrays[name].astype(arrays[name].dtype.newbyteorder(">"))
                      for name in NUMBERS}
        self.check({**big_endian, "string": STRINGS})

    @needs_numpy
    def test_takes_fixed_width_strings(self):
        words = [["ab", "é"], ["", "x"]]
        for value in (np.array(words), np.char.encode(np.array(words), "utf-8")):
            got = self.model.predict({**self.inputs, "string": value})["string_out"].tolist()
            self.assertEqual(got, [[b"ab", "é".encode()], [b"", b"x"]])

    def test_takes_buffers(self):
        rows = {name: [row[0] for row in value] for name, value in NUMBERS.items()}
        memory = memoryview(array.array("q", [1, 2, 3, 4])).cast("B").cast("q", [2, 2])
        got = self.model.predict({**self.inputs, "int64": memory})
        self.assertEqual(lists(got["int64_out"]), [[1, 2], [3, 4]])
        self.assertEqual(len(rows), 7)

    def test_rounds_numbers_to_floats(self):
        numbers = [[0.1, 1 + 2**-24], [2**24 + 1, 2**60 + 2**36 + 1]]
        expected = [[float32(0.1), 1.0], [2.0**24, 2.0**60 + 2**37]]
        got = self.model.predict({**self.inputs, "float32": numbers, "float64": numbers})
        self.assertEqual(lists(got["float32_out"]), expected)
        self.assertEqual(lists(got["float64_out"]), [[float(n) for n in row] for row in numbers])
        if np is not None:
            for dtype in (object, np.float64):
                value = np.array(numbers[0], dtype)
                got = self.model.predict({**self.inputs, "float32": [value, value]})
                self.assertEqual(lists(got["float32_out"]), [expected[0]] * 2)
            value = np.array([numbers[1]] * 2, np.int64)
            got = self.model.predict({**self.inputs, "float32": value})
            self.assertEqual(lists(got["float32_out"]), [expected[1]] * 2)

    def test_converts_between_integers(self):
        for name, dtype in (("int32", "int64"), ("int64", "uint8"), ("uint8", "int32"),
                            ("int8", "int64"), ("bool", "int64"), ("float32", "bool")):
            value = [[1, 0], [0, 1]]
            inputs = {**self.inputs, name: value}
            self.assertEqual(lists(self.model.predict(inputs)[name + "_out"]), value)
            if np is not None:
                inputs[name] = np.array(value, dtype)
                self.assertEqual(lists(self.model.predict(inputs)[name + "_out"]), value)

    def refuse(self, name, value, kind, text):
        self.refused(kind, f"predict: input '{name}': {text}", self.model.predict,
                     {**self.inputs, name: value})

    def test_refuses_numbers_out_of_range(self):
        for name, value in (("int32", 2**31), ("int32", -2**31 - 1), ("int64", 2**63),
                            ("uint8", 256), ("uint8", -1), ("int8", 128), ("int8", -129),
                            ("int64", 10**30), ("float32", 1e39), ("float32", -3.5e38),
                            ("float64", 10**400), ("float32", 10**39)):
            self.refuse(name, [[0, 1], [0, value]], keel.KeelValueError,
                        f"element [1, 1] is out of the range of {name}: {str(value)[:20]}")
        self.refuse("bool", [[0, 2], [1, 0]], keel.KeelValueError,
                    "element [0, 1] must be True or False, received 2 (int)")
        self.refuse("bool", [[0, 1], [1, 300]], keel.KeelValueError, "element [1, 1]")
        if np is None:
            return
        for name, dtype, value in (("int32", "int64", 2**31), ("int64", "uint64", 2**63),
                                   ("uint8", "int8", -1), ("int8", "uint8", 128),
                                   ("float32", "float64", 1e39), ("bool", "int64", 2)):
            self.refuse(name, np.array([[0, 1], [0, value]], dtype), keel.KeelValueError,
                        f"element [1, 1] is out of the range of {name}: {value}")

    def test_refuses_other_types(self):
        for name, value, text in (
                ("int64", 2.0, "must be an integer, received 2.0 (float)"),
                ("int64", "2", "must be an integer, received '2' (str)"),
                ("int64", None, "must be an integer, received None (NoneType)"),
                ("float32", "x", "must be a number, received 'x' (str)"),
                ("float64", b"x", "must be a number"), ("float32", 1j, "must be a number"),
                ("bool", 1.0, "must be True or False"), ("bool", "x", "must be True or False"),
                ("string", 7, "must be str or bytes, received 7 (int)"),
                ("string", None, "must be str or bytes")):
            self.refuse(name, [[self.inputs[name][0][0], value]] * 2, keel.KeelTypeError,
                        f"element [0, 1] {text}")
        self.refuse("string", [["a", "\ud800"]] * 2, keel.KeelValueError,
                    "element [0, 1] cannot be encoded in UTF-8")
        self.refuse("int64", {"a": 1}, keel.KeelTypeError, "element [] must be an integer")
        self.refuse("float32", keel.Ragged([1.0], [0, 1]), keel.KeelTypeError,
                    "requires a dense tensor, received a ragged one")
        if np is None:
            return
        for name, value, text in (
                ("int64", np.zeros((2, 2)), "requires int64 values, received float64 values; "
                                            "convert them with .astype('int64')"),
                ("float32", np.zeros((2, 2), complex),
                 "requires float32 values, received complex128 values"),
                ("float32", np.zeros((2, 2), "datetime64[s]"),
                 "requires float32 values, received datetime64[s] values"),
                ("float32", np.array([["a", "b"]]), "requires float32 values, received <U1 values"),
                ("bool", np.zeros((2, 2)), "requires bool values"),
                ("string", np.zeros((2, 2)), "requires strings, received float64 values")):
            self.refuse(name, value, keel.KeelTypeError, text)

    def test_refuses_lists_that_are_not_rectangular(self):
        for value, text in (
                ([[1, 2], [3]], "element [1] has 1 elements, but the first one has 2 elements"),
                ([[1, 2], 3], "element [1] is not a list"),
                ([1, [2, 3]], "element [1] is a list, but the first one is not"),
                ([[[1], [2]], [[3], []]], "element [1, 1] has 0 elements")):
            self.refuse("int64", value, keel.KeelValueError,
                        f"the lists must be rectangular; {text}")
        if np is not None:
            self.refuse("int64", [np.array([1, 2]), np.array([3])], keel.KeelValueError,
                        "arrays of one list must have the same shape, received (2,) and others")

    def test_refuses_other_shapes(self):
        for value in ([[1, 2, 3]] * 2, [1, 2], 7, [[[1, 2]]] * 2, [[[[1]]]], [[]]):
            self.refuse("int64", value, keel.KeelValueError, "shape must be (?, 2), received")
        self.refused(keel.KeelValueError, "predict: input 'int32' has 1 rows, but 'float32' has 2",
                     self.model.predict, {**self.inputs, "int32": [[1, 2]]})
        value = 1
        for _ in range(9):
            value = [value]
        self.refuse("int64", value, keel.KeelValueError, "rank must be 0 to 8, received 9")

    def test_takes_no_rows(self):
        got = self.model.predict({name: [] for name in self.inputs})
        for name in self.inputs:
            self.assertEqual(lists(got[name + "_out"]), [])
        if np is not None:
            self.assertEqual(got["float32_out"].shape, (0, 2))
            empty = {name: np.empty((0, 2), name) for name in NUMBERS}
            got = self.model.predict({**empty, "string": np.empty((0, 2), object)})
            self.assertEqual(got["int8_out"].shape, (0, 2))

    def test_needs_the_inputs_of_the_signature(self):
        self.refused(keel.KeelValueError,
                     "signature 'serving_default' has no input 'int16'; it has 'bool', 'float32'",
                     self.model.predict, {**self.inputs, "int16": 1})
        del self.inputs["int8"]
        self.refused(keel.KeelValueError, "requires input 'int8'", self.model.predict, self.inputs)
        self.refused(keel.KeelTypeError, "has several inputs; pass a dict", self.model.predict, [1])
        self.refused(keel.KeelValueError, "no signature 'x'; it has serving_default",
                     self.model.predict, self.inputs, "x")


class RaggedTest(support.TestCase):
    ROWS = {"float32": [[0.5], [], [1.5, -2.0]], "int64": [[2**62], [], [-1, 3]],
            "string": [["a"], [], ["日", b"\xff"]]}
    EXPECTED = {"float32_out": ROWS["float32"], "int64_out": ROWS["int64"],
                "string_out": [[b"a"], [], ["日".encode(), b"\xff"]]}

    def setUp(self):
        self.model = keel.load(FILES / "ragged.keras")
        self.addCleanup(self.model.close)

    def check(self, inputs, expected=None):
        got = self.model.predict(inputs)
        self.assertEqual({name: lists(value) for name, value in got.items()},
                         expected or self.EXPECTED)
        return got

    def test_passes_lists_of_lists(self):
        got = self.check(self.ROWS)
        self.assertIsInstance(got["int64_out"], list)
        if np is not None:
            self.assertEqual(got["int64_out"][0].dtype, np.int64)
        self.check({name: tuple(map(tuple, rows)) for name, rows in self.ROWS.items()})
        self.check({**self.ROWS, "int64": [array.array("q", row) for row in self.ROWS["int64"]]})

    def test_passes_values_and_row_splits(self):
        flat = {name: [value for row in rows for value in row] for name, rows in self.ROWS.items()}
        splits = [0, 1, 1, 3]
        self.check({name: keel.Ragged(values, splits) for name, values in flat.items()})
        if np is not None:
            splits = np.array(splits, np.int32)
            self.check({name: keel.Ragged(np.array(values, name if name != "string" else object),
                                          splits) for name, values in flat.items()})

    @needs_numpy
    def test_passes_arrays(self):
        kinds = {"float32": np.float32, "int64": np.int64, "string": object}
        rows = {name: [np.array(row, kinds[name]) for row in value]
                for name, value in self.ROWS.items()}
        self.check(rows)
        rows["int64"][1] = np.array([])  # float64
        self.check(rows)
        objects = np.empty(3, object)
        objects[:] = self.ROWS["int64"]
        self.check({**rows, "int64": objects})
        equal = {"float32": [[0.5, 1.0]] * 2, "int64": [[1, 2]] * 2, "string": [["a", "b"]] * 2}
        self.check({name: np.array(value, kinds[name]) for name, value in equal.items()},
                   {"float32_out": equal["float32"], "int64_out": equal["int64"],
                    "string_out": [[b"a", b"b"]] * 2})

    def test_takes_no_rows_and_empty_rows(self):
        for rows in ([], [[]], [[], []]):
            self.check({name: rows for name in self.ROWS},
                       {name + "_out": rows for name in self.ROWS})

    def test_refuses_other_values(self):
        for value, kind, text in (
                ([1, 2], keel.KeelTypeError, "row 0 is 1 (int), not a list"),
                ([[1], 2], keel.KeelTypeError, "row 1 is 2 (int)"),
                (7, keel.KeelTypeError, "requires a ragged tensor, such as [[1, 2], [], [3]]"),
                ("abc", keel.KeelTypeError, "requires a ragged tensor"),
                ([["x"], [], []], keel.KeelTypeError, "element [0] must be an integer"),
                ([[1], [2], [2**63]], keel.KeelValueError, "element [2] is out of the range"),
                (keel.Ragged([1], [0, 2]), keel.KeelValueError, "row"),
                (keel.Ragged([1], [0, 1, 0, 1]), keel.KeelValueError, "row"),
                (keel.Ragged([1], []), keel.KeelValueError, "row"),
                (keel.Ragged([1], [[0, 1]]), keel.KeelValueError, "must be a list of integers"),
                (keel.Ragged([1], [0, 0.5]), keel.KeelTypeError, "row_splits"),
                (keel.Ragged([[1]], [0, 1]), keel.KeelValueError, "shape"),
                ([[[1]], [], []], keel.KeelValueError, "shape"),
                (keel.Sparse([], [], (3, 1)), keel.KeelTypeError, "requires a ragged tensor"),
                ([[1], [2]], keel.KeelValueError, "2 rows")):
            error = self.refused(kind, text, self.model.predict, {**self.ROWS, "int64": value})
            self.assertIn("predict: input 'int64'", str(error).replace("'string'", "'int64'"))


class SparseTest(support.TestCase):
    INDICES, SHAPE = [[0, 0], [0, 3], [2, 5]], (3, 6)
    VALUES = {"float32": [0.5, -0.0, 2.5], "int64": [2**62, -1, 0], "string": [b"a", b"", b"\xff"]}

    def setUp(self):
        self.model = keel.load(FILES / "sparse.keras")
        self.addCleanup(self.model.close)
        self.inputs = {name: (self.INDICES, values, self.SHAPE)
                       for name, values in self.VALUES.items()}

    def check(self, inputs, indices=None, shape=None, expected=None):
        got = self.model.predict(inputs)
        for name, values in (expected or self.VALUES).items():
            one = got[name + "_out"]
            self.assertIsInstance(one, keel.Sparse)
            self.assertEqual(lists(one.indices), indices or self.INDICES)
            self.assertEqual(bits(one.values), bits(values))
            self.assertEqual(one.shape, shape or self.SHAPE)

    def test_passes_indices_values_and_shape(self):
        self.check(self.inputs)
        self.check({name: keel.Sparse(*value) for name, value in self.inputs.items()})
        if np is not None:
            kinds = {"float32": np.float32, "int64": np.int64, "string": object}
            self.check({name: (np.array(self.INDICES, np.int32), np.array(values, kinds[name]),
                               np.array(self.SHAPE)) for name, values in self.VALUES.items()})

    def test_passes_its_outputs(self):
        got = self.model.predict(self.inputs)
        self.check({name: got[name + "_out"] for name in self.inputs})

    def test_passes_rows(self):
        rows = {"float32": [[0.5, 1.5], [], [2.5]], "int64": [[1, 2], [], [3]],
                "string": [["a", "b"], [], ["c"]]}
        self.check(rows, [[0, 0], [0, 1], [2, 0]], (3, 6), {
            "float32": [0.5, 1.5, 2.5], "int64": [1, 2, 3], "string": [b"a", b"b", b"c"]})

    def test_takes_no_values(self):
        for value in (([], [], (2, 6)), [[], []]):
            got = self.model.predict({name: value for name in self.inputs})["int64_out"]
            self.assertEqual((lists(got.indices), lists(got.values), got.shape), ([], [], (2, 6)))
            if np is not None:
                self.assertEqual(got.indices.shape, (0, 2))

    def test_refuses_other_values(self):
        for value, kind, text in (
                (([[0, 0]], [1]), keel.KeelTypeError, "a tuple must be (indices, values, shape)"),
                (7, keel.KeelTypeError, "sparse tensor"),
                ([1, 2, 3], keel.KeelTypeError, "row 0 is 1 (int)"),
                ([[1] * 7, [], []], keel.KeelValueError,
                 "row 0 has 7 values, but the input's width is 6"),
                (([[0, 0]], [1, 2], (3, 6)), keel.KeelValueError, "indices must have shape (2, 2), "
                                                                  "received (1, 2)"),
                (([0], [1], (3, 6)), keel.KeelValueError, "indices must have shape"),
                (([[0, 6]], [1], (3, 6)), keel.KeelValueError, "6"),
                (([[0, 1], [0, 0]], [1, 2], (3, 6)), keel.KeelValueError, ""),
                (([[0, 0]], [1], (3, 7)), keel.KeelValueError, "shape must be (?, 6)"),
                (([[0, 0]], [1], (-3, 6)), keel.KeelValueError, "must not be negative"),
                (([[0, 0]], [1], (3.5, 6)), keel.KeelTypeError, "shape: element [0]"),
                (([[0, 0]], [1.5], (3, 6)), keel.KeelTypeError, "values: element [0]"),
                (([[0, 0.5]], [1], (3, 6)), keel.KeelTypeError, "indices: element [0, 1]"),
                (keel.Ragged([1], [0, 1]), keel.KeelTypeError, "sparse tensor")):
            error = self.refused(kind, text, self.model.predict, {**self.inputs, "int64": value})
            self.assertIn("predict: input 'int64'", str(error))
        if np is not None:
            self.refused(keel.KeelTypeError, "received a ndarray", self.model.predict,
                         {**self.inputs, "int64": np.zeros((3, 6), np.int64)})


class PredictTest(support.TestCase):
    def test_gives_the_bits_of_the_tool(self):
        rows = json.loads((FILES / "rows.json").read_text())["inputs"]
        seen = {"name": "seen", "dtype": "int64", "shape": [4], "row_splits": [0, 1, 1, 4],
                "data": [3, 5, 99, 5]}
        user = {"name": "user", "dtype": "int64", "shape": [3, 1], "data": [17, 19999, 4]}
        for file, inputs in (("ranker.keras", rows), ("ranker.h5", rows),
                             ("tables.keras", [seen, user]), ("int8.keras", [seen, user])):
            expected = predicted_by_tool(FILES / file, inputs)
            for mapped in (False, True):
                with keel.load(FILES / file, mapped) as model:
                    got = model.predict({entry["name"]: from_file(entry) for entry in inputs})
                for name, entry in expected.items():
                    data = [float32(value) for value in entry["data"]]
                    self.assertEqual(bits(got[name]), bits(nested(entry["shape"], data)), file)

    def test_predicts_what_keras_predicts(self):
        for file in ("ncf.keras", "nested.h5", "seq_pool.keras", "mha_block.h5",
                     "ncf_keras231_style.h5"):
            name = file.split(".")[0]
            inputs = json.loads((CASES / f"{name}.inputs.json").read_text())["inputs"]
            expected = json.loads((CASES / f"{name}.expected.json").read_text())["outputs"]
            with keel.load(CASES / file) as model:
                got = model.predict({entry["name"]: from_file(entry) for entry in inputs})
                for entry in expected:
                    self.assertLessEqual(
                        largest_difference(lists(got[entry["name"]]),
                                           nested(entry["shape"], entry["data"])), 1e-5, file)

    def test_takes_a_single_input_without_a_dict(self):
        with keel.load(FILES / "compiled.keras") as model:
            expected = model.predict({"x": [[1, 2], [3, 4]]})
            self.assertEqual(bits(model.predict([[1, 2], [3, 4]])["only"]), bits(expected["only"]))

    def test_adds_and_removes_a_last_dimension_of_1(self):
        with keel.load(FILES / "tables.keras") as model:
            expected = bits(model.predict(TABLES_INPUTS)["score"])
            for user in ([17, 19999, 4], [[[17]], [[19999]], [[4]]]):
                got = model.predict({**TABLES_INPUTS, "user": user})["score"]
                self.assertEqual(bits(got), expected)

    def test_names_an_id_outside_its_table(self):
        with keel.load(FILES / "tables.keras") as model:
            error = self.refused(keel.KeelValueError, "20000", model.predict,
                                 {**TABLES_INPUTS, "user": [[1], [20000], [2]]})
            self.assertTrue(str(error).startswith("predict: "), error)
            # An error changes nothing.
            self.assertEqual(len(model.predict(TABLES_INPUTS)["score"]), 3)

    def test_runs_examples(self):
        rows = json.loads((FILES / "rows.json").read_text())["inputs"]
        records = read_records(FILES / "rows.tfrecord")
        with keel.load(FILES / "ranker.keras") as model:
            expected = bits(model.predict({e["name"]: from_file(e) for e in rows})["score"])
            self.assertEqual(list(model.signatures), ["serve_examples", "serving_default"])
            for examples in (records, tuple(records), iter(records),
                             [bytearray(one) for one in records]):
                self.assertEqual(bits(model.predict_examples(examples)["score"]), expected)
            got = model.predict_examples(records[:2], "serve_examples")["score"]
            self.assertEqual(bits(got), expected[:2])
            got = model.predict({"examples": records}, "serve_examples")["score"]
            self.assertEqual(bits(got), expected)
            self.assertEqual(lists(model.predict_examples([])["score"]), [])
            self.refused(keel.KeelTypeError, "example 1 must be bytes, received str",
                         model.predict_examples, [b"", "x"])
            self.refused(keel.KeelTypeError, "must be a list of bytes", model.predict_examples,
                         b"x")
            self.refused(keel.KeelValueError, "takes no examples", model.predict_examples, records,
                         "serving_default")
            self.refused(keel.KeelError, "predict_examples: ", model.predict_examples, [b"\xff"])
        with keel.load(KINDS) as model:
            self.refused(keel.KeelValueError, "no signature of the model takes examples",
                         model.predict_examples, records)


def largest_difference(a, b):
    if isinstance(b, list):
        if len(a) != len(b):
            return math.inf
        return max((largest_difference(x, y) for x, y in zip(a, b)), default=0.0)
    return abs(a - b)


def read_records(path):
    """The records of a TFRecord file, without their checksums."""
    data, records, at = path.read_bytes(), [], 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        records.append(data[at + 12:at + 12 + size])
        at += size + 16
    return records


class SignatureTest(support.TestCase):
    def test_lists_inputs_and_outputs(self):
        with keel.load(FILES / "ranker.keras") as model:
            default = model.signatures["serving_default"]
            self.assertEqual(str(default), "serving_default(age: float32 (?, 2), "
                             "seen: ragged int64 (?, ?), user: int64 (?, 1)) -> "
                             "{score: float32 (?, 1)}")
            self.assertEqual(default.inputs["user"],
                             keel.Spec("user", "int64", "dense", (None, 1)))
            self.assertEqual(str(model.signatures["serve_examples"]),
                             "serve_examples(examples: string (?,)) -> {score: float32 (?, 1)}")
            with self.assertRaises(TypeError):
                model.signatures["x"] = default
        with keel.load(FILES / "sparse.keras") as model:
            self.assertEqual(model.signatures["serving_default"].inputs["string"],
                             keel.Spec("string", "string", "sparse", (None, 6)))

    def test_inspects_files(self):
        info = keel.inspect(FILES / "tables.keras")
        self.assertEqual([(w.name, w.dtype, w.shape, w.bytes) for w in info.weights], [
            ("users/embeddings", "float32", (20000, 16), 1280000),
            ("items/embeddings", "float32", (100, 4), 1600),
            ("score/kernel", "float32", (20, 1), 80), ("score/bias", "float32", (1,), 4)])
        self.assertEqual(info.bytes, 1281684)
        self.assertEqual(list(info.signatures), ["serving_default"])
        self.assertIn("users/embeddings: float32 (20000, 16), 1280000 bytes", str(info))
        self.assertIn("int8", [w.dtype for w in keel.inspect(FILES / "int8.keras").weights])
        self.refused(keel.KeelOSError, "nowhere.keras", keel.inspect, FILES / "nowhere.keras")


def mapped_to(path):
    """The address ranges that are mapped from a file."""
    ranges = []
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if line.endswith(os.path.realpath(path)):
            ranges.append(tuple(int(end, 16) for end in line.split()[0].split("-")))
    return ranges


def address_of(view):
    """The address of an array or memoryview."""
    import ctypes
    if np is not None:
        return view.__array_interface__["data"][0]
    pointer = ctypes.py_object(view)
    buffer = (ctypes.c_ssize_t * 16)()
    ctypes.pythonapi.PyObject_GetBuffer(pointer, ctypes.byref(buffer), 0x011C)  # PyBUF_FULL_RO
    try:
        return buffer[0]
    finally:
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))


class WeightsTest(support.TestCase):
    def test_reads_weights_in_place(self):
        for mapped in (False, True):
            with keel.load(FILES / "tables.keras", mapped) as model:
                table = model.weights["users/embeddings"]
                self.assertEqual(tuple(table.shape), (20000, 16))
                self.assertEqual(address_of(table), address_of(model.table("users")))
                self.assertEqual(address_of(table), self.pointer(model, b"users/embeddings"))
                inside = [begin <= address_of(table) and address_of(table) + 1280000 <= end
                          for begin, end in mapped_to(model.path)]
                self.assertEqual(any(inside), mapped)
                self.assertEqual(list(model.weights), ["users/embeddings", "items/embeddings",
                                                       "score/kernel", "score/bias"])
                self.assertEqual((len(model.weights), "score/bias" in model.weights,
                                  "bias" in model.weights), (4, True, False))
                with self.assertRaises(KeyError):
                    model.weights["bias"]

    def pointer(self, model, name):
        import ctypes
        tensor = _library.Tensor()
        find = ctypes.CDLL(_library.library()._name).keel_weight_find
        self.assertEqual(find(model._handle.address, name, ctypes.byref(tensor)), 0)
        return tensor.data

    def test_is_read_only(self):
        with keel.load(FILES / "tables.keras", mapped=True) as model:
            table = model.table("users")
            if np is None:
                self.assertTrue(table.readonly)
                with self.assertRaises(TypeError):
                    table[0, 0] = 1.0
            else:
                self.assertFalse(table.flags.writeable)
                with self.assertRaises(ValueError):
                    table[0, 0] = 1.0
                with self.assertRaises(ValueError):
                    table.flags.writeable = True

    def test_holds_the_values_that_predictions_use(self):
        for file in ("tables.keras", "tables.h5"):
            for mapped in (False, True):
                with keel.load(FILES / file, mapped) as model:
                    users, items = lists(model.table("users")), lists(model.table("items"))
                    kernel = [row[0] for row in lists(model.weights["score/kernel"])]
                    (bias,) = lists(model.weights["score/bias"])
                    got = lists(model.predict(TABLES_INPUTS)["score"])
                for score, (user,), seen in zip(got, *TABLES_INPUTS.values()):
                    pooled = [sum(column) / max(len(seen), 1)
                              for column in zip(*[items[i] for i in seen])] or [0.0] * 4
                    expected = bias + sum(a * b for a, b in zip(users[user] + pooled, kernel))
                    self.assertAlmostEqual(score[0], expected, places=5)

    def test_mapped_models_have_the_bits_of_resident_ones(self):
        for file in ("tables.keras", "tables.h5", "int8.keras", "ranker.keras"):
            path = FILES / file
            with keel.load(path) as resident, keel.load(path, mapped=True) as mapped:
                self.assertTrue(mapped.mapped)
                self.assertFalse(resident.mapped)
                for name in resident.weights:
                    self.assertEqual(bits(resident.weights[name]), bits(mapped.weights[name]))

    def test_keeps_the_memory_of_a_closed_model(self):
        for mapped in (False, True):
            model = keel.load(FILES / "tables.keras", mapped)
            handle = weakref.ref(model._handle)
            table = model.table("users")
            expected = lists(table)
            row = table[19999] if np is not None else table
            model.close()
            self.refused(keel.KeelValueError, "closed", model.table, "users")
            del model, table
            gc.collect()
            self.assertIsNotNone(handle())
            self.assertEqual(lists(row), expected[19999] if np is not None else expected)
            self.assertEqual(bool(mapped_to(FILES / "tables.keras")), mapped)
            del row
            gc.collect()
            self.assertIsNone(handle())
            self.assertEqual(mapped_to(FILES / "tables.keras"), [])

    def test_frees_a_model_that_is_not_closed(self):
        model = keel.load(FILES / "tables.keras")
        handle = weakref.ref(model._handle)
        del model
        gc.collect()
        self.assertIsNone(handle())

    def test_finds_tables_by_layer(self):
        with keel.load(FILES / "tables.keras") as model:
            self.assertEqual(address_of(model.table("items")),
                             address_of(model.weights["items/embeddings"]))
            self.refused(keel.KeelValueError, "the model has no weight 'nobody'; it has "
                         "users/embeddings, items/embeddings", model.table, "nobody")

    def test_reads_tables_of_int8(self):
        with keel.load(FILES / "int8.keras", mapped=True) as model:
            kinds = {name: lists(value) for name, value in model.weights.items()}
            codes = [value for name, value in kinds.items() if name.startswith("users/")]
            self.assertEqual(max(len(one) for one in codes), 20000)


class ModelTest(support.TestCase):
    def test_refuses_files_that_hold_no_model(self):
        for path in (FILES / "nowhere.keras", FILES / "rows.json", FILES):
            error = self.refused(keel.KeelError, path.name, keel.load, path)
            self.assertTrue(str(error).startswith("load: "), error)
        error = self.refused(keel.KeelOSError, "", keel.load, "nowhere.keras")
        self.assertIsInstance(error, OSError)
        with tempfile.TemporaryDirectory() as folder:
            damaged = pathlib.Path(folder, "damaged.keras")
            damaged.write_bytes((FILES / "tables.keras").read_bytes()[:100000])
            for mapped in (False, True):
                self.refused(keel.KeelOSError, "damaged.keras", keel.load, damaged, mapped)
        self.refused(keel.KeelValueError, "NUL", keel.load, "a\0b.keras")
        self.refused(TypeError, "", keel.load, 7)
        self.refused(keel.KeelTypeError, "received bytes", keel.load, b"x.keras")

    def test_loads_paths_of_any_kind(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "日本 é.keras")
            path.write_bytes(KINDS.read_bytes())
            for one in (path, str(path)):
                with keel.load(one) as model:
                    self.assertEqual(model.path, str(path))

    def test_is_closed(self):
        model = keel.load(KINDS)
        with model:
            self.assertEqual(repr(model), f"<keel.Model '{KINDS}'>")
        self.assertTrue(model.closed)
        self.assertIn("closed", repr(model))
        model.close()
        self.assertIn("string", model.signatures["serving_default"].inputs)
        for call in (lambda: model.predict({}), lambda: model.predict_examples([]),
                     model.__enter__):
            self.refused(keel.KeelValueError, "closed", call)

    def test_errors_are_keels_and_pythons(self):
        for ours, pythons in ((keel.KeelValueError, ValueError), (keel.KeelTypeError, TypeError),
                              (keel.KeelNotImplementedError, NotImplementedError),
                              (keel.KeelOSError, OSError), (keel.KeelMemoryError, MemoryError),
                              (keel.KeelRuntimeError, RuntimeError),
                              (keel.LibraryNotFoundError, ImportError)):
            self.assertTrue(issubclass(ours, pythons) and issubclass(ours, keel.KeelError))
            same = pickle.loads(pickle.dumps(ours("text")))
            self.assertEqual((type(same), str(same)), (ours, "text"))

    def test_sets_the_number_of_workers(self):
        for count in (0, 1025, -1):
            self.refused(keel.KeelValueError, "from 1 to 1024", keel.set_num_workers, count)
        program = ("import keel, sys; keel.set_num_workers(int(sys.argv[1]));"
                   "print(keel.load(sys.argv[2]).predict({'user': [17, 4], 'seen': [[3], [5]]}))")
        outputs = {subprocess.run([sys.executable, "-c", program, count, FILES / "tables.keras"],
                                  capture_output=True, check=True).stdout for count in "123"}
        self.assertEqual(len(outputs), 1)

    def test_has_the_version_of_the_library(self):
        self.assertEqual(keel.__version__, keel.library_version())
        text = (support.ROOT / "CMakeLists.txt").read_text()
        self.assertIn(f"project(keel VERSION {keel.__version__} ", text)


class ThreadTest(support.TestCase):
    def test_predicts_in_threads(self):
        rows = [{"user": [[i]], "seen": [[i % 100] * (i % 4)]} for i in range(64)]
        with keel.load(FILES / "tables.keras", mapped=True) as model:
            expected = [bits(model.predict(row)["score"]) for row in rows]
            failures = []

            def work(begin):
                for i in range(200):
                    k = (begin + i) % len(rows)
                    if bits(model.predict(rows[k])["score"]) != expected[k]:
                        failures.append(k)
                    if i % 10 == 0:
                        try:
                            model.predict({**rows[k], "user": [[20000 + begin]]})
                        except keel.KeelValueError as error:  # of this thread
                            if str(20000 + begin) not in str(error):
                                failures.append(str(error))
            run_threads([lambda begin=i * 8: work(begin) for i in range(8)])
        self.assertEqual(failures, [])

    def test_is_closed_while_threads_predict(self):
        for _ in range(5):
            model = keel.load(FILES / "tables.keras", mapped=True)
            expected = bits(model.predict(TABLES_INPUTS)["score"])
            wrong, begun = [], threading.Barrier(5)

            def work():
                begun.wait()
                for _ in range(500):
                    try:
                        if bits(model.predict(TABLES_INPUTS)["score"]) != expected:
                            wrong.append("bits")
                    except keel.KeelValueError as error:
                        if "closed" not in str(error):
                            wrong.append(str(error))
                        return

            def close():
                begun.wait()
                model.close()
            run_threads([work] * 4 + [close])
            self.assertEqual(wrong, [])

    def test_releases_the_lock_of_the_interpreter(self):
        import ctypes
        self.assertIs(type(_library.library()), ctypes.CDLL)
        self.assertFalse(_library.library().keel_run._flags_ & 4)  # FUNCFLAG_PYTHONAPI


def run_threads(functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class LibraryTest(support.TestCase):
    """The search for the library, each time in a new interpreter."""

    def run_python(self, program, **environment):
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              env={**os.environ, **environment}, check=False)

    def test_says_what_to_do_without_the_library(self):
        got = self.run_python("import keel; keel.load('x')", KEEL_LIBRARY="/nowhere/libkeel_c.so")
        last = got.stderr.splitlines()[-1]
        self.assertIn("LibraryNotFoundError: keel: libkeel_c.so cannot be loaded (/nowhere/", last)
        self.assertIn("install the package libkeel0.1, or set KEEL_LIBRARY", last)

    def test_refuses_other_libraries(self):
        got = self.run_python("import keel; keel.load('x')", KEEL_LIBRARY="libc.so.6")
        self.assertIn("'libc.so.6' has no function keel_version", got.stderr)
        got = self.run_python("import keel._library as l; l._INTERFACE = '7.1'; l.library()")
        self.assertIn(f"is version {keel.__version__}, but this package requires 7.1", got.stderr)

    def test_is_imported_without_the_library(self):
        got = self.run_python("import keel; keel.Client(); print(keel.__version__)",
                              KEEL_LIBRARY="/nowhere")
        self.assertEqual(got.stdout.strip(), keel.__version__)

    def test_frees_models_at_exit(self):
        program = ("import keel, sys; m = keel.load(sys.argv[1]); t = m.table('users');"
                   "sys.modules['x'] = m; m.self = m")
        got = subprocess.run([sys.executable, "-X", "dev", "-c", program, FILES / "tables.keras"],
                             capture_output=True, text=True, check=False)
        self.assertEqual((got.returncode, got.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
