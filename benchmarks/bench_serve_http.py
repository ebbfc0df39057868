#!/usr/bin/env python3
"""bench_serve_http.py BIN [--seconds S] [--tables_gib G] [--only PART...]: measures `keel serve` over
the loopback interface.

BIN is a folder with the programs keel and serving_fixtures. Load comes from wrk (Debian's package
wrk), which runs on another processor than the server if there are two. Figures:

- latency of one client, p50 and p99 as wrk sees them, the server's own mean of computing alone, and
  the client's cost: the same for a request that computes nothing;
- 256 rows of the recommender that train_ctr exports, over the time of computing alone;
- requests per second of 1 and 2 computing threads, for a model that computes for so long that the
  client does not matter;
- requests per second of one core: 1 / (processor time of the server per request), which does not
  depend on what else the machine does;
- memory of an idle connection, and time of a page of metrics with 20 models, and the p99 of
  predictions while it is read;
- gRPC, in builds that have it: latency of one client written in C++ (serve_grpc_client), which also
  calls a method that computes nothing, so that the cost of client and transport shows;
- with --tables_gib, a model with a table of G GiB: time from start and from publishing to the first
  answer, cold and warm; private memory during a swap; and p99.9 at half of the capacity, quiet,
  around a swap and during promotion, by serve_open_loop, which sends at a fixed rate.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/savedmodel/serving"))
from server import Server, publish, until


def lua(folder, name, body, headers):
    escaped = "".join(f"\\{byte:03d}" for byte in body)
    lines = ['wrk.method = "POST"', f'wrk.body = "{escaped}"']
    lines += [f'wrk.headers["{key}"] = "{value}"' for key, value in headers.items()]
    path = folder / f"{name}.lua"
    path.write_text("\n".join(lines) + "\n")
    return path


def ticks(server):
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def micros(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]


def load(server, script, path, connections, seconds, pinned=True):
    pin = ["taskset", "-c", "1"] if pinned and os.cpu_count() > 1 else []
    before, begin = ticks(server), requests(server)
    out = subprocess.run([*pin, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", script,
                          f"http://127.0.0.1:{server.port}{path}"], capture_output=True, text=True, check=True).stdout
    count, used = requests(server) - begin, ticks(server) - before
    assert "Non-2xx" not in out, out
    return {"p50 us": micros(re.search(r"(?m)^ +50% +(\S+)", out)[1]), "p99 us": micros(re.search(r"(?m)^ +99% +(\S+)", out)[1]),
            "requests/s": float(re.search(r"Requests/sec:\s+(\S+)", out)[1]),
            "processor us": used / count * 1e6, "requests/s and core": count / used}


def predict_request():
    """A PredictRequest of one row of the model `step`, as tensor_content."""
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data

    def tensor(dtype, data):
        shape = field(2, b"\x08\x01") * 2
        return bytes([0x08, dtype]) + field(2, shape) + field(4, data)

    def entry(name, value):
        return field(2, field(1, name) + field(2, value))

    return (field(1, field(1, b"step")) + entry(b"user", tensor(9, struct.pack("<q", 1))) +
            entry(b"x", tensor(1, struct.pack("<f", 0.5))))


def bench_grpc(server, program, folder, seconds):
    body = folder / "predict"
    body.write_bytes(predict_request())
    (folder / "empty").write_bytes(b"")
    for name, method, file in (
            ("gRPC Predict, 1 row", "/tensorflow.serving.PredictionService/Predict", body),
            ("gRPC ServerLive, which computes nothing", "/inference.GRPCInferenceService/ServerLive", folder / "empty")):
        pin = ["taskset", "-c", "1"] if os.cpu_count() > 1 else []
        before = ticks(server)
        out = subprocess.run([*pin, program, server.grpc, method, file, str(seconds)], capture_output=True, text=True,
                             check=True).stdout
        result = json.loads(out)
        calls = result["calls/s"] * seconds + 500  # with those that warm up
        result["processor us"] = (ticks(server) - before) / calls * 1e6
        print(f"{name}, 1 client: " + ", ".join(f"{key} {value:.1f}" for key, value in result.items()), flush=True)
    text = server.get("/metrics").text.decode()
    label = r'\{model_name="step",API="Predict",entrypoint="GRPC"\} (\S+)'
    total, count = (float(re.search(f"request_latency_{part}" + label, text)[1]) for part in ("sum", "count"))
    print(f"gRPC Predict, as the server sees it: {total / count:.1f} us, computing alone {computing_us(server, 'Predict'):.1f} us")


def requests(server):
    return server.metric('nv_inference_request_success{')


def computing_us(server, api):
    text = server.get("/metrics").text.decode()
    label = rf'\{{model_name="step",API="{api}",runtime="KEEL"\}} (\S+)'
    total = float(re.search(r"runtime_latency_sum" + label, text)[1])
    return total / float(re.search(r"runtime_latency_count" + label, text)[1])


def measure_batching(programs, folder, seconds):
    for model, row in (("step_1", {"user": [1], "x": [0.5]}), ("slow", 0.5)):
        base = folder / f"batching_{model}"
        publish(folder / f"files/{model}.keras", base, 1)
        script = lua(folder, model, json.dumps({"instances": [row]}).encode(), {})
        for flag in ("false", "true"):
            with Server(str(programs / "keel"), "--model_name=m", f"--model_base_path={base}",
                        "--log_level=error", f"--enable_batching={flag}") as server:
                path = "/v1/models/m:predict"
                load(server, script, path, 64, 1, pinned=False)
                before = server.metric("nv_inference_count{"), server.metric("nv_inference_exec_count{")
                result = load(server, script, path, 64, seconds, pinned=False)
                rows = server.metric("nv_inference_count{") - before[0]
                batches = server.metric("nv_inference_exec_count{") - before[1]
                print(f"{model}, 64 clients, batching {flag}: {result['requests/s']:.0f} requests/s, "
                      f"p99 {result['p99 us']:.0f} us, {rows / batches:.2f} rows a batch", flush=True)


def measure_rows(programs, folder, seconds):
    """256 rows of a recommender, over the plan's own time."""
    data = [folder / name for name in ("ranker.keras", "rows.csv")]
    subprocess.run([programs / "train_ctr", "--data", "synthetic", "--model", "dlrm", "--epochs", "1", "--export", data[0],
                    "--write_test_csv", data[1]], check=True, capture_output=True, cwd=folder)
    lines = data[1].read_text().splitlines()
    names, rows = lines[0].split(",")[1:], [line.split(",")[1:] for line in lines[1:257]]
    numbers = ("age", "price", "hour")
    values = [{n: float(v) if n in numbers else v for n, v in zip(names, row)} for row in rows]
    packed = [b"".join(struct.pack("<f", float(v)) if n in numbers else struct.pack("<I", len(v)) + v.encode() for v in column)
              for n, column in zip(names, zip(*rows))]
    head = json.dumps({"inputs": [{"name": n, "shape": [256], "datatype": "FP32" if n in numbers else "BYTES",
                                   "parameters": {"binary_data_size": len(p)}} for n, p in zip(names, packed)],
                       "parameters": {"binary_data_output": True}}).encode()
    cases = [("JSON", "predict", json.dumps({"instances": values}).encode(), {}, "/v1/models/step:predict"),
             ("v2 binary", "infer", head + b"".join(packed), {"Inference-Header-Content-Length": len(head)},
              "/v2/models/step/infer")]
    publish(data[0], folder / "ranker", 1)
    for name, api, body, headers, path in cases:
        with Server(str(programs / "keel"), "--model_name=step", f"--model_base_path={folder / 'ranker'}",
                    "--rest_api_num_threads=1", "--log_level=error") as server:
            pin(server)
            script = lua(folder, "ranker", body, headers)
            load(server, script, path, 1, 1)
            result, own = load(server, script, path, 1, seconds), computing_us(server, api)
            print(f"DLRM, {name}, 256 rows ({len(body)} bytes): p50 {result['p50 us']:.0f} us, processor {result['processor us']:.0f} us, "
                  f"computing alone {own:.0f} us; over it {result['processor us'] / own:.2f} (processor), "
                  f"{result['p50 us'] / own:.2f} (p50)", flush=True)


