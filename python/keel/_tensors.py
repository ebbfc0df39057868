"""Specs of inputs and outputs, and conversions between Python's values and buffers of elements.

A buffer is a contiguous numpy array, an array.array, or a list of bytes for strings. Lists are
converted without numpy, so that results do not depend on whether numpy is installed.
"""
from __future__ import annotations

import itertools
import math
import operator
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Sequence

from ._errors import KeelTypeError, KeelValueError

try:
    import numpy as np
except ImportError:
    np = None  # type: ignore[assignment]

_TYPECODES = {"float32": "f", "float64": "d", "int32": "i", "int64": "q", "bool": "B", "uint8": "B",
              "int8": "b"}
_LEAVES = (str, bytes, bytearray)


@dataclass(frozen=True)
class Spec:
    """An input or output of a signature.

    `dtype` is "float32", "float64", "int32", "int64", "bool", "uint8", "int8" or "string", `layout`
    is "dense", "ragged" or "sparse". `shape` is that of the dense equivalent: the first dimension
    is the batch, None is a dimension of any size.
    """
    name: str
    dtype: str
    layout: str
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        layout = "" if self.layout == "dense" else self.layout + " "
        return f"{self.name}: {layout}{self.dtype} {shape_text(self.shape)}"


@dataclass(frozen=True)
class Signature:
    """A named function of a model, with its inputs and outputs by name."""
    name: str
    inputs: Mapping[str, Spec]
    outputs: Mapping[str, Spec]

    def __str__(self) -> str:
        takes = ", ".join(map(str, self.inputs.values()))
        gives = ", ".join(map(str, self.outputs.values()))
        return f"{self.name}({takes}) -> {{{gives}}}"


class Ragged(NamedTuple):
    """A ragged tensor: row i consists of values[row_splits[i]:row_splits[i + 1]]."""
    values: Any
    row_splits: Any


class Sparse(NamedTuple):
    """A sparse tensor of this shape: values [n], and their positions indices [n, rank] in row-major
    order."""
    indices: Any
    values: Any
    shape: Sequence[int]


class Encoded(NamedTuple):
    """An input in the dtype and layout of its spec. `shape` is that of the values; for a sparse
    tensor, that of the dense equivalent."""
    spec: Spec
    shape: tuple[int, ...]
    values: Any  # a buffer
    row_splits: Any = None  # a buffer of int64 if the layout is ragged
    indices: Any = None  # a buffer of int64 if the layout is sparse


def shape_text(shape: Sequence[int | None]) -> str:
    """The text of a shape in the errors of the library, such as "(?, 4)"."""
    dims = ["?" if d is None else str(d) for d in shape]
    return f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"


def element_count(shape: Sequence[int]) -> int:
    return math.prod(shape)


def element_size(dtype: str) -> int:
    """The size of a number in bytes; 1 for strings."""
    return 1 if dtype == "string" else array(_TYPECODES[dtype]).itemsize


# ---- inputs


def named_inputs(signature: Signature, inputs: Any, caller: str) -> dict[str, Any]:
    """Returns {name: value} for exactly the inputs of the signature. A value that is not a mapping
    is that of the only input."""
    if not isinstance(inputs, Mapping):
        if len(signature.inputs) != 1:
            raise KeelTypeError(f"{caller}: signature '{signature.name}' has several inputs; pass "
                                f"a dict of {_listed(signature.inputs)}")
        return {name: inputs for name in signature.inputs}
    for name in inputs:
        if name not in signature.inputs:
            raise KeelValueError(f"{caller}: signature '{signature.name}' has no input {name!r}; "
                                 f"it has {_listed(signature.inputs)}")
    for name in signature.inputs:
        if name not in inputs:
            raise KeelValueError(f"{caller}: signature '{signature.name}' requires input '{name}'")
    return dict(inputs)


def _listed(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in names)


