"""The exceptions of the package. Each one is also a KeelError and has the reason as its message."""
from __future__ import annotations

from collections.abc import Callable


class KeelError(Exception):
    """The base class of all errors of this package."""


class KeelValueError(KeelError, ValueError):
    """A value, shape, size or name is wrong."""


class KeelTypeError(KeelError, TypeError):
    """A dtype, layout or Python type is wrong."""


class KeelRuntimeError(KeelError, RuntimeError):
    """An error of the library that has no class of its own."""


class KeelNotImplementedError(KeelError, NotImplementedError):
    """The model needs a feature that is not supported."""


class KeelOSError(KeelError, OSError):
    """A file is missing, damaged or of an unknown format."""


class KeelMemoryError(KeelError, MemoryError):
    """There is not enough memory."""


class LibraryNotFoundError(KeelError, ImportError):
    """The C library libkeel_c.so cannot be loaded, or does not fit this version of the package."""


class ServerError(KeelError):
    """A model server has answered with an error.

    `status` is the HTTP status (400: wrong request; 404: unknown model or version; 429 and 503: try
    again later; 504: time-out of the server) and `message` the server's text.
    """

    def __init__(self, status: int, message: str, request: str = ""):
        super().__init__(f"{request}: {status}: {message}" if request else f"{status}: {message}")
        self.status = status
        self.message = message

    def __reduce__(self) -> tuple[Callable[..., ServerError], tuple[int, str, str]]:
        return _server_error, (self.status, self.message, self.args[0])


def _server_error(status: int, message: str, text: str) -> ServerError:
    error = ServerError(status, message)
    error.args = (text,)
    return error


class ServerConnectionError(KeelError, ConnectionError):
    """A model server cannot be reached, or has closed the connection before it has answered."""


class ServerTimeoutError(KeelError, TimeoutError):
    """A model server has not answered within the client's time-out."""
