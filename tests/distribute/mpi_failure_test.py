#!/usr/bin/env python3
"""Starts jobs of several processes one of which fails: all must end soon and report why.

usage: mpi_failure_test.py MPIEXEC NUMPROC_FLAG PROGRAM"""
import os
import re
import subprocess
import sys
import time

MPIEXEC, FLAG, PROGRAM = sys.argv[1:4]
SECONDS = 10  # until a failed job has ended


def run(how, processes, **environment):
    begin = time.monotonic()
    job = subprocess.run([MPIEXEC, FLAG, str(processes), PROGRAM, how], capture_output=True, text=True,
                         timeout=60, env={**os.environ, **environment})
    return job.returncode, job.stdout + job.stderr, time.monotonic() - begin


def expect_failure(how, *texts, processes=3, everywhere=True, seconds=SECONDS, **environment):
    most = seconds
    code, output, seconds = run(how, processes, **environment)
    wrong = []
    if code == 0:
        wrong.append("exit code 0")
    if seconds > most:
        wrong.append(f"took {seconds:.1f} s")
    wrong += [f"no '{text}'" for text in texts if not re.search(text, output)]
    if everywhere:
        wrong += [f"no error of rank {r}" for r in range(processes) if f"rank {r}: " not in output]
    print(f"{how}: {'; '.join(wrong) or 'as expected'} ({seconds:.1f} s)")
    if wrong:
        print(output)
    return not wrong


def expect_success(how, processes, **environment):
    code, output, seconds = run(how, processes, **environment)
    print(f"{how} in {processes}: {'as expected' if code == 0 else output} ({seconds:.1f} s)")
    return code == 0


if __name__ == "__main__":
    results = [
        expect_success("nothing", 1),
        expect_success("nothing", 4),
        expect_success("late", 2),
        expect_success("early", 3),
        expect_failure("throw", "rank 1: this replica is broken",
                       "rank 0: rank 1 failed: replica 1 failed: this replica is broken"),
        expect_failure("leave", "is in barrier 'the last barrier' while rank", "the end of Strategy::run"),
        expect_failure("other", "barrier 'the last barrier'", "all_to_all 'rows'"),
        expect_failure("main", "rank 1: outside of a run", "rank 1 has ended while rank"),
        expect_failure("exit", "rank 1 has ended while rank . is in barrier", everywhere=False),
        expect_failure("kill", everywhere=False),
        expect_failure("hang", "has waited 2 s for rank 1 in barrier 'the last barrier'",
                       everywhere=False, KEEL_PROCESS_TIMEOUT="2"),
        expect_failure("late", "rank 0 has waited 0.2 s for rank 1 to end", processes=2, everywhere=False,
                       KEEL_PROCESS_TIMEOUT="0.2"),
        # The timeout does not count while a process reports long work.
        expect_success("work", 3, KEEL_PROCESS_TIMEOUT="2"),
        expect_failure("hang after work", "has waited 2 s for rank 1 in barrier 'the last barrier'",
                       everywhere=False, seconds=16, KEEL_PROCESS_TIMEOUT="2"),
    ]
    sys.exit(not all(results))
