#!/usr/bin/env python3
# Tests savedmodel/serving/grpc/ and savedmodel/serving/protocol/model_lookup.cc, request_count.cc.
"""run_grpc.py BIN WORK BUILD [TEST...]: tests of gRPC of a running `keel serve`, named by the rows of
its specification: s140_... tests row S-140. BUILD is the build folder, whose libraries are read.
Exits with 77 if packages are missing or the program has no gRPC."""
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent.parent)]
import stubs

stubs.require()
import grpc

from server import Server, publish, until

BIN, WORK, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
KEEL, FILES = str(BIN / "keel"), WORK / "files"
SANITIZED = any(word in KEEL for word in ("asan", "tsan"))  # takes a hundred times longer
Code = grpc.StatusCode
PB = None  # the stubs


def base_of(name, model, *versions):
    """A base path with versions of a model."""
    base = WORK / name
    shutil.rmtree(base, ignore_errors=True)
    for version in versions:
        publish(FILES / f"{model}.keras", base, version)
    return base


class Client:
    """A server and the stubs of its services."""

    def __init__(self, *flags, port=-1, options=(), **more):
        if not any("poll_wait" in flag for flag in flags):
            flags = (*flags, "--file_system_poll_wait_seconds=0.1")
        self.server = Server(KEEL, f"--port={port}", *flags, **more)
        until(lambda: self.server.grpc, 10, "the line of gRPC")
        self.channel = grpc.insecure_channel(self.server.grpc, options=[
            ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1),
            ("grpc.use_local_subchannel_pool", 1), *options])
        self.predictions = PB.tfs_grpc.PredictionServiceStub(self.channel)
        self.models = PB.tfs_grpc.ModelServiceStub(self.channel)
        self.kserve = PB.kserve_grpc.GRPCInferenceServiceStub(self.channel)
        self.health = PB.health_grpc.HealthStub(self.channel)

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *error):
        self.channel.close()
        self.server.__exit__(*error)

    def predict(self, name, timeout=30, output_filter=(), version=None, label=None, signature="", **inputs):
        return self.predictions.Predict(request_of(name, output_filter, version, label, signature, **inputs),
                                        timeout=timeout)


def serve(model, *flags, versions=(1,), **more):
    base = base_of(model, model, *versions)
    return Client(f"--model_name={model}", f"--model_base_path={base}", *flags, **more)


def spec_of(name, version=None, label=None, signature=""):
    spec = PB.tfs.ModelSpec(name=name, signature_name=signature)
    if version is not None:
        spec.version.value = version
    if label is not None:
        spec.version_label = label
    return spec


def request_of(model, output_filter=(), version=None, label=None, signature="", **inputs):
    request = PB.tfs.PredictRequest(model_spec=spec_of(model, version, label, signature),
                                    output_filter=output_filter)
    for key, value in inputs.items():
        request.inputs[key.replace("__", ".")].CopyFrom(value)
    return request


def tensor(dtype, shape, values, content=False):
    message = PB.tf.TensorProto(dtype=dtype)
    for size in shape:
        message.tensor_shape.dim.add(size=size)
    if content:
        message.tensor_content = stubs.packed(dtype, values)
    else:
        getattr(message, stubs.DTYPES[dtype][0]).extend(values)
    return message


def values_of(message):
    """Shape and values of a TensorProto, which must have them in one of two places."""
    dtype = PB.tf.DataType.Name(message.dtype)
    values = list(getattr(message, stubs.DTYPES[dtype][0]))
    if message.tensor_content:
        assert not values
        values = stubs.unpacked(dtype, message.tensor_content)
    return [dim.size for dim in message.tensor_shape.dim], values


def fails(code, call, *words):
    """The details of the error that a call must fail with."""
    try:
        answer = call()
    except grpc.RpcError as error:
        assert error.code() == code, (error.code(), error.details())
        assert all(word in error.details() for word in words), (words, error.details())
        return error.details()
    raise AssertionError(f"no error: {answer}")


def bits(values):
    return struct.pack(f"<{len(values)}f", *values)


def f32(values):
    """The nearest floats, as Python's numbers."""
    return list(struct.unpack(f"<{len(values)}f", bits(values)))


KINDS = {"f": ("DT_FLOAT", [2, 2], f32([0.1, -0.0, 1e-30, 16777216.0])),
         "d": ("DT_DOUBLE", [2], [0.1, 1e300]),
         "i": ("DT_INT32", [2], [-2 ** 31, 2 ** 31 - 1]),
         "l": ("DT_INT64", [2], [-2 ** 63, 2 ** 63 - 1]),
         "b": ("DT_BOOL", [2], [True, False]),
         "u": ("DT_UINT8", [2], [0, 255]),
         "c": ("DT_INT8", [2], [-128, 127]),
         "s": ("DT_STRING", [2], [b"\x00\xff", "größe".encode()])}


def kinds(content=False, **changes):
    out = {}
    for name, (dtype, shape, values) in KINDS.items():
        out[name] = tensor(dtype, shape, values, content and dtype != "DT_STRING")
    return {**out, **changes}


def shop(content=False, **changes):
    """A row of the model `shop`."""
    row = {"age": tensor("DT_FLOAT", [1, 2], [1.5, 2.0], content), "user": tensor("DT_INT64", [1, 1], [3], content),
           "seen__values": tensor("DT_INT64", [2], [1, 2], content),
           "seen__row_splits": tensor("DT_INT64", [2], [0, 2], content), **changes}
    return {name: value for name, value in row.items() if value is not None}


SHOP_JSON = {"age": [1.5, 2.0], "user": [3], "seen": [1, 2]}


def rest_score(client):
    answer = json.loads(client.server.predict("shop", [SHOP_JSON]).text)
    return f32(answer["predictions"][0])


# ---- predict

def s062_s140_kinds():
    for flag in (False, True):
        with serve("kinds", f"--enable_serialization_as_tensor_content={str(flag).lower()}") as client:
            for content in (False, True):
                answer = client.predict("kinds", **kinds(content))
                assert set(answer.outputs) == {f"{name}_out" for name in KINDS}
                for name, (dtype, shape, values) in KINDS.items():
                    output = answer.outputs[f"{name}_out"]
                    assert output.dtype == PB.tf.DataType.Value(dtype), name
                    assert values_of(output) == (shape, values), (name, values_of(output))
                    assert bool(output.tensor_content) == (flag and dtype != "DT_STRING"), name
                assert bits(values_of(answer.outputs["f_out"])[1]) == bits(KINDS["f"][2])  # the sign of zero
                assert answer.model_spec == spec_of("kinds", 1, signature="serving_default")


