"""Declarations of libkeel_c.so (savedmodel/c_api.h) for ctypes, and the search for the library."""
from __future__ import annotations

import ctypes
import os
import pathlib
import threading
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p
from typing import Any, Iterator

from . import _errors
from ._version import __version__

MAX_RANK = 8
DTYPES = ("float32", "float64", "int32", "int64", "bool", "uint8", "string", "int8")
LAYOUTS = ("dense", "ragged", "sparse")
_ERRORS = {
    1: _errors.KeelValueError,
    2: _errors.KeelTypeError,
    3: _errors.KeelRuntimeError,
    4: _errors.KeelNotImplementedError,
    5: _errors.KeelOSError,
    6: _errors.KeelMemoryError,
}


class String(ctypes.Structure):
    """keel_string. The pointer is an address, because c_char_p would convert it to bytes."""
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class Spec(ctypes.Structure):
    """keel_spec."""
    _fields_ = [("name", c_char_p), ("dtype", c_int), ("layout", c_int), ("rank", c_int),
                ("dims", c_int64 * MAX_RANK)]


class Tensor(ctypes.Structure):
    """keel_tensor. Pointers are addresses."""
    _fields_ = [("name", c_char_p), ("dtype", c_int), ("layout", c_int), ("rank", c_int),
                ("dims", c_void_p), ("data", c_void_p), ("data_size", c_size_t),
                ("row_splits", c_void_p), ("row_splits_count", c_size_t), ("indices", c_void_p),
                ("indices_count", c_size_t)]


# name: (result type, argument types)
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "keel_version": (c_char_p, []),
    "keel_last_error": (c_char_p, []),
    "keel_set_num_workers": (c_int, [c_int]),
    "keel_model_load": (c_int, [c_char_p, POINTER(c_void_p)]),
    "keel_model_load_mapped": (c_int, [c_char_p, POINTER(c_void_p)]),
    "keel_model_free": (None, [c_void_p]),
    "keel_signature_count": (c_int, [c_void_p, POINTER(c_size_t)]),
    "keel_signature_name": (c_int, [c_void_p, c_size_t, POINTER(c_char_p)]),
    "keel_input_count": (c_int, [c_void_p, c_char_p, POINTER(c_size_t)]),
    "keel_input_spec": (c_int, [c_void_p, c_char_p, c_size_t, POINTER(Spec)]),
    "keel_output_count": (c_int, [c_void_p, c_char_p, POINTER(c_size_t)]),
    "keel_output_spec": (c_int, [c_void_p, c_char_p, c_size_t, POINTER(Spec)]),
    "keel_weight_count": (c_int, [c_void_p, POINTER(c_size_t)]),
    "keel_weight_at": (c_int, [c_void_p, c_size_t, POINTER(Tensor)]),
    "keel_run": (c_int, [c_void_p, c_char_p, POINTER(Tensor), c_size_t, POINTER(c_void_p)]),
    "keel_run_examples": (c_int, [c_void_p, c_char_p, POINTER(String), c_size_t,
                                  POINTER(c_void_p)]),
    "keel_result_count": (c_int, [c_void_p, POINTER(c_size_t)]),
    "keel_result_at": (c_int, [c_void_p, c_size_t, POINTER(Tensor)]),
    "keel_result_free": (None, [c_void_p]),
}

_INTERFACE = ".".join(__version__.split(".")[:2])
_library: ctypes.CDLL | None = None
_loading = threading.Lock()


def _soname() -> str:
    """The name that the system's loader knows. Before 1.0, minor versions have own interfaces."""
    return f"libkeel_c.so.{_INTERFACE}"


def _candidates() -> Iterator[str]:
    """The libraries to try, in this order. KEEL_LIBRARY excludes all others."""
    given = os.environ.get("KEEL_LIBRARY")
    if given:
        yield given
        return
    own = pathlib.Path(__file__).parent
    yield from (str(own / name) for name in (_soname(), "libkeel_c.so") if (own / name).exists())
    yield from (_soname(), "libkeel_c.so")


def _declare(library: ctypes.CDLL, path: str) -> None:
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise _errors.LibraryNotFoundError(
                f"keel: '{path}' has no function {name}, so it is not the C library of Keel "
                f"{__version__}; install libkeel{_INTERFACE}, or set KEEL_LIBRARY to the path of "
                "its libkeel_c.so") from None
        function.restype, function.argtypes = result, arguments
    found = library.keel_version().decode()
    if ".".join(found.split(".")[:2]) != _INTERFACE:
        raise _errors.LibraryNotFoundError(
            f"keel: '{path}' is version {found}, but this package requires {_INTERFACE}; install "
            "the library and this package in the same version")


def _load() -> ctypes.CDLL:
    reasons = []
    for path in _candidates():
        try:
            # PyDLL would keep the interpreter's lock during a call; CDLL releases it.
            library = ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
            continue
        _declare(library, path)
        return library
    raise _errors.LibraryNotFoundError(
        "keel: libkeel_c.so cannot be loaded (" + "; ".join(reasons) + "); install the package "
        f"libkeel{_INTERFACE}, or set KEEL_LIBRARY to the path of libkeel_c.so")


def library() -> ctypes.CDLL:
    """Returns the C library, which the first call loads. Throws LibraryNotFoundError."""
    global _library
    if _library is None:
        with _loading:
            if _library is None:
                _library = _load()
    return _library


def last_error() -> str:
    return library().keel_last_error().decode("utf-8", "replace")


def check(status: int, caller: str) -> None:
    """Throws the error of the calling thread's last failed call unless the status is KEEL_OK."""
    if status == 0:
        return
    message = last_error()
    function, separator, rest = message.partition(": ")
    if separator and function in _FUNCTIONS:  # the user has called another one
        message = rest
    raise _ERRORS.get(status, _errors.KeelRuntimeError)(f"{caller}: {message}")
