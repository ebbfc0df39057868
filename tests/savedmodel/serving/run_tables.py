#!/usr/bin/env python3
# Tests savedmodel/mapped/ and savedmodel/serving/models/table_promoter.cc on a running server.
"""run_tables.py BIN WORK GROUP [TEST...]: tests of models with large tables, as harness.py describes.

# group tables: tables that are read in place, copied, or moved to memory
# group bits: the same bits on all ways to a prediction
"""
import ctypes
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import time
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from harness import (BIN, FILES, KEEL, ROOT, SYSTEM_PYTHON, WORK, Skipped, bits, config, fresh, in_threads, main,
                     number, numbers_of, run, sanitized, serve_model, step, value)
from server import Server, publish, until

ROWS, ROW_BYTES = 1 << 17, 64
DATASET = "/model_weights/items/items/embeddings:0"


def table_file(rows=ROWS):
    """A model that looks up one row of a table of `rows` rows."""
    if rows == ROWS:
        return FILES / "table.keras"
    large = WORK / f"table_{rows}"
    if not (large / "table.keras").exists():
        large.mkdir(exist_ok=True)
        subprocess.run([str(BIN / "serving_fixtures"), str(large), str(rows)], check=True)
    return large / "table.keras"


def row_of(file, row):
    """A row of the table by `keel inspect`, which does not map files for this."""
    status, out, err = run("inspect", file, "--row", "items", row)
    assert status == 0, err
    return bits(out.split(" = ")[1].split())


def looked_up(server, row, model="m"):
    answer = server.predict(model, [[row]])
    assert answer.status == 200, answer.text
    return bits(numbers_of(answer, "predictions"))


def tables_bytes(server, kind, model="m"):
    return server.metric(f'keel_tables_bytes{{model="{model}",version="1",kind="{kind}"}}')


