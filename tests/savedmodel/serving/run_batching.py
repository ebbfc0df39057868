#!/usr/bin/env python3
# Tests savedmodel/serving/models/batch_scheduler.cc, savedmodel/serving/models/batch_rows.cc and
# savedmodel/serving/protocol/execution.cc in a running server.
"""run_batching.py BIN WORK GROUP [TEST...]: tests of batching and overload of `keel serve`.

# group batching: joined requests
# group load: overload, the log and refused requests
"""
import json
import os
import pathlib
import random
import re
import subprocess
import struct
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from harness import FILES, KEEL, WORK, config, fresh, in_threads, main, number, sanitized, serve_model, slow_rows, step
from server import Server, publish, until

PREDICT = "/v1/models/m:predict"


def serve(file, *flags, batching=None):
    """A server of the model of a file, with these batching parameters."""
    if batching is not None:
        text = " ".join(f"{name} {{ value: {value} }}" for name, value in batching.items())
        flags += ("--enable_batching", f"--batching_parameters_file={config('batching', text)}")
    return serve_model(FILES / file, *flags)


def slow_body(rows, value=0.5):
    return json.dumps({"instances": [value] * rows})


class Client:
    """A connection that is kept alive."""

    def __init__(self, server):
        self.connection = server.connect()

    def post(self, body, path=PREDICT, headers=None):
        self.connection.request("POST", path, body, headers or {})
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def close(self):
        self.connection.close()


def floats(text):
    """The bits of all numbers of an answer."""
    return [struct.pack("<f", float(number)) for number in re.findall(rb"-?\d+\.\d+(?:e-?\d+)?", text)]


def samples(server, name):
    """{labels: value} of a family of metrics."""
    text = server.get("/metrics").text.decode()
    return {labels: float(number) for labels, number in
            re.findall(rf"(?m)^{re.escape(name)}(\{{.*\}})? (\S+)$", text)}


# ---- batching

def batching_s180_requests_are_joined():
    requests, clients, rows = 6 if sanitized() else 30, 16, 20
    limits = {"max_batch_size": 8 * rows, "num_batch_threads": 1}
    with serve("slow.keras", batching=limits) as server:
        expected = {}
        for i in range(clients):
            status, text = Client(server).post(slow_body(rows, i / 7))
            assert status == 200
            expected[i] = text
        before = server.metric("nv_inference_exec_count")

        def load(i):
            client = Client(server)
            for _ in range(requests):
                assert client.post(slow_body(rows, i / 7)) == (200, expected[i])

        in_threads(clients, load)()
        executions = server.metric("nv_inference_exec_count") - before
        assert executions < requests * clients / 2, executions
        assert server.metric("nv_inference_count") == (requests + 1) * clients * rows
        batches = samples(server, "keel_batch_rows_bucket")
        total = batches['{model="m",le="+Inf"}']
        assert batches['{model="m",le="256"}'] == total == server.metric("nv_inference_exec_count"), batches
        assert batches['{model="m",le="32"}'] < total, "some batches have several requests"
        assert samples(server, "keel_batch_queue_rows") == {'{model="m"}': 0}
        print(f"{requests * clients} requests in {executions:.0f} batches")


def batching_s180_versions_are_not_joined():
    base = fresh("versions")
    for version in (1, 2):
        publish(step(version), base, version)
    path = config("versions", f'model_config_list {{ config {{ name: "m" base_path: "{base}" '
                              "model_version_policy { all {} } } }")
    with Server(KEEL, f"--model_config_file={path}", "--enable_batching") as server:
        until(lambda: all(server.get(f"/v2/models/m/versions/{v}/ready").status == 200 for v in (1, 2)), 20,
              "both versions are there")

        def load(i):
            client, version = Client(server), i % 2 + 1
            body = json.dumps({"instances": [{"user": [1], "x": [1.0]}] * 50})
            for _ in range(50):
                status, text = client.post(body, f"/v1/models/m/versions/{version}:predict")
                assert status == 200, text
                assert json.loads(text)["predictions"] == [[float(version)] * 2] * 50

        in_threads(8, load)()


def batching_s181_one_bad_id():
    with serve("shop.keras", batching={"num_batch_threads": 1}) as server:
        good = {"age": [1.5, 2.0], "user": [3], "seen": [1, 2]}
        expected = Client(server).post(json.dumps({"instances": [good]}))

        def load(i):
            client = Client(server)
            for request in range(100):
                if i == 0:
                    status, text = client.post(json.dumps({"instances": [{**good, "user": [8]}]}))
                    assert status == 400 and b"8" in text, text
                else:
                    assert client.post(json.dumps({"instances": [good]})) == expected, request

        in_threads(8, load)()
        assert server.metric("keel_ids_rejected_total") == 100


