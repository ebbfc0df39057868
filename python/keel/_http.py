"""Connections to a model server, and JSON as it reads and writes it."""
from __future__ import annotations

import base64
import http.client
import json
import threading
import urllib.parse
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ._errors import (KeelTypeError, KeelValueError, ServerConnectionError, ServerError,
                      ServerTimeoutError)

_MAX_IDLE_CONNECTIONS = 16


class Response(NamedTuple):
    """The answer to a request: HTTP status, headers (names in lower case) and body."""
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise ServerError(self.status, f"the answer is not JSON: {error}") from None


class Connections:
    """The connections to the server at a URL, which are kept and used again. Threads may share
    them; each request that runs has a connection of its own."""

    def __init__(self, url: str, timeout: float | None, headers: Mapping[str, str]):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise KeelValueError(f"Client: url must be such as 'http://127.0.0.1:8501', received "
                                 f"{url!r}")
        if parts.query or parts.fragment or parts.username is not None:
            raise KeelValueError("Client: url must not have a user, a query or a fragment")
        try:
            self._port = parts.port
        except ValueError as error:
            raise KeelValueError(f"Client: {error}") from None
        self._kind = (http.client.HTTPSConnection if parts.scheme == "https" else
                      http.client.HTTPConnection)
        self._host, self._prefix = parts.hostname, parts.path.rstrip("/")
        self._url, self._timeout, self._headers = url, timeout, dict(headers)
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._closed = False
        self._lock = threading.Lock()  # guards _idle and _closed

    def request(self, method: str, path: str, body: bytes | None,
                headers: Mapping[str, str] | None) -> Response:
        """Throws ServerError if the status is 400 or more."""
        response = self._exchange(method, path, body, {**self._headers, **(headers or {})})
        if response.status >= 400:
            raise ServerError(response.status, _error_text(response.body), f"{method} {path}")
        return response

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = list(self._idle), deque()
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        if hasattr(self, "_lock"):  # __init__() has not failed
            self.close()

    def _exchange(self, method: str, path: str, body: bytes | None,
                  headers: Mapping[str, str]) -> Response:
        while True:
            connection, used = self._take()
            try:
                try:
                    connection.request(method, self._prefix + path, body, dict(headers))
                except BrokenPipeError:
                    pass  # a server may refuse and close before it has read a large body
                answer = connection.getresponse()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
                connection.close()
                if used:  # the server has closed the idle connection: nothing was answered
                    continue
                raise self._connection_error(method, path, error) from error
            except Exception as error:
                connection.close()
                raise self._translated(method, path, error) from error
            except BaseException:  # such as KeyboardInterrupt
                connection.close()
                raise
            try:
                content = answer.read()
            except Exception as error:
                connection.close()
                raise self._translated(method, path, error) from error
            except BaseException:
                connection.close()
                raise
            if answer.will_close:
                connection.close()
            else:
                self._give_back(connection)
            return Response(answer.status, {k.lower(): v for k, v in answer.getheaders()}, content)

    def _translated(self, method: str, path: str, error: Exception) -> Exception:
        if isinstance(error, TimeoutError):
            return ServerTimeoutError(f"{method} {self._url}{path}: no answer within "
                                      f"{self._timeout} s")
        if isinstance(error, (OSError, http.client.HTTPException)):
            return self._connection_error(method, path, error)
        return KeelValueError(f"{method} {path}: {error}")  # such as a header with a newline

    def _connection_error(self, method: str, path: str, error: Exception) -> Exception:
        return ServerConnectionError(f"{method} {self._url}{path}: "
                                     f"{str(error) or type(error).__name__}")

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        """Returns a connection and whether it has been used before."""
        with self._lock:
            if self._closed:
                raise KeelValueError("Client: the client is closed")
            if self._idle:
                return self._idle.pop(), True  # the one that was used last
        return self._kind(self._host, self._port, timeout=self._timeout), False

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _MAX_IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()


def _error_text(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return body[:1024].decode("utf-8", "replace").strip()


def member(answer: Any, key: str) -> Any:
    if not isinstance(answer, dict) or key not in answer:
        raise ServerError(200, f"the answer has no '{key}'")
    return answer[key]


def dumped(body: Mapping[str, Any], caller: str) -> bytes:
    """Returns the body as JSON. NaN and infinities are written as the server reads them."""
    try:
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False,
                          default=_json_value).encode()
    except UnicodeEncodeError as error:
        raise KeelValueError(f"{caller}: a str cannot be encoded in UTF-8 ({error.reason}); pass "
                             "bytes") from None
    except (TypeError, ValueError) as error:
        raise KeelTypeError(f"{caller}: {error}") from None


def _json_value(value: Any) -> Any:
    """Converts a value that json does not know. Bytes become {"b64": ...}, as the server reads."""
    if isinstance(value, (bytes, bytearray)):
        return {"b64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):  # numpy's arrays and scalars, array.array and others
        return value.tolist()
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be sent as JSON")
