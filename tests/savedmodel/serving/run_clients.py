#!/usr/bin/env python3
# Tests the server with clients that were not written for it: curl and Python's requests.
"""run_clients.py BIN WORK GROUP [TEST...], as harness.py describes. Skipped without the clients.

# group clients: requests of unchanged client programs
"""
import gzip
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from harness import ROW, SYSTEM_PYTHON, WORK, Skipped, main, serve_model, shop_server, step, value

SHOP_ROW = {"age": [1.5, 2.0], "user": [3], "seen": [1, 2]}


def curl(*words, data=None):
    done = subprocess.run(["curl", "-sS", "--max-time", "20", *map(str, words)], input=data, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def needs_curl():
    if not shutil.which("curl"):
        raise Skipped("no curl")


def clients_s070_s071_s072_s073_s074_curl():
    needs_curl()
    with shop_server() as server:
        url = f"http://127.0.0.1:{server.port}/v1/models/shop:predict"
        wanted = {"predictions": [value(server.predict("shop", [SHOP_ROW]))]}
        body = json.dumps({"instances": [SHOP_ROW]}).encode()
        file, packed = WORK / "body.json", WORK / "body.json.gz"
        large = json.dumps({"instances": [SHOP_ROW] * 2000}).encode()  # curl waits for 100 Continue
        file.write_bytes(large)
        packed.write_bytes(gzip.compress(body))
        assert json.loads(curl("-d", body.decode(), url)) == wanted
        assert json.loads(curl("--http1.0", "-d", body.decode(), url)) == wanted
        assert json.loads(curl("-H", "Transfer-Encoding: chunked", "--data-binary", "@-", url, data=body)) == wanted
        assert json.loads(curl("--data-binary", f"@{packed}", "-H", "Content-Encoding: gzip", url)) == wanted
        assert json.loads(curl("--compressed", "-d", body.decode(), url)) == wanted
        many = {"predictions": wanted["predictions"] * 2000}
        assert json.loads(curl("--data-binary", f"@{file}", url)) == many
        assert json.loads(curl("-H", "Expect: 100-continue", "-d", body.decode(), url)) == wanted
        assert json.loads(curl("--data-binary", f"@{file}", "--limit-rate", "200k", url)) == many
        # Two requests on one connection, headers alone, and the code of an error with --fail.
        two = curl("-d", body.decode(), url, "--next", "-sS", f"http://127.0.0.1:{server.port}/healthz")
        assert two.endswith(b'{"live": true}'), two
        head = curl("-I", f"http://127.0.0.1:{server.port}/v1/models/shop").decode()
        assert head.startswith("HTTP/1.1 200") and "content-length:" in head.lower(), head
        code = curl("-o", "/dev/null", "-w", "%{http_code} %{num_connects}", "-d", "{", url)
        assert code == b"400 1", code


REQUESTS = """
import json, sys, requests
from concurrent.futures import ThreadPoolExecutor
url, row, score = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
with requests.Session() as session:
    answer = session.post(url + "/v1/models/shop:predict", json={"instances": [row]}, timeout=20)
    answer.raise_for_status()
    assert answer.json() == {"predictions": [score]}, answer.text
    assert answer.headers["Keel-Model-Version"] == "1" and "Content-Encoding" not in answer.headers
    def pieces():
        for byte in json.dumps({"instances": [row]}).encode():
            yield bytes([byte])
    assert session.post(url + "/v1/models/shop:predict", data=pieces(), timeout=20).json() == {"predictions": [score]}
    bad = session.post(url + "/v1/models/shop:predict", json={"instances": [{"user": [1]}]}, timeout=20)
    assert bad.status_code == 400 and "age" in bad.json()["error"], bad.text
    assert session.get(url + "/v1/models/shop", timeout=20).json()["model_version_status"][0]["state"] == "AVAILABLE"
    assert session.options(url + "/v1/models/shop:predict", headers={"Origin": "http://a.example"}, timeout=20).ok
    infer = session.post(url + "/v2/models/shop/infer", timeout=20, json={"inputs": [
        {"name": "age", "shape": [1, 2], "datatype": "FP32", "data": row["age"]},
        {"name": "user", "shape": [1, 1], "datatype": "INT64", "data": row["user"]},
        {"name": "seen.values", "shape": [len(row["seen"])], "datatype": "INT64", "data": row["seen"]},
        {"name": "seen.row_splits", "shape": [2], "datatype": "INT64", "data": [0, len(row["seen"])]}]})
    assert infer.json()["outputs"][0]["data"] == score, infer.text
    with ThreadPoolExecutor(8) as pool:  # a pool of connections that are kept alive
        for text in pool.map(lambda _: session.post(url + "/v1/models/shop:predict", json={"instances": [row]}).text, range(200)):
            assert json.loads(text) == {"predictions": [score]}
# Python reads the NaN that the server writes.
answer = requests.post(url + "/v1/models/shop:predict", data='{"instances": [{"age": [NaN, 1], "user": 1, "seen": []}]}')
assert answer.json()["predictions"][0][0] != answer.json()["predictions"][0][0], answer.text
"""


def clients_s070_s074_s100_python_requests():
    for python in (sys.executable, SYSTEM_PYTHON):
        found = subprocess.run([python, "-c", "import requests"], capture_output=True)
        if found.returncode == 0:
            break
    else:
        raise Skipped("no python3-requests")
    with shop_server() as server:
        score = value(server.predict("shop", [SHOP_ROW]))
        done = subprocess.run([python, "-c", REQUESTS, f"http://127.0.0.1:{server.port}", json.dumps(SHOP_ROW),
                               json.dumps(score)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


PARSE = """
import sys
from prometheus_client.parser import text_string_to_metric_families
families = {family.name: family for family in text_string_to_metric_families(sys.stdin.read())}
latency = families[":tensorflow:serving:request_latency"]
assert latency.type == "histogram", latency.type
counts = [sample.value for sample in latency.samples if sample.name.endswith("_bucket")]
limits = [float(sample.labels["le"]) for sample in latency.samples if sample.name.endswith("_bucket")]
assert counts == sorted(counts) and limits == sorted(limits) and counts[-1] == 3, (counts, limits)
assert len(limits) == 34 and limits[0] == 10 and limits[-1] == float("inf"), limits
states = {sample.labels["state"]: sample.value for sample in families["keel_model_version_state"].samples}
assert states == {"AVAILABLE": 1}, states
print(len(families))
"""


def clients_s150_a_parser_of_prometheus():
    if subprocess.run([SYSTEM_PYTHON, "-c", "import prometheus_client"], capture_output=True).returncode:
        raise Skipped("no python3-prometheus-client")
    with shop_server() as server:
        for _ in range(3):
            value(server.predict("shop", [SHOP_ROW]))
        answer = server.get("/metrics")
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        done = subprocess.run([SYSTEM_PYTHON, "-c", PARSE], input=answer.text.decode(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) > 20


def clients_s010_s090_names_in_urls():
    """A client encodes a name with blanks, umlauts, % and +."""
    needs_curl()
    name = "rang liste ü 100%+"
    with serve_model(step(1), model=name) as server:
        out = curl("-d", json.dumps({"instances": [ROW]}),
                   f"http://127.0.0.1:{server.port}/v1/models/rang%20liste%20%C3%BC%20100%25%2B:predict")
        assert json.loads(out) == {"predictions": [[1.0, 1.0]]}, out
        listed = json.loads(curl(f"http://127.0.0.1:{server.port}/v1/models"))
        assert listed["models"][0]["name"] == name


main(globals())