def s063_s140_values():
    with serve("kinds") as client:
        def refused(name, value, *words):
            fails(Code.INVALID_ARGUMENT, lambda: client.predict("kinds", **kinds(**{name: value})), f"'{name}'", *words)

        refused("u", tensor("DT_UINT8", [2], [0], True), "1 bytes")
        refused("f", tensor("DT_FLOAT", [2, 2], [1.0] * 5, True), "20 bytes")
        for bad in (-1, 256):
            refused("u", PB.tf.TensorProto(dtype="DT_UINT8", tensor_shape=kinds()["u"].tensor_shape, int_val=[0, bad]), str(bad))
        refused("c", PB.tf.TensorProto(dtype="DT_INT8", tensor_shape=kinds()["u"].tensor_shape, int_val=[0, 128]), "128")
        refused("d", tensor("DT_FLOAT", [2], [0.0, 1.0]), "DT_DOUBLE")
        refused("d", PB.tf.TensorProto(dtype="DT_HALF", tensor_shape=kinds()["d"].tensor_shape, half_val=[1, 2]), "DT_DOUBLE")
        refused("s", PB.tf.TensorProto(dtype="DT_STRING", tensor_shape=kinds()["s"].tensor_shape, tensor_content=b"ab"), "string_val")
        refused("f", tensor("DT_FLOAT", [2, 3], [0.0] * 6), "shape")
        refused("f", tensor("DT_FLOAT", [2, -2], [0.0] * 4), "negative")
        unknown = tensor("DT_DOUBLE", [2], [0.0, 1.0])
        unknown.tensor_shape.unknown_rank = True
        refused("d", unknown, "shape")
        # The rank rule of a trailing 1.
        answer = client.predict("kinds", **kinds(d=tensor("DT_DOUBLE", [2, 1], [1.0, 2.0])))
        assert values_of(answer.outputs["d_out"]) == ([2], [1.0, 2.0])
        # Bytes of booleans other than 0 and 1 mean true.
        odd = PB.tf.TensorProto(dtype="DT_BOOL", tensor_shape=kinds()["b"].tensor_shape, tensor_content=b"\x02\x00")
        assert values_of(client.predict("kinds", **kinds(b=odd)).outputs["b_out"])[1] == [True, False]


def s140_fewer_values_repeat_the_last():
    with serve("kinds") as client:
        for name, (dtype, shape, values) in KINDS.items():
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            answer = client.predict("kinds", **kinds(**{name: tensor(dtype, shape, values[:1])}))
            assert values_of(answer.outputs[f"{name}_out"])[1] == values[:1] * count, name
            zero = b"" if dtype == "DT_STRING" else 0
            answer = client.predict("kinds", **kinds(**{name: tensor(dtype, shape, [])}))
            assert values_of(answer.outputs[f"{name}_out"])[1] == [zero] * count, name
            fails(Code.INVALID_ARGUMENT, lambda: client.predict(
                "kinds", **kinds(**{name: tensor(dtype, shape, values + values)})), f"'{name}'")
        # A few bytes must not make the server fill gigabytes.
        for shape in ([10 ** 5, 10 ** 6], [2 ** 62, 4], [10 ** 4, 2 ** 20]):
            fails(Code.INVALID_ARGUMENT, lambda: client.predict("kinds", **kinds(f=tensor("DT_FLOAT", shape, [1.0]))), "'f'")
        long = PB.tf.TensorProto(dtype="DT_STRING", string_val=[b"x" * 10 ** 6])
        long.tensor_shape.dim.add(size=10 ** 5)
        fails(Code.INVALID_ARGUMENT, lambda: client.predict("kinds", **kinds(s=long)), "'s'")
        fails(Code.INVALID_ARGUMENT, lambda: client.predict("kinds", **kinds(d=tensor("DT_DOUBLE", [10 ** 5 + 1], [1.0]))), "100001")
        assert client.server.rss_kib() < 500 * 1024


def s140_names_and_filters():
    with serve("kinds") as client:
        answer = client.predict("kinds", output_filter=["u_out", "b_out"], **kinds())
        assert set(answer.outputs) == {"u_out", "b_out"}
        for names in (["nope"], ["u_out", "u_out"], [""]):
            fails(Code.INVALID_ARGUMENT, lambda: client.predict("kinds", output_filter=names, **kinds()), names[-1])
        inputs = kinds(extra=tensor("DT_FLOAT", [1], [1.0]))
        del inputs["d"], inputs["b"]
        fails(Code.INVALID_ARGUMENT, lambda: client.predict("kinds", **inputs),
              "Sent extra: {extra}. Missing but required: {b, d}.")
        fails(Code.INVALID_ARGUMENT, lambda: client.predict("kinds"), "Missing but required: {b, c, d, f, i, l, s, u}.")
        # Fields of other releases are skipped; unpacked numbers are read.
        request = request_of("kinds", **kinds())
        request.of_another_release = "x" * 100
        assert values_of(client.predictions.Predict(request).outputs["u_out"])[1] == [0, 255]
        loose = PB.tf.UnpackedTensorProto(dtype="DT_FLOAT", float_val=[1, 2, 3, 4],
                                          tensor_shape=kinds()["f"].tensor_shape)
        request.inputs["f"].ParseFromString(loose.SerializeToString())
        raw = request.SerializeToString()
        send = client.channel.unary_unary("/tensorflow.serving.PredictionService/Predict",
                                          response_deserializer=PB.tfs.PredictResponse.FromString)
        assert loose.SerializeToString() != request.inputs["f"].SerializeToString()
        raw = raw.replace(request.inputs["f"].SerializeToString(), b"")
        spec = PB.tfs.PredictRequest(model_spec=spec_of("kinds")).SerializeToString()
        entry = b"\x0a\x01f\x12" + bytes([len(loose.SerializeToString())]) + loose.SerializeToString()
        others = kinds()
        del others["f"]
        body = spec + b"\x12" + bytes([len(entry)]) + entry + PB.tfs.PredictRequest(inputs=others).SerializeToString()
        assert values_of(send(body).outputs["f_out"])[1] == [1, 2, 3, 4]