def mapping(server, file_part):
    """The sums of smaps, in KiB, of the mappings of files whose path contains a text; None: of no file."""
    sums, inside = {}, False
    for line in pathlib.Path(f"/proc/{server.process.pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            path = line.split(None, 5)[5] if len(line.split(None, 5)) > 5 else ""
            inside = file_part in path if file_part else not path.startswith("/")
        elif inside and line.endswith(" kB"):
            name, size, _ = line.split()
            sums[name[:-1]] = sums.get(name[:-1], 0) + int(size)
    return sums


def bytes_read(server):
    """Bytes that the process has read by system calls."""
    return int(re.search(r"rchar: (\d+)", pathlib.Path(f"/proc/{server.process.pid}/io").read_text())[1])


def tables_s050_s051_in_place():
    rows = number("KEEL_SERVING_TABLE_ROWS", ROWS)  # 1 << 24: 1 GiB
    files = [(table_file(rows), "model.keras")] + ([(FILES / "table.h5", "model.h5")] if rows == ROWS else [])
    with serve_model(step(1)) as server:
        without = bytes_read(server)  # by the program itself, and for its small files
    for file, name in files:
        size = rows * ROW_BYTES
        with serve_model(file, "--tables=mapped", name=name) as server:
            assert tables_bytes(server, "mapped") == size and tables_bytes(server, "copied") == 0
            read = bytes_read(server) - without
            assert read < size * 0.1, (read, size)
            table = mapping(server, "base_table")
            assert table["Size"] * 1024 >= size and table["Rss"] * 1024 < size * 0.1, table
            for row in (0, 1, 77, rows - 1):
                assert looked_up(server, row) == row_of(file, row), row
            print(f"{name}: {read} bytes read, {table['Rss']} KiB of {table['Size']} KiB resident")


def tables_s051_a_compressed_member_is_copied():
    deflated = WORK / "deflated.keras"
    with zipfile.ZipFile(FILES / "table.keras") as old, zipfile.ZipFile(deflated, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with serve_model(deflated) as server:
        assert tables_bytes(server, "mapped") == 0 and tables_bytes(server, "copied") >= ROWS * ROW_BYTES
        assert "the archive compresses it" in server.log(), server.log()
        for row in (0, 5, ROWS - 1):
            assert looked_up(server, row) == row_of(FILES / "table.keras", row)


# Writes the model of table.h5 with its table stored in another way: argv is source, target and the way.
REWRITE = """
import sys, h5py
source, target, way = sys.argv[1:]
name = "DATASET"
options = {"chunked": {"chunks": (1024, 16)}, "gzip": {"chunks": (1024, 16), "compression": "gzip"},
           "float16": {"dtype": "<f2"}, "float64": {"dtype": "<f8"}, "big_endian": {"dtype": ">f4"}}.get(way, {})
with h5py.File(source, "r") as old, h5py.File(target, "w") as new:
    if way == "odd":
        new.create_dataset("odd", data=b"x" * 3, dtype="S3").id.get_offset()
    for key, value in old.attrs.items():
        new.attrs[key] = value
    for key in old:
        old.copy(key, new)
    table = old[name][...]
    attributes = dict(new[name].attrs)
    del new[name]
    if way == "odd":
        new.create_dataset("odd2", data=table[:1].view("u1").reshape(-1)[:13])
    made = new.create_dataset(name, data=table, **options)
    for key, value in attributes.items():
        made.attrs[key] = value
    print(made.id.get_offset())
""".replace("DATASET", DATASET)


def tables_s052_other_storage_is_copied():
    if subprocess.run([SYSTEM_PYTHON, "-c", "import h5py"], capture_output=True).returncode:
        raise Skipped("no h5py")
    wanted = [row_of(FILES / "table.h5", row) for row in (0, 3, ROWS - 1)]
    for way, reason in (("chunked", "chunked"), ("gzip", "compressed"), ("float16", "float32"),
                        ("float64", "float32"), ("big_endian", "little-endian"), ("odd", "multiple")):
        file = WORK / f"{way}.h5"
        done = subprocess.run([SYSTEM_PYTHON, "-c", REWRITE, FILES / "table.h5", file, way], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        if way == "odd":
            assert int(done.stdout) % 4, f"the address {done.stdout} is even"
        with serve_model(file, "--tables=mapped", name="model.h5") as server:
            assert tables_bytes(server, "mapped") == 0 and tables_bytes(server, "copied") == ROWS * ROW_BYTES, way
            assert reason in server.log(), (way, server.log())
            found = [looked_up(server, row) for row in (0, 3, ROWS - 1)]
            if way == "float16":
                wanted16 = [[struct.pack("<f", *struct.unpack("<e", struct.pack("<e", *struct.unpack("<f", v))))
                             for v in row] for row in wanted]
                assert found == wanted16
            else:
                assert found == wanted, way


def tables_s053_files_that_end_early():
    """Each version claims more than its file has. The server answers with errors, never SIGBUS."""
    base = fresh("short")
    with Server(KEEL, "--model_name=m", f"--model_base_path={base}", "--file_system_poll_wait_seconds=0.1",
                "--max_num_load_retries=0", wait="line") as server:
        for version, (name, left) in enumerate((name, left) for name in ("table.keras", "table.h5")
                                               for left in (0.1, 0.5, 0.99)):
            data = (FILES / name).read_bytes()
            place = base / str(version + 1)
            place.mkdir()
            file = place / f"model{pathlib.Path(name).suffix}"
            file.write_bytes(data[:int(len(data) * left)])
            os.utime(file, (1, 1))
        until(lambda: list(server.states("m").values()) == ["END"] * 6, 30, "all versions end")
        for version in json.loads(server.get("/v1/models/m").text)["model_version_status"]:
            assert version["status"]["error_message"], version


def tables_s054_writers():
    """Python's zipfile and `unzip -t` read the archive; equal models make equal files."""
    with zipfile.ZipFile(FILES / "table.keras") as archive:
        assert archive.testzip() is None
        at = archive.getinfo("model.weights.h5")
    data = (FILES / "table.keras").read_bytes()
    names, extra = struct.unpack_from("<HH", data, at.header_offset + 26)
    assert at.compress_type == 0 and (at.header_offset + 30 + names + extra) % 4096 == 0
    if shutil.which("unzip"):
        assert subprocess.run(["unzip", "-tq", FILES / "table.keras"], capture_output=True).returncode == 0
    again = WORK / "again"
    subprocess.run([str(BIN / "serving_fixtures"), str(again)], check=True)
    for name in ("step_3.keras", "table.keras", "table.h5"):
        assert (again / name).read_bytes() == (FILES / name).read_bytes(), name
    # What a model of the same form adds to its table, which is too small to be aligned.
    few = WORK / "few_rows"
    few.mkdir(exist_ok=True)
    subprocess.run([str(BIN / "serving_fixtures"), str(few), "16"], check=True)
    more = (len(data) - ROWS * ROW_BYTES) - ((few / "table.keras").stat().st_size - 16 * ROW_BYTES)
    print(f"alignment adds {more} bytes")
    assert 0 <= more < 8192, more


def tables_s055_reference_models():
    """Models of Keras itself, each with its expected predictions; the log tells the bytes of each."""
    cases, base, entries = ROOT / "tests/cases/keras_models", fresh("reference"), []
    for file in sorted([*cases.glob("*.keras"), *cases.glob("*.h5")]):
        name = file.name.replace(".", "_")
        expected = cases / f"{file.stem}.expected.json"
        if file.name.endswith(".weights.h5") or not expected.exists() or "weights_only" in file.name:
            continue
        publish(file, base / name, 1, "model" + file.suffix)
        entries.append((name, file))
    assert len(entries) >= 5, entries
    text = "model_config_list {" + "".join(
        f'config {{ name: "{name}" base_path: "{base / name}" }}' for name, _ in entries) + "}"
    with Server(KEEL, f"--model_config_file={config('reference', text)}") as server:
        for name, file in entries:
            inputs = json.loads((cases / f"{file.stem}.inputs.json").read_text())["inputs"]
            expected = json.loads((cases / f"{file.stem}.expected.json").read_text())["outputs"]
            known = {i["name"]: i["datatype"] for i in json.loads(server.get(f"/v2/models/{name}").text)["inputs"]}
            assert len(known) == len(inputs), (name, known)
            # Files of old versions of Keras name inputs in their own way; their order is the same.
            names = [i["name"] if i["name"] in known else list(known)[at] for at, i in enumerate(inputs)]
            body = {"inputs": [{"name": n, "shape": i["shape"], "datatype": known[n], "data": i["data"]}
                               for n, i in zip(names, inputs)]}
            answer = server.request("POST", f"/v2/models/{name}/infer", body)
            assert answer.status == 200, (name, answer.text)
            outputs = json.loads(answer.text)["outputs"]
            for at, output in enumerate(expected):
                found = next((o for o in outputs if o["name"] == output["name"]), outputs[at])
                assert len(found["data"]) == len(output["data"]), name
                for a, b in zip(found["data"], output["data"]):
                    assert abs(a - b) <= 1e-5 + 1e-5 * abs(b), (name, a, b)
            line = next(line for line in server.lines if f"{name} version 1" in line and "AVAILABLE" in line)
            assert "mapped" in line and "copied" in line, line
    print(f"{len(entries)} files")


def tables_s056_promotion():
    """The same bits before, during and after tables are moved to memory, and unloading stops it."""
    rows = number("KEEL_SERVING_TABLE_ROWS", ROWS)
    file = table_file(rows)
    asked = [random.Random(3).randrange(rows) for _ in range(500)]
    with serve_model(file, "--tables=mapped") as server:
        wanted = numbers_of(server.predict("m", [[row] for row in asked]), "predictions")
    with serve_model(file, "--tables=auto") as server:
        seen = 0
        end = time.monotonic() + 600  # the thread gets a processor only when nothing else needs it
        while tables_bytes(server, "resident") < rows * ROW_BYTES:
            assert time.monotonic() < end, "the table is not promoted"
            assert numbers_of(server.predict("m", [[row] for row in asked]), "predictions") == wanted
            seen += 1
        assert tables_bytes(server, "mapped") == 0
        assert numbers_of(server.predict("m", [[row] for row in asked]), "predictions") == wanted
        print(f"{seen} answers while the table was moved")
        # Versions that come and go: each promotion ends with its version.
        base = WORK / "base_table"
        for version in range(2, 6):
            publish(file, base, version)
            until(lambda: server.states("m").get(version) == "AVAILABLE", 60, "the next version")
            until(lambda: server.states("m").get(version - 1) in (None, "END"), 60, "the end of the old one")


def tables_s056_too_little_memory():
    """The server sees a /proc/meminfo with less memory than the table needs: the table stays mapped."""
    meminfo, wrapper, base = WORK / "meminfo", WORK / "little_memory.sh", fresh("base_little")
    meminfo.write_text(f"MemTotal: 8000000 kB\nMemAvailable: {ROWS * ROW_BYTES // 1024 * 5 // 4 - 1} kB\n")
    wrapper.write_text(f'#!/bin/bash\nmount --bind "{meminfo}" /proc/meminfo && exec "{KEEL}" "$@"\n')
    wrapper.chmod(0o755)
    if subprocess.run(["unshare", "-m", "mount", "--bind", str(meminfo), "/proc/meminfo"], capture_output=True).returncode:
        raise Skipped("no permission to mount")
    inside = WORK / "inside.sh"
    inside.write_text(f'#!/bin/bash\nexec unshare -m "{wrapper}" "$@"\n')
    inside.chmod(0o755)
    publish(FILES / "table.keras", base, 1)
    size = ROWS * ROW_BYTES
    with Server(str(inside), "--model_name=m", f"--model_base_path={base}", "--tables=auto") as server:
        time.sleep(1)
        assert tables_bytes(server, "mapped") == size and tables_bytes(server, "resident") == 0
        assert looked_up(server, ROWS - 1) == row_of(FILES / "table.keras", ROWS - 1)


def tables_s057_mapped_and_resident():
    size = ROWS * ROW_BYTES
    with serve_model(FILES / "table.keras", "--tables=mapped") as server:
        value(server.predict("m", [[row] for row in range(0, ROWS, 16)]))
        time.sleep(1)
        assert tables_bytes(server, "mapped") == size and tables_bytes(server, "resident") == 0
        touched = mapping(server, "base_table")
        assert touched["Rss"] * 1024 > size * 0.9, touched  # the rows lie in the file's pages
        assert touched["Anonymous"] == 0, touched
        anonymous = mapping(server, None)["Anonymous"]
    with serve_model(FILES / "table.keras", "--tables=resident") as server:
        assert tables_bytes(server, "resident") == size and tables_bytes(server, "mapped") == 0
        value(server.predict("m", [[row] for row in range(0, ROWS, 16)]))
        table = mapping(server, "base_table")
        private = mapping(server, None)["Anonymous"] + table.get("Anonymous", 0)
        assert private * 1024 > anonymous * 1024 + size * 0.9 or sanitized(), (private, anonymous)
        # Its file may be truncated: nothing reads it any more.
        os.truncate(WORK / "base_table/1/model.keras", 100)
        assert looked_up(server, 5) == row_of(FILES / "table.keras", 5)


def tables_s058_two_servers_share_a_file():
    rows = number("KEEL_SERVING_TABLE_ROWS", ROWS)
    size, base = rows * ROW_BYTES, fresh("base_shared")
    publish(table_file(rows), base, 1)

    def start():
        return Server(KEEL, "--model_name=m", f"--model_base_path={base}", "--tables=mapped")

    def touch(server):
        value(server.predict("m", [[row] for row in range(0, rows, max(16, rows // 90000))]))

    def private(server):
        text = pathlib.Path(f"/proc/{server.process.pid}/smaps_rollup").read_text()
        return sum(int(kib) for kib in re.findall(r"Private_(?:Clean|Dirty): +(\d+)", text))

    with start() as one:
        touch(one)
        alone = private(one) - size // 1024  # the table is private as long as one process maps it
        with start() as two:
            touch(two)
            shared = sum(mapping(server, "base_shared")["Pss"] for server in (one, two))
            together = private(one) + private(two)
            print(f"one server: {alone} KiB; two: {together} KiB; the file: {shared} KiB of {size // 1024} KiB")
            if not sanitized():
                assert shared < size / 1024 * 1.1, "the file is in memory once"
                assert together < 2 * max(alone, 1) * 1.1 + 4096, (together, alone)
                if rows > ROWS:  # beside a small table the memory of the program itself counts
                    assert together + shared < 1.1 * (alone + size / 1024), (together, shared, alone)


def tables_s059_a_truncated_file():
    base = fresh("base_truncated")
    publish(FILES / "table.keras", base, 1)
    server = Server(KEEL, "--model_name=m", f"--model_base_path={base}", "--tables=mapped")
    assert looked_up(server, 0)
    os.truncate(base / "1/model.keras", 8192)
    try:
        answer = server.predict("m", [[ROWS - 1]])
        raise AssertionError(f"an answer from a truncated file: {answer.status} {answer.text}")
    except OSError:
        pass
    except Exception as error:  # noqa: BLE001, http.client has several for a closed connection
        assert not isinstance(error, AssertionError), error
    assert server.wait(10) == 1, server.log()
    assert "model.keras" in server.lines[-1], server.log()


# ---- the same bits

class Spec(ctypes.Structure):
    """keel_tensor of savedmodel/c_api.h."""
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("layout", ctypes.c_int), ("rank", ctypes.c_int),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p), ("data_size", ctypes.c_size_t),
                ("row_splits", ctypes.POINTER(ctypes.c_int64)), ("row_splits_count", ctypes.c_size_t),
                ("indices", ctypes.POINTER(ctypes.c_int64)), ("indices_count", ctypes.c_size_t)]


def by_c_interface(library, load, file, rows, workers):
    """The bits of the scores by libkeel_c."""
    def check(status):
        keel.keel_last_error.restype = ctypes.c_char_p
        assert status == 0, keel.keel_last_error()

    def numbers(values):
        return (ctypes.c_int64 * len(values))(*values)

    keel = ctypes.CDLL(str(library))
    model, result, output = ctypes.c_void_p(), ctypes.c_void_p(), Spec()
    check(keel.keel_set_num_workers(workers))
    check(getattr(keel, load)(str(file).encode(), ctypes.byref(model)))
    splits = splits_of(rows)
    ages = (ctypes.c_float * (2 * len(rows)))(*(v for row in rows for v in row["age"]))
    users = numbers([row["user"][0] for row in rows])
    seen = numbers([v for row in rows for v in row["seen"]])
    dims = [numbers([len(rows), 2]), numbers([len(rows), 1]), numbers([len(seen)])]
    kept = [ages, users, seen]

    def tensor(at, name, dtype, layout=0, **more):
        return Spec(name=name, dtype=dtype, layout=layout, rank=len(dims[at]), dims=dims[at],
                    data=ctypes.cast(kept[at], ctypes.c_void_p), data_size=ctypes.sizeof(kept[at]), **more)

    inputs = (Spec * 3)(tensor(0, b"age", 0), tensor(1, b"user", 3),
                        tensor(2, b"seen", 3, 1, row_splits=numbers(splits), row_splits_count=len(splits)))
    check(keel.keel_run(model, None, inputs, ctypes.c_size_t(3), ctypes.byref(result)))
    check(keel.keel_result_at(result, ctypes.c_size_t(0), ctypes.byref(output)))
    data = ctypes.string_at(output.data, output.data_size)
    keel.keel_result_free(result)
    keel.keel_model_free(model)
    return [data[i:i + 4] for i in range(0, len(data), 4)]


def splits_of(rows):
    out = [0]
    for row in rows:
        out.append(out[-1] + len(row["seen"]))
    return out


def v2_parts(rows):
    values = [v for row in rows for v in row["seen"]]
    splits = splits_of(rows)
    return [("age", [len(rows), 2], "FP32", [v for row in rows for v in row["age"]], "f"),
            ("user", [len(rows), 1], "INT64", [row["user"][0] for row in rows], "q"),
            ("seen.values", [len(values)], "INT64", values, "q"),
            ("seen.row_splits", [len(splits)], "INT64", splits, "q")]


def by_rows(server, rows):
    return bits(numbers_of(server.request("POST", "/v1/models/m:predict", {"instances": rows}), "predictions"))


def by_columns(server, rows):
    return bits(numbers_of(server.request("POST", "/v1/models/m:predict", {"inputs": {
        "age": [row["age"] for row in rows], "user": [row["user"] for row in rows],
        "seen": {"values": [v for row in rows for v in row["seen"]], "row_splits": splits_of(rows)}}}), "outputs"))


def by_infer(server, rows):
    body = {"inputs": [{"name": n, "shape": s, "datatype": d, "data": v} for n, s, d, v, _ in v2_parts(rows)]}
    return bits(numbers_of(server.request("POST", "/v2/models/m/infer", body), "data"))


def by_binary_infer(server, rows):
    parts = v2_parts(rows)
    tensors = [struct.pack(f"<{len(v)}{code}", *v) for *_, v, code in parts]
    head = json.dumps({"inputs": [
        {"name": n, "shape": s, "datatype": d, "parameters": {"binary_data_size": len(data)}}
        for (n, s, d, _, _), data in zip(parts, tensors)], "parameters": {"binary_data_output": True}}).encode()
    answer = server.request("POST", "/v2/models/m/infer", head + b"".join(tensors),
                            {"Inference-Header-Content-Length": str(len(head))})
    assert answer.status == 200, answer.text
    data = answer.text[int(answer.headers["Inference-Header-Content-Length"]):]
    return [data[i:i + 4] for i in range(0, len(data), 4)]


WAYS = {"v1 rows": by_rows, "v1 columns": by_columns, "v2 JSON": by_infer, "v2 binary": by_binary_infer}


def some_rows(count):
    rng = random.Random(7)
    return [{"age": [struct.unpack("f", struct.pack("f", rng.uniform(-2, 2)))[0] for _ in range(2)],
             "user": [rng.randrange(8)], "seen": [rng.randrange(10) for _ in range(rng.randrange(6))]}
            for _ in range(count)]


def predict_file(rows):
    parts = v2_parts(rows)
    file = WORK / "inputs.json"
    file.write_text(json.dumps({"inputs": [
        {"name": "age", "dtype": "float32", "shape": parts[0][1], "data": parts[0][3]},
        {"name": "user", "dtype": "int64", "shape": parts[1][1], "data": parts[1][3]},
        {"name": "seen", "dtype": "int64", "shape": parts[2][1], "row_splits": parts[3][3], "data": parts[2][3]}]}))
    return file


def bits_s184_s185_every_way_to_a_prediction():
    """keel predict, the C interface, Python, and each protocol, for batches of any size and place and 1 to 8 threads."""
    rows, file = some_rows(number("KEEL_SERVING_BITS_ROWS", 600)), FILES / "shop.keras"
    status, out, err = run("predict", file, predict_file(rows))
    assert status == 0, err
    wanted = bits(json.loads(out)["outputs"][0]["data"])
    assert len(wanted) == len(rows)
    library = BIN.parent / "lib/libkeel_c.so"
    if library.exists() and not sanitized():
        for load in ("keel_model_load", "keel_model_load_mapped"):
            for workers in (1, 3):
                assert by_c_interface(library, load, file, rows, workers) == wanted, (load, workers)
        script = ("import json, struct, sys, keel\nrows = json.load(sys.stdin)\n"
                  "with keel.load(sys.argv[1]) as model:\n"
                  "    out = model.predict({k: [r[k] for r in rows] for k in ('age', 'user', 'seen')})['score']\n"
                  "out = out.tolist() if hasattr(out, 'tolist') else out\n"
                  "print(json.dumps([row[0] for row in out]))\n")
        done = subprocess.run([sys.executable, "-c", script, file], input=json.dumps(rows), capture_output=True, text=True,
                              env={**os.environ, "KEEL_LIBRARY": str(library), "PYTHONPATH": str(ROOT / "python")})
        assert done.returncode == 0, done.stderr
        assert bits(json.loads(done.stdout)) == wanted, "the Python package"
    for threads in (1, 2, 3, 8):
        with serve_model(file, f"--rest_api_num_threads={threads}") as server:
            for name, ask in WAYS.items():
                assert ask(server, rows) == wanted, (name, threads)

            def some_batches(i):
                rng = random.Random(100 + i)
                for _ in range(number("KEEL_SERVING_BITS_BATCHES", 15)):
                    name, ask = rng.choice(list(WAYS.items()))
                    picked = [rng.randrange(len(rows)) for _ in range(rng.choice((1, 1, 2, 3, 7, 16, 33, 100)))]
                    assert ask(server, [rows[at] for at in picked]) == [wanted[at] for at in picked], (name, threads)

            in_threads(threads, some_batches)()


def bits_s184_mapped_resident_and_swaps():
    """The bits of a table do not depend on where it is, nor on swaps to equal files under load."""
    file, base = FILES / "table.keras", fresh("base_equal")
    asked = [[random.Random(5).randrange(ROWS)] for _ in range(300)]
    wanted = None
    for tables in ("mapped", "resident", "auto"):
        with serve_model(file, f"--tables={tables}") as server:
            found = numbers_of(server.predict("m", asked), "predictions")
            wanted = wanted or found
            assert found == wanted, tables
    publish(file, base, 1)
    with Server(KEEL, "--model_name=m", f"--model_base_path={base}", "--file_system_poll_wait_seconds=0.02") as server:
        versions, done = set(), []

        def load(_):
            while not done:
                answer = server.predict("m", asked)
                assert numbers_of(answer, "predictions") == wanted
                versions.add(answer.headers["Keel-Model-Version"])

        join = in_threads(2, load)
        for version in range(2, 2 + number("KEEL_SERVING_EQUAL_SWAPS", 20)):
            publish(file, base, version)
            until(lambda: server.states("m").get(version) == "AVAILABLE", 60, "the next version")
            shutil.rmtree(base / str(version - 1))
        done.append(True)
        join()
        assert len(versions) > 2, versions


main(globals())
