#!/usr/bin/env python3
"""Runs the programs of Keel with one failing write, fsync, ftruncate or rename per run: every run must
end with an error that names a file it wrote, or with files that are right to the last bit. And kills
them at each of these calls: the next run must end with the right files, and leave no others.

usage: sweep.py BIN SHIM WORK [--all] [--every N] [CASE ...]
BIN is the folder of the programs, SHIM the library of io_faults.cc, WORK a folder to work in. Each
call is tried with one kind of fault, in turn; --all tries every kind at each call, --every N each
N-th call only. Two cases run at a time."""
import argparse
import collections
import concurrent.futures
import errno
import filecmp
import os
import pathlib
import random
import shutil
import subprocess
import sys
import threading

parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
for argument in ("bin", "shim", "work"):
    parser.add_argument(argument, type=lambda path: pathlib.Path(path).resolve())
parser.add_argument("--all", action="store_true")
parser.add_argument("--every", type=int, default=1, metavar="N")
parser.add_argument("case", nargs="*")
arguments = parser.parse_intermixed_args()
BIN, SHIM, WORK, ALL = arguments.bin, arguments.shim, arguments.work, arguments.all
KINDS = [str(errno.ENOSPC), str(errno.EIO), "lost", "changed"]
NAMES = {str(errno.ENOSPC): "ENOSPC", str(errno.EIO): "EIO"}
failures = []


def write_data(folder):
    """Clicks that depend on two columns, so that every file of a run has something to hold."""
    folder.mkdir(parents=True)
    draw = random.Random(1)
    (folder / "schema.json").write_text(
        '{"label": "label", "numeric": ["age"], "categorical": ["user", "item"]}\n')
    for name, rows in (("train.csv", 256), ("test.csv", 64)):
        lines = ["label,age,user,item"]
        for _ in range(rows):
            user, item = draw.randrange(200), draw.randrange(20)
            lines.append(f"{int(draw.random() < (item + 1) / 21)},{draw.randrange(18, 80)},u{user},i{item}")
        (folder / name).write_text("\n".join(lines) + "\n")


