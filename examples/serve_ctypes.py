#!/usr/bin/env python3
"""Serves a model from Python with only ctypes and libkeel_c.so.

  serve_ctypes.py LIBRARY MODEL                           prints the signatures of MODEL
  serve_ctypes.py LIBRARY MODEL INPUTS.json               predicts, from several threads at once
  serve_ctypes.py LIBRARY MODEL INPUTS.json EXPECTED.json also compares; status 1 if they differ

INPUTS is {"inputs": [{"name", "dtype", "shape", "data"}]}; EXPECTED is {"outputs": [...]} of the
same form. data is flat and row-major. If h5py is installed and MODEL is an HDF5 file, the weights
that h5py finds in the file are also printed.
"""
import ctypes
import json
import sys
from concurrent.futures import ThreadPoolExecutor

MAX_RANK = 8
DTYPES = ["float32", "float64", "int32", "int64", "bool", "uint8", "string"]
LAYOUTS = ["dense", "ragged", "sparse"]
C_TYPES = [ctypes.c_float, ctypes.c_double, ctypes.c_int32, ctypes.c_int64, ctypes.c_uint8,
           ctypes.c_uint8]
STRING = 6
THREADS = 4


class String(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class Spec(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("layout", ctypes.c_int),
                ("rank", ctypes.c_int), ("dims", ctypes.c_int64 * MAX_RANK)]

    def __str__(self):
        dims = ["?" if d < 0 else str(d) for d in self.dims[:self.rank]]
        return (f"{self.name.decode()}: {LAYOUTS[self.layout]} {DTYPES[self.dtype]} "
                f"[{', '.join(dims)}]")


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("layout", ctypes.c_int),
                ("rank", ctypes.c_int), ("dims", ctypes.POINTER(ctypes.c_int64)),
                ("data", ctypes.c_void_p), ("data_size", ctypes.c_size_t),
                ("row_splits", ctypes.POINTER(ctypes.c_int64)),
                ("row_splits_count", ctypes.c_size_t),
                ("indices", ctypes.POINTER(ctypes.c_int64)), ("indices_count", ctypes.c_size_t)]


class KeelError(Exception):
    pass


def to_tensor(entry):
    """A Tensor and the objects that must outlive it."""
    dtype = DTYPES.index(entry.get("dtype", "float32"))
    shape, data = entry["shape"], entry["data"]
    dims = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    if dtype == STRING:
        texts = [text.encode() for text in data]
        values = (String * len(texts))(*[String(text, len(text)) for text in texts])
    else:
        texts = []
        values = (C_TYPES[dtype] * len(data))(*data)
    tensor = Tensor(name=entry["name"].encode(), dtype=dtype, rank=len(shape), dims=dims,
                    data=ctypes.cast(values, ctypes.c_void_p), data_size=ctypes.sizeof(values))
    splits = entry.get("row_splits")
    if splits is not None:
        tensor.layout = LAYOUTS.index("ragged")
        tensor.row_splits = (ctypes.c_int64 * len(splits))(*splits)
        tensor.row_splits_count = len(splits)
    return tensor, (dims, texts, values)


def from_tensor(tensor):
    if tensor.dtype == STRING:
        count = tensor.data_size // ctypes.sizeof(String)
        strings = ctypes.cast(tensor.data, ctypes.POINTER(String))
        return [ctypes.string_at(strings[i].data, strings[i].size) for i in range(count)]
    kind = C_TYPES[tensor.dtype]
    count = tensor.data_size // ctypes.sizeof(kind)
    return list((kind * count).from_address(tensor.data)) if count else []


