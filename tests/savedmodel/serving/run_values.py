#!/usr/bin/env python3
# Tests savedmodel/serving/models/input_values.cc, tensor_parts.cc and the readers and writers of
# savedmodel/serving/protocol/ with values of every kind.
"""run_values.py BIN WORK GROUP [TEST...], as harness.py describes.

# group values: dtypes, layouts and texts of values in requests and answers
"""
import base64
import json
import math
import pathlib
import re
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from harness import FILES, main, serve_model, step

KINDS = {"f32": ("FP32", "f"), "f64": ("FP64", "d"), "i32": ("INT32", "i"), "i64": ("INT64", "q"),
         "u8": ("UINT8", "B"), "i8": ("INT8", "b"), "flag": ("BOOL", "?"), "text": ("BYTES", "")}
ZERO = {"f32": 0.0, "f64": 0.0, "i32": 0, "i64": 0, "u8": 0, "i8": 0, "flag": False, "text": ""}
LIMITS = {"i32": (-2 ** 31, 2 ** 31 - 1), "i64": (-2 ** 63, 2 ** 63 - 1), "u8": (0, 255), "i8": (-128, 127)}


def kinds_server():
    return serve_model(FILES / "kinds.keras")


def ask(server, row):
    """One row by the row format: (status, the text of the answer)."""
    answer = server.request("POST", "/v1/models/m:predict", '{"instances": [%s]}' % (
        row if isinstance(row, str) else json.dumps({**ZERO, **row})))
    return answer.status, answer.text.decode()


def text_of(answer, name):
    status, text = answer
    assert status == 200, text
    return re.search(rf'"{name}": \[([^\]]*)\]', text)[1]


def values_s062_s063_limits_of_dtypes():
    with kinds_server() as server:
        for name, (low, high) in LIMITS.items():
            for number in (low, high, 0, 1):
                assert text_of(ask(server, {name: number}), name) == str(number)
            for text in (str(low - 1), str(high + 1), "1.0", "1e1", '"1"', "true", "null", "NaN"):
                row = json.dumps({**ZERO, name: 77}).replace("77", text)
                status, answer = ask(server, row)
                assert status == 400 and name in answer, (name, text, answer)
        for flag in (True, False):
            assert text_of(ask(server, {"flag": flag}), "flag") == str(flag).lower()
        for name, wrong in (("flag", 1), ("flag", "true"), ("text", 1), ("text", True), ("f32", "1"), ("f32", True),
                            ("f64", None), ("f64", {"b64": "AA=="})):
            status, answer = ask(server, {name: wrong})
            assert status == 400 and name in answer, (name, wrong, answer)


def values_s100_texts_of_numbers():
    with kinds_server() as server:
        for text, single, double in (
                ("0.1", "0.1", "0.1"), ("16777217", "16777216.0", "16777217.0"), ("-0.0", "-0.0", "-0.0"), ("3", "3.0", "3.0"),
                ("NaN", "NaN", "NaN"), ("Infinity", "Infinity", "Infinity"), ("-Infinity", "-Infinity", "-Infinity"),
                ("1e39", "Infinity", None), ("1.17549435e-38", None, None), ("5e-324", "0.0", "5e-324"),
                ("0.30000000000000004", "0.3", "0.30000000000000004")):
            answer = ask(server, json.dumps({**ZERO, "f32": 77, "f64": 77}).replace("77", text))
            for name, wanted, size in (("f32", single, "f"), ("f64", double, "d")):
                found = text_of(answer, name)
                if wanted is not None:
                    assert found == wanted, (text, name, found)
                value = float(text)
                packed = math.copysign(math.inf, value) if size == "f" and abs(value) > 3.5e38 else value
                assert struct.pack(size, float(found)) == struct.pack(size, packed), (text, name, found)
                assert re.fullmatch(r"NaN|-?Infinity|-?\d+\.\d+(e[+-]\d+)?|-?\d+e[+-]?\d+", found), found


def values_s102_strings():
    with kinds_server() as server:
        for text in ("", "plain", "ä€😀", "\0\1\x1f", '"\\/\b\f\n\r\t', "\u2028", "a" * 100000):
            for spelled in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
                row = json.dumps({**ZERO, "text": "TEXT"}).replace('"TEXT"', spelled)
                status, answer = ask(server, row)
                assert status == 200 and json.loads(answer)["predictions"][0]["text"] == [text], (text[:20], answer[:200])
        packed = base64.b64encode(b"\xff\x00\x80").decode()
        status, answer = ask(server, {"text": {"b64": packed}})
        assert status == 200 and json.loads(answer)["predictions"][0]["text"] == [{"b64": packed}], answer
        for wrong in ({"b64": "*"}, {"b64": "A"}, {"b64": 1}, {"b64": "AA==", "x": 1}):
            status, answer = ask(server, {"text": wrong})
            assert status == 400 and "text" in answer, (wrong, answer)


