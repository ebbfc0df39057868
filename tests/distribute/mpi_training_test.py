#!/usr/bin/env python3
"""Trains in different numbers of processes. The results must have the same bits, checkpoints must be
readable by any number of processes, and a failed job must end soon and report why.

usage: mpi_training_test.py MPIEXEC NUMPROC_FLAG PROGRAM CASE; PROGRAM is train_ctr for the case
train_ctr, mpi_dynamic_program for dynamic_* and mpi_training_program for the others"""
import filecmp
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MPIEXEC, FLAG, PROGRAM, CASE = sys.argv[1:5]
SECONDS = 10  # until a failed job has ended
PLAIN = 0  # stands for a run without mpirun
PLACES = [(4, 1), (2, 2), (6, 1), (3, 2)]  # hosts and cores

faults = []


def expect(right, what):
    if not right:
        faults.append(what)
        print("WRONG:", what)
    return right


def command(processes, arguments):
    words = [PROGRAM] + [f"{k}={v}" if CASE != "train_ctr" else f"--{k}={v}" for k, v in arguments.items()]
    return words if processes == PLAIN else [MPIEXEC, FLAG, str(processes)] + words


def run(processes, **arguments):
    """Returns exit code, standard output, standard error and seconds."""
    begin = time.monotonic()
    job = subprocess.run(command(processes, arguments), capture_output=True, text=True, timeout=100)
    return job.returncode, job.stdout, job.stderr, time.monotonic() - begin


def output(processes, **arguments):
    code, out, err, _ = run(processes, **arguments)
    expect(code == 0, f"exit code {code} of {processes} processes with {arguments}:\n{out}{err}")
    return out


def place(hosts, cores):
    return {"hosts": hosts, "cores": cores}


def numbers(hosts):
    return range(1, min(hosts, 4) + 1)


def same_bits(folder):
    def result(processes, mode, hosts, cores):
        file = folder / f"{mode}-{processes}.h5"
        text = output(processes, mode=mode, export=file, **place(hosts, cores))
        lines = re.sub(r" - \d+s - [\d.]+\w+/step", "", text).splitlines()  # times differ
        of_all = [x for x in lines if x.startswith("predictions")]
        progress = [x for x in lines if x.startswith("Epoch")]
        expect(len(of_all) == (max(1, processes) if mode == "fit" else 0), f"predictions of all: {of_all}")
        expect(len(progress) == (3 if mode == "fit" else 0), f"progress is printed once: {progress}")
        return [x for x in lines if x not in of_all + progress], set(of_all), file

    for hosts, cores in PLACES:
        for mode in ("loop", "fit"):
            lines, predictions, file = result(PLAIN, mode, hosts, cores)
            for processes in numbers(hosts):
                got = result(processes, mode, hosts, cores)
                where = f"{mode} of {hosts} hosts of {cores} cores in {processes} processes"
                expect(got[0] == lines, f"{where}: {got[0]} instead of {lines}")
                expect(got[1] == predictions, f"{where}: other predictions")
                if mode == "fit":
                    expect(filecmp.cmp(file, got[2], shallow=False), f"{where}: another file")
                print(where, lines[-1])


def partitions(folder):
    """Rows of host r mod hosts: the same results, and checkpoints that any job reads, also of rows in blocks."""
    for hosts, cores in PLACES:
        whole = state(output(PLAIN, steps=30, norm=0, **place(hosts, cores)))
        for processes in (PLAIN, *numbers(hosts)):
            got = state(output(processes, steps=30, norm=0, partition="mod", **place(hosts, cores)))
            expect(got == whole, f"mod of {hosts} hosts in {processes} processes: {got} instead of {whole}")
    whole = state(output(PLAIN, steps=30, norm=0, **place(6, 1)))
    for writer, written_as in ((3, "mod"), (2, "mod"), (3, "div")):
        source = folder / f"{written_as}-{writer}"
        written = state(output(writer, steps=15, every=15, checkpoints=source, norm=0, partition=written_as,
                               **place(6, 1)))
        for reader, read_as in ((1, "mod"), (2, "mod"), (4, "mod"), (PLAIN, "div"), (2, "div")):
            copy = folder / f"{written_as}-{writer}-to-{read_as}-{reader}"
            shutil.copytree(source, copy)
            text = output(reader, steps=30, every=30, checkpoints=copy, norm=0, partition=read_as, **place(6, 1))
            where = f"{written_as} of {writer}, read as {read_as} by {reader} processes"
            expect(state(text, "restored 15 ") == written, f"{where}: restored {text}, written {written}")
            expect(state(text) == whole, f"{where}: went on to {text} instead of {whole}")
        print(f"{written_as} of {writer}: {written}, then {whole}")


