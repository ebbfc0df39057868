"""Models that are loaded from files and run in this process."""
from __future__ import annotations

import ctypes
import os
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Iterable

from . import _library, _tensors
from ._errors import KeelTypeError, KeelValueError
from ._library import check
from ._tensors import Encoded, Signature, Sparse, Spec

SERVING_DEFAULT = "serving_default"


class _Handle:
    """Owns a keel_model, which is freed with the last reference: that of the Model, of an array of
    its weights, or of a running prediction."""

    def __init__(self, address: ctypes.c_void_p):
        self.address = address
        self._free = _library.library().keel_model_free  # modules may be gone at exit

    def __del__(self) -> None:
        self._free(self.address)


@dataclass(frozen=True)
class Weight:
    """The name, dtype, shape and size of a weight."""
    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype} {_tensors.shape_text(self.shape)}"


@dataclass(frozen=True)
class ModelInfo:
    """What inspect() returns: the signatures of a model file by name, and its weights in the order
    of the model."""
    path: str
    signatures: Mapping[str, Signature]
    weights: tuple[Weight, ...]

    @property
    def bytes(self) -> int:
        """The sum of the sizes of the weights."""
        return sum(weight.bytes for weight in self.weights)

    def __str__(self) -> str:
        lines = [self.path, *(f"  {s}" for s in self.signatures.values()),
                 *(f"  {w}, {w.bytes} bytes" for w in self.weights)]
        return "\n".join(lines)


class Model:
    """A model file, ready to predict. Make it with keel.load().

    Threads may share a model and predict at the same time: the interpreter's lock is released while
    the library computes. A model is also a context manager that closes itself.
    """

    def __init__(self, path: str | os.PathLike[str], mapped: bool = False):
        self._handle: _Handle | None = None
        library = _library.library()
        name = os.fspath(path)
        if not isinstance(name, str):
            raise KeelTypeError(f"load: path must be str or a path, received {type(name).__name__}")
        if "\0" in name:
            raise KeelValueError("load: path must not contain NUL")
        load = library.keel_model_load_mapped if mapped else library.keel_model_load
        address = ctypes.c_void_p()
        check(load(os.fsencode(name), ctypes.byref(address)), "load")
        self._handle = _Handle(address)
        self._path, self._mapped = name, bool(mapped)
        self._signatures = MappingProxyType(_signatures(address))
        self._infos = tuple(_weight_info(tensor) for tensor in _weights(address))
        self._weights = Weights(self)

    @property
    def path(self) -> str:
        return self._path

    @property
    def mapped(self) -> bool:
        """True if large tables are read in place from the file."""
        return self._mapped

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """The signatures of the model by name. "serving_default" is always among them."""
        return self._signatures

    @property
    def weights(self) -> Weights:
        """The weights of the model as read-only arrays, by name and in the order of the model."""
        return self._weights

    def table(self, name: str) -> Any:
        """Returns the weight of this name, such as "users/embeddings", or the only table of the
        layer of this name, such as "users": a read-only array on the memory of the model. It
        remains valid after the model is closed."""
        if name in self.weights:
            return self.weights[name]
        found = [w.name for w in self._infos if w.name.startswith(name + "/") and len(w.shape) == 2]
        if len(found) == 1:
            return self.weights[found[0]]
        if found:
            raise KeelValueError(f"table: several tables belong to '{name}': {', '.join(found)}; "
                                 "pass the name of one")
        raise KeelValueError(f"table: the model has no weight '{name}'; it has "
                             f"{_abridged([w.name for w in self._infos])}")

    def predict(self, inputs: Any, signature: str | None = None) -> dict[str, Any]:
        """Runs a signature, "serving_default" unless given, and returns {output name: value}.

        `inputs` is {input name: value}, or the value of the only input. A value is a numpy array,
        nested lists, or an object that numpy converts. Numbers are converted to the dtype of the
        input if this loses nothing but the rounding of floating numbers.

        - A dense input whose last dimension is 1 may be given without it.
        - A ragged input is a list of lists (or arrays) of any lengths, or keel.Ragged.
        - A sparse input is (indices, values, shape), keel.Sparse, or a list of rows, whose values
          are at the places 0, 1, ...
        - Strings are str, which is encoded in UTF-8, or bytes.

        Outputs are numpy arrays, or nested lists if numpy is not installed; ragged ones are lists
        of rows, sparse ones keel.Sparse. Strings are bytes.

        Throws KeelValueError and KeelTypeError, which name the input, and changes nothing.
        """
        handle = self._open("predict")
        chosen = self._signature(signature, "predict")
        given = _tensors.named_inputs(chosen, inputs, "predict")
        encoded = [_tensors.encode(chosen.inputs[name], given[name], "predict") for name in given]
        tensors = (_library.Tensor * len(encoded))()
        alive = [_fill(tensor, one) for tensor, one in zip(tensors, encoded)]
        result = ctypes.c_void_p()
        check(_library.library().keel_run(handle.address, chosen.name.encode(), tensors,
                                          len(encoded), ctypes.byref(result)), "predict")
        del alive
        return _outputs(result)

    def predict_examples(self, examples: Iterable[bytes],
                         signature: str | None = None) -> dict[str, Any]:
        """Runs a signature on serialized tf.Examples: by default the only one that takes them.
        Returns what predict() returns."""
        handle = self._open("predict_examples")
        name = None if signature is None else self._signature(signature, "predict_examples").name
        if isinstance(examples, (str, bytes, bytearray)):
            raise KeelTypeError("predict_examples: examples must be a list of bytes, received "
                                f"{type(examples).__name__}")
        serialized = [bytes(e) if isinstance(e, (bytearray, memoryview)) else e for e in examples]
        for i, example in enumerate(serialized):
            if not isinstance(example, bytes):
                raise KeelTypeError(f"predict_examples: example {i} must be bytes, received "
                                    f"{type(example).__name__}")
        strings, alive = _string_views(serialized)
        result = ctypes.c_void_p()
        check(_library.library().keel_run_examples(
            handle.address, None if name is None else name.encode(),
            ctypes.cast(strings.buffer_info()[0], ctypes.POINTER(_library.String)), len(serialized),
            ctypes.byref(result)), "predict_examples")
        del alive
        return _outputs(result)

    def close(self) -> None:
        """Closes the model. Its memory is returned as soon as no array of its weights and no
        running prediction uses it. A closed model throws KeelValueError."""
        self._handle = None

    @property
    def closed(self) -> bool:
        return self._handle is None

    def __enter__(self) -> Model:
        self._open("load")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ", mapped" if self._mapped else ""
        return f"<keel.Model '{self._path}'{state}>"

    def _open(self, caller: str) -> _Handle:
        handle = self._handle
        if handle is None:
            raise KeelValueError(f"{caller}: the model is closed")
        return handle

    def _signature(self, name: str | None, caller: str) -> Signature:
        wanted = SERVING_DEFAULT if name is None else name
        if wanted not in self._signatures:
            raise KeelValueError(f"{caller}: the model has no signature {wanted!r}; it has "
                                 f"{', '.join(self._signatures)}")
        return self._signatures[wanted]


