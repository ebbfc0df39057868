"""A `keel serve` process for tests, and requests to it. Standard library only."""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time


class Server:
    """Starts the program on a free port, without gRPC unless a flag says so, and collects its log."""

    def __init__(self, program, *flags, wait="ready", env=None):
        flags = list(map(str, flags))
        if not any(flag.startswith("--port") for flag in flags):
            flags.append("--port=0")
        self.process = subprocess.Popen([program, "serve", "--rest_api_port=-1", *flags],
                                        stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self.lines = []
        self.port = None
        self.grpc = None  # the address of gRPC
        self.found = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if wait:
            if not self.found.wait(60):
                self.kill()
                raise AssertionError(f"no start line: {self.lines}")
            if self.port is None:
                raise AssertionError(f"the server ended: {self.lines}")
        if wait == "ready":
            until(lambda: self.get("/readyz").status == 200, 60, "ready")

    @classmethod
    def of(cls, process, port):
        """A server that runs already, for requests."""
        server = cls.__new__(cls)
        server.process, server.port, server.lines = process, port, []
        return server

    def _read(self):
        for raw in self.process.stderr:
            line = raw.decode(errors="replace").rstrip("\n")
            self.lines.append(line)
            match = re.match(r"serving REST at http://.*:(\d+)$", line)
            if match:
                self.port = int(match[1])
                self.found.set()
            match = re.match(r"serving gRPC at (.*)$", line)
            if match:
                self.grpc = match[1]
        self.found.set()

    def log(self):
        return "\n".join(self.lines)

    def connect(self, timeout=30):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=30):
        connection = self.connect(timeout)
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            if isinstance(body, str):
                body = body.encode()
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            answer.text = answer.read()
            return answer
        finally:
            connection.close()

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def predict(self, model, instances, **options):
        return self.request("POST", f"/v1/models/{model}:predict", {"instances": instances}, **options)

    def states(self, model):
        """{version: state}"""
        answer = self.get(f"/v1/models/{model}")
        if answer.status != 200:
            return {}
        return {int(v["version"]): v["state"] for v in json.loads(answer.text)["model_version_status"]}

    def raw(self, data, timeout=10):
        """Sends bytes and returns everything until the server closes or is silent for 0.5 s."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as connection:
            connection.sendall(data)
            out = b""
            try:
                while True:
                    connection.settimeout(0.5 if out else timeout)
                    chunk = connection.recv(65536)
                    if not chunk:
                        return out, True
                    out += chunk
            except socket.timeout:
                return out, False
            except OSError:
                return out, True

    def metric(self, name):
        """The sum of all samples whose line begins with `name`."""
        text = self.get("/metrics").text.decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))

    def rss_kib(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1])

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=60):
        status = self.process.wait(timeout)
        self.reader.join(10)
        return status

    def stop(self):
        """Ends the server; it must exit with 0."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        status = self.wait()
        assert status == 0, f"exit status {status}:\n{self.log()[-3000:]}"

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.stop()
        else:
            self.kill()
            print("log of the server:\n" + self.log()[-3000:])


def until(condition, seconds, what):
    """Waits for a condition."""
    end = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except (AssertionError, OSError, http.client.HTTPException):
            pass  # as long as there is time, a wrong answer is not the last one
        assert time.monotonic() < end, f"not in {seconds} s: {what}"
        time.sleep(0.02)


def publish(model, base, version, name="model.keras"):
    """Puts a model file in place as a version, by a rename."""
    base = pathlib.Path(base)
    base.mkdir(parents=True, exist_ok=True)
    hidden = base / f".{version}.tmp"
    shutil.rmtree(hidden, ignore_errors=True)
    hidden.mkdir()
    shutil.copy(model, hidden / name)
    hidden.rename(base / str(version))