def s140_versions_and_signatures():
    base = base_of("versions", "step_1", 1)
    publish(FILES / "step_2.keras", base, 2)
    config = WORK / "versions.config"
    config.write_text(f'model_config_list {{ config {{ name: "step" base_path: "{base}" model_version_policy {{ all {{}} }} '
                      'version_labels { key: "old" value: 1 } } }')
    row = {"user": tensor("DT_INT64", [1, 1], [1]), "x": tensor("DT_FLOAT", [1, 1], [1.0])}
    with Client(f"--model_config_file={config}") as client:
        until(lambda: client.server.states("step") == {1: "AVAILABLE", 2: "AVAILABLE"}, 10, "both versions")
        for wanted, which in ((2, {}), (1, {"version": 1}), (2, {"version": 2}), (1, {"label": "old"})):
            answer = client.predict("step", **which, **row)
            assert values_of(answer.outputs["y"]) == ([1, 2], [wanted, wanted]), which
            assert answer.model_spec.version.value == wanted
        for code, text, name, which in (
                (Code.NOT_FOUND, "Servable not found for request: Latest(nope)", "nope", {}),
                (Code.NOT_FOUND, "Servable not found for request: Specific(step, 7)", "step", {"version": 7}),
                (Code.NOT_FOUND, "Servable not found for request: Specific(step, -1)", "step", {"version": -1}),
                (Code.INVALID_ARGUMENT, "Unrecognized servable version label: l", "step", {"label": "l"}),
                (Code.FAILED_PRECONDITION, 'Serving signature name: "s" not found in signature def', "step",
                 {"signature": "s"})):
            assert fails(code, lambda: client.predict(name, **which, **row)) == text
        fails(Code.INVALID_ARGUMENT, lambda: client.predictions.Predict(PB.tfs.PredictRequest()), "Missing ModelSpec")
        fails(Code.INVALID_ARGUMENT, lambda: client.predict(""), "name")
        # An id outside its table is named.
        bad = {**row, "user": tensor("DT_INT64", [1, 1], [100])}
        fails(Code.INVALID_ARGUMENT, lambda: client.predict("step", **bad), "100")
        assert client.server.metric('keel_ids_rejected_total{model="step"}') == 1


def s140_ragged_and_sparse():
    with serve("shop") as client:
        score = rest_score(client)
        ends = {"seen__row_splits": None, "seen__row_ends": tensor("DT_INT64", [1], [2])}
        for inputs in (shop(), shop(True), shop(**ends), shop(user=tensor("DT_INT64", [1], [3]))):
            answer = client.predict("shop", **inputs)
            assert values_of(answer.outputs["score"]) == ([1, 1], score)
        for changes in ({"seen__row_splits": None}, {**ends, "seen__row_splits": tensor("DT_INT64", [2], [0, 2])},
                        {"seen__row_splits": tensor("DT_INT64", [2], [0, 3])},
                        {"seen__row_splits": tensor("DT_INT64", [2], [1, 2])},
                        {"seen__values": tensor("DT_INT64", [2, 1], [1, 2])},
                        {"seen__values": tensor("DT_INT64", [2], [1, 10])}):
            fails(Code.INVALID_ARGUMENT, lambda: client.predict("shop", **shop(**changes)))
        packed = PB.tf.Example()
        packed.features.feature["age"].float_list.value.extend([1.5, 2.0])
        packed.features.feature["user"].int64_list.value.append(3)
        packed.features.feature["seen"].int64_list.value.extend([1, 2])
        examples = tensor("DT_STRING", [1], [packed.SerializeToString()])
        answer = client.predict("shop", signature="serve_examples", examples=examples)
        assert values_of(answer.outputs["score"]) == ([1, 1], score)
        assert answer.model_spec.signature_name == "serve_examples"
    with serve("layouts") as client:
        inputs = {"tags__indices": tensor("DT_INT64", [2, 2], [0, 1, 1, 3], True),
                  "tags__values": tensor("DT_INT64", [2], [1, 2]),
                  "tags__dense_shape": tensor("DT_INT64", [2], [2, 6]),
                  "words__values": tensor("DT_STRING", [3], [b"a", b"", b"\xff"]),
                  "words__row_splits": tensor("DT_INT64", [3], [0, 3, 3])}
        answer = client.predict("layouts", **inputs)
        assert {name: values_of(output) for name, output in answer.outputs.items()} == {
            "sums": ([2, 2], [1.0] * 4), "words_out.values": ([3], [b"a", b"", b"\xff"]),
            "words_out.row_splits": ([3], [0, 3, 3])}
        assert set(client.predict("layouts", output_filter=["words_out"], **inputs).outputs) == {
            "words_out.values", "words_out.row_splits"}
        assert set(client.predict("layouts", output_filter=["sums"], **inputs).outputs) == {"sums"}
        metadata = client.predictions.GetModelMetadata(
            PB.tfs.GetModelMetadataRequest(model_spec=spec_of("layouts"), metadata_field=["signature_def"]))
        found = PB.tfs.SignatureDefMap()
        assert metadata.metadata["signature_def"].Unpack(found)
        tags = found.signature_def["serving_default"].inputs["tags"]
        assert (tags.coo_sparse.values_tensor_name, tags.coo_sparse.indices_tensor_name,
                tags.coo_sparse.dense_shape_tensor_name) == ("tags.values", "tags.indices", "tags.dense_shape")


# ---- metadata, status, classify, regress

def s141_metadata_and_status():
    with serve("shop") as client:
        request = PB.tfs.GetModelMetadataRequest(model_spec=spec_of("shop"), metadata_field=["signature_def"])
        answer = client.predictions.GetModelMetadata(request)
        assert answer.model_spec == spec_of("shop", 1)
        assert answer.metadata["signature_def"].type_url == "type.googleapis.com/tensorflow.serving.SignatureDefMap"
        found = PB.tfs.SignatureDefMap()
        assert answer.metadata["signature_def"].Unpack(found)
        assert set(found.signature_def) == {"serving_default", "serve_examples"}
        default = found.signature_def["serving_default"]
        assert default.method_name == "tensorflow/serving/predict"
        age, seen = default.inputs["age"], default.inputs["seen"]
        assert (age.name, age.dtype, [d.size for d in age.tensor_shape.dim]) == ("age", PB.tf.DT_FLOAT, [-1, 2])
        assert seen.composite_tensor.type_spec.type_spec_class == PB.tf.TypeSpecProto.RAGGED_TENSOR_SPEC
        assert [part.name for part in seen.composite_tensor.components] == ["seen.values", "seen.row_splits"]
        assert [d.size for d in seen.tensor_shape.dim] == [-1, -1]
        assert [d.size for d in default.outputs["score"].tensor_shape.dim] == [-1, 1]
        for fields in ([], ["x"], ["signature_def", "x"]):
            request = PB.tfs.GetModelMetadataRequest(model_spec=spec_of("shop"), metadata_field=fields)
            fails(Code.INVALID_ARGUMENT, lambda: client.predictions.GetModelMetadata(request))

        def status(**which):
            answer = client.models.GetModelStatus(PB.tfs.GetModelStatusRequest(model_spec=spec_of(**which)))
            return [(v.version, v.state, v.status.error_code, v.status.error_message) for v in answer.model_version_status]

        assert status(name="shop") == status(name="shop", version=1) == [(1, 30, 0, "")]
        fails(Code.NOT_FOUND, lambda: status(name="nope"), "Could not find any versions of model nope")
        fails(Code.NOT_FOUND, lambda: status(name="shop", version=2), "Could not find version 2 of model shop")
        fails(Code.INVALID_ARGUMENT, lambda: status(name="shop", label="l"), "Unrecognized servable version label: l")