class Weights(Mapping):  # type: ignore[type-arg]
    """The weights of a model by name. An array is made when it is looked up and copies nothing. If
    several weights have a name, the first is returned."""

    def __init__(self, model: Model):
        self._model = model
        self._positions: dict[str, int] = {}
        for i, weight in enumerate(model._infos):
            self._positions.setdefault(weight.name, i)

    def __getitem__(self, name: str) -> Any:
        handle = self._model._open("weights")
        tensor = _library.Tensor()
        check(_library.library().keel_weight_at(handle.address, self._positions[name],
                                                ctypes.byref(tensor)), "weights")
        dtype, shape = _library.DTYPES[tensor.dtype], _shape(tensor)
        if dtype == "string":
            return _tensors.from_strings(_strings(tensor), shape)
        memory = _memory(tensor)
        memory.owner = handle  # the model lives as long as the array
        return _tensors.view_of_memory(dtype, shape, memory)

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    def __repr__(self) -> str:
        return f"<keel.Weights: {_abridged(list(self._positions))}>"


def load(path: str | os.PathLike[str], mapped: bool = False) -> Model:
    """Loads a model from a ".keras", ".h5" or ".hdf5" file.

    With `mapped`, large tables are read in place from the file: the model is ready at once, and
    processes that load the file share the memory of its tables. Results have the same bits. Replace
    such a file only by rename: if it is truncated while it is mapped, the process ends.

    Throws KeelOSError if the file is missing, damaged or of an unknown format, KeelValueError if it
    holds no model that can be served, and KeelNotImplementedError if it needs an unknown feature.
    """
    return Model(path, mapped)


def inspect(path: str | os.PathLike[str]) -> ModelInfo:
    """Returns the signatures and weights of a model file without reading its tables. Throws the
    errors of load()."""
    with Model(path, mapped=True) as model:
        return ModelInfo(model.path, dict(model.signatures), model._infos)


def set_num_workers(count: int) -> None:
    """Sets the number of cores that compute at once, for all models together. The default is the
    number of processors that the process may use. Call it before loading the first model. Throws
    KeelValueError unless 1 <= count <= 1024."""
    if not 1 <= count <= 1024:
        raise KeelValueError(f"set_num_workers: count must be from 1 to 1024, received {count}")
    check(_library.library().keel_set_num_workers(count), "set_num_workers")


def library_version() -> str:
    """Returns the version of the C library. Throws LibraryNotFoundError if it cannot be loaded."""
    return _library.library().keel_version().decode()


# ---- structures of the C library


def _count(function: Any, *arguments: Any) -> int:
    out = ctypes.c_size_t()
    check(function(*arguments, ctypes.byref(out)), "load")
    return out.value


def _signatures(model: ctypes.c_void_p) -> dict[str, Signature]:
    library = _library.library()
    out = {}
    for i in range(_count(library.keel_signature_count, model)):
        name = ctypes.c_char_p()
        check(library.keel_signature_name(model, i, ctypes.byref(name)), "load")
        sides = (_specs(library.keel_input_count, library.keel_input_spec, model, name.value),
                 _specs(library.keel_output_count, library.keel_output_spec, model, name.value))
        text = (name.value or b"").decode()
        out[text] = Signature(text, *sides)
    return out