def norms(folder):
    """Gradients of tables that are clipped by their norm: the same bits in any number of processes."""
    for hosts, cores in PLACES:
        free = state(output(PLAIN, steps=20, **place(hosts, cores)))
        whole = state(output(PLAIN, steps=20, thousandths_of_norm=5, **place(hosts, cores)))
        expect(whole != free, f"nothing is clipped on {hosts} hosts")
        for processes in numbers(hosts):
            got = state(output(processes, steps=20, thousandths_of_norm=5, **place(hosts, cores)))
            expect(got == whole, f"norms on {hosts} hosts in {processes} processes: {got} instead of {whole}")
        print(hosts, cores, whole)


def state(text, before=""):
    """Returns the checksum at the end of the line that begins with `before`."""
    found = re.search(rf"^{before}state (\w+)$", text, re.M)
    return found.group(1) if found else None


def checkpoints(folder):
    whole = state(output(PLAIN, steps=30, norm=0, **place(6, 1)))
    for norm in (0, 1):
        for writer in (3, PLAIN, 2):
            source = folder / f"{norm}-from-{writer}"
            written = state(output(writer, steps=15, every=15, checkpoints=source, norm=norm, **place(6, 1)))
            parts = len(list(source.glob("*.part-*")))
            expect(parts == max(0, writer - 1), f"{parts} parts written by {writer} processes")
            for reader in (1, 2, 4, PLAIN) if norm == 0 else (2,):
                copy = folder / f"{norm}-{writer}-to-{reader}"
                shutil.copytree(source, copy)
                text = output(reader, steps=30, every=30, checkpoints=copy, norm=norm, **place(6, 1))
                where = f"written by {writer}, read by {reader} processes"
                expect(state(text, "restored 15 ") == written, f"{where}: restored {text}, written {written}")
                expect(norm == 1 or state(text) == whole, f"{where}: went on to {text} instead of {whole}")
            text = output(2, steps=15, checkpoints=source, norm=norm, **place(2, 2))
            expect(state(text, "restored 15 ") == written, f"other hosts: restored {text}")
            print(f"written by {writer}: {written}, then {whole}")
    # A process that writes its 64 MiB of rows copies only small blocks of them. AddressSanitizer must
    # not keep freed memory.
    kept = os.environ.get("ASAN_OPTIONS", "")
    os.environ["ASAN_OPTIONS"] = kept + ":quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
    code, out, err, _ = run(2, steps=2, every=2, users=2_000_000, checkpoints=folder / "large", **place(2, 2))
    needed = [int(n) for n in re.findall(r"needs (\d+) MiB", err)]
    os.environ["ASAN_OPTIONS"] = kept
    expect(code == 0 and len(needed) == 2 and max(needed) < 45, f"memory to write: {needed} MiB {out}{err}")
    print("memory to write:", needed)


def dynamic_checkpoints(folder):
    """D-091: tables for unbounded ids, saved and restored by 1 to 4 processes."""
    whole = state(output(PLAIN, hosts=4, steps=12))
    arrays = set()
    for writer in (PLAIN, 1, 2, 3, 4):
        source = folder / f"from-{writer}"
        source.mkdir()
        text = output(writer, hosts=4, steps=6, save=source / "ckpt.h5")
        written = state(text)
        arrays.add(state(text, "arrays "))
        parts = len(list(source.glob("*.part-*")))
        expect(parts == max(0, writer - 1), f"{parts} parts written by {writer} processes")
        for reader in (PLAIN, 1, 2, 3, 4):
            text = output(reader, hosts=4, steps=12, load=source / "ckpt.h5")
            where = f"written by {writer}, read by {reader} processes"
            expect(state(text, "restored ") == written, f"{where}: restored {text}, written {written}")
            expect(state(text) == whole, f"{where}: went on to {text} instead of {whole}")
        other = output(2, hosts=2, steps=6, load=source / "ckpt.h5")
        expect(state(other, "restored ") == written, f"other hosts: restored {other}")
        print(f"written by {writer}: {written}, then {whole}")
    expect(len(arrays) == 1 and None not in arrays, f"other arrays in other numbers of processes: {arrays}")
    # A process that has 98 MiB of rows and slots copies only small blocks of them.
    kept = os.environ.get("ASAN_OPTIONS", "")
    os.environ["ASAN_OPTIONS"] = kept + ":quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
    code, out, err, _ = run(2, hosts=2, rows=400_000, save=folder / "large.h5")
    needed = [int(n) for n in re.findall(r"(\d+) MiB to", err)]
    os.environ["ASAN_OPTIONS"] = kept
    expect(code == 0 and len(needed) == 4 and max(needed) < 70, f"memory: {needed} MiB {out}{err}")
    print("memory to write and to restore:", needed, out)


