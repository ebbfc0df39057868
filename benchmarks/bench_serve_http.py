#!/usr/bin/env python3
"""bench_serve_http.py BIN [--seconds S]: measures `keel serve` over the loopback interface.

BIN is a folder with the programs keel and serving_fixtures. Load comes from wrk (Debian's package
wrk), which runs on another processor than the server if there are two. Figures:

- latency of one client, p50 and p99 as wrk sees them, and the server's own mean of computing alone;
- requests per second of one core: 1 / (processor time of the server per request), which does not
  depend on what else the machine does;
- memory of an idle connection, and time of a page of metrics;
- gRPC, in builds that have it: latency of one client written in C++ (serve_grpc_client), which also
  calls a method that computes nothing, so that the cost of client and transport shows.
"""
import argparse
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/savedmodel/serving"))
from server import Server, publish


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=5)
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    subprocess.run([arguments.bin / "serving_fixtures", folder / "files"], check=True)
    publish(folder / "files/step_1.keras", folder / "step", 1)
    row = json.dumps({"instances": [{"user": [1], "x": [0.5]}]}).encode()
    rows = json.dumps({"instances": [{"user": [i % 100], "x": [i / 7]} for i in range(256)]}).encode()
    head = json.dumps({"inputs": [
        {"name": "user", "shape": [1, 1], "datatype": "INT64", "parameters": {"binary_data_size": 8}},
        {"name": "x", "shape": [1, 1], "datatype": "FP32", "parameters": {"binary_data_size": 4}}],
        "parameters": {"binary_data_output": True}}).encode()
    binary = head + struct.pack("<qf", 1, 0.5)
    predict, infer = "/v1/models/step:predict", "/v2/models/step/infer"
    cases = [("JSON, 1 row", lua(folder, "row", row, {}), predict),
             ("v2 binary, 1 row", lua(folder, "binary", binary, {"Inference-Header-Content-Length": len(head)}), infer),
             ("JSON, 256 rows", lua(folder, "rows", rows, {}), predict)]
    client = arguments.bin / "serve_grpc_client"
    grpc_flags = ["--port=-1", "--grpc_max_threads=2"] if client.exists() else []
    with Server(str(arguments.bin / "keel"), "--model_name=step", f"--model_base_path={folder / 'step'}",
                "--rest_api_num_threads=1", "--log_level=error", *grpc_flags) as server:
        if os.cpu_count() > 1:
            os.system(f"taskset -apc 0 {server.process.pid} >/dev/null")
        for name, script, path in cases:
            load(server, script, path, 1, 1)
            for connections in (1, 32):
                result = load(server, script, path, connections, arguments.seconds)
                print(f"{name}, {connections} clients: " +
                      ", ".join(f"{key} {value:.1f}" for key, value in result.items()), flush=True)
        print(f"computing alone: predict {computing_us(server, 'predict'):.1f} us, "
              f"infer {computing_us(server, 'infer'):.1f} us")
        if grpc_flags:
            bench_grpc(server, client, folder, arguments.seconds)
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
    measure_batching(arguments.bin, folder, arguments.seconds)


main()
