"""Requests and answers of KServe v2, with its extension for binary tensors."""
from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from . import _tensors
from ._errors import KeelValueError, ServerError
from ._http import Response, dumped, member
from ._tensors import Encoded, Signature, Sparse, Spec

_HEADER_LENGTH = "Inference-Header-Content-Length"
_DTYPES = {"FP32": "float32", "FP64": "float64", "INT32": "int32", "INT64": "int64",
           "BOOL": "bool", "UINT8": "uint8", "INT8": "int8", "BYTES": "string"}
_DATATYPES = {dtype: name for name, dtype in _DTYPES.items()}


class Inference(NamedTuple):
    """What Client.infer() returns. `outputs` is {output name: value}, as from Model.predict()."""
    outputs: dict[str, Any]
    model_name: str
    model_version: str
    id: str


class ModelInputs:
    """The inputs of a model, and its requests and answers. Ragged and sparse tensors are several
    tensors of the protocol: NAME.values and NAME.row_splits; NAME.indices, NAME.values and
    NAME.dense_shape."""

    def __init__(self, metadata: Mapping[str, Any]):
        self.specs = _specs(member(metadata, "inputs"))

    def request(self, inputs: Mapping[str, Any], outputs: Sequence[str] | None, binary: bool,
                id: str | None, parameters: Mapping[str, Any] | None
                ) -> tuple[bytes, dict[str, str]]:
        signature = Signature("serving_default", self.specs, {})
        given = _tensors.named_inputs(signature, inputs, "infer")
        body: dict[str, Any] = {} if id is None else {"id": id}
        tensors: list[dict[str, Any]] = []
        parts: list[bytes] = []
        for name, value in given.items():
            for tensor in _parts(_tensors.encode(self.specs[name], value, "infer")):
                entry: dict[str, Any] = {"name": tensor.spec.name, "shape": list(tensor.shape),
                         "datatype": _DATATYPES[tensor.spec.dtype]}
                if binary:
                    parts.append(_to_bytes(tensor))
                    entry["parameters"] = {"binary_data_size": len(parts[-1])}
                else:
                    entry["data"] = _to_list(tensor)
                tensors.append(entry)
        body["inputs"] = tensors
        if outputs is not None:
            body["outputs"] = [{"name": name} for name in outputs]
        if parameters or binary:
            body["parameters"] = {**(parameters or {})}
            if binary:
                body["parameters"].setdefault("binary_data_output", True)
        head = dumped(body, "infer")
        if not binary:
            return head, {"Content-Type": "application/json"}
        return b"".join([head, *parts]), {"Content-Type": "application/octet-stream",
                                          _HEADER_LENGTH: str(len(head))}

    def answer(self, response: Response) -> Inference:
        try:
            return _read(response)
        except (KeyError, TypeError, IndexError, ValueError, struct.error) as error:
            raise ServerError(response.status, f"the answer is not one of KServe v2: "
                                               f"{type(error).__name__}: {error}") from None


def _specs(tensors: Sequence[Mapping[str, Any]]) -> dict[str, Spec]:
    """Returns the inputs in the order of the server. Tensors that are parts of a ragged or sparse
    one are joined."""
    names = {tensor["name"] for tensor in tensors}
    out: dict[str, Spec] = {}
    for tensor in tensors:
        name, dtype = tensor["name"], _DTYPES.get(tensor["datatype"], tensor["datatype"])
        shape = tuple(None if size < 0 else size for size in tensor["shape"])
        base, _, part = name.rpartition(".")
        ragged = {f"{base}.values", f"{base}.row_splits"} <= names
        sparse = {f"{base}.values", f"{base}.indices", f"{base}.dense_shape"} <= names
        if base and ragged and part in ("values", "row_splits"):
            if part == "values":
                out[base] = Spec(base, dtype, "ragged", (None, None) + shape[1:])
        elif base and sparse and part in ("values", "indices", "dense_shape"):
            if part == "values":
                rank = next(t["shape"][1] for t in tensors if t["name"] == f"{base}.indices")
                out[base] = Spec(base, dtype, "sparse", (None,) * rank)
        else:
            out[name] = Spec(name, dtype, "dense", shape)
    return out