def example(**features):
    out = PB.tf.Example()
    for name, values in features.items():
        feature = out.features.feature[name]
        if not values:
            feature.SetInParent()
        elif isinstance(values[0], float):
            feature.float_list.value.extend(values)
        elif isinstance(values[0], bytes):
            feature.bytes_list.value.extend(values)
        else:
            feature.int64_list.value.extend(values)
    return out


def s141_classify_and_regress():
    with serve("shop") as client:
        score, = rest_score(client)
        whole = {"age": [1.5, 2.0], "user": [3], "seen": [1, 2]}
        plain = PB.tfs.Input(example_list={"examples": [example(**whole)] * 2})
        context = PB.tfs.Input(example_list_with_context={
            "examples": [example(age=[1.5, 2.0], seen=[1, 2])] * 2, "context": example(user=[3], seen=[9])})
        for signature in ("", "serving_default", "serve_examples"):
            for examples in (plain, context):
                answer = client.predictions.Regress(PB.tfs.RegressionRequest(
                    model_spec=spec_of("shop", signature=signature), input=examples))
                assert [r.value for r in answer.result.regressions] == [score, score]
                assert answer.model_spec == spec_of("shop", 1, signature=signature or "serve_examples")
                answer = client.predictions.Classify(PB.tfs.ClassificationRequest(
                    model_spec=spec_of("shop", signature=signature), input=examples))
                assert [[(c.label, c.score) for c in row.classes] for row in answer.result.classifications] == [
                    [("", score)]] * 2
        for wrong in (example(age=[1.5, 2.0]), example(**{**whole, "user": [1, 2]}), example(**{**whole, "age": [1]}),
                      example(**{**whole, "user": [b"x"]}), example(**{**whole, "user": [100]})):
            request = PB.tfs.RegressionRequest(model_spec=spec_of("shop", signature="serving_default"),
                                               input={"example_list": {"examples": [wrong]}})
            fails(Code.INVALID_ARGUMENT, lambda: client.predictions.Regress(request))
        for empty in (PB.tfs.Input(), PB.tfs.Input(example_list={}), PB.tfs.Input(example_list_with_context={})):
            request = PB.tfs.RegressionRequest(model_spec=spec_of("shop"), input=empty)
            fails(Code.INVALID_ARGUMENT, lambda: client.predictions.Regress(request), "Input is empty")
        request = PB.tfs.RegressionRequest(model_spec=spec_of("shop", signature="s"), input=plain)
        fails(Code.FAILED_PRECONDITION, lambda: client.predictions.Regress(request), '"s"')
        assert client.server.metric(':tensorflow:serving:request_example_count_total{model="shop"}') == 24
        assert client.server.metric(':tensorflow:serving:request_latency_count{model_name="shop",API="Regress",'
                                    'entrypoint="GRPC"}') == 6


# ---- KServe v2

def infer_request(model, tensors, raw=False, **more):
    """`tensors` are (name, dtype of TensorFlow, shape, values)."""
    request = PB.kserve.ModelInferRequest(model_name=model, **more)
    for name, dtype, shape, values in tensors:
        _, field, datatype, _ = stubs.DTYPES[dtype]
        one = request.inputs.add(name=name, datatype=datatype, shape=shape)
        if raw:
            request.raw_input_contents.append(stubs.packed(dtype, values))
        else:
            getattr(one.contents, field).extend(values)
    return request


def infer_outputs(answer):
    out = {}
    dtype_of = {entry[2]: (dtype, entry[1]) for dtype, entry in stubs.DTYPES.items()}
    for i, output in enumerate(answer.outputs):
        dtype, field = dtype_of[output.datatype]
        values = list(getattr(output.contents, field))
        if answer.raw_output_contents:
            assert not output.HasField("contents")
            values = stubs.unpacked(dtype, answer.raw_output_contents[i])
        out[output.name] = (list(output.shape), values)
    return out


SHOP_TENSORS = [("age", "DT_FLOAT", [1, 2], [1.5, 2.0]), ("user", "DT_INT64", [1, 1], [3]),
                ("seen.values", "DT_INT64", [2], [1, 2]), ("seen.row_splits", "DT_INT64", [2], [0, 2])]


