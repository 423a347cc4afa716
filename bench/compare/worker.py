"""One operator on one row in a process of its own: `worker.py PEER:OPERATOR ROW FOLDER THREADS`, driven line by line by compare.py.

It says what it can do and how far its answer is from f64, then times runs when asked: {"runs": n} gives {"ms": [...], "cpu_ms": [...]}."""
import gc
import importlib
import json
import math
import os
import pathlib
import sys
import time

# What the libraries read when they are loaded; and the first cores only, so that a pool can't use more than it was given.
NAME, ROW, FOLDER, THREADS = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4])
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GLASSHEAD_THREADS"):
    os.environ[variable] = str(THREADS)
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what a library prints stays out of the answers

import numpy  # noqa: E402

import case as cases  # noqa: E402
import peer  # noqa: E402
import rows  # noqa: E402

UNIT_MS = 2.0  # one timed run is as many calls as take this long
WATCHED_S = 0.1  # how long threads are watched to see which of them work


def say(**answer):
    print(json.dumps(answer), file=ANSWERS, flush=True)


def memory_kb(field):
    text = pathlib.Path("/proc/self/status").read_text()
    return int(text.split(f"{field}:")[1].split()[0])


def errors(outputs, expected):
    """Largest absolute error, and rms error over rms: the worst of the outputs."""
    worst = {"error_max": 0.0, "error_rms": 0.0}
    for output, right in zip(outputs, expected, strict=True):
        if output.shape != right.shape:
            raise ValueError(f"the result has shape {output.shape}, not {right.shape}")
        difference = output.astype(numpy.float64) - right
        rms = math.sqrt(numpy.mean(difference**2) / numpy.mean(right**2))
        here = {"error_max": float(abs(difference).max()), "error_rms": rms}
        worst = {name: math.nan if math.isnan(here[name]) else max(worst[name], here[name]) for name in worst}
    return worst


def first_run(prepared):
    """Runs once and says how far memory rose meanwhile, results that the run allocates included."""
    gc.collect()
    before = memory_kb("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # peak := now
    prepared.run()
    peak = memory_kb("VmHWM")
    return {"peak_mb": round(peak / 1024, 1), "extra_mb": round((peak - before) / 1024, 1)}


def calls_per_run(prepared):
    start = time.perf_counter()
    prepared.run()
    once = (time.perf_counter() - start) * 1e3
    return max(1, min(1000, math.ceil(UNIT_MS / max(once, 1e-3))))


def spent():
    """Nanoseconds on a processor so far, by thread."""
    found = {}
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            found[int(task.name)] = int((task / "schedstat").read_text().split()[0])
        except OSError:
            pass  # it has ended meanwhile
    return found


def working_threads(prepared):
    """Those that do at least a tenth of the work of some runs."""
    before, start = spent(), time.perf_counter()
    while time.perf_counter() - start < WATCHED_S:
        prepared.run()
    work = {thread: now - before.get(thread, 0) for thread, now in spent().items()}
    return sorted(thread for thread, its in work.items() if its > sum(work.values()) / 10)


def pin(prepared):
    """Sets the threads that do the work on a core each, so that no two share one; whether it did. It doesn't where the library starts other
    threads for each call (they would all get the caller's core), or works on fewer or more threads than it was given."""
    if THREADS == 1:
        return True  # the process has one core
    threads = working_threads(prepared)
    if len(threads) != THREADS or working_threads(prepared) != threads:
        return False
    for thread, core in zip(threads, sorted(os.sched_getaffinity(0)), strict=True):
        os.sched_setaffinity(thread, {core})
    return True


def timed(prepared, runs, calls):
    ms, cpu_ms = [], []
    prepared.run()
    gc.disable()
    for _ in range(runs):
        cpu, start = time.process_time(), time.perf_counter()
        for _ in range(calls):
            prepared.run()
        ms.append((time.perf_counter() - start) * 1e3 / calls)
        cpu_ms.append((time.process_time() - cpu) * 1e3 / calls)
    gc.enable()
    return {"ms": [float(f"{x:.6g}") for x in ms], "cpu_ms": [float(f"{x:.6g}") for x in cpu_ms]}


def main():
    library, operator = NAME.split(":")
    row = rows.named(ROW)
    try:
        module = importlib.import_module(f"peer_{library}")
    except Exception as problem:  # not installed, or unable to start here
        return say(cannot=f"it does not load: {problem}")
    names = {"version": module.version(), "operator": module.OPERATORS[operator].name}
    case = cases.load(row, FOLDER)
    try:
        prepared = module.OPERATORS[operator].prepare(case, THREADS)
        memory = first_run(prepared)
        wrong = errors(prepared.results(), case.expected)
    except peer.CannotRun as reason:
        return say(**names, cannot=str(reason))
    except Exception as problem:  # the library refuses: its own words are the reason
        return say(**names, cannot=f"{type(problem).__name__}: {str(problem).strip() or 'no text'}")
    case.expected.clear()
    calls = calls_per_run(prepared)
    say(**names, layout=prepared.layout, calls=calls, pinned=pin(prepared), **memory, **wrong)
    for line in sys.stdin:
        say(**timed(prepared, json.loads(line)["runs"], calls))


main()