def _parts(given: Encoded) -> list[Encoded]:
    """Returns the tensors of the protocol for an input."""
    name, dtype, layout = given.spec.name, given.spec.dtype, given.spec.layout

    def part(suffix: str, dtype: str, shape: tuple[int, ...], values: Any) -> Encoded:
        return Encoded(Spec(f"{name}.{suffix}", dtype, "dense", shape), shape, values)

    if layout == "ragged":
        splits = given.row_splits
        return [part("values", dtype, given.shape, given.values),
                part("row_splits", "int64", (len(splits),), splits)]
    if layout == "sparse":
        rank, count = len(given.shape), len(given.values)
        return [part("indices", "int64", (count, rank), given.indices),
                part("values", dtype, (count,), given.values),
                part("dense_shape", "int64", (rank,), array("q", given.shape))]
    return [given]


def _to_bytes(tensor: Encoded) -> bytes:
    if tensor.spec.dtype == "string":
        return b"".join(struct.pack("<I", len(text)) + text for text in tensor.values)
    return tensor.values.tobytes()


def _to_list(tensor: Encoded) -> list[Any]:
    values = tensor.values
    if tensor.spec.dtype == "string":
        try:
            return [text.decode() for text in values]
        except UnicodeDecodeError:
            raise KeelValueError(f"infer: input '{tensor.spec.name}': JSON takes only strings in "
                                 "UTF-8; pass binary=True") from None
    elements = values.tolist() if isinstance(values, array) else values.ravel().tolist()
    return [e != 0 for e in elements] if tensor.spec.dtype == "bool" else elements


def _read(response: Response) -> Inference:
    length = response.headers.get(_HEADER_LENGTH.lower())
    head = response.body if length is None else response.body[:int(length)]
    position = len(head)
    answer = json.loads(head)
    values: dict[str, Any] = {}
    for tensor in answer["outputs"]:
        dtype, shape = _DTYPES[tensor["datatype"]], tensor["shape"]
        size = tensor.get("parameters", {}).get("binary_data_size")
        if size is None:
            values[tensor["name"]] = _from_list(dtype, shape, tensor["data"])
        else:
            if size > len(response.body) - position:
                raise ValueError(f"output '{tensor['name']}' is cut off")
            part = response.body[position:position + size]
            position += size
            values[tensor["name"]] = _value(dtype, shape, _from_lengths(part)
                                            if dtype == "string" else array("B", part))
    return Inference(_joined(values), answer.get("model_name", ""),
                     answer.get("model_version", ""), answer.get("id", ""))


def _from_lengths(data: bytes) -> list[bytes]:
    out, position = [], 0
    while position < len(data):
        (size,) = struct.unpack_from("<I", data, position)
        position += 4
        if size > len(data) - position:
            raise ValueError("a string is cut off")
        out.append(data[position:position + size])
        position += size
    return out


def _from_list(dtype: str, shape: Sequence[int], data: list[Any]) -> Any:
    return _value(dtype, shape, _tensors.to_buffer(data, dtype, "the answer")[1])


def _value(dtype: str, shape: Sequence[int], buffer: Any) -> Any:
    size = len(buffer) if dtype == "string" else _tensors.byte_size(buffer)
    if size != _tensors.element_count(shape) * _tensors.element_size(dtype):
        raise ValueError(f"the data do not fit the shape {shape} of {dtype}")
    if dtype == "string":
        return _tensors.from_strings(buffer, shape)
    return _tensors.from_memory(dtype, shape, buffer)


def _joined(values: dict[str, Any]) -> dict[str, Any]:
    """Joins the parts of ragged and sparse outputs."""
    out: dict[str, Any] = {}
    for name, value in values.items():
        base, _, part = name.rpartition(".")
        if base and f"{base}.row_splits" in values and f"{base}.values" in values:
            if part == "values":
                out[base] = _tensors.rows_of(value, _ints(values[f"{base}.row_splits"]))
                continue
            if part == "row_splits":
                continue
        sparse = [f"{base}.{suffix}" for suffix in ("indices", "values", "dense_shape")]
        if base and all(one in values for one in sparse) and name in sparse:
            indices, elements, shape = (values[one] for one in sparse)
            out[base] = Sparse(indices, elements, tuple(_ints(shape)))
            continue
        out[name] = value
    return out


def _ints(values: Any) -> list[int]:
    return values.tolist() if hasattr(values, "tolist") else values
