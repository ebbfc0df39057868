"""Serves Keel's models from Python, and asks a model server for predictions.

    import keel

    with keel.load("ranker.keras") as model:
        print(model.signatures["serving_default"])
        scores = model.predict({"user": [17, 4], "seen": [[3], [5, 9]]})["score"]

The package calls the C library of Keel by ctypes. numpy is used if it is installed. Models are
trained in C++.
"""
from ._errors import (KeelError, KeelMemoryError, KeelNotImplementedError, KeelOSError,
                      KeelRuntimeError, KeelTypeError, KeelValueError, LibraryNotFoundError,
                      ServerConnectionError, ServerError, ServerTimeoutError)
from ._http import Response
from ._kserve import Inference
from ._tensors import Ragged, Signature, Sparse, Spec
from ._version import __version__
from .client import Client
from .model import (Model, ModelInfo, Weight, Weights, inspect, library_version, load,
                    set_num_workers)

__all__ = [
    "Client", "Inference", "KeelError", "KeelMemoryError", "KeelNotImplementedError", "KeelOSError",
    "KeelRuntimeError", "KeelTypeError", "KeelValueError", "LibraryNotFoundError", "Model",
    "ModelInfo", "Ragged", "Response", "ServerConnectionError", "ServerError",
    "ServerTimeoutError", "Signature", "Sparse", "Spec", "Weight", "Weights", "__version__",
    "inspect", "library_version", "load", "set_num_workers",
]
