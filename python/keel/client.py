"""A client of model servers that speak the REST API of TensorFlow Serving and KServe v2."""
from __future__ import annotations

import base64
import json
import threading
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._errors import (KeelError, KeelTypeError, KeelValueError, ServerConnectionError,
                      ServerError, ServerTimeoutError)
from ._http import Connections, Response, dumped, member
from ._kserve import Inference, ModelInputs
from ._tensors import Ragged, Signature, Sparse, Spec

_DTYPES = {"DT_FLOAT": "float32", "DT_DOUBLE": "float64", "DT_INT32": "int32",
           "DT_INT64": "int64", "DT_BOOL": "bool", "DT_UINT8": "uint8", "DT_INT8": "int8",
           "DT_STRING": "string"}


class Client:
    """Asks the model server at a URL, such as "http://127.0.0.1:8501".

    `timeout` is that of each operation on the connection, in seconds. `headers` are sent with each
    request. Connections are kept and used again. Threads may share a client; each request that runs
    has a connection of its own. A client is also a context manager that closes itself.

    A method that names a model takes `version`, a number, or `label`; the newest version answers
    if neither is given. Every method throws ServerError for an answer that is an error,
    ServerConnectionError and ServerTimeoutError.
    """

    def __init__(self, url: str = "http://127.0.0.1:8501", *, timeout: float | None = 30.0,
                 headers: Mapping[str, str] | None = None):
        self._connections = Connections(url, timeout, headers or {})
        self._url = url
        self._inputs: dict[str, ModelInputs] = {}  # by path
        self._lock = threading.Lock()  # guards _inputs

    def __repr__(self) -> str:
        return f"<keel.Client '{self._url}'>"

    # ---- predictions, by the REST API of TensorFlow Serving

    def predict(self, model: str, instances: Iterable[Any] | None = None, *, inputs: Any = None,
                signature: str | None = None, version: int | str | None = None,
                label: str | None = None) -> Any:
        """Predicts by POST /v1/models/MODEL:predict.

        `instances` is a list of rows: each is {input name: value}, or the value of the only input.
        Returns the list of predictions. Alternatively `inputs` is {input name: values of all rows}
        and the outputs are returned as columns. Values are lists, numpy arrays, str and bytes; in
        columns also keel.Ragged and keel.Sparse.
        """
        if (instances is None) == (inputs is None):
            raise KeelValueError("predict: pass either instances or inputs")
        body: dict[str, Any] = {} if signature is None else {"signature_name": signature}
        if instances is not None:
            body["instances"] = instances
            key = "predictions"
        else:
            body["inputs"] = _columns(inputs)
            key = "outputs"
        return self._v1(model, "predict", version, label, body, key)

    def classify(self, model: str, examples: Iterable[Mapping[str, Any]], *,
                 context: Mapping[str, Any] | None = None, signature: str | None = None,
                 version: int | str | None = None, label: str | None = None) -> list[Any]:
        """Returns [[label, score], ...] for each example, by POST /v1/models/MODEL:classify.
        `examples` are {feature: value or list}. Features of `context` are those of all examples."""
        body = _examples(examples, context, signature)
        return self._v1(model, "classify", version, label, body, "results")

    def regress(self, model: str, examples: Iterable[Mapping[str, Any]], *,
                context: Mapping[str, Any] | None = None, signature: str | None = None,
                version: int | str | None = None, label: str | None = None) -> list[float]:
        """Returns a number for each example, by POST /v1/models/MODEL:regress. The arguments are
        those of classify()."""
        body = _examples(examples, context, signature)
        return self._v1(model, "regress", version, label, body, "results")

    def status(self, model: str, *, version: int | str | None = None,
               label: str | None = None) -> list[dict[str, Any]]:
        """Returns the versions of a model, newest first: {"version", "state", "status"}."""
        answer = self.request("GET", _v1_path(model, version, label)).json()
        return member(answer, "model_version_status")

    def models(self) -> list[dict[str, Any]]:
        """Returns {"name", "model_version_status"} of all models, by name."""
        return member(self.request("GET", "/v1/models").json(), "models")

    def metadata(self, model: str, *, version: int | str | None = None,
                 label: str | None = None) -> dict[str, Any]:
        """Returns the answer of GET /v1/models/MODEL/metadata. signatures() is easier to read."""
        return self.request("GET", _v1_path(model, version, label) + "/metadata").json()

    def signatures(self, model: str, *, version: int | str | None = None,
                   label: str | None = None) -> dict[str, Signature]:
        """Returns the signatures of a model by name, as Model.signatures does."""
        answer = self.metadata(model, version=version, label=label)
        found = member(member(member(answer, "metadata"), "signature_def"), "signature_def")
        return {name: Signature(name, _specs(one.get("inputs", {})), _specs(one.get("outputs", {})))
                for name, one in found.items()}

    # ---- KServe v2

    def infer(self, model: str, inputs: Mapping[str, Any], *, outputs: Sequence[str] | None = None,
              binary: bool = True, id: str | None = None,
              parameters: Mapping[str, Any] | None = None, version: int | str | None = None,
              label: str | None = None) -> Inference:
        """Predicts by POST /v2/models/MODEL/infer.

        `inputs` is what Model.predict() takes, and is converted in the same way to the dtypes that
        the server lists. `outputs` are the names of the outputs to compute, by default all.
        `binary` sends and receives tensors as bytes: faster than JSON, and necessary for strings
        that are not UTF-8.
        """
        path = _v2_path(model, version, label)
        signature, fresh = self._model_inputs(path)
        while True:
            try:
                body, headers = signature.request(inputs, outputs, binary, id, parameters)
                return signature.answer(self.request("POST", path + "/infer", body, headers))
            except (KeelValueError, KeelTypeError, ServerError) as error:
                # A newer version of the model may have other inputs.
                if fresh or isinstance(error, ServerError) and error.status != 400:
                    raise
                try:
                    current, fresh = self._model_inputs(path, reload=True)
                except KeelError:
                    raise error from None
                if current.specs == signature.specs:
                    raise
                signature = current

    def v2_metadata(self, model: str, *, version: int | str | None = None,
                    label: str | None = None) -> dict[str, Any]:
        """Returns {"name", "versions", "platform", "inputs", "outputs"}."""
        return self.request("GET", _v2_path(model, version, label)).json()

    def server_metadata(self) -> dict[str, Any]:
        """Returns {"name", "version", "extensions"} of the server."""
        return self.request("GET", "/v2").json()

    def live(self) -> bool:
        """Returns whether the server answers."""
        try:
            return self.request("GET", "/v2/health/live").status == 200
        except (ServerError, ServerConnectionError, ServerTimeoutError):
            return False

    def ready(self, model: str | None = None, *, version: int | str | None = None,
              label: str | None = None) -> bool:
        """Returns whether the server, or a model, can answer predictions."""
        path = "/v2/health" if model is None else _v2_path(model, version, label)
        try:
            return self.request("GET", path + "/ready").status == 200
        except ServerError as error:
            if error.status == 503 or error.status == 404 and model is not None:
                return False
            raise
        except (ServerConnectionError, ServerTimeoutError):
            return False

    def metrics(self) -> str:
        """Returns the metrics of the server in the text format of Prometheus."""
        return self.request("GET", "/metrics").body.decode("utf-8", "replace")

    # ---- HTTP

    def request(self, method: str, path: str, body: bytes | None = None,
                headers: Mapping[str, str] | None = None) -> Response:
        """Sends a request and returns the answer. The path follows the path of the URL. Throws
        ServerError if the status is 400 or more."""
        return self._connections.request(method, path, body, headers)

    def close(self) -> None:
        """Closes the idle connections. Requests that run close theirs when they end. Later requests
        throw KeelValueError."""
        self._connections.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _v1(self, model: str, method: str, version: int | str | None, label: str | None,
            body: Mapping[str, Any], key: str) -> Any:
        path = _v1_path(model, version, label) + ":" + method
        answer = self.request("POST", path, dumped(body, method),
                              {"Content-Type": "application/json"})
        try:
            return member(json.loads(answer.body, object_hook=_decoded), key)
        except ValueError as error:
            raise ServerError(answer.status, f"the answer is not JSON: {error}") from None

    def _model_inputs(self, path: str, reload: bool = False) -> tuple[ModelInputs, bool]:
        """Returns the inputs of a model, and whether the server has just been asked for them."""
        with self._lock:
            known = self._inputs.get(path)
        if known is not None and not reload:
            return known, False
        found = ModelInputs(self.request("GET", path).json())
        with self._lock:
            self._inputs[path] = found
        return found, True