def values_s124_binary_of_every_dtype():
    values = {"f32": [1.5, -0.0], "f64": [0.1, math.inf], "i32": list(LIMITS["i32"]), "i64": list(LIMITS["i64"]),
              "u8": [0, 255], "i8": [-128, 127], "flag": [True, False], "text": [b"", b"\xff\0a"]}
    with kinds_server() as server:
        inputs, data = [], b""
        for name, (datatype, code) in KINDS.items():
            packed = (b"".join(struct.pack("<I", len(v)) + v for v in values[name]) if name == "text"
                      else struct.pack(f"<2{code}", *values[name]))
            inputs.append({"name": name, "shape": [2, 1], "datatype": datatype,
                           "parameters": {"binary_data_size": len(packed)}})
            data += packed
        head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
        answer = server.request("POST", "/v2/models/m/infer", head + data, {"Inference-Header-Content-Length": str(len(head))})
        assert answer.status == 200, answer.text
        assert answer.headers["Content-Type"] == "application/octet-stream"
        size = int(answer.headers["Inference-Header-Content-Length"])
        outputs, left = json.loads(answer.text[:size])["outputs"], answer.text[size:]
        found = {}
        for output in outputs:
            count = output["parameters"]["binary_data_size"]
            found[output["name"]], left = left[:count], left[count:]
            assert output["shape"] == [2, 1] and output["datatype"] == KINDS[output["name"]][0]
        assert not left and b"".join(found[name] for name in KINDS) == data
        # String lengths that the data do not have (S-125).
        for length in (3, 2 ** 31, 2 ** 32 - 1):
            text = struct.pack("<I", length) + b"ab"
            bad = [{**i, "shape": [1, 1]} for i in inputs]
            bad[-1]["parameters"] = {"binary_data_size": len(text)}
            pieces = [struct.pack(f"<{KINDS[i['name']][1]}", values[i["name"]][0]) for i in bad[:-1]]
            for i, piece in zip(bad, pieces):
                i["parameters"] = {"binary_data_size": len(piece)}
            head = json.dumps({"inputs": bad}).encode()
            answer = server.request("POST", "/v2/models/m/infer", head + b"".join(pieces) + text,
                                    {"Inference-Header-Content-Length": str(len(head))})
            assert answer.status == 400 and b"text" in answer.text, (length, answer.text)