def s142_infer():
    with serve("kinds") as client:
        tensors = [(name, *entry) for name, entry in KINDS.items()]
        for raw in (False, True):
            answer = client.kserve.ModelInfer(infer_request("kinds", tensors, raw, id="7"))
            assert infer_outputs(answer) == {f"{name}_out": (shape, values) for name, (_, shape, values) in KINDS.items()}
            assert bool(answer.raw_output_contents) == raw
            assert (answer.model_name, answer.model_version, answer.id) == ("kinds", "1", "7")
        request = infer_request("kinds", tensors, outputs=[{"name": "u_out"}, {"name": "f_out"}])
        assert [output.name for output in client.kserve.ModelInfer(request).outputs] == ["u_out", "f_out"]
        empty = [(name, dtype, [0, *shape[1:]], []) for name, dtype, shape, _ in tensors]
        assert infer_outputs(client.kserve.ModelInfer(infer_request("kinds", empty)))["u_out"] == ([0], [])
    with serve("shop") as client:
        score = rest_score(client)
        ends = SHOP_TENSORS[:3] + [("seen.row_ends", "DT_INT64", [1], [2])]
        for tensors in (SHOP_TENSORS, SHOP_TENSORS[::-1], ends):
            for raw in (False, True):
                answer = client.kserve.ModelInfer(infer_request("shop", tensors, raw, model_version="1"))
                assert infer_outputs(answer) == {"score": ([1, 1], score)}

        def refused(request, *words, code=Code.INVALID_ARGUMENT):
            fails(code, lambda: client.kserve.ModelInfer(request), *words)

        def changed(position, entry):
            return SHOP_TENSORS[:position] + [entry] + SHOP_TENSORS[position + 1:]

        for tensors, word in ((SHOP_TENSORS[1:], "'age'"), (SHOP_TENSORS * 2, "'age'"),
                              (changed(0, ("z", "DT_FLOAT", [1, 2], [1, 2])), "'z'"),
                              (changed(0, ("age", "DT_DOUBLE", [1, 2], [1, 2])), "FP32"),
                              (changed(0, ("age", "DT_FLOAT", [1, 2], [1])), "'age'"),
                              (changed(0, ("age", "DT_FLOAT", [1, -2], [1])), "'age'"),
                              (changed(1, ("user", "DT_INT64", [1, 1], [8])), "8")):
            for raw in (False, True):
                refused(infer_request("shop", tensors, raw), word)
        both = infer_request("shop", SHOP_TENSORS, True)
        both.inputs[0].contents.fp32_contents.extend([1.5, 2.0])
        refused(both, "'age'", "raw_input_contents")
        few = infer_request("shop", SHOP_TENSORS, True)
        del few.raw_input_contents[3]
        refused(few, "raw_input_contents")
        for name, value in (("sequence_id", {"int64_param": 5}), ("sequence_id", {"string_param": "a"}),
                            ("classification", {"int64_param": 1}), ("timeout", {"string_param": "1"})):
            request = infer_request("shop", SHOP_TENSORS)
            request.parameters[name].CopyFrom(PB.kserve.InferParameter(**value))
            refused(request, name)
        request = infer_request("shop", SHOP_TENSORS)
        request.parameters["sequence_id"].int64_param = 0
        request.parameters["other"].string_param = "x"
        assert infer_outputs(client.kserve.ModelInfer(request)) == {"score": ([1, 1], score)}
        request.parameters["timeout"].uint64_param = 1
        refused(request, code=Code.DEADLINE_EXCEEDED)
        refused(infer_request("shop", SHOP_TENSORS, outputs=[{"name": "z"}]), "'z'")
        for which in ({"model_version": "2"}, {"model_version": "9" * 20}, {"model_version": "l"}):
            refused(infer_request("shop", SHOP_TENSORS, **which), code=Code.NOT_FOUND)
        refused(infer_request("nope", SHOP_TENSORS), code=Code.NOT_FOUND)


def s142_pages():
    with serve("shop") as client:
        kserve, ask = PB.kserve, client.kserve
        assert ask.ServerLive(kserve.ServerLiveRequest()).live
        assert ask.ServerReady(kserve.ServerReadyRequest()).ready
        assert ask.ModelReady(kserve.ModelReadyRequest(name="shop")).ready
        assert ask.ModelReady(kserve.ModelReadyRequest(name="shop", version="1")).ready
        for which in ({"name": "nope"}, {"name": "shop", "version": "2"}, {"name": "shop", "version": "l"}):
            fails(Code.NOT_FOUND, lambda: ask.ModelReady(kserve.ModelReadyRequest(**which)))
            fails(Code.NOT_FOUND, lambda: ask.ModelMetadata(kserve.ModelMetadataRequest(**which)))
        rest = json.loads(client.server.get("/v2").text)
        server = ask.ServerMetadata(kserve.ServerMetadataRequest())
        assert (server.name, server.version) == (rest["name"], rest["version"]) and "statistics" in server.extensions
        rest = json.loads(client.server.get("/v2/models/shop").text)
        model = ask.ModelMetadata(kserve.ModelMetadataRequest(name="shop"))
        assert (model.name, list(model.versions), model.platform) == ("shop", ["1"], rest["platform"])
        for kind in ("inputs", "outputs"):
            assert [{"name": t.name, "datatype": t.datatype, "shape": list(t.shape)} for t in getattr(model, kind)] == rest[kind]
        index = ask.RepositoryIndex(kserve.RepositoryIndexRequest(ready=True))
        assert [(m.name, m.version, m.state, m.reason) for m in index.models] == [("shop", "1", "READY", "")]
        ask.ModelInfer(infer_request("shop", SHOP_TENSORS))
        for which in ({}, {"name": "shop"}, {"name": "shop", "version": "1"}):
            stats, = ask.ModelStatistics(kserve.ModelStatisticsRequest(**which)).model_stats
            assert (stats.name, stats.version, stats.inference_count, stats.inference_stats.success.count) == ("shop", "1", 1, 1)
            assert stats.inference_stats.compute_infer.ns > 0


# ---- health, limits, start and stop

def s039_s143_health():
    base = base_of("health", "step_1")
    base.mkdir()
    names = ["", "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService",
             "inference.GRPCInferenceService"]
    with Client("--model_name=step", f"--model_base_path={base}", "--lame_duck_seconds=1", wait="line") as client:
        health, Check = PB.health.HealthCheckResponse, PB.health.HealthCheckRequest

        def check(name=""):
            return client.health.Check(Check(service=name)).status

        assert [check(name) for name in names] == [health.NOT_SERVING] * 4
        assert not client.kserve.ServerReady(PB.kserve.ServerReadyRequest()).ready
        fails(Code.NOT_FOUND, lambda: check("nope"))
        assert not client.kserve.ModelReady(PB.kserve.ModelReadyRequest(name="step")).ready
        seen, ended = {name: [] for name in [*names, "nope"]}, []

        def watch(name):
            try:
                for answer in client.health.Watch(Check(service=name)):
                    seen[name].append(answer.status)
            except grpc.RpcError as error:
                ended.append(error.code())

        threads = [threading.Thread(target=watch, args=(name,)) for name in seen]
        for thread in threads:
            thread.start()
        until(lambda: all(seen.values()), 10, "first statuses")
        cancelled = client.health.Watch(Check())
        assert next(cancelled).status == health.NOT_SERVING
        cancelled.cancel()
        publish(FILES / "step_1.keras", base, 1)
        until(lambda: client.server.get("/readyz").status == 200, 10, "ready")
        assert [check(name) for name in names] == [health.SERVING] * 4
        assert client.kserve.ServerReady(PB.kserve.ServerReadyRequest()).ready
        until(lambda: seen[""] == [health.NOT_SERVING, health.SERVING], 5, "the change")
        client.server.signal(signal.SIGTERM)
        until(lambda: check() == health.NOT_SERVING, 5, "not serving")  # in the lame duck's second
        assert client.server.get("/readyz").status == 503
        assert client.server.wait() == 0
        for thread in threads:
            thread.join(10)
        for name in names:
            assert seen[name] == [health.NOT_SERVING, health.SERVING, health.NOT_SERVING], (name, seen[name])
        assert seen["nope"] == [health.SERVICE_UNKNOWN] and ended == [Code.UNAVAILABLE] * 5, (seen, ended)
    with serve("shop", "--enable_grpc_healthcheck_service=false") as client:
        fails(Code.UNIMPLEMENTED, lambda: client.health.Check(PB.health.HealthCheckRequest()))