def run(folder, command, at=0, kind="0", last=0):
    """Status, what was said, and the calls that counted, of a command with a fault at call `at`."""
    log = WORK / f"calls-{threading.get_ident()}"
    log.write_text("")
    environment = dict(os.environ, LD_PRELOAD=str(SHIM), IO_FAULT_FOLDER=str(folder), IO_FAULT_AT=str(at),
                       IO_FAULT_LAST=str(last), IO_FAULT_KIND=kind, IO_FAULT_LOG=str(log))
    done = subprocess.run([str(c) for c in command], env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr, log.read_text().splitlines()


def files_of(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


class Case:
    """A command, given the folder that it writes to, and what follows from a run of it."""

    def __init__(self, name, command, prepare=lambda folder: None, recover=None, every=1):
        self.name, self.command, self.prepare, self.recover = name, command, prepare, recover
        self.every = every * arguments.every  # tries each N-th call only
        self.counts = collections.Counter()
        self.reference = WORK / "reference" / name
        self.folder = WORK / "faulty" / name  # the same length for all, since messages are compared

    def fresh(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.prepare(folder)
        return folder

    def equal(self, folder):
        """Why the files of a run that ended well are not those of the reference; empty if they are."""
        if files_of(folder) != files_of(self.reference):
            return f"files {files_of(folder)}, expected {files_of(self.reference)}"
        for name in files_of(folder):
            if not filecmp.cmp(folder / name, self.reference / name, shallow=False):
                return f"{name} differs"
        return ""

    def check(self, at, kind, status, text, call):
        """How a run with a fault ended, and what is wrong with that."""
        wrong = ""
        if status == 0:
            outcome, wrong = "right files", self.equal(self.folder)
            # A changed byte that no value depends on is no harm.
            if wrong and kind in ("changed", "lost") and self.harmless():
                outcome, wrong = "same values", ""
        elif status in (1, 2):
            outcome = "error"
            if str(self.folder) not in text:
                wrong = "the error names no file: " + text.strip().splitlines()[-1]
            left = [name for name in files_of(self.folder) if ".tmp-" in name]
            if left:
                wrong = f"left {left}"
            for name in files_of(self.folder):
                whole = self.reference / name
                if name.endswith((".h5", ".keras", ".csv")) and whole.exists() and "ckpt" not in name:
                    if not filecmp.cmp(self.folder / name, whole, shallow=False):
                        wrong = f"{name} is there, and differs"
            if not wrong and self.recover:
                wrong = self.recover(self)
                outcome = "error, recovered"
        else:
            outcome, wrong = "crash", f"status {status}: {text.strip()[-300:]}"
        self.counts[call.split()[1], NAMES.get(kind, kind), outcome if not wrong else "WRONG"] += 1
        if wrong:
            failures.append(f"{self.name}, call {at} ({call}), {NAMES.get(kind, kind)}: {wrong}")
            print(failures[-1], flush=True)

    def check_killed(self, at, status, call):
        """The next run of the same command ends with the right files, and no others."""
        wrong = f"status {status} of a killed process" if status != -9 else self.recover(self)
        self.counts[call.split()[1], "killed", "WRONG" if wrong else "recovered"] += 1
        if wrong:
            failures.append(f"{self.name}, killed at call {at} ({call}): {wrong}")
            print(failures[-1], flush=True)

    def harmless(self):
        for name in files_of(self.reference):
            if name.endswith((".h5", ".keras")):
                done = subprocess.run([BIN / "keel", "diff", self.reference / name, self.folder / name],
                                      capture_output=True)
                if done.returncode != 0:
                    return False
        return files_of(self.folder) == files_of(self.reference)

    def sweep(self):
        status, text, calls = run(self.fresh(self.reference), self.command(self.reference))
        if status != 0 or not calls:
            raise RuntimeError(f"{self.name}: {len(calls)} calls, status {status}: {text}")
        for at, call in list(enumerate(calls, start=1))[::self.every]:
            writes = "write" in call.split()[1]
            kinds = KINDS if writes else KINDS[:2]
            for kind in kinds if ALL else [kinds[at % len(kinds)]]:
                status, text, _ = run(self.fresh(self.folder), self.command(self.folder), at, kind)
                self.check(at, kind, status, text, call)
            status, _, _ = run(self.fresh(self.folder), self.command(self.folder), at, "killed")
            self.check_killed(at, status, call)
        # A disk that stays full from some call on.
        for at in range(1, len(calls) + 1, self.every * (1 if ALL else 7)):
            status, text, _ = run(self.fresh(self.folder), self.command(self.folder), at, KINDS[0], 1 << 30)
            self.check(at, KINDS[0], status, text, calls[at - 1])
        lines = [f"{self.name}: {len(calls)} calls"]
        for (call, kind, outcome), count in sorted(self.counts.items()):
            lines.append(f"  {call:10} {kind:8} {outcome:18} {count}")
        print("\n".join(lines), flush=True)


DATA = WORK / "data"


def train(export, checkpoints=False, options=()):
    def command(folder):
        out = [BIN / "train_ctr", "--data", DATA, "--model", "dlrm", "--strategy", "tpu", "--cores", "2", "--epochs", "1",
               "--batch_size", "64", *options]
        if export:
            out += ["--export", folder / export]
        if checkpoints:
            out += ["--checkpoint_dir", folder / "ckpt", "--checkpoint_steps", "2", "--resume"]
        return out
    return command


def resume(case):
    """After the error the run is started again, on a disk that works."""
    status, text, _ = run(case.folder, case.command(case.folder))
    if status != 0:
        return f"cannot be resumed: {text.strip()[-300:]}"
    return "after a resume: " + case.equal(case.folder) if case.equal(case.folder) else ""


def convert(out, *options):
    return lambda folder: [BIN / "keel", "convert", WORK / "model.h5", folder / out, *options]


CASES = [
    Case("export_h5", train("model.h5"), recover=resume),
    Case("export_keras", train("model.keras"), recover=resume),
    Case("checkpoints", train("model.h5", checkpoints=True), recover=resume),
    # D-096: tables for unbounded ids, of which some are evicted.
    Case("dynamic", train("model.h5", checkpoints=True, options=("--dynamic", "--capacity", "64", "--eviction", "lru")),
         recover=resume, every=3),
    Case("predictions", lambda f: train(None)(f) + ["--write_predictions", f / "p.csv"], recover=resume),
    Case("convert_h5", convert("out.h5"), recover=resume),
    Case("convert_keras", convert("out.keras"), recover=resume),
    Case("convert_weights", convert("out.weights.h5"), recover=resume),
    Case("convert_int8", convert("out.keras", "--table_dtype", "int8", "--for_keras"), recover=resume),
]

unknown = set(arguments.case) - {case.name for case in CASES}
if unknown or arguments.every < 1:
    sys.exit(f"sweep.py: no case {', '.join(unknown)}; there are {', '.join(case.name for case in CASES)}"
             if unknown else f"sweep.py: --every must be at least 1, received {arguments.every}")
shutil.rmtree(WORK, ignore_errors=True)
write_data(DATA)
status, text, _ = run(WORK / "none", train("model.h5")(WORK))
if status != 0:
    sys.exit(text)
chosen = [case for case in CASES if not arguments.case or case.name in arguments.case]
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for done in [pool.submit(case.sweep) for case in chosen]:
        done.result()
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
