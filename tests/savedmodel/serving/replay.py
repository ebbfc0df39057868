#!/usr/bin/env python3
"""replay.py KEEL DATA WORK: replays the cases of DATA/cases/serving against a server."""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from server import Server, until

keel, data, work = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3])
shutil.rmtree(work, ignore_errors=True)
replay, cases = data / "tools/replay_http.py", data / "cases/serving"
printed = subprocess.run([sys.executable, replay, "--prepare", cases / "setup.json", work],
                         check=True, capture_output=True, text=True).stdout
flags = [word for word in printed.split() if word.startswith("--") and "rest_api_port" not in word]
with Server(keel, *flags) as server:
    until(lambda: server.states("broken").get(2) == "END", 60, "the broken version ends")
    for _ in range(2):  # the cases may run any number of times
        status = subprocess.run([sys.executable, replay, f"http://127.0.0.1:{server.port}",
                                 cases / "cases.json", *sys.argv[4:]]).returncode
        if status:
            sys.exit(status)
