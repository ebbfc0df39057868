"""Generates gRPC stubs for Python with protoc, and helpers for messages.

health.proto is that of Debian's package grpc-proto. The other files, in ../protos, were written for
these tests from the published field numbers, separately from the messages of the server: Debian has
no package with TensorFlow Serving's or KServe's files.
"""
import importlib
import os
import pathlib
import shutil
import struct
import subprocess
import sys

PROTOS = pathlib.Path(__file__).parent.parent / "protos"
HEALTH = pathlib.Path("/usr/share/grpc-proto")
SKIPPED = 77


def require():
    """Imports grpc, or runs the script with Debian's Python, or skips the test."""
    try:
        import grpc  # noqa: F401
        import google.protobuf  # noqa: F401
    except ImportError:
        # Debian's modules belong to Debian's Python, which need not be the first in PATH.
        debian = "/usr/bin/python3"
        if os.path.exists(debian) and sys.executable != debian and "KEEL_STUBS" not in os.environ:
            os.environ["KEEL_STUBS"] = "1"
            os.execv(debian, [debian, *sys.argv])
        skip("python3-grpcio and python3-protobuf")
    if not shutil.which("protoc") or not shutil.which("grpc_python_plugin"):
        skip("protobuf-compiler-grpc")
    if not (HEALTH / "grpc/health/v1/health.proto").exists():
        skip("grpc-proto")


def skip(what):
    print(f"skipped: install {what}")
    sys.exit(SKIPPED)


class Stubs:
    """The modules of all messages and services."""

    def __init__(self, out):
        out.mkdir(parents=True, exist_ok=True)
        plugin = shutil.which("grpc_python_plugin")
        files = ["tensorflow.proto", "tensorflow_serving.proto", "inference.proto"]
        for root, names in ((PROTOS, files), (HEALTH, ["grpc/health/v1/health.proto"])):
            # A copy, because a folder `grpc` in the path of modules would hide grpc itself.
            copies = out / "protos"
            copies.mkdir(exist_ok=True)
            names = [shutil.copy(root / name, copies) and pathlib.Path(name).name for name in names]
            subprocess.run(["protoc", f"--proto_path={copies}", f"--plugin=protoc-gen-grpc_python={plugin}",
                            f"--python_out={out}", f"--grpc_python_out={out}", *names], check=True)
        sys.path.insert(0, str(out))
        load = importlib.import_module
        self.tf, self.tfs = load("tensorflow_pb2"), load("tensorflow_serving_pb2")
        self.tfs_grpc = load("tensorflow_serving_pb2_grpc")
        self.kserve, self.kserve_grpc = load("inference_pb2"), load("inference_pb2_grpc")
        self.health, self.health_grpc = load("health_pb2"), load("health_pb2_grpc")


# Of each dtype: the field of TensorProto, that of InferTensorContents, the name of KServe v2, and the
# format of struct.
DTYPES = {"DT_FLOAT": ("float_val", "fp32_contents", "FP32", "f"),
          "DT_DOUBLE": ("double_val", "fp64_contents", "FP64", "d"),
          "DT_INT32": ("int_val", "int_contents", "INT32", "i"),
          "DT_INT64": ("int64_val", "int64_contents", "INT64", "q"),
          "DT_BOOL": ("bool_val", "bool_contents", "BOOL", "?"),
          "DT_UINT8": ("int_val", "uint_contents", "UINT8", "B"),
          "DT_INT8": ("int_val", "int_contents", "INT8", "b"),
          "DT_STRING": ("string_val", "bytes_contents", "BYTES", None)}


def packed(dtype, values):
    """Numbers as little-endian bytes; strings each after its length."""
    form = DTYPES[dtype][3]
    if form is None:
        return b"".join(struct.pack("<I", len(value)) + value for value in values)
    return struct.pack(f"<{len(values)}{form}", *values)


def unpacked(dtype, data):
    form = DTYPES[dtype][3]
    if form is not None:
        return list(struct.unpack(f"<{len(data) // struct.calcsize(form)}{form}", data))
    out = []
    while data:
        size, = struct.unpack("<I", data[:4])
        out.append(data[4:4 + size])
        data = data[4 + size:]
    return out