def batching_s181_the_queue_is_full():
    limits = {"max_batch_size": 1, "num_batch_threads": 1, "max_enqueued_batches": 1}
    with serve("slow.keras", batching=limits) as server:
        counts = {200: 0, 503: 0}

        def load(_):
            client = Client(server)
            for _ in range(50):
                status, text = client.post(slow_body(1))
                counts[status] += 1
                if status == 503:
                    assert json.loads(text) == {"error": "The batch scheduling queue to which this task was "
                                                         "submitted is full"}

        in_threads(8, load)()
        least = 2 if sanitized() else 50  # a slow model serves fewer
        assert counts[200] >= least and counts[503] > 0 and sum(counts.values()) == 400, counts
        assert server.metric('keel_rejected_total{reason="queue"}') == counts[503]


def batching_s181_large_requests():
    with serve("slow.keras") as server:
        expected = Client(server).post(slow_body(100))
    with serve("slow.keras", batching={"max_batch_size": 32}) as server:
        before = server.metric("nv_inference_exec_count")
        assert Client(server).post(slow_body(100)) == expected
        assert server.metric("nv_inference_exec_count") - before == 4
    limits = {"max_batch_size": 32, "enable_large_batch_splitting": "false"}
    with serve("slow.keras", batching=limits) as server:
        assert Client(server).post(slow_body(32))[0] == 200
        status, text = Client(server).post(slow_body(33))
        assert status == 400 and b"32" in text and b"33" in text, text


def batching_s163_late_requests_are_not_computed():
    limits = {"max_batch_size": 4, "num_batch_threads": 1}
    with serve("slow.keras", "--rest_api_timeout_in_ms=400", "--max_rows_per_request=1000000",
               batching=limits) as server:
        statuses = []
        many = slow_rows(60000)
        join = in_threads(1, lambda _: statuses.append(Client(server).post(slow_body(many))[0]))
        until(lambda: server.metric("keel_pending_requests") == 1, 20, "the long request is there")
        in_threads(7, lambda _: statuses.append(Client(server).post(slow_body(1))[0]))()
        join()
        assert 504 in statuses, statuses
        until(lambda: server.metric("keel_pending_requests") == 0, 60, "all have ended")
        rows = server.metric("nv_inference_count")
        assert rows == many + statuses.count(200), (rows, statuses)
        assert samples(server, "keel_batch_queue_rows") == {'{model="m"}': 0}
        assert Client(server).post(slow_body(1))[0] == 200