def dynamic_variables(folder):
    """D-054, D-091: the same for tables that are variables, which every process holds whole."""
    for hosts in (4, 3):
        whole = state(output(PLAIN, variables=1, hosts=hosts, steps=12))
        for processes in numbers(hosts):
            got = state(output(processes, variables=1, hosts=hosts, steps=12))
            expect(got == whole, f"variables of {hosts} hosts in {processes} processes: {got} instead of {whole}")
    arrays = set()
    whole = state(output(PLAIN, variables=1, hosts=4, steps=12))
    for writer in (PLAIN, 2, 3):
        source = folder / f"from-{writer}"
        source.mkdir()
        text = output(writer, variables=1, hosts=4, steps=6, save=source / "ckpt.h5")
        written = state(text)
        arrays.add(state(text, "arrays "))
        for reader in (PLAIN, 2, 3):
            text = output(reader, variables=1, hosts=4, steps=12, load=source / "ckpt.h5")
            where = f"written by {writer}, read by {reader} processes"
            expect(state(text, "restored ") == written, f"{where}: restored {text}, written {written}")
            expect(state(text) == whole, f"{where}: went on to {text} instead of {whole}")
        print(f"variables written by {writer}: {written}, then {whole}")
    expect(len(arrays) == 1 and None not in arrays, f"other arrays in other numbers of processes: {arrays}")
    two = {"variables": 1, "hosts": 2, "optimizers": 2}
    whole = state(output(PLAIN, steps=12, **two))
    for stop, writer, reader in ((0, PLAIN, 2), (5, PLAIN, 2), (6, 2, PLAIN), (7, 2, 2)):
        path = folder / f"two-{stop}.h5"
        output(writer, steps=stop, save=path, **two)
        got = state(output(reader, steps=12, load=path, **two))
        expect(got == whole, f"two optimizers, stopped at {stop}: {got} instead of {whole}")


def dynamic_norms(folder):
    """D-054: gradients that are clipped by their norms, in an engine and of variables."""
    for variables in (0, 1):
        free = state(output(PLAIN, variables=variables, hosts=4, steps=12))
        whole = state(output(PLAIN, variables=variables, hosts=4, steps=12, thousandths_of_norm=300))
        expect(whole != free, f"nothing is clipped, variables={variables}")
        for processes in (1, 2, 3, 4):
            got = state(output(processes, variables=variables, hosts=4, steps=12, thousandths_of_norm=300))
            expect(got == whole, f"norms in {processes} processes, variables={variables}: {got} instead of {whole}")
    # Restored rows have another order in memory.
    output(2, hosts=4, steps=6, thousandths_of_norm=300, save=folder / "ckpt.h5")
    whole = state(output(PLAIN, hosts=4, steps=12, thousandths_of_norm=300))
    got = state(output(3, hosts=4, steps=12, thousandths_of_norm=300, load=folder / "ckpt.h5"))
    expect(got == whole, f"norms after a restart: {got} instead of {whole}")


def refusals(folder):
    for processes, hosts, cores in ((PLAIN, 3, 1), (3, 3, 1)):
        lines = output(processes, mode="refuse", **place(hosts, cores)).splitlines()
        refused = [x for x in lines if x == "refused: Model.train_on_batch: step 1: "
                   "the label of row 11 of the batch is NaN; check the data"]
        expect(len(refused) == max(1, processes), f"refused in all: {lines}")
        losses = [x for x in lines if x.startswith("loss")]
        expect(len(losses) == 1 and len(lines) == len(refused) + 1, f"and went on: {lines}")
        print(lines)
    lines = sorted(output(3, mode="restore", export=folder / "rows.h5", **place(3, 1)).splitlines())
    expect(lines == ["refused: rank 1: the row of rank 1"] * 2 + ["refused: the row of rank 1"] + ["row 5"] * 3,
           f"restored where one process cannot: {lines}")


def full_disks(folder):
    for rank in (0, 1, 2):
        source = folder / str(rank)
        code, out, err, seconds = run(3, steps=8, every=4, users=6000, full_disk_of=rank, checkpoints=source,
                                      **place(3, 1))
        expect(code != 0 and seconds < SECONDS, f"full disk of {rank}: code {code} after {seconds:.1f} s")
        for r in range(3):
            lines = [x for x in err.splitlines() if x.startswith(f"rank {r}: ")]
            expect(lines and "ckpt-4.h5" in lines[0], f"error of rank {rank} in rank {r}: {out}{err}")
        expect(not (source / "ckpt-4.h5").exists() and not (source / "checkpoint").exists(),
               f"a checkpoint of a full disk: {list(source.iterdir())}")
        print([x for x in err.splitlines() if x.startswith("rank")][:3])
    file = folder / "model.h5"
    code, out, err, seconds = run(2, mode="fit", export=file, full_disk_of=0, **place(2, 1))
    expect(code != 0 and not file.exists(), f"exported to a full disk: {out}{err}")
    # The first rank to abort ends the others, possibly before their messages have arrived.
    expect(re.search(r"^rank (0|1: rank 0): .*model\.h5: cannot be written", err, re.M),
           f"export, no error that names the file: {err}")