def _v1_path(model: str, version: int | str | None, label: str | None) -> str:
    path = "/v1/models/" + _quoted(model, "model")
    if version is not None and label is not None:
        raise KeelValueError("Client: pass either version or label")
    if version is not None:
        return f"{path}/versions/{_quoted(str(version), 'version')}"
    if label is not None:
        return f"{path}/labels/{_quoted(label, 'label')}"
    return path


def _v2_path(model: str, version: int | str | None, label: str | None) -> str:
    path = "/v2/models/" + _quoted(model, "model")
    if version is not None and label is not None:
        raise KeelValueError("Client: pass either version or label")
    chosen = label if version is None else str(version)
    return path if chosen is None else f"{path}/versions/{_quoted(chosen, 'version')}"


def _quoted(name: str, what: str) -> str:
    if not isinstance(name, str):
        raise KeelTypeError(f"Client: {what} must be str, received {type(name).__name__}")
    if not name:
        raise KeelValueError(f"Client: {what} must not be empty")
    return urllib.parse.quote(name, safe="")


# ---- values of JSON


def _columns(inputs: Any) -> Any:
    """Converts Ragged and Sparse, which json would write as lists."""
    if isinstance(inputs, Ragged):
        return {"values": inputs.values, "row_splits": inputs.row_splits}
    if isinstance(inputs, Sparse):
        return {"indices": inputs.indices, "values": inputs.values, "dense_shape": inputs.shape}
    if isinstance(inputs, Mapping):
        return {name: _columns(value) for name, value in inputs.items()}
    return inputs


def _decoded(value: dict[str, Any]) -> Any:
    """Strings that are not UTF-8 are {"b64": ...} in answers."""
    if len(value) == 1 and isinstance(value.get("b64"), str):
        return base64.b64decode(value["b64"])
    return value


def _examples(examples: Iterable[Mapping[str, Any]], context: Mapping[str, Any] | None,
              signature: str | None) -> dict[str, Any]:
    body: dict[str, Any] = {} if signature is None else {"signature_name": signature}
    if context is not None:
        body["context"] = context
    body["examples"] = examples
    return body


def _specs(infos: Mapping[str, Any]) -> dict[str, Spec]:
    out = {}
    for name, info in infos.items():
        layout = ("sparse" if "coo_sparse" in info else
                  "ragged" if "composite_tensor" in info else "dense")
        sizes = (int(dim["size"]) for dim in info.get("tensor_shape", {}).get("dim", []))
        out[name] = Spec(name, _DTYPES.get(info["dtype"], info["dtype"]), layout,
                         tuple(None if size < 0 else size for size in sizes))
    return out