def pin(server):
    if os.cpu_count() > 1:
        os.system(f"taskset -apc 0 {server.process.pid} >/dev/null")


def measure_threads(programs, folder, seconds):
    """The throughput of two computing threads over that of one, 32 connections."""
    base = folder / "threads"
    publish(folder / "files/slow.keras", base, 1)
    script = lua(folder, "threads", json.dumps({"instances": [0.5] * 40}).encode(), {})
    rates = {1: [], 2: []}
    for _ in range(3):
        for threads in rates:
            with Server(str(programs / "keel"), "--model_name=m", f"--model_base_path={base}", "--log_level=error",
                        f"--rest_api_num_threads={threads}") as server:
                load(server, script, "/v1/models/m:predict", 32, 1, pinned=False)
                rates[threads].append(load(server, script, "/v1/models/m:predict", 32, seconds, pinned=False)["requests/s"])
    one, two = (statistics.median(rates[threads]) for threads in (1, 2))
    print(f"32 connections, 40 rows of the slow model: {one:.0f} requests/s with 1 thread, {two:.0f} with 2: {two / one:.2f}")


def measure_metrics(programs, folder, seconds):
    """The page of metrics of 20 models, and predictions while it is read once a second."""
    base, script = folder / "twenty", lua(folder, "twenty", b'{"instances": [{"user": [1], "x": [0.5]}]}', {})
    publish(folder / "files/step_1.keras", base, 1)
    config = folder / "twenty.config"
    config.write_text("model_config_list {" + "".join(
        f'config {{ name: "m{i}" base_path: "{base}" }}' for i in range(20)) + "}")
    with Server(str(programs / "keel"), f"--model_config_file={config}", "--rest_api_num_threads=1", "--log_level=error") as server:
        pin(server)
        for i in range(20):  # models without requests have fewer lines
            for path in ("predict", "regress"):
                server.request("POST", f"/v1/models/m{i}:{path}", {"instances": [{"user": [1], "x": [0.5]}]})
        times, quiet, beside, stop = [], [], [], threading.Event()
        for _ in range(100):
            begin = time.perf_counter()
            page = server.get("/metrics").text
            times.append((time.perf_counter() - begin) * 1e3)

        def scrape():
            while not stop.wait(1):
                server.get("/metrics")

        for _ in range(3):
            quiet.append(load(server, script, "/v1/models/m0:predict", 1, seconds)["p99 us"])
            stop.clear()
            thread = threading.Thread(target=scrape)
            thread.start()
            beside.append(load(server, script, "/v1/models/m0:predict", 1, seconds)["p99 us"])
            stop.set()
            thread.join()
        ratio = statistics.median(b / q for b, q in zip(beside, quiet))
        print(f"page of metrics, 20 models, {len(page)} bytes: {statistics.median(times):.2f} ms with the connection; "
              f"p99 of predictions while it is read every second over quiet p99: {ratio:.2f}")