def kills(folder):
    chance = random.Random(20)
    source, pids = folder / "checkpoints", folder / "pids"
    pids.mkdir()
    restored = 0
    for turn in range(20):
        processes = 2 + turn % 2
        for file in pids.iterdir():
            file.unlink()
        resumes = (source / "checkpoint").exists()
        log = folder / "log"
        with log.open("w") as out:
            job = subprocess.Popen(command(processes, {"steps": 10**9, "every": 2, "checkpoints": source,
                                                       "pids": pids, **place(3, 1)}),
                                   stdout=out, stderr=subprocess.STDOUT)
            begin = time.monotonic()
            sign = "restored" if resumes else "needs"
            while sign not in log.read_text() and time.monotonic() - begin < 30 and job.poll() is None:
                time.sleep(0.01)
            expect(sign in log.read_text(), f"turn {turn}: {log.read_text()}")
            found = re.search(r"restored (\d+)", log.read_text())
            if resumes and found:
                expect(int(found.group(1)) >= restored, f"turn {turn}: an older checkpoint, {found.group(0)}")
                restored = int(found.group(1))
            time.sleep(chance.random() * 0.5)
            os.kill(int((pids / str(chance.randrange(processes))).read_text()), signal.SIGKILL)
            killed = time.monotonic()
            try:
                code = job.wait(timeout=60)
            except subprocess.TimeoutExpired:
                job.kill()
                code = 0
            seconds = time.monotonic() - killed
        expect(code != 0 and seconds < SECONDS, f"turn {turn}: code {code} after {seconds:.1f} s")
    text = output(PLAIN, steps=0, checkpoints=source, **place(3, 1))
    expect(text.startswith("restored"), f"after all: {text}")
    print("restored after 20 kills:", text)


def train_ctr(folder):
    data = folder / "data"
    data.mkdir()
    (data / "schema.json").write_text(
        '{"label": "click", "numeric": ["age", "price"], "categorical": ["user", "item"]}')
    for part, shift in (("train", 0), ("test", 7)):
        rows = [f"{(u + t) % 2},{20 + i % 50},{i * 37 % 100 / 10},u{u},i{t}" for i in range(600)
                for u, t in (((i * 7 + shift) % 23, (i * 13 + shift) % 11),)]
        (data / f"{part}.csv").write_text("\n".join(["click,age,price,user,item"] + rows) + "\n")

    def train(processes, hosts, cores, name, **more):
        text = output(processes, data=data, strategy="tpu", epochs=2, batch_size=64, dropout=0.2,
                      export=folder / f"{name}.h5", write_predictions=folder / f"{name}.csv",
                      **place(hosts, cores), **more)
        expect(text.count("test auc") == 1, f"{name} prints once: {text}")
        return re.search("test auc.*", text).group(0)

    def same(one, other):
        for suffix in ("h5", "csv"):
            expect(filecmp.cmp(folder / f"{one}.{suffix}", folder / f"{other}.{suffix}", shallow=False),
                   f"{one}.{suffix} and {other}.{suffix} differ")

    for hosts, cores, processes in ((2, 2, 2), (4, 1, 3), (6, 1, 4), (3, 2, 3)):
        expected = train(PLAIN, hosts, cores, "plain")
        got = train(processes, hosts, cores, "mpi")
        expect(got == expected, f"{got} instead of {expected}")
        same("plain", "mpi")
        print(hosts, cores, processes, expected)
    # The run is stopped and resumed with other numbers of processes, the last time also with other
    # hosts and cores.
    train(PLAIN, 2, 2, "plain")
    for processes, stop in ((2, 5), (PLAIN, 9), (2, 0)):
        train(processes, 2, 2, "parts", checkpoint_dir=folder / "checkpoints", resume="true",
              stop_after_steps=stop)
    same("plain", "parts")
    text = output(3, data=data, epochs=3, batch_size=64, dropout=0.2, checkpoint_dir=folder / "checkpoints", resume="true",
                  **place(3, 1))
    expect("resumed from" in text, f"other hosts: {text}")


if __name__ == "__main__":
    cases = {f.__name__: f for f in (same_bits, checkpoints, dynamic_checkpoints, dynamic_variables,
                                       dynamic_norms, partitions, norms, refusals, full_disks, kills,
                                       train_ctr)}
    with tempfile.TemporaryDirectory() as name:
        cases[CASE](pathlib.Path(name))
    print("\n".join(faults) or "as expected")
    sys.exit(bool(faults))
