"""What the programs of this folder share: run_NAME.py BIN WORK GROUP [TEST...] runs the functions
GROUP_sNNN_... of the program, each of which tests row S-NNN of the server's specification. BIN is
the folder of the programs, WORK a folder for files. Exits with 77 if all tests are skipped.

ctest runs fewer repetitions than the specification names. Environment variables set them:

    KEEL_SERVING_SWAPS=1000             S-034  swaps under load
    KEEL_SERVING_MEMORY_SWAPS=100       S-036  swaps between two readings of resident memory
    KEEL_SERVING_UNLOADS=100            S-037  versions unloaded while 8 threads predict
    KEEL_SERVING_KILLS=200              S-038  bytes at which a writer is killed
    KEEL_SERVING_TABLE_ROWS=16777216    S-050, S-056, S-058  a table of 1 GiB
    KEEL_SERVING_MUTATIONS=100000       S-079  mutated bodies
    KEEL_SERVING_REQUESTS=10000         S-151  requests of known outcome
    KEEL_SERVING_P99_RATIO=1.1          S-164  on a machine without other work
    KEEL_SERVING_BATCHING_US=5          S-182  on a machine without other work
    KEEL_SERVING_HEALTH_MS=10           S-165  on a machine without other work
    KEEL_SERVING_OVERLOAD_PERCENT=90    S-167  on a machine without other work
    KEEL_SERVING_REFUSAL_MS=10          S-167  on a machine without other work: p90 of a refusal
    KEEL_SERVING_REFUSED_REQUESTS=10000 S-151  requests of which many are refused or late
    KEEL_SERVING_BODY_MIB=64            S-162  size of bodies that need much memory
    KEEL_SERVING_HALF_REQUESTS=10000    S-166  clients that vanish
    KEEL_SERVING_BITS_ROWS=100000       S-184  rows, and KEEL_SERVING_EQUAL_SWAPS=100 swaps
    KEEL_SERVING_MODEL_MUTATIONS=100000 S-191  mutated model files
"""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import threading
import time
import traceback

from server import Server, publish

BIN, WORK = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[3]
KEEL, FILES = str(BIN / "keel"), WORK / "files"
ROW = {"user": [1], "x": [1.0]}
# Debian's Python, which has packages that another python3 of the PATH may lack.
SYSTEM_PYTHON = "/usr/bin/python3"


class Skipped(Exception):
    """A test that needs a program or a package that is not installed."""


def number(name, default):
    """A size that an environment variable changes."""
    return int(os.environ.get(name, default))


def sanitized():
    """True if the program has a sanitizer, which changes memory and speed."""
    return any(word in KEEL for word in ("asan", "tsan"))


def repeated(name, times):
    """A number of repetitions that an environment variable changes: fewer with a sanitizer."""
    return number(name, max(3, times // 6) if sanitized() else times)


def step(version):
    return FILES / f"step_{version}.keras"


def fresh(name):
    """An empty folder."""
    out = WORK / name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    return out


def folder(name, *versions):
    """A base path with versions of the step model."""
    base = fresh(name)
    for version in versions:
        publish(step(version), base, version)
    return base


def model_base(file, name="model.keras", version=1):
    """A base path with one version of any model file."""
    base = fresh(f"base_{pathlib.Path(file).stem}")
    publish(file, base, version, name)
    return base


def serve(base, *flags, poll=0.1, **options):
    return Server(KEEL, "--model_name=step", f"--model_base_path={base}",
                  f"--file_system_poll_wait_seconds={poll}", *flags, **options)


def serve_model(file, *flags, model="m", name="model.keras", **options):
    return Server(KEEL, f"--model_name={model}", f"--model_base_path={model_base(file, name)}",
                  "--file_system_poll_wait_seconds=0.1", *flags, **options)


def slow_base():
    return model_base(FILES / "slow.keras")


def shop_server():
    return serve_model(FILES / "shop.keras", "--rest_api_enable_cors_support", model="shop")


def config(name, text):
    path = WORK / f"{name}.config"
    path.write_text(text)
    return path


def run(*words, env=None):
    done = subprocess.run([KEEL, *map(str, words)], capture_output=True, text=True, timeout=300, env=env)
    return done.returncode, done.stdout, done.stderr


def refused(*words, names):
    status, _, err = run("serve", *words)
    assert status == 2, (words, status, err)
    assert len(err.splitlines()) == 1 and all(name in err for name in names), (words, err)


def value(answer):
    assert answer.status == 200, (answer.status, answer.text)
    return json.loads(answer.text)["predictions"][0]


def bits(numbers):
    return [struct.pack("<f", float(number)) for number in numbers]


def numbers_of(answer, key):
    """The texts of the numbers behind a key of a JSON answer."""
    assert answer.status == 200, (answer.status, answer.text[:500])
    return re.findall(r"[-\d.e+]+", answer.text.decode().split(f'"{key}"', 1)[1])


def slow_rows(rows):
    """As many rows of the slow model as take the same time: a sanitizer takes a hundred times longer."""
    return max(1, rows // 100) if sanitized() else rows


def rows_that_take(seconds, server):
    """As many rows as the slow model computes in about that time."""
    rows = 1
    while True:
        begin = time.monotonic()
        assert server.request("POST", "/v1/models/slow:predict", slow_body(rows)).status == 200
        took = time.monotonic() - begin
        if took > seconds / 4:
            return max(1, int(rows * seconds / took))
        rows *= 4


def slow_body(rows):
    return '{"instances": [' + ",".join(["0.5"] * rows) + "]}"


def age(path, seconds):
    past = time.time() - seconds
    os.utime(path, (past, past))


def break_version(base, version, seconds=3600, data=b"broken"):
    path = base / str(version)
    path.mkdir(exist_ok=True)
    (path / "model.keras").write_bytes(data)
    age(path / "model.keras", seconds)


def in_threads(count, body):
    """Runs body(i) in threads. The returned function waits and raises the first of their errors."""
    errors = []

    def guarded(i):
        try:
            body(i)
        except BaseException as error:  # noqa: BLE001, raised below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()

    def join():
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    return join


def main(functions):
    WORK.mkdir(parents=True, exist_ok=True)
    subprocess.run([str(BIN / "serving_fixtures"), str(FILES)], check=True)
    group, names = sys.argv[3], sys.argv[4:]
    tests = {name: body for name, body in functions.items() if name.startswith(group + "_s")}
    failed, skipped = [], 0
    for name, body in tests.items():
        if names and not any(part in name for part in names):
            continue
        begin = time.monotonic()
        try:
            body()
            print(f"ok {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        except Skipped as reason:
            skipped += 1
            print(f"skipped {name}: {reason}", flush=True)
        except Exception as error:  # noqa: BLE001, reported
            failed.append(name)
            traceback.print_exc()
            print(f"FAILED {name}: {error}", flush=True)
    sys.exit(1 if failed or not tests else 77 if skipped == len(tests) else 0)
