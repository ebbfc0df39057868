"""Tests keel.Client against a server that records requests and answers what the test says."""
import array
import json
import math
import pickle
import socket
import struct
import threading
import unittest

import support
from support import lists, needs_numpy, np

import keel


class Stub:
    """Listens on a free port. The answers are given in this order, each to one request: bytes, None
    to close the connection instead, or a function that gets the socket."""

    def __init__(self, *answers):
        self.answers, self.requests, self.connections = list(answers), [], 0
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listening.close()
        for one in self._sockets:
            one.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._sockets.append(connection)
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            with connection, connection.makefile("rb") as stream:
                while True:
                    request = self._read(stream)
                    if request is None:
                        return
                    with self._lock:
                        self.requests.append(request)
                        answer = self.answers.pop(0) if self.answers else None
                    if answer is None:
                        return
                    if callable(answer):
                        answer(connection)
                        return
                    connection.sendall(answer)
        except OSError:
            pass

    @staticmethod
    def _read(stream):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            if not line:
                return None
            head += line
        length = [int(line.split(b":")[1]) for line in head.split(b"\r\n")
                  if line.lower().startswith(b"content-length")]
        return head + stream.read(length[0] if length else 0)


def answer(body, status=200, headers=()):
    """The bytes of an answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Text", f"Content-Length: {len(data)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + data


def post(stub, path, body, *headers):
    """The bytes of a request with a body."""
    lines = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{stub.port}", "Accept-Encoding: identity",
             f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def get(stub, path):
    return (f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{stub.port}\r\n"
            "Accept-Encoding: identity\r\n\r\n").encode()


JSON = "Content-Type: application/json"


class PredictTest(support.TestCase):
    def test_sends_rows_and_returns_predictions(self):
        rows = [{"user": 17, "name": "é"}, {"user": 4, "name": b"\xff"}]
        with Stub(answer({"predictions": [[0.5], [0.25]]})) as stub:
            got = keel.Client(stub.url).predict("ranker", rows)
        self.assertEqual(got, [[0.5], [0.25]])
        self.assertEqual(stub.requests, [post(
            stub, "/v1/models/ranker:predict",
            '{"instances":[{"user":17,"name":"é"},{"user":4,"name":{"b64":"/w=="}}]}'.encode(),
            JSON)])

    def test_sends_columns_and_returns_outputs(self):
        sparse = keel.Sparse([[0, 2]], [4], (2, 6))
        ragged = keel.Ragged([3, 5, 9], [0, 1, 3])
        with Stub(answer({"outputs": {"a": [1], "b": [2]}})) as stub:
            client = keel.Client(stub.url)
            got = client.predict("m", inputs={"seen": ragged, "tags": sparse, "x": (1.5, 2)},
                                 signature="s")
        self.assertEqual(got, {"a": [1], "b": [2]})
        self.assertEqual(stub.requests, [post(
            stub, "/v1/models/m:predict",
            b'{"signature_name":"s","inputs":{"seen":{"values":[3,5,9],"row_splits":[0,1,3]},'
            b'"tags":{"indices":[[0,2]],"values":[4],"dense_shape":[2,6]},"x":[1.5,2]}}', JSON)])

    def test_sends_arrays(self):
        with Stub(answer({"predictions": []})) as stub:
            keel.Client(stub.url).predict("m", array.array("q", [1, 2]))
        self.assertTrue(stub.requests[0].endswith(b'{"instances":[1,2]}'))

    @needs_numpy
    def test_sends_arrays_of_numpy(self):
        rows = np.array([[0.1, 2], [math.inf, -0.0]], np.float32)
        with Stub(answer({"predictions": []}), answer({"outputs": []})) as stub:
            client = keel.Client(stub.url)
            client.predict("m", rows)
            client.predict("m", inputs={"x": np.float32(1.5), "y": np.array([b"a", "b"], object)})
        self.assertTrue(stub.requests[0].endswith(
            b'{"instances":[[0.10000000149011612,2.0],[Infinity,-0.0]]}'))
        self.assertTrue(stub.requests[1].endswith(b'{"inputs":{"x":1.5,"y":[{"b64":"YQ=="},"b"]}}'))

    def test_reads_special_numbers_and_bytes(self):
        body = b'{"predictions": [NaN, -Infinity, {"b64": "/wA="}, {"b64": "YQ==", "x": 1}]}'
        with Stub(answer(body)) as stub:
            got = keel.Client(stub.url).predict("m", [1])
        self.assertTrue(math.isnan(got[0]))
        self.assertEqual(got[1:], [-math.inf, b"\xff\0", {"b64": "YQ==", "x": 1}])

    def test_selects_versions_and_labels(self):
        with Stub(*[answer({"predictions": []})] * 3) as stub:
            client = keel.Client(stub.url)
            client.predict("a/b:c é", [1], version=3)
            client.predict("m", [1], label="stable/x")
            keel.Client(stub.url + "/behind/proxy/").predict("m", [1])
        self.assertEqual([request.split(b" ")[1] for request in stub.requests],
                         [b"/v1/models/a%2Fb%3Ac%20%C3%A9/versions/3:predict",
                          b"/v1/models/m/labels/stable%2Fx:predict",
                          b"/behind/proxy/v1/models/m:predict"])

    def test_classifies_and_regresses(self):
        with Stub(answer({"results": [[["", 0.5]]]}), answer({"results": [1.5]})) as stub:
            client = keel.Client(stub.url)
            self.assertEqual(client.classify("m", [{"x": [1, 2]}], context={"u": "v"}),
                             [[["", 0.5]]])
            self.assertEqual(client.regress("m", [{"x": 1}], signature="s"), [1.5])
        self.assertEqual(stub.requests, [
            post(stub, "/v1/models/m:classify", b'{"context":{"u":"v"},"examples":[{"x":[1,2]}]}',
                 JSON),
            post(stub, "/v1/models/m:regress", b'{"signature_name":"s","examples":[{"x":1}]}',
                 JSON)])

    def test_refuses_what_it_cannot_send(self):
        client = keel.Client("http://127.0.0.1:1")
        self.refused(keel.KeelValueError, "either instances or inputs", client.predict, "m")
        self.refused(keel.KeelValueError, "either instances or inputs", client.predict, "m", [1],
                     inputs=[1])
        self.refused(keel.KeelValueError, "either version or label", client.predict, "m", [1],
                     version=1, label="x")
        self.refused(keel.KeelTypeError, "object cannot be sent", client.predict, "m", [object()])
        self.refused(keel.KeelValueError, "UTF-8", client.predict, "m", ["\ud800"])
        self.refused(keel.KeelValueError, "must not be empty", client.predict, "", [1])
        self.refused(keel.KeelTypeError, "model must be str", client.predict, 7, [1])
        for url in ("127.0.0.1:8501", "ftp://x", "http://", "http://u@x", "http://x?a",
                    "http://x:y"):
            self.refused(keel.KeelValueError, "", keel.Client, url)


class ModelsTest(support.TestCase):
    def test_reads_status_models_and_metrics(self):
        versions = [{"version": "2", "state": "AVAILABLE", "status": {"error_code": "OK"}}]
        with Stub(answer({"model_version_status": versions}),
                  answer({"models": [{"name": "m", "model_version_status": versions}]}),
                  answer(b"keel_ready 1\n"), answer({"name": "keel"})) as stub:
            client = keel.Client(stub.url)
            self.assertEqual(client.status("m", version="2"), versions)
            self.assertEqual(client.models()[0]["name"], "m")
            self.assertEqual(client.metrics(), "keel_ready 1\n")
            self.assertEqual(client.server_metadata(), {"name": "keel"})
        self.assertEqual(stub.requests, [get(stub, path) for path in (
            "/v1/models/m/versions/2", "/v1/models", "/metrics", "/v2")])
        self.assertEqual(stub.connections, 1)

    def test_reads_signatures(self):
        def info(dtype, *sizes, **layout):
            return {"dtype": dtype, **(layout or {"name": "x"}), "tensor_shape": {
                "dim": [{"size": str(size), "name": ""} for size in sizes], "unknown_rank": False}}
        signature = {
            "inputs": {"user": info("DT_INT64", -1, 1),
                       "seen": info("DT_STRING", -1, -1, composite_tensor={}),
                       "tags": info("DT_FLOAT", -1, 6, coo_sparse={})},
            "outputs": {"score": info("DT_FLOAT", -1, 1)}, "method_name": "predict"}
        with Stub(answer({"model_spec": {}, "metadata": {"signature_def": {"signature_def": {
                "serving_default": signature}}}}), answer({})) as stub:
            client = keel.Client(stub.url)
            found = client.signatures("m", label="new")
            self.refused(keel.ServerError, "no 'metadata'", client.signatures, "m")
        self.assertEqual(str(found["serving_default"]),
                         "serving_default(user: int64 (?, 1), seen: ragged string (?, ?), "
                         "tags: sparse float32 (?, 6)) -> {score: float32 (?, 1)}")
        self.assertEqual(stub.requests[0], get(stub, "/v1/models/m/labels/new/metadata"))

    def test_asks_for_readiness(self):
        answers = [answer({}, status) for status in (200, 503, 404, 200, 500)]
        with Stub(*answers) as stub:
            client = keel.Client(stub.url)
            self.assertTrue(client.live())
            self.assertFalse(client.ready())
            self.assertFalse(client.ready("m"))
            self.assertTrue(client.ready("m", version=3))
            self.refused(keel.ServerError, "500", client.ready, "m")
        self.assertEqual(stub.requests[:4], [get(stub, path) for path in (
            "/v2/health/live", "/v2/health/ready", "/v2/models/m/ready",
            "/v2/models/m/versions/3/ready")])
        self.assertFalse(client.live())
        self.assertFalse(client.ready())


SHOP = {"name": "shop", "versions": ["1"], "platform": "keel_keras", "inputs": [
    {"name": "user", "datatype": "INT64", "shape": [-1]},
    {"name": "seen.values", "datatype": "INT64", "shape": [-1]},
    {"name": "seen.row_splits", "datatype": "INT64", "shape": [-1]},
    {"name": "tags.indices", "datatype": "INT64", "shape": [-1, 2]},
    {"name": "tags.values", "datatype": "FP32", "shape": [-1]},
    {"name": "tags.dense_shape", "datatype": "INT64", "shape": [2]},
    {"name": "a.values", "datatype": "BYTES", "shape": [-1, 1]}], "outputs": []}
SHOP_INPUTS = {"user": [1, 2], "seen": [[3], [5, 9]], "tags": ([[0, 2]], [0.5], (2, 6)),
               "a.values": ["é", b""]}


def pack(code, *values):
    return struct.pack(f"<{len(values)}{code}", *values)


class InferTest(support.TestCase):
    def test_sends_and_reads_binary_tensors(self):
        head = (b'{"id":"7","inputs":['
                b'{"name":"user","shape":[2],"datatype":"INT64",'
                b'"parameters":{"binary_data_size":16}},'
                b'{"name":"seen.values","shape":[3],"datatype":"INT64",'
                b'"parameters":{"binary_data_size":24}},'
                b'{"name":"seen.row_splits","shape":[3],"datatype":"INT64",'
                b'"parameters":{"binary_data_size":24}},'
                b'{"name":"tags.indices","shape":[1,2],"datatype":"INT64",'
                b'"parameters":{"binary_data_size":16}},'
                b'{"name":"tags.values","shape":[1],"datatype":"FP32",'
                b'"parameters":{"binary_data_size":4}},'
                b'{"name":"tags.dense_shape","shape":[2],"datatype":"INT64",'
                b'"parameters":{"binary_data_size":16}},'
                b'{"name":"a.values","shape":[2,1],"datatype":"BYTES",'
                b'"parameters":{"binary_data_size":10}}],'
                b'"outputs":[{"name":"score"}],'
                b'"parameters":{"timeout":5,"binary_data_output":true}}')
        data = (pack("q", 1, 2) + pack("q", 3, 5, 9) + pack("q", 0, 1, 3) + pack("q", 0, 2)
                + pack("f", 0.5) + pack("q", 2, 6) + pack("I", 2) + "é".encode() + pack("I", 0))
        answer_head = json.dumps({
            "model_name": "shop", "model_version": "1", "id": "7", "outputs": [
            {"name": "score", "datatype": "FP32", "shape": [2, 1],
             "parameters": {"binary_data_size": 8}},
            {"name": "word", "datatype": "BYTES", "shape": [2],
             "parameters": {"binary_data_size": 11}},
            {"name": "plain", "datatype": "BOOL", "shape": [2], "data": [True, False]}]}).encode()
        answer_body = (answer_head + pack("f", 0.1, -2) + pack("I", 1) + b"a" + pack("I", 2)
                       + b"\xff\0")
        with Stub(answer(SHOP), answer(answer_body, headers=[
                f"Inference-Header-Content-Length: {len(answer_head)}"])) as stub:
            got = keel.Client(stub.url).infer("shop", SHOP_INPUTS, outputs=["score"], id="7",
                                              parameters={"timeout": 5})
        self.assertEqual(stub.requests, [get(stub, "/v2/models/shop"), post(
            stub, "/v2/models/shop/infer", head + data, "Content-Type: application/octet-stream",
            f"Inference-Header-Content-Length: {len(head)}")])
        self.assertEqual(got[1:], ("shop", "1", "7"))
        self.assertEqual({name: lists(value) for name, value in got.outputs.items()}, {
            "score": [[0.10000000149011612], [-2.0]], "word": [b"a", b"\xff\0"],
            "plain": [True, False]})
        if np is not None:
            self.assertEqual(got.outputs["score"].dtype, np.float32)
            self.assertTrue(got.outputs["score"].flags.writeable)

    def test_sends_and_reads_json(self):
        metadata = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]},
                               {"name": "b", "datatype": "BOOL", "shape": [-1]},
                               {"name": "s", "datatype": "BYTES", "shape": [-1]}]}
        body = {"model_name": "m", "model_version": "3", "outputs": [
            {"name": "y", "datatype": "FP64", "shape": [0, 2], "data": []},
            {"name": "r.values", "datatype": "INT32", "shape": [3], "data": [1, 2, 3]},
            {"name": "r.row_splits", "datatype": "INT64", "shape": [3], "data": [0, 0, 3]},
            {"name": "s.indices", "datatype": "INT64", "shape": [1, 2], "data": [0, 5]},
            {"name": "s.values", "datatype": "INT8", "shape": [1], "data": [-8]},
            {"name": "s.dense_shape", "datatype": "INT64", "shape": [2], "data": [2, 6]}]}
        with Stub(answer(metadata), answer(body), answer(body)) as stub:
            client = keel.Client(stub.url)
            inputs = {"x": [[1, 0.1]], "b": [True], "s": ["日"]}
            got = client.infer("m", inputs, binary=False, version=3)
            self.refused(keel.KeelValueError, "binary=True", client.infer, "m",
                         {**inputs, "s": [b"\xff"]}, binary=False, version=3)
        self.assertEqual(stub.requests[:2], [get(stub, "/v2/models/m/versions/3"), post(
            stub, "/v2/models/m/versions/3/infer",
            '{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1.0,0.10000000149011612'
            ']},{"name":"b","shape":[1],"datatype":"BOOL","data":[true]},{"name":"s","shape":[1],'
            '"datatype":"BYTES","data":["日"]}]}'.encode(), JSON)])
        self.assertEqual(list(got.outputs), ["y", "r", "s"])
        self.assertEqual(lists(got.outputs["y"]), [])
        self.assertEqual(lists(got.outputs["r"]), [[], [1, 2, 3]])
        indices, values, shape = got.outputs["s"]
        self.assertEqual((lists(indices), lists(values), shape), ([[0, 5]], [-8], (2, 6)))

    def test_checks_inputs_like_a_model(self):
        with Stub(answer(SHOP), answer(SHOP), answer(SHOP)) as stub:
            client = keel.Client(stub.url)
            self.refused(keel.KeelTypeError, "infer: input 'user': element [1] must be an integer",
                         client.infer, "shop", {**SHOP_INPUTS, "user": [1, 2.5]})
            self.refused(keel.KeelValueError, "no input 'users'", client.infer, "shop",
                         {"users": 1})
            self.refused(keel.KeelValueError, "requires input 'seen'", client.infer, "shop",
                         {"user": [1]})

    def test_asks_again_when_a_new_version_has_other_inputs(self):
        def inputs(name, datatype):
            return answer({"inputs": [{"name": name, "datatype": datatype, "shape": [-1]}]})
        good = answer({"model_name": "m", "model_version": "2", "outputs": []})
        refused = answer({"error": "datatype"}, 400)
        with Stub(inputs("x", "INT32"), good, refused, inputs("x", "INT64"), good,
                  inputs("y", "INT64"), good, refused, inputs("y", "INT64")) as stub:
            client = keel.Client(stub.url)
            for name in ("x", "x", "y"):
                self.assertEqual(client.infer("m", {name: [1]}).model_version, "2")
            self.refused(keel.ServerError, "datatype", client.infer, "m", {"y": [1]})
        self.assertEqual(stub.answers, [])

    def test_refuses_damaged_answers(self):
        metadata = answer({"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1]}]})
        output = {"name": "y", "datatype": "FP32", "shape": [2],
                  "parameters": {"binary_data_size": 8}}

        def binary(**changes):
            head = json.dumps({"outputs": [{**output, **changes}]}).encode()
            return answer(head + b"1234567", headers=[
                f"Inference-Header-Content-Length: {len(head)}"])
        bad = [binary(), binary(parameters={"binary_data_size": 7}), binary(shape=[3]),
               binary(parameters={"binary_data_size": 4}), binary(datatype="FP16"),
               binary(datatype="BYTES", parameters={"binary_data_size": 7}),
               answer({"outputs": [{"name": "y"}]}), answer({}), answer(b"<html>"), answer([])]
        with Stub(metadata, *bad) as stub:
            client = keel.Client(stub.url)
            for _ in bad:
                self.refused(keel.ServerError, "", client.infer, "m", {"x": [1]})
        self.assertEqual(stub.answers, [])


class ConnectionTest(support.TestCase):
    def test_keeps_connections(self):
        with Stub(*[answer({"predictions": []})] * 20) as stub, keel.Client(stub.url) as client:
            for _ in range(20):
                client.predict("m", [1])
        self.assertEqual(stub.connections, 1)

    def test_gives_each_thread_a_connection(self):
        with Stub(*[answer({"predictions": [i]}) for i in range(64)]) as stub:
            client, got = keel.Client(stub.url), []
            threads = [threading.Thread(target=lambda: got.extend(
                [client.predict("m", [1])[0] for _ in range(8)])) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(sorted(got), list(range(64)))
        self.assertLessEqual(stub.connections, 8)

    def test_connects_again_when_the_server_has_closed_an_idle_connection(self):
        good = answer({"predictions": []})
        closing = answer({"predictions": []}, headers=["Connection: close"])
        with Stub(good, None, good, closing, good) as stub:
            client = keel.Client(stub.url)
            for _ in range(4):
                client.predict("m", [1])
        # The request whose connection was closed has been sent twice.
        self.assertEqual((stub.connections, len(stub.requests)), (3, 5))

    def test_reports_a_server_that_closes(self):
        with Stub(None, answer({})[:-1]) as stub:
            client = keel.Client(stub.url)
            self.refused(keel.ServerConnectionError, stub.url, client.models)

        def cut(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        with Stub(cut) as stub:
            self.refused(keel.ServerConnectionError, "IncompleteRead", keel.Client(stub.url).models)
        with Stub(b"SSH-2.0\r\n\r\n") as stub:
            self.refused(keel.ServerConnectionError, "SSH", keel.Client(stub.url).models)

    def test_reads_the_answer_to_a_body_that_the_server_does_not_read(self):
        listening = socket.create_server(("127.0.0.1", 0))

        def refuse():
            connection, _ = listening.accept()
            connection.recv(10)
            connection.sendall(answer({"error": "too large"}, 413))
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 20):
                pass
            connection.close()
        thread = threading.Thread(target=refuse)
        thread.start()
        client = keel.Client(f"http://127.0.0.1:{listening.getsockname()[1]}")
        error = self.refused(keel.ServerError, "too large", client.request, "POST", "/v1",
                             bytes(1 << 22))
        self.assertEqual(error.status, 413)
        client.close()
        thread.join()
        listening.close()

    def test_reports_a_server_that_is_not_there(self):
        with Stub() as stub:
            url = stub.url
        error = self.refused(keel.ServerConnectionError, url, keel.Client(url).models)
        self.assertIsInstance(error, ConnectionError)
        self.assertIsInstance(error, keel.KeelError)

    def test_reports_a_timeout(self):
        waiting = threading.Event()
        with Stub(lambda _: waiting.wait(10)) as stub:
            client = keel.Client(stub.url, timeout=0.05)
            error = self.refused(keel.ServerTimeoutError, "no answer within 0.05 s", client.models)
            self.assertIsInstance(error, TimeoutError)
            waiting.set()

    def test_reports_errors_of_the_server(self):
        with Stub(answer({"error": "no model 'm'"}, 404), answer(b"<html>gone", 502),
                  answer({"predictions": []})) as stub:
            client = keel.Client(stub.url)
            error = self.refused(keel.ServerError,
                                 "POST /v1/models/m:predict: 404: no model 'm'",
                                 client.predict, "m", [1])
            self.assertEqual((error.status, error.message), (404, "no model 'm'"))
            same = pickle.loads(pickle.dumps(error))
            self.assertEqual((str(same), same.status, same.message),
                             (str(error), error.status, error.message))
            self.assertEqual(self.refused(keel.ServerError, "<html>gone", client.predict, "m",
                                          [1]).status, 502)
            client.predict("m", [1])
        self.assertEqual(stub.connections, 1)  # an error leaves the connection open

    def test_sends_its_headers(self):
        with Stub(answer({"models": []})) as stub:
            keel.Client(stub.url, headers={"Authorization": "Bearer x"}).models()
        self.assertIn(b"\r\nAuthorization: Bearer x\r\n", stub.requests[0])

    def test_is_closed(self):
        with Stub(answer({"models": []})) as stub:
            client = keel.Client(stub.url)
            with client:
                client.models()
            self.refused(keel.KeelValueError, "closed", client.models)


if __name__ == "__main__":
    unittest.main()