def peak_kib(client):
    text = pathlib.Path(f"/proc/{client.server.process.pid}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0])


def slow_request(rows):
    return request_of("slow", x=tensor("DT_FLOAT", [rows, 1], [0.5]))


def s144_limits_and_garbage():
    with serve("shop", "--max_request_bytes=100000", "--max_rows_per_request=10") as client:
        score = rest_score(client)
        big = shop(seen__values=tensor("DT_INT64", [20000], [1] * 20000, True))
        fails(Code.RESOURCE_EXHAUSTED, lambda: client.predict("shop", **big))
        rows = {"age": tensor("DT_FLOAT", [11, 2], [1.0]), "user": tensor("DT_INT64", [11, 1], [1])}
        fails(Code.INVALID_ARGUMENT, lambda: client.predict("shop", **shop(**rows)), "10 rows", "11")
        for stub, request in ((client.predictions.MultiInference, PB.tfs.MultiInferenceRequest()),
                              (client.models.HandleReloadConfigRequest, PB.tfs.ReloadConfigRequest()),
                              (client.kserve.RepositoryModelLoad, PB.kserve.RepositoryModelLoadRequest())):
            fails(Code.UNIMPLEMENTED, lambda: stub(request))
        for path in ("/tensorflow.serving.PredictionService/Nope", "/x.Y/Z",
                     "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"):
            fails(Code.UNIMPLEMENTED, lambda: client.channel.unary_unary(path)(b""))
        paths = ["/tensorflow.serving.PredictionService/Predict", "/tensorflow.serving.PredictionService/Classify",
                 "/tensorflow.serving.PredictionService/GetModelMetadata", "/inference.GRPCInferenceService/ModelInfer",
                 "/grpc.health.v1.Health/Check"]
        draw = random.Random(7)
        good = [request_of("shop", **shop()).SerializeToString(), infer_request("shop", SHOP_TENSORS).SerializeToString(),
                infer_request("shop", SHOP_TENSORS, True).SerializeToString()]
        for path in paths:
            fails(Code.INVALID_ARGUMENT, lambda: client.channel.unary_unary(path)(b"\xff\xff\xff"))
        fails(Code.INVALID_ARGUMENT,
              lambda: list(client.channel.unary_stream("/grpc.health.v1.Health/Watch")(b"\xff\xff")))
        seen = set()
        for _ in range(3000):  # mutations: an answer or an error of the client's
            body = bytearray(draw.choice(good))
            for _ in range(draw.randint(1, 4)):
                kind, at = draw.randrange(3), draw.randrange(len(body))
                if kind == 0:
                    body[at] = draw.randrange(256)
                elif kind == 1:
                    del body[at:at + draw.randint(1, 8)]
                else:
                    body[at:at] = bytes(draw.randrange(256) for _ in range(draw.randint(1, 4)))
            try:
                client.channel.unary_unary(draw.choice(paths))(bytes(body))
                seen.add(Code.OK)
            except grpc.RpcError as error:
                seen.add(error.code())
        assert seen <= {Code.OK, Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.FAILED_PRECONDITION}, seen
        long = fails(Code.NOT_FOUND, lambda: client.predict("n" * 3000))
        assert 1000 < len(long) <= 1024 and long.endswith("...TRUNCATED"), len(long)
        assert values_of(client.predict("shop", **shop()).outputs["score"])[1] == score
        # A compressed message of a thousand times the limit costs no memory.
        before = peak_kib(client)
        bomb = shop(seen__values=PB.tf.TensorProto(dtype="DT_INT64", tensor_content=bytes(90 * 2 ** 20)))
        fails(Code.RESOURCE_EXHAUSTED, lambda: client.predictions.Predict(
            request_of("shop", **bomb), compression=grpc.Compression.Gzip), "100000 bytes")
        grown = peak_kib(client) - before
        assert grown < 20 * 1024, f"{grown} KiB"


def s144_compression():
    with serve("shop") as client:
        score = rest_score(client)
        for kind in (grpc.Compression.Gzip, grpc.Compression.Deflate):
            padded = request_of("shop", **shop())  # that is worth compressing
            padded.of_another_release = "x" * 10000
            for request in (padded, request_of("shop", **shop())):
                answer = client.predictions.Predict(request, compression=kind)
                assert values_of(answer.outputs["score"])[1] == score


def s144_deadline_and_cancellation():
    with serve("slow", "--grpc_max_threads=2", "--rest_api_timeout_in_ms=1500", "--max_pending_requests=3") as client:
        predict = client.predictions.Predict
        begin = time.monotonic()
        sample = 20 if SANITIZED else 2000
        predict(slow_request(sample))
        per_row = (time.monotonic() - begin) / sample
        rows = min(int(6 / per_row), 99999)  # some 6 s
        # The client's deadline is shorter.
        begin = time.monotonic()
        fails(Code.DEADLINE_EXCEEDED, lambda: predict(slow_request(rows), timeout=0.5))
        assert time.monotonic() - begin < 1.2
        # One thread computes and one reads: queued calls end by the server's time-out, uncomputed.
        pending = [predict.future(slow_request(10)) for _ in range(2)]
        for call in pending:
            assert call.code() in (Code.DEADLINE_EXCEEDED, Code.OK)
        until(lambda: client.server.metric("keel_pending_requests") == 0, 60, "the end of the slow request")
        before = client.server.metric('nv_inference_count{model="slow"')
        running = predict.future(slow_request(rows))
        until(lambda: client.server.metric("keel_pending_requests") == 1, 5, "a running request")
        queued = [predict.future(slow_request(7)) for _ in range(2)]
        until(lambda: client.server.metric("keel_pending_requests") == 3, 5, "queued requests")
        begin = time.monotonic()
        fails(Code.RESOURCE_EXHAUSTED, lambda: predict(slow_request(1)))
        assert time.monotonic() - begin < 0.5  # at once
        queued[0].cancel()
        assert client.health.Check(PB.health.HealthCheckRequest()).status == PB.health.HealthCheckResponse.SERVING
        assert queued[1].code() == Code.DEADLINE_EXCEEDED, queued[1].code()
        assert running.code() == Code.DEADLINE_EXCEEDED, running.code()
        assert time.monotonic() - begin < 4
        until(lambda: client.server.metric("keel_pending_requests") == 0, 60, "the end of the slow request")
        # Only the running request was computed, to its end.
        assert client.server.metric('nv_inference_count{model="slow"') - before == rows
        predict(slow_request(1))


def s005_s006_addresses():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        base = base_of("taken", "shop", 1)
        done = subprocess.run([KEEL, "serve", "--model_name=shop", f"--model_base_path={base}", "--rest_api_port=-1",
                               f"--port={port}"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and f"127.0.0.1:{port}" in done.stderr, done
    path = WORK / "socket"
    path.unlink(missing_ok=True)
    with serve("shop", f"--grpc_socket_path={path}", port=0) as client:
        assert client.server.grpc == f"unix:{path}"
        assert values_of(client.predict("shop", **shop()).outputs["score"])[1] == rest_score(client)
        listening = subprocess.run(["ls", "-l", f"/proc/{client.server.process.pid}/fd"], capture_output=True, text=True)
        assert listening.stdout.count("socket:") < 20
    base = base_of("both", "shop", 1)
    with Server(KEEL, "--model_name=shop", f"--model_base_path={base}", "--port=-1", f"--grpc_socket_path={path}") as server:
        until(lambda: server.log().count("serving gRPC at ") == 2, 5, "both lines")


def s011_drain():
    with serve("slow", "--drain_timeout_seconds=60") as client:
        begin = time.monotonic()
        client.predictions.Predict(slow_request(2000))
        rows = min(int(1.5 / ((time.monotonic() - begin) / 2000)), 99999)
        calls = [client.predictions.Predict.future(slow_request(rows)) for _ in range(2)]
        until(lambda: client.server.metric("keel_pending_requests") == 2, 5, "running requests")
        client.server.signal(signal.SIGTERM)
        for call in calls:
            assert len(values_of(call.result().outputs["y"])[1]) == rows
        assert client.server.wait() == 0
        fails(Code.UNAVAILABLE, lambda: client.predictions.Predict(slow_request(1), timeout=5))


def s013_drain_time_is_over():
    base = base_of("drain", "slow", 1)
    client = Client("--model_name=slow", f"--model_base_path={base}", "--drain_timeout_seconds=0.3",
                    "--rest_api_timeout_in_ms=0")
    call = client.predictions.Predict.future(slow_request(99999))
    until(lambda: client.server.metric("keel_pending_requests") == 1, 5, "a running request")
    client.server.signal(signal.SIGTERM)
    assert client.server.wait() == 1, client.server.log()
    assert call.code() == Code.UNAVAILABLE
    client.channel.close()


def s032_warm_up_records():
    def records(*requests):
        out = b""
        for request in requests:
            log = PB.tfs.PredictionLog()
            if request is None:
                log.regress_log.SetInParent()
            else:
                log.predict_log.request.CopyFrom(request)
            data = log.SerializeToString()
            size = struct.pack("<Q", len(data))
            out += size + masked_crc(size) + data + masked_crc(data)
        return out

    base = base_of("warm", "step_1", 1)
    row = {"user": tensor("DT_INT64", [1, 1], [1]), "x": tensor("DT_FLOAT", [1, 1], [1.0])}
    bad = {**row, "user": tensor("DT_INT64", [1, 1], [100])}
    with Client("--model_name=step", f"--model_base_path={base}", "--max_num_load_retries=0") as client:
        for version, content in ((2, records(request_of("step", **row), None)),
                                 (3, records(request_of("step", **row), request_of("step", **bad))), (4, b"\1\2\3")):
            hidden = base / ".next"
            hidden.mkdir()
            shutil.copy(FILES / f"step_{min(version, 2)}.keras", hidden / "model.keras")
            (hidden / "assets.extra").mkdir()
            (hidden / "assets.extra/tf_serving_warmup_requests").write_bytes(content)
            for path in hidden.rglob("*"):
                os.utime(path, (time.time() - 3600,) * 2)
            hidden.rename(base / str(version))
            wanted = "AVAILABLE" if version == 2 else "END"
            until(lambda: client.server.states("step").get(version) == wanted, 10, f"version {version}")
        answer = client.predict("step", **row)
        assert answer.model_spec.version.value == 2
        status = client.models.GetModelStatus(PB.tfs.GetModelStatusRequest(model_spec=spec_of("step", 3)))
        message = status.model_version_status[0].status.error_message
        assert "record 2" in message and "100" in message and str(base) not in message, message
        assert status.model_version_status[0].state == 50
        assert client.server.metric('nv_inference_count{model="step",version="2"}') == 1


def masked_crc(data):
    """CRC-32C as TFRecord files store it."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


# ---- metrics, bits, swaps, symbols

def s150_s151_metrics():
    with serve("shop", "--log_requests") as client:
        for _ in range(5):
            client.predict("shop", **shop())
        client.kserve.ModelInfer(infer_request("shop", SHOP_TENSORS))
        client.server.predict("shop", [SHOP_JSON])
        fails(Code.INVALID_ARGUMENT, lambda: client.predict("shop"))
        fails(Code.NOT_FOUND, lambda: client.predict("nope"))
        metric = client.server.metric
        for api, count in (("Predict", 5), ("ModelInfer", 1)):
            labels = f'{{model_name="shop",API="{api}",entrypoint="GRPC"}}'
            assert metric(":tensorflow:serving:request_latency_count" + labels) == count
            labels = f'{{model_name="shop",API="{api}",runtime="KEEL"}}'
            assert metric(":tensorflow:serving:runtime_latency_count" + labels) == count
        assert metric(':tensorflow:serving:request_latency_count{model_name="shop",API="predict",entrypoint="REST"}') == 1
        assert metric(':tensorflow:serving:request_count{model_name="shop",status="OK"}') == 7
        assert metric(':tensorflow:serving:request_count{model_name="shop",status="INVALID_ARGUMENT"}') == 1
        assert metric(':tensorflow:serving:request_count{model_name="",status="NOT_FOUND"}') == 1
        assert metric('nv_inference_request_success{model="shop",version="1"}') == 7
        assert "nope" not in client.server.get("/metrics").text.decode()
        until(lambda: "gRPC /tensorflow.serving.PredictionService/Predict OK" in client.server.log(), 5, "the log")


def s184_same_bits():
    draw = random.Random(3)
    with serve("shop") as client:
        for _ in range(200):
            rows = draw.choice([1, 2, 7, 32])
            age = f32([draw.gauss(0, 3) for _ in range(2 * rows)])
            user = [draw.randrange(8) for _ in range(rows)]
            seen = [[draw.randrange(10) for _ in range(draw.randrange(5))] for _ in range(rows)]
            splits = [0]
            for row in seen:
                splits.append(splits[-1] + len(row))
            flat = sum(seen, [])
            answer = client.server.predict("shop", [
                {"age": age[2 * i:2 * i + 2], "user": user[i:i + 1], "seen": seen[i]} for i in range(rows)])
            wanted = bits([row[0] for row in json.loads(answer.text)["predictions"]])
            entries = [("age", "DT_FLOAT", [rows, 2], age), ("user", "DT_INT64", [rows, 1], user),
                       ("seen.values", "DT_INT64", [len(flat)], flat),
                       ("seen.row_splits", "DT_INT64", [rows + 1], splits)]
            for flag in (False, True):
                inputs = {name.replace(".", "__"): tensor(*rest, flag) for name, *rest in entries}
                assert bits(values_of(client.predict("shop", **inputs).outputs["score"])[1]) == wanted
                infer = client.kserve.ModelInfer(infer_request("shop", entries, flag))
                assert bits(infer_outputs(infer)["score"][1]) == wanted


def s034_swaps_under_load():
    base = base_of("swaps", "step_1", 1)
    row = {"user": tensor("DT_INT64", [1, 1], [1], True), "x": tensor("DT_FLOAT", [1, 1], [1.0], True)}
    with Client("--model_name=step", f"--model_base_path={base}", "--file_system_poll_wait_seconds=0.02") as client:
        stop, errors, count = threading.Event(), [], [0] * 4

        def load(i):
            try:
                while not stop.is_set():
                    answer = client.predict("step", **row)
                    version = answer.model_spec.version.value
                    first, second = values_of(answer.outputs["y"])[1]
                    assert first == second == (version - 1) % 8 + 1, (version, first, second)
                    count[i] += 1
            except BaseException as error:  # noqa: BLE001, raised below
                errors.append(error)

        threads = [threading.Thread(target=load, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for version in range(2, 10 if SANITIZED else 42):
            publish(FILES / f"step_{(version - 1) % 8 + 1}.keras", base, version)
            until(lambda: client.server.states("step").get(version) == "AVAILABLE" or errors, 20, f"version {version}")
        stop.set()
        for thread in threads:
            thread.join()
        assert not errors, errors[0]
        assert min(count) > (8 if SANITIZED else 40), count


def s145_the_stubs_are_not_the_servers():
    """The .proto files of the stubs are others than the server's, and agree with them on the wire."""
    from google.protobuf import descriptor_pb2

    def wire(field):
        """The kind of a field on the wire: numbers of any width, 4 or 8 bytes, or a length."""
        kinds = descriptor_pb2.FieldDescriptorProto
        if field.type in (kinds.TYPE_DOUBLE, kinds.TYPE_FIXED64, kinds.TYPE_SFIXED64):
            return "8 bytes"
        if field.type in (kinds.TYPE_FLOAT, kinds.TYPE_FIXED32, kinds.TYPE_SFIXED32):
            return "4 bytes"
        return "length" if field.type in (kinds.TYPE_STRING, kinds.TYPE_BYTES, kinds.TYPE_MESSAGE) else "number"

    def messages(folder, *names):
        out = WORK / "descriptors"
        subprocess.run(["protoc", f"--proto_path={folder}", f"--descriptor_set_out={out}", *names], check=True)
        found, left = {}, []
        for file in descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file:
            left += [("", message) for message in file.message_type]
        while left:
            outer, message = left.pop()
            found[outer + message.name] = {field.number: (wire(field), field.label == field.LABEL_REPEATED)
                                           for field in message.field}
            left += [(outer + message.name + ".", inner) for inner in message.nested_type]
        return found

    own = pathlib.Path(__file__).resolve().parents[4] / "savedmodel/serving/grpc"
    servers = messages(own, "tfs_messages.proto", "kserve_messages.proto")
    clients = messages(stubs.PROTOS, "tensorflow.proto", "tensorflow_serving.proto", "inference.proto")
    health = messages(stubs.HEALTH, "grpc/health/v1/health.proto")
    both = [name for name in servers if name in clients or name in health]
    assert len(both) > 40, both
    for name in both:
        for number, kind in servers[name].items():
            known = {**clients, **health}[name].get(number, kind)
            assert kind == known, (name, number, kind, known)


def s146_symbols():
    """The libraries contain nothing of gRPC or of the server's messages, and export no protobuf."""
    def symbols(path, *flags):
        out = subprocess.run(["nm", "-C", *flags, path], capture_output=True, text=True, check=True).stdout
        return out.splitlines()

    libraries = [path for path in BUILD.glob("lib/*.so") if path.name in ("libkeel.so", "libkeel_c.so")]
    archives = [path for path in BUILD.glob("*/libkeel_*.a") if path.name != "libkeel_grpc.a"]
    assert libraries or archives
    for path in libraries:
        exported = symbols(path, "-D", "--defined-only")
        assert exported
        for line in exported:
            assert "grpc" not in line.lower() and " google::protobuf" not in line and "keel::serving::rpc" not in line, line
        assert not any("grpc" in line for line in symbols(path, "-D", "--undefined-only"))
        needed = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        assert "grpc" not in needed
    for path in archives:
        for line in symbols(path):
            assert "grpc::" not in line and "keel::serving::rpc::" not in line, (path, line)


def main():
    global PB
    if "no gRPC" in subprocess.run([KEEL, "serve", "--model_config_file=/nonexistent", "--port=1"], capture_output=True,
                                   text=True).stderr:
        stubs.skip("libgrpc++-dev, and build again")
    WORK.mkdir(parents=True, exist_ok=True)
    PB = stubs.Stubs(WORK / "stubs")
    for program in ("serving_fixtures", "serving_grpc_fixtures"):
        subprocess.run([str(BIN / program), str(FILES)], check=True)
    tests = {name: body for name, body in globals().items() if name[0] == "s" and name[1:4].isdigit()}
    names, failed = sys.argv[4:], []
    for name, body in tests.items():
        if names and not any(part in name for part in names):
            continue
        begin = time.monotonic()
        try:
            body()
            print(f"ok {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        except Exception as error:  # noqa: BLE001, reported
            failed.append(name)
            import traceback
            traceback.print_exc()
            print(f"FAILED {name}: {error}", flush=True)
    sys.exit(1 if failed or not tests else 0)


main()
