#!/usr/bin/env python3
"""documented_client.py DOC ADDRESS STUBS: runs the Python client of docs/serving.md on a server, with
stubs of the tests' own .proto files in place of the packages that it imports."""
import pathlib
import re
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import stubs

stubs.require()
made = stubs.Stubs(pathlib.Path(sys.argv[3]))
for name, members in {
        "tensorflow": {}, "tensorflow.core": {},
        "tensorflow.core.framework": {"tensor_pb2": made.tf, "types_pb2": made.tf},
        "tensorflow_serving": {},
        "tensorflow_serving.apis": {"predict_pb2": made.tfs, "prediction_service_pb2_grpc": made.tfs_grpc}}.items():
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module
block, = re.findall(r"(?s)```python server\n(.*?)```", pathlib.Path(sys.argv[1]).read_text())
code = block.replace("127.0.0.1:8500", sys.argv[2])
assert code != block
exec(compile(code, sys.argv[1], "exec"), {})
assert "response" in block
