#!/usr/bin/env python3
# Tests savedmodel/serving/models/, among them version_trial.cc, and savedmodel/serving/http/ against hostile files and clients.
"""run_hostile.py BIN WORK GROUP [TEST...]: files and requests made to do harm, as harness.py describes.

# group files: model files that must not load, or not crash the server
# group paths: requests that look for files, or for the bytes of other requests
"""
import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import threading
import time
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from harness import (FILES, KEEL, ROW, SYSTEM_PYTHON, WORK, folder, fresh, main, number, sanitized, serve,
                     step, value)
from server import Server, until

NO_RETRIES = "--max_num_load_retries=0"


def place(base, version, data, name="model.keras"):
    """A version whose file is old, so that a failure is final."""
    hidden = base / f".{version}.tmp"
    hidden.mkdir()
    (hidden / name).write_bytes(data)
    os.utime(hidden / name, (1, 1))
    hidden.rename(base / str(version))


def failure(server, version, model="step"):
    """The message of a version that has failed."""
    for status in json.loads(server.get(f"/v1/models/{model}").text)["model_version_status"]:
        if int(status["version"]) == version:
            return status["state"] == "END" and status["status"]["error_message"]
    return None


def edited(file, change):
    """The bytes of an archive after change(config)."""
    out = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "config.json":
                config = json.loads(data)
                change(config)
                data = json.dumps(config).encode()
            new.writestr(name, data)
    return out.getvalue()


def layer_of(config, name):
    return next(layer for layer in config["config"]["layers"] if layer["config"]["name"] == name)


def files_s066_models_without_a_signature():
    """A Sequential without an input, and a class of the user's own: they have no names for inputs."""
    def without_input(config):
        config["config"]["layers"] = [layer for layer in config["config"]["layers"] if layer["class_name"] != "InputLayer"]

    def subclassed(config):
        config.update({"module": "ranking.models", "class_name": "Ranker", "registered_name": "ranking>Ranker",
                       "config": {"units": 3}})

    base = folder("unsigned", 1)
    place(base, 2, edited(FILES / "plain.keras", without_input))
    place(base, 3, edited(step(1), subclassed))
    with serve(base, NO_RETRIES) as server:
        until(lambda: failure(server, 2) and failure(server, 3), 20, "the failures")
        print(failure(server, 2), failure(server, 3), sep="\n")
        assert "InputLayer" in failure(server, 2) and "2/model.keras" in failure(server, 2)
        assert "Ranker" in failure(server, 3)
        assert value(server.predict("step", [ROW])) == [1.0, 1.0]


def mutated(rng, data):
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(out))
        kind = rng.randrange(5)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at:at + 8] = rng.choice((b"\xff" * 8, b"\0" * 8, b"\0\0\0\0\0\0\0\x7f", b"\x01" * 8))
        elif kind == 2:
            out[at:at + rng.randrange(1, 64)] = b""
        elif kind == 3:
            out[at:at] = rng.randbytes(rng.randrange(1, 16))
        else:
            to = rng.randrange(len(out))
            out[at:at + 16] = out[to:to + 16]
        if len(out) < 8:
            return bytes(out)
    return bytes(out)


def mutated_archive(rng, file):
    """Mutates a member and packs it again, so that checksums hold and the reader behind them is reached."""
    out = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, mutated(rng, data) if name == chosen else data)
    return out.getvalue()