def values_s097_s098_s099_ragged_and_sparse():
    with serve_model(FILES / "same.keras") as server:
        def post(body):
            answer = server.request("POST", "/v1/models/m:predict", body)
            return answer.status, json.loads(answer.text)

        rows = [{"seen": [1.5, 2.0], "tags": {"indices": [0, 5], "values": [1.0, 2.0]}},
                {"seen": [], "tags": {"indices": [], "values": []}},
                {"seen": [3.0] * 500, "tags": [7.0, 8.0]}]
        sparse = {"indices": [[0, 0], [0, 5], [2, 0], [2, 1]], "values": [1.0, 2.0, 7.0, 8.0], "dense_shape": [3, 6]}
        splits = [0, 2, 2, 502]
        ragged = {"values": [1.5, 2.0] + [3.0] * 500, "row_splits": splits}
        status, by_rows = post({"instances": rows})
        assert status == 200, by_rows
        assert by_rows["predictions"][0] == rows[0] and by_rows["predictions"][1] == rows[1]
        assert by_rows["predictions"][2] == {"seen": [3.0] * 500, "tags": {"indices": [0, 1], "values": [7.0, 8.0]}}
        by_columns = {"outputs": {"seen": ragged, "tags": sparse}}
        lists = [row["seen"] for row in rows]
        tag_lists = [[1.0, 2.0], [], [7.0]]
        for seen in (ragged, lists):
            status, answer = post({"inputs": {"seen": seen, "tags": sparse}})
            assert status == 200, answer
            assert answer["outputs"]["tags"] == by_columns["outputs"]["tags"], answer
            assert answer["outputs"]["seen"] in (ragged, lists), answer
        status, answer = post({"inputs": {"seen": lists, "tags": tag_lists}})
        assert status == 200, answer
        assert answer["outputs"]["tags"] == {"indices": [[0, 0], [0, 1], [2, 0]], "values": [1.0, 2.0, 7.0],
                                             "dense_shape": [3, 6]}, answer
        status, answer = post({"inputs": {"seen": {"values": [], "row_splits": [0]}, "tags": {
            "indices": [], "values": [], "dense_shape": [0, 6]}}})
        assert status == 200, answer

        def changed(**values):
            return {"inputs": {"seen": ragged, "tags": {**sparse, **values}}}

        def row(tags):
            return {"instances": [{"seen": [], "tags": tags}]}

        bad = [changed(indices=[[0, 5], [0, 0], [2, 0], [2, 1]]), changed(indices=[[0, 0], [0, 0], [2, 0], [2, 1]]),
               changed(indices=[[0, 0], [0, 5], [2, 0]]), changed(indices=[[0, 0], [0, 6], [2, 0], [2, 1]]),
               changed(indices=[[0, 0], [0, 5], [2, 0], [3, 1]]), changed(indices=[[0, -1], [0, 5], [2, 0], [2, 1]]),
               changed(indices=[[0], [0], [2], [2]]), changed(indices=[0, 0, 0, 5, 2, 0, 2, 1]), changed(dense_shape=[3]),
               changed(dense_shape=[3, 7]), changed(dense_shape=[-3, 6]), changed(dense_shape=[2, 6]), changed(values=["a"] * 4),
               changed(other=1), {"inputs": {"seen": ragged, "tags": {"indices": [], "values": []}}},
               row({"indices": [1, 0], "values": [1, 2]}), row({"indices": [1, 1], "values": [1, 2]}),
               row({"indices": [6], "values": [1]}), row({"indices": [-1], "values": [1]}), row({"indices": [0], "values": []}),
               row({"indices": [0]}), row({"values": [1]}), row(1), row([1, 2, 3, 4, 5, 6, 7]), row([[1]]), row("a")]
        for body in bad:
            status, answer = post(body)
            assert status == 400 and "tags" in answer["error"], (body, answer)
        for splits in ([0, 2, 1, 502], [1, 2, 2, 502], [0, 2, 2, 501], [0, 2, 2, 503], [], [0, 2, -2, 502], [0, 2.0, 2, 502]):
            status, answer = post({"inputs": {"seen": {**ragged, "row_splits": splits}, "tags": sparse}})
            assert status == 400 and "seen" in answer["error"], (splits, answer)


def values_s098_many_sparse_rows():
    """The time of an answer grows with its rows, not with their square."""
    with serve_model(FILES / "same.keras") as server:
        def seconds(rows):
            body = json.dumps({"instances": [{"seen": [], "tags": [1.0]}] * rows})
            begin = time.monotonic()
            answer = server.request("POST", "/v1/models/m:predict", body)
            assert answer.status == 200 and answer.text.count(b'"values": [1.0]') == rows
            return time.monotonic() - begin

        few, many = min(seconds(5000) for _ in range(3)), min(seconds(100000) for _ in range(2))
        print(f"5,000 rows {few * 1e3:.0f} ms, 100,000 rows {many * 1e3:.0f} ms")
        assert many < 60 * few, (few, many)


def values_s060_s061_names_and_ranks():
    with serve_model(step(1)) as server:
        metadata = json.loads(server.get("/v2/models/m").text)
        assert [i["name"] for i in metadata["inputs"]] == ["user", "x"]
        assert [o["name"] for o in metadata["outputs"]] == ["y"]
        for user in (1, [1], [[1]]):
            for x in (2.0, [2.0], [[2.0]]):
                answer = server.request("POST", "/v1/models/m:predict", {"instances": [{"user": user, "x": x}]})
                assert answer.status == 200 and json.loads(answer.text) == {"predictions": [[1.0, 2.0]]}, (user, x)
        for shape in ([1], [1, 1], [1, 1, 1]):
            inputs = [{"name": "user", "shape": shape, "datatype": "INT64", "data": [1]},
                      {"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [2.0]}]
            answer = server.request("POST", "/v2/models/m/infer", {"inputs": inputs})
            assert answer.status == 200, (shape, answer.text)
        for user in ([1, 2], [[[1]]], [[1, 2]]):
            answer = server.request("POST", "/v1/models/m:predict", {"instances": [{"user": user, "x": 1}]})
            assert answer.status == 400 and b"user" in answer.text, (user, answer.text)
    with serve_model(FILES / "plain.keras") as server:  # a Sequential whose input has no name
        metadata = json.loads(server.get("/v2/models/m").text)
        assert [i["name"] for i in metadata["inputs"]] == ["input_layer"], metadata
        assert json.loads(server.predict("m", [[1.0, 2.0]]).text)["predictions"], "one input needs no name"


main(globals())