def encode(spec: Spec, value: Any, caller: str) -> Encoded:
    """Converts a value to the dtype and layout of the spec. Throws KeelValueError and
    KeelTypeError, which name the input; the library checks the rest."""
    place = f"{caller}: input '{spec.name}'"
    if spec.layout == "ragged":
        return _encode_ragged(spec, value, place)
    if spec.layout == "sparse":
        return _encode_sparse(spec, value, place)
    if isinstance(value, (Ragged, Sparse)):
        raise KeelTypeError(f"{place}: requires a dense tensor, received a "
                            f"{type(value).__name__.lower()} one")
    shape, values = to_buffer(value, spec.dtype, place)
    return Encoded(spec, _with_rank(shape, spec.shape), values)


def _with_rank(shape: tuple[int, ...], needed: tuple[int | None, ...]) -> tuple[int, ...]:
    """Adds or removes a last dimension of 1, as Keras does, and completes the shape of an empty
    list."""
    if len(shape) + 1 == len(needed) and needed[-1] == 1:
        return shape + (1,)
    if len(shape) == len(needed) + 1 and shape[-1] == 1:
        return shape[:-1]
    return _completed(shape, needed)


def _completed(shape: tuple[int, ...], needed: tuple[int | None, ...]) -> tuple[int, ...]:
    """A list without elements does not tell its inner dimensions."""
    if shape and shape[-1] == 0 and len(shape) < len(needed):
        return shape + tuple(d or 0 for d in needed[len(shape):])
    return shape


def _encode_ragged(spec: Spec, value: Any, place: str) -> Encoded:
    needed = (None,) + spec.shape[2:]
    if isinstance(value, Ragged):
        shape, values = to_buffer(value.values, spec.dtype, f"{place}, values")
        count, splits = _int64(value.row_splits, f"{place}, row_splits")
        if len(count) != 1:
            raise KeelValueError(f"{place}: row_splits must be a list of integers")
        return Encoded(spec, _completed(shape, needed), values, splits)
    rows = _rows(value, "a ragged tensor", place)
    splits = array("q", [0])
    splits.extend(itertools.accumulate(map(len, rows)))
    shape, values = to_buffer(_concatenated(rows), spec.dtype, place)
    return Encoded(spec, _completed(shape, needed), values, splits)


def _rows(value: Any, what: str, place: str) -> Any:
    """Returns the rows of a list of lists of different lengths."""
    if isinstance(value, Sparse) or not _is_list(value):
        raise KeelTypeError(f"{place}: requires {what}, such as [[1, 2], [], [3]], received "
                            f"{_described(value)}")
    rows = list(value)
    for i, row in enumerate(rows):
        if not _is_list(row):
            raise KeelTypeError(f"{place}: requires {what}, such as [[1, 2], [], [3]]; row {i} is "
                                f"{_described(row)}, not a list")
    return rows


def _concatenated(rows: list[Any]) -> Any:
    if np is not None and rows and all(isinstance(row, np.ndarray) for row in rows):
        # An empty row may have another dtype, such as that of np.array([]).
        filled = [row for row in rows if len(row) > 0]
        if filled and len({row.shape[1:] for row in filled}) == 1:
            return np.concatenate(filled)
    return [element for row in rows for element in _elements(row)]