def files_s191_mutated_models():
    """Each becomes a version or an error. Memory is bounded, and the good model goes on answering."""
    count, batch = number("KEEL_SERVING_MODEL_MUTATIONS", 300), 100
    rng = random.Random(number("KEEL_SERVING_SEED", 1))
    good, base = folder("good", 1), fresh("mutated")
    subprocess.run([KEEL, "convert", step(2), WORK / "step.h5"], check=True, capture_output=True)
    h5 = (WORK / "step.h5").read_bytes()
    text = ('model_config_list { config { name: "step" base_path: "%s" } config { name: "bad" base_path: "%s" '
            "model_version_policy { all {} } } }" % (good, base))
    (WORK / "mutated.config").write_text(text)
    ends, loads = 0, 0
    # Without trials in other processes, all of them are loaded in this one.
    with Server(KEEL, f"--model_config_file={WORK / 'mutated.config'}", "--file_system_poll_wait_seconds=0.05", NO_RETRIES,
                "--load_trial_seconds=0", "--log_level=error", wait="line") as server:
        for first in range(1, count + 1, batch):
            versions = range(first, min(first + batch, count + 1))
            for version in versions:
                kind = rng.randrange(3)
                if kind == 0:
                    place(base, version, mutated(rng, h5), "model.h5")
                else:
                    place(base, version, mutated_archive(rng, step(3)) if kind == 1 else mutated(rng, step(3).read_bytes()))
            total = lambda result: server.metric(f'keel_model_loads_total{{model="bad",result="{result}"}}')  # noqa: E731
            until(lambda: total("ok") + total("failed") >= versions[-1], 300, f"{versions[-1]} loads")
            ends, loads = total("failed"), total("ok")
            assert value(server.predict("step", [ROW])) == [1.0, 1.0]
            for version in versions:
                shutil.rmtree(base / str(version))
            until(lambda: not {"AVAILABLE", "LOADING"} & set(server.states("bad").values())
                  or list(server.states("bad").values()).count("AVAILABLE") <= 1, 60, "the versions are unloaded")
        peak = int(pathlib.Path(f"/proc/{server.process.pid}/status").read_text().split("VmHWM:")[1].split()[0])
        print(f"{count} files: {ends:.0f} failed, {loads:.0f} loaded, peak {peak} KiB")
        assert peak < 2 << 20