def drop_from_page_cache(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def private_kib(server):
    text = pathlib.Path(f"/proc/{server.process.pid}/smaps_rollup").read_text()
    return sum(int(size) for size in re.findall(r"Private_Dirty:\s+(\d+)", text))


class TableModel:
    """Versions of a model with a large table, and servers of them."""

    def __init__(self, programs, folder, gib):
        self.programs, self.folder, self.base, self.rows = programs, folder, folder / "tables", (gib << 30) // 64
        subprocess.run([programs / "serving_fixtures", folder, str(self.rows)], check=True)
        self.versions = 0
        ids = random.Random(2)
        self.bodies = folder / "ids"
        self.bodies.write_text("\n".join(json.dumps({"instances": [[ids.randrange(self.rows)] for _ in range(32)]})
                                         for _ in range(2000)) + "\n")

    def link(self):
        """Publishes the next version: another name of the same file, moved into place."""
        self.versions += 1
        hidden = self.base / ".next"
        hidden.mkdir(parents=True)
        os.link(self.folder / "table.keras", hidden / "model.keras")
        hidden.rename(self.base / str(self.versions))
        if self.versions > 2:
            shutil.rmtree(self.base / str(self.versions - 2))

    def serve(self, tables, wait="line"):
        return Server(str(self.programs / "keel"), "--model_name=m", f"--model_base_path={self.base}", "--log_level=error",
                      "--rest_api_num_threads=1", "--file_system_poll_wait_seconds=0.02", f"--tables={tables}", wait=wait)

    def first_answer(self, server, begin, version):
        while True:
            try:
                answer = server.predict("m", [[self.rows // 3]])
                if answer.status == 200 and answer.headers["Keel-Model-Version"] == str(version):
                    return (time.perf_counter() - begin) * 1e3
            except OSError:
                pass

    def open_loop(self, server, rate, seconds):
        pinned = ["taskset", "-c", "1"] if os.cpu_count() > 1 else []
        return subprocess.Popen([*pinned, self.programs / "serve_open_loop", str(server.port), "/v1/models/m:predict", self.bodies,
                                 str(rate), str(seconds)], stdout=subprocess.PIPE, text=True)


def measure_first_answers(model):
    file, times = model.folder / "table.keras", {"cold": [], "warm": []}
    for state in ("cold", "warm", "cold", "warm", "cold", "warm"):
        if state == "cold":
            drop_from_page_cache(file)
        begin = time.perf_counter()
        with model.serve("mapped") as server:
            times[state].append(model.first_answer(server, begin, model.versions))
    print("start to the first answer: " + ", ".join(f"{statistics.median(t):.0f} ms {state}" for state, t in times.items()), flush=True)
    times, private = [], []
    with model.serve("mapped", wait="ready") as server:
        for _ in range(3):
            before, most, done = private_kib(server), [0], threading.Event()

            def watch():
                while not done.is_set():
                    most[0] = max(most[0], private_kib(server))
                    time.sleep(0.002)

            thread = threading.Thread(target=watch)
            thread.start()
            begin = time.perf_counter()
            model.link()
            times.append(model.first_answer(server, begin, model.versions))
            until(lambda: server.states("m").get(model.versions - 1) in (None, "END"), 60, "the end of the old version")
            done.set()
            thread.join()
            private.append(most[0] / before)
    print(f"publishing to the first answer of the new version: {statistics.median(times):.0f} ms (folders are read every 20 ms); "
          f"private memory during the swap over that before: {statistics.median(private):.2f}", flush=True)


def measure_tails(model, seconds):
    """p99.9 at half of the capacity: quiet, around a swap, and while tables are moved to memory."""
    def run(server, rate, action=None):
        client = model.open_loop(server, rate, seconds)
        if action:
            time.sleep(seconds / 2)
            action()
        result = json.loads(client.communicate()[0])
        assert result["failures"] == 0, result
        return result

    def median(results):
        return statistics.median(result["p99.9"] for result in results)

    with model.serve("mapped", wait="ready") as server:
        pin(server)
        json_body = model.bodies.read_text().splitlines()[0].encode()
        capacity = load(server, lua(model.folder, "ids", json_body, {}), "/v1/models/m:predict", 32, 3)["requests/s"]
        rate = capacity / 2
        run(server, rate)
        quiet, swap = [], []
        for _ in range(5):
            quiet.append(run(server, rate))
            swap.append(run(server, rate, model.link))
        print(f"{rate:.0f} requests/s of 32 rows, half of the capacity: p50 {quiet[0]['p50']:.0f} us; p99.9 quiet {median(quiet):.0f} us, "
              f"around a swap {median(swap):.0f} us: {median(swap) / median(quiet):.2f} (medians of 5 runs of {seconds} s)", flush=True)
    promotion = []
    with model.serve("auto", wait="ready") as server:
        pin(server)
        while server.metric('keel_tables_bytes{model="m"') and len(promotion) < 5:
            result = run(server, rate)
            if server.metric(f'keel_tables_bytes{{model="m",version="{model.versions}",kind="mapped"}}') == 0:
                break
            promotion.append(result)
    if promotion:
        print(f"while tables are moved to memory: p99.9 {median(promotion):.0f} us: {median(promotion) / median(quiet):.2f} of quiet")


def measure_requests(programs, folder, seconds):
    publish(folder / "files/step_1.keras", folder / "step", 1)
    row = json.dumps({"instances": [{"user": [1], "x": [0.5]}]}).encode()
    rows = json.dumps({"instances": [{"user": [i % 100], "x": [i / 7]} for i in range(256)]}).encode()
    head = json.dumps({"inputs": [
        {"name": "user", "shape": [1, 1], "datatype": "INT64", "parameters": {"binary_data_size": 8}},
        {"name": "x", "shape": [1, 1], "datatype": "FP32", "parameters": {"binary_data_size": 4}}],
        "parameters": {"binary_data_output": True}}).encode()
    binary = head + struct.pack("<qf", 1, 0.5)
    rows_head = head.replace(b"[1, 1]", b"[256, 1]").replace(b'_size": 8', b'_size": 2048').replace(b'_size": 4}', b'_size": 1024}')
    rows_data = struct.pack("<256q", *(i % 100 for i in range(256))) + struct.pack("<256f", *(i / 7 for i in range(256)))
    predict, infer = "/v1/models/step:predict", "/v2/models/step/infer"
    cases = [("JSON, 1 row", lua(folder, "row", row, {}), predict),
             ("v2 binary, 1 row", lua(folder, "binary", binary, {"Inference-Header-Content-Length": len(head)}), infer),
             ("JSON, 256 rows", lua(folder, "rows", rows, {}), predict),
             ("v2 binary, 256 rows", lua(folder, "binary_rows", rows_head + rows_data,
                                         {"Inference-Header-Content-Length": len(rows_head)}), infer)]
    client = programs / "serve_grpc_client"
    grpc_flags = ["--port=-1", "--grpc_max_threads=2"] if client.exists() else []
    with Server(str(programs / "keel"), "--model_name=step", f"--model_base_path={folder / 'step'}",
                "--rest_api_num_threads=1", "--log_level=error", *grpc_flags) as server:
        pin(server)
        out = subprocess.run([*(["taskset", "-c", "1"] if os.cpu_count() > 1 else []), "wrk", "-t1", "-c1", f"-d{seconds}s",
                              "--latency", f"http://127.0.0.1:{server.port}/healthz"], capture_output=True, text=True, check=True).stdout
        print("a request that computes nothing, 1 client: p50 {} us, p99 {} us".format(
            *(f"{micros(re.search(rf'(?m)^ +{part}% +(.+)$', out)[1].strip()):.0f}" for part in (50, 99))), flush=True)
        for name, script, path in cases:
            load(server, script, path, 1, 1)
            for connections in (1, 32):
                result = load(server, script, path, connections, seconds)
                print(f"{name}, {connections} clients: " +
                      ", ".join(f"{key} {value:.1f}" for key, value in result.items()), flush=True)
        print(f"computing alone: predict {computing_us(server, 'predict'):.1f} us, "
              f"infer {computing_us(server, 'infer'):.1f} us")
        if grpc_flags:
            bench_grpc(server, client, folder, seconds)
        count, before = 2000, server.rss_kib()
        idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(count)]
        time.sleep(1)
        print(f"memory of an idle connection: {(server.rss_kib() - before) * 1024 / count:.0f} bytes")
        begin = time.perf_counter()
        for _ in range(100):
            server.get("/metrics")
        print(f"page of metrics: {(time.perf_counter() - begin) * 10:.2f} ms with the connection")
        for connection in idle:
            connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=lambda folder: pathlib.Path(folder).resolve())
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--tables_gib", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=("requests", "rows", "threads", "metrics", "batching", "tables"))
    arguments = parser.parse_args()
    wanted = arguments.only or ("requests", "rows", "threads", "metrics", "batching", "tables")
    folder = pathlib.Path(tempfile.mkdtemp())
    subprocess.run([arguments.bin / "serving_fixtures", folder / "files"], check=True)
    parts = {"requests": measure_requests, "rows": measure_rows, "threads": measure_threads, "metrics": measure_metrics,
             "batching": measure_batching}
    try:
        for name, measure in parts.items():
            if name in wanted:
                measure(arguments.bin, folder, arguments.seconds)
        if arguments.tables_gib > 0 and "tables" in wanted:
            model = TableModel(arguments.bin, folder, arguments.tables_gib)
            model.link()
            measure_first_answers(model)
            measure_tails(model, max(arguments.seconds, 10))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
