"""A trace to a JSON file keeps few matrices: the memory of one head of 2,000 tokens stays within three
matrices of scores, the program itself included, and one query row of 100,000 keys needs
nothing of the size keys x keys. The operating system counts: the peak of the process."""

import json
import os
import pathlib
import subprocess
import tempfile
import time

from command import PROGRAM, Failures

failures = Failures()
MIB = 2**20
TOKENS, KEYS = 2000, 100_000


def peak_of(*arguments):
    """Peak memory in bytes, and seconds."""
    start = time.monotonic()
    process = subprocess.Popen([PROGRAM, "trace", *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    failures.expect(status == 0, f"trace {arguments}: status {status}")
    return usage.ru_maxrss * 1024, time.monotonic() - start


def write(folder, name, case):
    path = pathlib.Path(folder) / f"{name}.json"
    whole = {"schema": "glasshead.case/1", "title": name, "from": "ours", **case}
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path


def main():
    with tempfile.TemporaryDirectory() as folder:
        random = {"seed": 1, "rows": TOKENS, "d_k": 16}
        for mask in ("none", "causal"):
            head = write(folder, mask, {"random": random, "attention": {"mask": mask}})
            peak, seconds = peak_of(head, "-o", f"{folder}/head.trace.json")
            matrix = TOKENS * TOKENS * 8
            print(f"{TOKENS} tokens, mask {mask}: {peak / matrix:.2f} matrices, "
                  f"{seconds:.1f} s")
            failures.expect(peak <= 3 * matrix, f"{mask}: {peak / MIB:.0f} MiB")
        k = [[n % 7, n % 5] for n in range(KEYS)]
        row = write(folder, "row", {"attention": {"q": [[1, 0]], "k": k, "v": k}})
        peak, seconds = peak_of(row, "-o", f"{folder}/row.trace.json")
        print(f"1 query, {KEYS} keys: {peak / MIB:.0f} MiB, {seconds:.1f} s")
        # A few hundred bytes a key: its numbers, its text, its label. keys x keys would be 75 GiB.
        failures.expect(peak <= 1200 * KEYS, f"row: {peak / MIB:.0f} MiB")
    failures.finish()


main()