class Model:
    """A model file. Threads may call predict() concurrently: ctypes releases the GIL."""

    def __init__(self, library, path):
        self.keel = ctypes.CDLL(library)
        for name in ("keel_version", "keel_last_error"):
            getattr(self.keel, name).restype = ctypes.c_char_p
        for name in ("keel_model_free", "keel_result_free"):
            getattr(self.keel, name).restype = None
            getattr(self.keel, name).argtypes = [ctypes.c_void_p]
        self.handle = ctypes.c_void_p()
        self.check(self.keel.keel_model_load(path.encode(), ctypes.byref(self.handle)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.keel.keel_model_free(self.handle)

    def check(self, status):
        if status != 0:
            raise KeelError(self.keel.keel_last_error().decode(errors="replace"))

    def count(self, function, *arguments):
        out = ctypes.c_size_t()
        self.check(getattr(self.keel, function)(*arguments, ctypes.byref(out)))
        return out.value

    def signatures(self):
        """Returns {name: (specs of the inputs, specs of the outputs)}."""
        out = {}
        for i in range(self.count("keel_signature_count", self.handle)):
            name = ctypes.c_char_p()
            self.check(self.keel.keel_signature_name(self.handle, ctypes.c_size_t(i),
                                                     ctypes.byref(name)))
            out[name.value.decode()] = tuple(self.specs(side, name) for side in ("input", "output"))
        return out

    def specs(self, side, signature):
        out = []
        for i in range(self.count(f"keel_{side}_count", self.handle, signature)):
            spec = Spec()
            self.check(getattr(self.keel, f"keel_{side}_spec")(
                self.handle, signature, ctypes.c_size_t(i), ctypes.byref(spec)))
            out.append(spec)
        return out

    def predict(self, inputs, signature=None):
        """Returns {output name: (shape, flat values)}."""
        tensors, alive = zip(*[to_tensor(entry) for entry in inputs]) if inputs else ((), ())
        array = (Tensor * len(tensors))(*tensors)
        result = ctypes.c_void_p()
        self.check(self.keel.keel_run(self.handle, signature.encode() if signature else None, array,
                                      ctypes.c_size_t(len(tensors)), ctypes.byref(result)))
        del alive
        try:
            out = {}
            for i in range(self.count("keel_result_count", result)):
                tensor = Tensor()
                self.check(self.keel.keel_result_at(result, ctypes.c_size_t(i),
                                                    ctypes.byref(tensor)))
                out[tensor.name.decode()] = (tensor.dims[:tensor.rank], from_tensor(tensor))
            return out
        finally:
            self.keel.keel_result_free(result)


def list_weights(path):
    """Prints the weights that h5py finds in the file, if h5py is installed and the file is HDF5."""
    try:
        import h5py
    except ImportError:
        return
    if not h5py.is_hdf5(path):
        return
    with h5py.File(path) as file:
        file.visititems(lambda name, item: print(f"h5py: {name} {item.shape}")
                        if isinstance(item, h5py.Dataset) else None)


def largest_difference(outputs, expected):
    largest = 0.0
    for entry in expected:
        shape, values = outputs[entry["name"]]
        if shape != entry["shape"]:
            raise KeelError(f"{entry['name']}: shape {shape}, expected {entry['shape']}")
        largest = max([largest] + [abs(a - b) for a, b in zip(values, entry["data"])])
    return largest


def main(library, path, inputs=None, expected=None):
    with Model(library, path) as model:
        print(f"keel {model.keel.keel_version().decode()}")
        for name, (takes, gives) in model.signatures().items():
            print(f"{name}({', '.join(map(str, takes))}) -> {', '.join(map(str, gives))}")
        list_weights(path)
        if inputs is None:
            return 0
        with open(inputs, encoding="utf-8") as file:
            given = json.load(file)["inputs"]
        with ThreadPoolExecutor(THREADS) as pool:
            results = list(pool.map(lambda _: model.predict(given), range(4 * THREADS)))
        if any(result != results[0] for result in results):
            raise KeelError("threads predict different values")
        for name, (shape, values) in results[0].items():
            print(f"{name} {shape}: {values[:8]}")
        if expected is None:
            return 0
        with open(expected, encoding="utf-8") as file:
            difference = largest_difference(results[0], json.load(file)["outputs"])
        print(f"max difference {difference:g}")
        return 0 if difference <= 1e-5 else 1


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    try:
        sys.exit(main(*sys.argv[1:]))
    except (KeelError, OSError, KeyError, ValueError) as error:
        sys.exit(f"serve_ctypes: {error}")