def _encode_sparse(spec: Spec, value: Any, place: str) -> Encoded:
    if isinstance(value, tuple) and not isinstance(value, Ragged):
        if len(value) != 3:
            raise KeelTypeError(f"{place}: a tuple must be (indices, values, shape), received "
                                f"{len(value)} elements")
        given, elements, dims = value
        shape = tuple(_int64(dims, f"{place}, shape")[1].tolist())
        index_shape, indices = _int64(given, f"{place}, indices")
        count, values = to_buffer(elements, spec.dtype, f"{place}, values")
        if count != (0,) and index_shape != count + (len(shape),):
            needed = shape_text((*count, len(shape)))
            raise KeelValueError(f"{place}: indices must have shape {needed}, received "
                                 f"{shape_text(index_shape)}")
        return Encoded(spec, shape, values, indices=indices)
    if (len(spec.shape) != 2 or isinstance(value, Ragged)
            or np is not None and isinstance(value, np.ndarray)):
        raise KeelTypeError(f"{place}: requires a sparse tensor, (indices, values, shape), "
                            f"received {_described(value)}")
    rows = _rows(value, "a sparse tensor, (indices, values, shape), or a list of rows", place)
    width = spec.shape[1] if spec.shape[1] is not None else max(map(len, rows), default=0)
    for i, row in enumerate(rows):
        if len(row) > width:
            raise KeelValueError(f"{place}: row {i} has {len(row)} values, but the input's width "
                                 f"is {width}")
    indices = array("q", [k for i, row in enumerate(rows) for j in range(len(row)) for k in (i, j)])
    values = to_buffer(_concatenated(rows), spec.dtype, place)[1]
    return Encoded(spec, (len(rows), width), values, indices=indices)


def _int64(value: Any, place: str) -> tuple[tuple[int, ...], Any]:
    return to_buffer(value, "int64", place)


# ---- values to buffers


def to_buffer(value: Any, dtype: str, place: str) -> tuple[tuple[int, ...], Any]:
    """Returns the shape of a value and its elements in row-major order, converted to the dtype.

    Numbers are rounded to floating dtypes; a finite number that would become infinite is an error.
    Integers must be in range, and floating numbers are not converted to integers.
    """
    if np is not None:
        if isinstance(value, (list, tuple)):
            if value and all(isinstance(element, np.ndarray) for element in value):
                value = _stacked(value, place)
        elif hasattr(value, "__array__") or isinstance(value, (array, memoryview)):
            value = np.asarray(value)
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            return value.shape, _from_numpy(value, dtype, place)
    shape, elements = _flattened(value, place)
    return shape, _from_list(elements, dtype, place, shape)


def _stacked(rows: Sequence[Any], place: str) -> Any:
    if len({row.shape for row in rows}) > 1:
        raise KeelValueError(f"{place}: arrays of one list must have the same shape, received "
                             f"{shape_text(rows[0].shape)} and others")
    if any(row.dtype.kind == "O" for row in rows):
        return [row.tolist() for row in rows]
    return np.stack(rows)