def batching_s182_a_single_client():
    """Both answer alike. The times are compared only on request, because tests share the processors."""
    body, rounds, requests = json.dumps({"instances": [{"user": [1], "x": [0.5]}]}), 15, 400
    medians = {False: [], True: []}
    with serve("step_1.keras") as off, serve("step_1.keras", batching={}) as on:
        clients = {False: Client(off), True: Client(on)}
        assert clients[True].post(body) == clients[False].post(body)
        for _ in range(rounds):
            for batching, client in clients.items():
                times = []
                for _ in range(requests):
                    begin = time.perf_counter_ns()
                    client.post(body)
                    times.append(time.perf_counter_ns() - begin)
                medians[batching].append(sorted(times)[requests // 2])
    difference = (min(medians[True]) - min(medians[False])) / 1e3
    print(f"median {min(medians[False]) / 1e3:.1f} us, with batching {difference:+.1f} us")
    limit = number("KEEL_SERVING_BATCHING_US", 0)
    assert limit == 0 or difference < limit, difference


def batching_s184_same_bits():
    rng = random.Random(7)

    def row():
        return {"age": [rng.uniform(-9, 9), rng.gauss(0, 1)], "user": [rng.randrange(8)],
                "seen": [rng.randrange(10) for _ in range(rng.randrange(6))]}

    bodies = [json.dumps({"instances": [row() for _ in range(rng.randrange(1, 9))]}) for _ in range(300)]
    with serve("shop.keras", "--rest_api_num_threads=1") as server:
        client = Client(server)
        expected = [floats(client.post(body)[1]) for body in bodies]
    assert all(expected)
    for limits in ({"num_batch_threads": 1}, {"max_batch_size": 3, "num_batch_threads": 2},
                   {"batch_timeout_micros": 2000, "max_batch_size": 64}):
        with serve("shop.keras", batching={**limits, "max_enqueued_batches": 100}) as server:
            def load(i):
                client = Client(server)
                for place in range(i, len(bodies), 2):
                    status, text = client.post(bodies[place])
                    assert status == 200 and floats(text) == expected[place], (place, text)

            in_threads(12, lambda i: load(i % 2))()


def batching_s011_begun_requests_finish():
    server = serve("slow.keras", batching={"num_batch_threads": 1, "max_batch_size": 2000, "max_enqueued_batches": 30})
    answers = []
    join = in_threads(24, lambda i: answers.append(Client(server).post(slow_body(slow_rows(2000)))[0]))
    until(lambda: server.metric("keel_pending_requests") >= 12, 20, "requests are pending")
    server.stop()
    join()
    assert answers == [200] * 24, answers


def batching_s183_unknown_fields():
    base = fresh("wrong")
    for text, name in (("colour { value: 1 }", "colour"), ("max_batch_size { value: -1 }", "max_batch_size"),
                       ("max_batch_size { value: 4 } allowed_batch_sizes: 3", "allowed_batch_sizes"),
                       ("max_batch_size: 4", "line 1, column 17")):
        path = config("wrong", text)
        done = subprocess.run([KEEL, "serve", f"--model_base_path={base}", "--enable_batching",
                               f"--batching_parameters_file={path}"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and name in done.stderr, (text, done.stderr)


# ---- load

def load_s167_overload():
    """Twice the requests that may be pending: full throughput, and the rest is refused at once."""
    flags = ("--max_pending_requests=8", "--rest_api_num_threads=2")
    body = slow_body(20)

    def measure(server, clients, seconds):
        counts, slowest, end = {200: 0, 429: 0}, [0.0], time.monotonic() + seconds

        def load(_):
            client = Client(server)
            while time.monotonic() < end:
                begin = time.monotonic()
                status, _ = client.post(body)
                counts[status] += 1
                if status == 429:
                    slowest.append(time.monotonic() - begin)
                    time.sleep(0.02)  # a client that is refused tries again later
            client.close()

        in_threads(clients, load)()
        slowest.sort()
        return counts[200] / seconds, counts[429], slowest[len(slowest) * 9 // 10]

    with serve("slow.keras", *flags) as server:
        best, refused, _ = measure(server, 8, 3)
        assert refused == 0, refused
        overloaded, refused, slow = measure(server, 16, 3)
        print(f"{best:.0f} answers/s, overloaded {overloaded:.0f}, {refused} refused, p90 {slow * 1e3:.1f} ms")
        assert refused > 0
        least = number("KEEL_SERVING_OVERLOAD_PERCENT", 0)  # times are compared only on request
        assert overloaded * 100 >= least * best, (best, overloaded)
        assert slow * 1e3 < float(os.environ.get("KEEL_SERVING_REFUSAL_MS", "inf")), slow
        assert server.metric('keel_rejected_total{reason="pending"}') == refused


def load_s154_log_of_requests():
    with serve("step_1.keras", "--log_requests") as server:
        Client(server).post(json.dumps({"instances": [{"user": [1], "x": [0.5]}]}))
        Client(server).post("{", "/v1/models/m/versions/1:predict")
        server.get("/healthz")
        until(lambda: "GET /healthz" in server.log(), 10, "the lines")
        line = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z I (\S+ \S+ \d+) \d+ bytes \d+ us model (\S+) "
                          r"version (\S+)$", re.M)
        lines = line.findall(server.log())
        assert ("POST /v1/models/m:predict 200", "m", "1") in lines, server.log()
        assert ("POST /v1/models/m/versions/1:predict 400", "m", "1") in lines, server.log()
        assert ("GET /healthz 200", "-", "-") in lines, server.log()
        assert "0.5" not in server.log(), "values are not logged"


def load_s151_rejected_requests_are_counted():
    with serve("step_1.keras", "--max_rows_per_request=3") as server:
        row = {"user": [1], "x": [0.5]}
        for rows, status in ((3, 200), (4, 400), (5, 400)):
            assert Client(server).post(json.dumps({"instances": [row] * rows}))[0] == status
        assert Client(server).post(json.dumps({"inputs": {"user": [1] * 4, "x": [0.5] * 4}}))[0] == 400
        assert server.metric('keel_rejected_total{reason="rows"}') == 3
        assert samples(server, "keel_swap_seconds") == {}
        publish(step(2), WORK / "base_step_1", 2)
        until(lambda: server.states("m").get(2) == "AVAILABLE", 20, "version 2")
        (seconds,) = samples(server, "keel_swap_seconds").items()
        assert seconds[0] == '{model="m",version="2"}' and 0 < seconds[1] < 20, seconds


main(globals())