# Opening a file of version 7 crashes a process, and opening one of version 8 takes for ever.
CRASH = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void look(const char* path) {
  if (strstr(path, "/7/model") != NULL) abort();
  while (strstr(path, "/8/model") != NULL) sleep(1);
}
#define WRAP_FOPEN(name) \
  FILE* name(const char* path, const char* mode) { \
    look(path); \
    return ((FILE * (*)(const char*, const char*)) dlsym(RTLD_NEXT, #name))(path, mode); \
  }
#define WRAP_OPEN(name) \
  int name(const char* path, int flags, int mode) { \
    look(path); \
    return ((int (*)(const char*, int, int))dlsym(RTLD_NEXT, #name))(path, flags, mode); \
  }
WRAP_FOPEN(fopen)
WRAP_FOPEN(fopen64)
WRAP_OPEN(open)
WRAP_OPEN(open64)
"""


def files_s192_versions_that_crash():
    """A version that crashes its loader, or keeps it, ends in another process; the good one goes on answering."""
    if sanitized():
        return  # their runtime must be loaded before other libraries
    library = WORK / "crash.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", library, "-ldl"], input=CRASH.encode(), check=True)
    base = folder("crashing", 1)
    env = dict(os.environ, LD_PRELOAD=str(library))
    with serve(base, NO_RETRIES, "--load_trial_seconds=3", env=env) as server:
        for version, reason in ((7, "ended the process with signal 6, Aborted"), (8, "took more than 3 s")):
            place(base, version, step(2).read_bytes())
            until(lambda: failure(server, version), 60, f"version {version} ends")
            message = failure(server, version)
            assert reason in message, message
            assert value(server.predict("step", [ROW])) == [1.0, 1.0]
            shutil.rmtree(base / str(version))
        place(base, 9, step(2).read_bytes())
        until(lambda: value(server.predict("step", [ROW])) == [2.0, 2.0], 60, "a good version follows")
        children = pathlib.Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
        assert children == "", children


# Writes a model of Keras's HDF5 format whose table lies outside the file: argv is source, target and the way.
OUTSIDE = """
import sys, os, h5py, numpy
source, target, way, secret = sys.argv[1:]
name = "/model_weights/items/items/embeddings:0"
with h5py.File(source, "r") as old, h5py.File(target, "w") as new:
    for key, value in old.attrs.items():
        new.attrs[key] = value
    for key in old:
        old.copy(key, new)
    shape = old[name].shape
    del new[name]
    if way == "external_link":
        with h5py.File(secret + ".h5", "w") as other:
            other.create_dataset("table", data=numpy.ones(shape, "f4"))
        new[name] = h5py.ExternalLink(secret + ".h5", "/table")
    elif way == "external_dataset":
        with open(secret, "wb") as other:
            other.write(bytes(shape[0] * shape[1] * 4))
        new.create_dataset(name, shape, "f4", external=[(secret, 0, h5py.h5f.UNLIMITED)])
    elif way == "virtual_dataset":
        with h5py.File(secret + ".h5", "w") as other:
            other.create_dataset("table", data=numpy.ones(shape, "f4"))
        layout = h5py.VirtualLayout(shape=shape, dtype="f4")
        layout[...] = h5py.VirtualSource(secret + ".h5", "table", shape=shape)
        new.create_virtual_dataset(name, layout)
"""


def files_s194_code_and_links():
    """Files that would run code or read other files do not load, and the code does not run."""
    marker = WORK / "ran"
    code = f"open({str(marker)!r}, 'w')"
    pickle = b"cos\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR."

    def lambda_layer(config):
        layer_of(config, "flat").update({"module": "keras.layers", "class_name": "Lambda", "config": {
            "name": "flat", "function": {"class_name": "__lambda__", "config": {"code": "4wEAAAA=", "defaults": None,
                                                                                 "closure": None}}}})

    def own_function(config):
        layer_of(config, "product")["config"]["activation"] = {
            "module": "os", "class_name": "function", "config": "system", "registered_name": "system"}

    def python_object(config):
        layer_of(config, "product").update({"module": "builtins", "class_name": "eval", "registered_name": None,
                                            "config": {"name": "product", "source": code}})

    def with_pickle():
        out = io.BytesIO()
        with zipfile.ZipFile(step(1)) as old, zipfile.ZipFile(out, "w") as new:
            for name in old.namelist():
                new.writestr(name, pickle if name == "model.weights.h5" else old.read(name))
        return out.getvalue()

    base = fresh("code")
    wanted = {}
    for version, (data, text) in enumerate((
            (edited(step(1), lambda_layer), "Lambda"), (edited(step(1), own_function), "system"),
            (edited(step(1), python_object), "eval"), (with_pickle(), "model.weights.h5"), (pickle, "model.keras"))):
        place(base, version + 1, data)
        wanted[version + 1] = text
    h5py = subprocess.run([SYSTEM_PYTHON, "-c", "import h5py"], capture_output=True).returncode == 0
    for way in ("external_link", "external_dataset", "virtual_dataset") if h5py else ():
        target, secret = WORK / f"{way}.h5", WORK / f"secret_{way}"
        done = subprocess.run([SYSTEM_PYTHON, "-c", OUTSIDE, FILES / "table.h5", target, way, secret],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        version = len(wanted) + 1
        place(base, version, target.read_bytes(), "model.h5")
        wanted[version] = {"external_link": "link", "external_dataset": "another file", "virtual_dataset": ""}[way]
    with serve(base, NO_RETRIES, wait="line") as server:
        until(lambda: set(server.states("step").values()) == {"END"} and len(server.states("step")) == len(wanted), 30,
              "all fail")
        for version, text in wanted.items():
            print(version, failure(server, version))
            assert text in failure(server, version), (version, failure(server, version))
    assert not marker.exists()
    if not h5py:
        print("without h5py: links and datasets in other files were not tried")


def paths_s190_traversal():
    """No name, version or label opens a file: strace sees the files that all threads open."""
    base = folder("paths", 1)
    secret = WORK / "secret.txt"
    secret.write_text("secret")
    trace = WORK / "opened.txt"
    server, traced = None, bool(shutil.which("strace"))
    if traced:
        wrapper = WORK / "traced.sh"
        wrapper.write_text(f'#!/bin/bash\nexec strace -f -qq -e trace=%file -o "{trace}" "{KEEL}" "$@"\n')
        wrapper.chmod(0o755)
        works = subprocess.run(["strace", "-qq", "-e", "trace=none", "true"], capture_output=True).returncode == 0
        traced = works and not sanitized()
    flags = ["--model_name=step", f"--model_base_path={base}", "--file_system_poll_wait_seconds=0"]
    server = Server(str(wrapper) if traced else KEEL, *flags)
    before = len(trace.read_text().splitlines()) if traced else 0
    up = "../" * 12
    names = [f"{up}etc/passwd", "..", ".", f"..%2f{secret.name}", "%2e%2e%2f" * 12 + "etc%2fpasswd", "step%2f..%2f..",
             "/etc/passwd", str(secret), "%00", "step%00", "%252e%252e%252fetc", "..\\..\\etc\\passwd", "~root", "$HOME",
             "file:%2f%2f%2fetc%2fpasswd"]
    body = {"instances": [ROW]}
    asked = 0
    for name in names:
        for path in (f"/v1/models/{name}", f"/v1/models/{name}/metadata", f"/v1/models/step/versions/{name}",
                     f"/v1/models/step/labels/{name}", f"/v2/models/{name}", f"/v2/models/step/versions/{name}",
                     f"/v2/models/{name}/ready", f"/{name}", f"/metrics/{name}"):
            answer = server.request("GET", path)
            assert answer.status in (400, 404), (path, answer.text)
            assert b"root:" not in answer.text and b"secret" != answer.text, (path, answer.text)
            asked += 1
        for path in (f"/v1/models/{name}:predict", f"/v1/models/step/labels/{name}:predict", f"/v2/models/{name}/infer",
                     f"/v2/repository/models/{name}/load"):
            assert server.request("POST", path, body).status in (400, 404), path
        assert server.request("POST", "/v1/models/step:predict", {"signature_name": name, **body}).status == 400
    assert value(server.predict("step", [ROW])) == [1.0, 1.0]
    if traced:
        time.sleep(0.2)
        opened = trace.read_text().splitlines()[before:]
        assert not opened, opened[:5]
        children = pathlib.Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
        os.kill(int(children[0]), 15)
        assert server.wait(30) == 0
    else:
        server.stop()
    print(f"{asked} paths, " + ("traced" if traced else "not traced"))


def paths_s193_no_bytes_of_other_requests():
    """Requests with a pattern, then shorter ones on the same and on other connections: no answer has the pattern."""
    pattern, stop = "KEELPATTERN", threading.Event()
    long_body = json.dumps({"instances": [ROW] * 200, "other": pattern * 5000})
    with serve(folder("residue", 1), "--rest_api_num_threads=2") as server:
        def write(_):
            connection = server.connect()
            while not stop.is_set():
                connection.request("POST", "/v1/models/step:predict", long_body, {"X-Other": pattern})
                connection.getresponse().read()

        threads = [threading.Thread(target=write, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        rng, tried = random.Random(4), 0
        bodies = [b"", b"{", b"{}", b'{"instances": [', b'{"instances": []}', json.dumps({"instances": [ROW]}).encode(),
                  b'{"instances": [{"user": [100], "x": [1]}]}', b'{"signature_name": "\xff"}', b"\xff" * 9]
        try:
            for i in range(number("KEEL_SERVING_RESIDUE_REQUESTS", 600)):
                body = rng.choice(bodies)
                path = rng.choice(("/v1/models/step:predict", "/v2/models/step/infer", "/v1/models/step:regress"))
                mine = [server.request("POST", path, long_body)] if i % 5 == 0 else []
                answer = server.request("POST", path, body)
                assert pattern.encode() not in answer.text and pattern not in str(answer.headers), answer.text
                # A length that the body does not have, and an odd header of binary tensors.
                for head in (f"Content-Length: {len(body) + 50}",
                             f"Content-Length: {len(body)}\r\nInference-Header-Content-Length: 40"):
                    if i % 20 == 0:
                        whole = f"POST {path} HTTP/1.1\r\nHost: x\r\n{head}\r\nConnection: close\r\n\r\n".encode()
                        out, _ = server.raw(whole + body + (b"" if "Inference" in head else b" " * 50))
                        assert pattern.encode() not in out, out
                tried += 1 + len(mine)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        metrics, log = server.get("/metrics").text.decode(), server.log()
        assert pattern not in metrics and pattern not in log
        print(f"{tried} answers")


main(globals())