def _specs(count: Any, spec_at: Any, model: ctypes.c_void_p,
           signature: bytes | None) -> Mapping[str, Spec]:
    out = {}
    for i in range(_count(count, model, signature)):
        spec = _library.Spec()
        check(spec_at(model, signature, i, ctypes.byref(spec)), "load")
        name = spec.name.decode()
        shape = tuple(None if d < 0 else d for d in spec.dims[:spec.rank])
        out[name] = Spec(name, _library.DTYPES[spec.dtype], _library.LAYOUTS[spec.layout], shape)
    return MappingProxyType(out)


def _weights(model: ctypes.c_void_p) -> Iterator[_library.Tensor]:
    library = _library.library()
    for i in range(_count(library.keel_weight_count, model)):
        tensor = _library.Tensor()
        check(library.keel_weight_at(model, i, ctypes.byref(tensor)), "load")
        yield tensor


def _weight_info(tensor: _library.Tensor) -> Weight:
    size = tensor.data_size
    if _library.DTYPES[tensor.dtype] == "string":
        size = sum(map(len, _strings(tensor)))
    return Weight(tensor.name.decode(), _library.DTYPES[tensor.dtype], _shape(tensor), size)


def _fill(tensor: _library.Tensor, given: Encoded) -> Any:
    """Fills a tensor and returns the objects that must outlive the call."""
    spec = given.spec
    tensor.name = spec.name.encode()
    tensor.dtype = _library.DTYPES.index(spec.dtype)
    tensor.layout = _library.LAYOUTS.index(spec.layout)
    tensor.rank = len(given.shape)
    try:
        dims = array("q", given.shape)
    except OverflowError:
        raise KeelValueError(f"predict: input '{spec.name}': the shape is too large") from None
    values, alive = given.values, None
    if spec.dtype == "string":
        values, alive = _string_views(given.values)
    tensor.dims = _tensors.address(dims)
    tensor.data, tensor.data_size = _tensors.address(values), _tensors.byte_size(values)
    if given.row_splits is not None:
        tensor.row_splits = _tensors.address(given.row_splits)
        tensor.row_splits_count = len(given.row_splits)
    if given.indices is not None:
        tensor.indices = _tensors.address(given.indices)
        tensor.indices_count = _tensors.byte_size(given.indices) // 8
    return dims, values, alive


def _string_views(strings: list[bytes]) -> tuple[array[int], bytes]:
    """Returns an array of keel_string, and the bytes that it points to."""
    joined = b"".join(strings)
    position = ctypes.cast(ctypes.c_char_p(joined), ctypes.c_void_p).value or 0
    views = array("Q")
    for string in strings:
        views.append(position)
        views.append(len(string))
        position += len(string)
    return views, joined


def _shape(tensor: _library.Tensor) -> tuple[int, ...]:
    if tensor.rank == 0:
        return ()
    return tuple((ctypes.c_int64 * tensor.rank).from_address(tensor.dims))


def _memory(tensor: _library.Tensor) -> Any:
    kind = ctypes.c_char * tensor.data_size
    return kind.from_address(tensor.data) if tensor.data_size else kind()


def _strings(tensor: _library.Tensor) -> list[bytes]:
    count = tensor.data_size // ctypes.sizeof(_library.String)
    if count == 0:
        return []
    return [ctypes.string_at(s.data, s.size) if s.size else b""
            for s in (_library.String * count).from_address(tensor.data)]


def _int64s(address: int, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(address)) if count else []


def _outputs(result: ctypes.c_void_p) -> dict[str, Any]:
    """Returns copies of the outputs and frees the result."""
    library = _library.library()
    try:
        out = {}
        for i in range(_count(library.keel_result_count, result)):
            tensor = _library.Tensor()
            check(library.keel_result_at(result, i, ctypes.byref(tensor)), "predict")
            out[tensor.name.decode()] = _value(tensor)
        return out
    finally:
        library.keel_result_free(result)


def _value(tensor: _library.Tensor) -> Any:
    dtype, layout, shape = (_library.DTYPES[tensor.dtype], _library.LAYOUTS[tensor.layout],
                            _shape(tensor))
    count = (tensor.indices_count // len(shape),) if layout == "sparse" else shape
    values = (_tensors.from_strings(_strings(tensor), count) if dtype == "string" else
              _tensors.from_memory(dtype, count, _memory(tensor)))
    if layout == "ragged":
        return _tensors.rows_of(values, _int64s(tensor.row_splits, tensor.row_splits_count))
    if layout == "sparse":
        indices = (ctypes.c_int64 * tensor.indices_count)
        memory = indices.from_address(tensor.indices) if tensor.indices_count else indices()
        return Sparse(_tensors.from_memory("int64", (*count, len(shape)), memory), values, shape)
    return values


def _abridged(names: list[str]) -> str:
    text = ", ".join(names[:20])
    return text + (f" and {len(names) - 20} more" if len(names) > 20 else "")