def _is_list(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return True
    if isinstance(value, _LEAVES) or isinstance(value, (Mapping, set, frozenset)):
        return False
    return hasattr(value, "__len__") and hasattr(value, "__getitem__") and getattr(
        value, "ndim", 1) > 0


def _elements(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _flattened(value: Any, place: str) -> tuple[tuple[int, ...], list[Any]]:
    """Returns the shape of nested lists and their elements."""
    shape: list[int] = []
    level = [value]
    while level and _is_list(level[0]):
        count = len(level[0])
        below: list[Any] = []
        for i, item in enumerate(level):
            if not _is_list(item) or len(item) != count:
                length = f"has {len(item)} elements" if _is_list(item) else "is not a list"
                raise KeelValueError(f"{place}: the lists must be rectangular; element "
                                     f"{_position(i, shape)} {length}, but the first one has "
                                     f"{count} elements")
            below.extend(_elements(item))
        shape.append(count)
        level = below
    return tuple(shape), level


def _from_list(elements: list[Any], dtype: str, place: str, shape: Sequence[int]) -> Any:
    if dtype == "string":
        return [_to_bytes(element, place, i, shape) for i, element in enumerate(elements)]
    if np is not None and (dtype == "bool" or elements and isinstance(elements[0], np.generic)):
        elements = [e.item() if isinstance(e, np.generic) else e for e in elements]
    if dtype.startswith("float"):
        return _floats(elements, dtype, place, shape)
    try:
        out = array(_TYPECODES[dtype], elements)
    except (TypeError, OverflowError, ValueError):
        _raise_for_element(elements, dtype, place, shape)
    if dtype == "bool" and out and max(out) > 1:
        _raise_for_element(elements, dtype, place, shape)
    return out


def _floats(elements: list[Any], dtype: str, place: str, shape: Sequence[int]) -> Any:
    code = _TYPECODES[dtype]
    try:
        out = array(code, elements)
    except (TypeError, OverflowError, ValueError):
        _raise_for_element(elements, dtype, place, shape)
    if dtype == "float32":
        if math.inf in out or -math.inf in out:
            for i, element in enumerate(elements):
                if math.isinf(out[i]) and not math.isinf(element):
                    _raise_overflow(element, dtype, place, i, shape)
        # array() rounds an integer twice, to double and to float.
        for i, element in enumerate(elements):
            if isinstance(element, int) and not -2**53 <= element <= 2**53:
                out[i] = _rounded_to_odd(element)
    return out


def _rounded_to_odd(number: int) -> float:
    """Returns a double that is rounded to float32 like the number itself."""
    shift = abs(number).bit_length() - 53
    mantissa = abs(number) >> shift
    if abs(number) & ((1 << shift) - 1):
        mantissa |= 1
    return math.ldexp(math.copysign(mantissa, number), shift)


def _raise_for_element(elements: list[Any], dtype: str, place: str, shape: Sequence[int]) -> None:
    """Throws the error of the first element that the dtype does not take."""
    for i, element in enumerate(elements):
        where = f"{place}: element {_position(i, shape)}"
        if _is_list(element):
            raise KeelValueError(f"{place}: the lists must be rectangular; element "
                                 f"{_position(i, shape)} is a list, but the first one is not")
        try:
            array(_TYPECODES[dtype], [element])
        except OverflowError:
            _raise_overflow(element, dtype, place, i, shape)
        except (TypeError, ValueError):
            raise KeelTypeError(f"{where} must be {_NAMES[dtype]}, received "
                                f"{_described(element)}") from None
        if dtype == "bool" and operator.index(element) not in (0, 1):
            raise KeelValueError(f"{where} must be {_NAMES[dtype]}, received {_described(element)}")
    raise KeelTypeError(f"{place}: requires {dtype} values")


_NAMES = {"float32": "a number", "float64": "a number", "int32": "an integer",
          "int64": "an integer", "uint8": "an integer", "int8": "an integer",
          "bool": "True or False"}


def _raise_overflow(element: Any, dtype: str, place: str, i: int, shape: Sequence[int]) -> None:
    raise KeelValueError(f"{place}: element {_position(i, shape)} is out of the range of {dtype}: "
                         f"{_shortened(repr(element))}")


def _to_bytes(element: Any, place: str, i: int, shape: Sequence[int]) -> bytes:
    if isinstance(element, str):
        try:
            return element.encode()
        except UnicodeEncodeError as error:
            raise KeelValueError(f"{place}: element {_position(i, shape)} cannot be encoded in "
                                 f"UTF-8 ({error.reason}); pass bytes") from None
    if isinstance(element, (bytes, bytearray)):
        return bytes(element)
    raise KeelTypeError(f"{place}: element {_position(i, shape)} must be str or bytes, received "
                        f"{_described(element)}")


def _from_numpy(value: Any, dtype: str, place: str) -> Any:
    kind = value.dtype.kind
    if dtype == "string":
        if kind not in "UST":
            raise KeelTypeError(f"{place}: requires strings, received {value.dtype} values")
        return _from_list(value.ravel().tolist(), dtype, place, value.shape)
    if kind not in ("biuf" if dtype.startswith("float") else "biu"):
        remedy = "" if kind != "f" else f"; convert them with .astype('{dtype}')"
        raise KeelTypeError(f"{place}: requires {dtype} values, received {value.dtype} "
                            f"values{remedy}")
    if value.dtype == dtype:
        return np.ascontiguousarray(value)
    if dtype == "bool":
        _raise_unless(value, (value == 0) | (value == 1), dtype, place)
    elif kind in "iu" and not dtype.startswith("float"):
        limits = np.iinfo(dtype)
        # Comparisons with Python's integers are exact for every dtype.
        if value.size and not (int(value.min()) >= limits.min and int(value.max()) <= limits.max):
            fits = np.array([limits.min <= v <= limits.max for v in value.ravel().tolist()])
            _raise_unless(value, fits.reshape(value.shape), dtype, place)
    with np.errstate(over="ignore"):
        out = np.ascontiguousarray(value.astype(dtype))
    if kind == "f" and value.dtype.itemsize > out.dtype.itemsize:
        _raise_unless(value, np.isfinite(out) | ~np.isfinite(value), dtype, place)
    return out


def _raise_unless(value: Any, fits: Any, dtype: str, place: str) -> None:
    if not fits.all():
        i = int(np.argmin(fits))
        _raise_overflow(value.ravel()[i].item(), dtype, place, i, value.shape)


def _position(i: int, shape: Sequence[int]) -> str:
    """The position of element i of a tensor of this shape, for error messages."""
    position: list[int] = []
    for size in reversed(shape):
        position.append(i % size if size else 0)
        i = i // size if size else 0
    return "[" + ", ".join(map(str, reversed(position))) + "]"


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _described(value: Any) -> str:
    if _is_list(value) or isinstance(value, (Mapping, set, frozenset)):
        return f"a {type(value).__name__}"
    return f"{_shortened(repr(value))} ({type(value).__name__})"


# ---- buffers to values


def address(buffer: Any) -> int:
    """The address of the elements of a buffer of numbers."""
    return buffer.buffer_info()[0] if isinstance(buffer, array) else buffer.ctypes.data


def byte_size(buffer: Any) -> int:
    """The size of a buffer of numbers."""
    return len(buffer) * buffer.itemsize if isinstance(buffer, array) else buffer.nbytes


def from_memory(dtype: str, shape: Sequence[int], memory: Any) -> Any:
    """Returns an array, or nested lists without numpy, with a copy of the elements in `memory`, an
    object with the buffer protocol."""
    if np is not None:
        if element_count(shape) == 0:
            return np.empty(shape, dtype)
        return np.frombuffer(memory, dtype).reshape(shape).copy()
    out = array(_TYPECODES[dtype])
    out.frombytes(memoryview(memory).tobytes())
    elements = out.tolist()
    return _nested([e != 0 for e in elements] if dtype == "bool" else elements, shape)


def from_strings(strings: list[bytes], shape: Sequence[int]) -> Any:
    """Returns an array of objects, or nested lists without numpy."""
    if np is None:
        return _nested(strings, shape)
    out = np.empty(len(strings), object)
    out[:] = strings
    return out.reshape(shape)


def view_of_memory(dtype: str, shape: Sequence[int], memory: Any) -> Any:
    """Returns a read-only array, or a memoryview without numpy, of the elements in `memory`. It
    keeps `memory` alive."""
    view = memoryview(memory).toreadonly()
    if np is not None:
        if element_count(shape) == 0:
            out = np.empty(shape, dtype)
            out.flags.writeable = False
            return out
        return np.frombuffer(view, dtype).reshape(shape)
    code = "?" if dtype == "bool" else _TYPECODES[dtype]
    view = view.cast("B")
    return view.cast(code, list(shape)) if shape and 0 not in shape else view.cast(code)


def _nested(elements: list[Any], shape: Sequence[int]) -> Any:
    if not shape:
        return elements[0]
    for axis in range(len(shape) - 1, 0, -1):
        size, count = shape[axis], element_count(shape[:axis])
        elements = [elements[i * size:(i + 1) * size] for i in range(count)]
    return elements


def rows_of(values: Any, row_splits: Sequence[int]) -> list[Any]:
    """The rows of a ragged tensor."""
    return [values[begin:end] for begin, end in zip(row_splits, row_splits[1:])]
