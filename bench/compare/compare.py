"""Times Glasshead and its peers on the same numbers: `compare.py [--rows full,decode] [--threads 1,2] [--quick] [--check] [--resume]`.

Each operator runs in a process of its own. The processes take turns: in each round every operator does some runs, in an order
that is turned by one from round to round; nobody else runs meanwhile. Every output is compared with f64 before anything is timed."""
import argparse
import datetime
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import case as cases
import machine
import peer_glasshead
import rows
import tables

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# An answer further from f64 than this (rms error over rms) is another computation, not a rounding: it is not timed. bf16 peers
# round the weights or the result to 8 bits; ggml rounds a bias to f16. 8-bit keys and values differ from the numbers by up to half a
# step, a 254th of the largest of those that share a scale: about 1e-2.
TOLERANCE = {"f32": 1e-3, "bf16": 2e-2, "int8": 3e-2}
SETTLE = 0.03  # seconds between turns: idle threads that spin go to sleep


class Process:
    """A worker: an operator that has prepared a row."""

    def __init__(self, name, row, folder, threads):
        self.name = name
        self.words = tempfile.TemporaryFile("w+", errors="replace")  # what the library prints
        self.process = subprocess.Popen([sys.executable, str(HERE / "worker.py"), name, row.name, str(folder), str(threads)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.words, text=True)
        self.about = self._answer() or {"cannot": f"its process ended: {self._last_words()}"}
        if not self.about.get("cannot") and not self.about["error_rms"] <= TOLERANCE[row.dtype]:
            self.about = {**self.about, "cannot": f"wrong answer: rms error {self.about['error_rms']:.1e}"}
        self.about.update(ms=[], cpu_ms=[])
        if "cannot" in self.about:
            self.end()

    def _answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def _last_words(self):
        code = self.process.wait()
        self.words.seek(0)
        text = self.words.read().strip().splitlines()
        return f"{text[-1] if text else 'no message'} (exit {code})"

    def turn(self, runs):
        print(json.dumps({"runs": runs}), file=self.process.stdin, flush=True)
        answer = self._answer()
        if answer is None:
            raise SystemExit(f"{self.name} ended while it was timed: {self._last_words()}")
        self.about["ms"].append(answer["ms"])
        self.about["cpu_ms"].append(answer["cpu_ms"])

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.words.close()
        self.process.wait()


def takes_part(name, row):
    """The forms for decoding are not asked about other rows."""
    return row.is_decode or not name.endswith(("-rows", ":stateful", ":cache"))


def left_out(name, row):
    """Why the operator does not have the row, where its library need not be started to know; None where it is asked."""
    library = name.split(":")[0]
    if row.backward and library not in ("glasshead", "torch", "jax"):
        return "it has no backward pass"
    if row.dtype == "int8" and not name.startswith(("glasshead:cache", "openvino:stateful", "onnxruntime:gqa", "ggml")):
        return "it takes no 8-bit keys and values"
    return None


class Progress:
    """What is being done, while it is: one line that is written over on a terminal, else a line every ten seconds."""

    def __init__(self, total):
        self.start, self.done, self.total, self.last = time.monotonic(), 0, total, 0.0

    def say(self, what):
        gone = time.monotonic() - self.start
        text = f"[{self.done + 1}/{self.total}, {gone / 60:.1f} min] {what}"
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        elif gone - self.last >= 10:
            self.last = gone
            print(text, file=sys.stderr, flush=True)

    def clear(self):
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def measure(row, folder, threads, names, options, progress):
    """One row at one number of threads: what every operator gave."""
    load, (ticks, stolen), what, results = os.getloadavg()[0], machine.ticks(), f"{row.name}, {threads} thread(s)", {}
    for name in (name for name in names if takes_part(name, row)):
        progress.say(f"{what}: {name} prepares and is checked")
        reason = left_out(name, row)
        results[name] = {"cannot": reason} if reason else Process(name, row, folder, threads)
    able = [worker for worker in results.values() if isinstance(worker, Process) and "cannot" not in worker.about]
    for number in range(0 if options.check else options.rounds):
        first = number % len(able) if able else 0
        for worker in able[first:] + able[:first]:
            progress.say(f"{what}: round {number + 1} of {options.rounds}, {worker.name}")
            time.sleep(SETTLE)
            worker.turn(options.runs)
    for worker in able:
        worker.end()
    after, stolen_after = machine.ticks()
    progress.clear()
    return {"row": row.name, "threads": threads, "load_before": round(load, 2),
            "stolen": round((stolen_after - stolen) / max(1, after - ticks), 4),
            "results": {name: result if isinstance(result, dict) else result.about for name, result in results.items()}}


def report(measured):
    print(f"\n{measured['row']}, {measured['threads']} thread{'s' if measured['threads'] > 1 else ''}"
          f"   (load {measured['load_before']}, {measured['stolen']:.1%} of the time stolen)")
    for name, result in measured["results"].items():
        if "cannot" in result:
            if not left_out(name, rows.named(measured["row"])):
                print(f"  {name:26} -  {result['cannot'].splitlines()[0][:140]}")
            continue
        times = [ms for turn in result["ms"] for ms in turn]
        speed = f"{tables.median(times):10.3f} ms, best {min(times):9.3f}" if times else f"{'':10}"
        print(f"  {name:26} {speed}   rms error {result['error_rms']:.1e}   extra {result['extra_mb']:7.1f} MB"
              f"{'' if result['pinned'] else '   threads not pinned'}")
    for standing in tables.standings(measured):
        print("  " + tables.says(standing))
    sys.stdout.flush()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="", help="only rows whose name contains one of these (comma-separated)")
    parser.add_argument("--operators", default="", help="only operators whose name contains one of these; ours always take part")
    parser.add_argument("--threads", default="", help=f"default: 1, and 2 for {', '.join(rows.TWO_THREADS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3, help="timed runs of a turn")
    parser.add_argument("--quick", action="store_true", help=f"three rows ({', '.join(rows.QUICK)}), one thread; nothing is stored")
    parser.add_argument("--check", action="store_true", help="answers only, nothing is timed or stored")
    parser.add_argument("--out", type=pathlib.Path, help="default: bench/results/compare-PROCESSOR.json, for a run of all rows")
    parser.add_argument("--resume", action="store_true", help="go on where a run that was stopped left off (its rows are in OUT.part)")
    return parser.parse_args()


def plan(options, cores):
    """[(row, numbers of threads)] to measure."""
    chosen = rows.choose(options.rows or (",".join(rows.QUICK) if options.quick else ""))
    given = [1] if options.quick else [int(n) for n in options.threads.split(",") if n]
    if max(given, default=1) > cores:
        raise SystemExit(f"{max(given)} threads on {cores} cores would measure the scheduler; give fewer with --threads")
    return [(row, given or ([1, 2] if row.name in rows.TWO_THREADS and cores > 1 else [1])) for row in chosen]


def begun(document, part):
    """The document with the rows that an earlier run of the same kind has left."""
    if not part.exists():
        raise SystemExit(f"there is nothing to resume: {part} does not exist")
    old = json.loads(part.read_text(encoding="utf-8"))
    other = [name for name in document if name not in ("rows", "date") and old[name] != document[name]]
    if other:
        raise SystemExit(f"{part} is of another run: {', '.join(f'{n} {old[n]}, here {document[n]}' for n in other)}")
    return old


def run(document, todo, names, options, part):
    """Measures what the document does not have yet, and stores it in `part` after each row."""
    have = {(m["row"], m["threads"]) for m in document["rows"]}
    todo = [(row, [n for n in counts if (row.name, n) not in have]) for row, counts in todo]
    progress = Progress(sum(len(counts) for _, counts in todo))
    for row, counts in todo:
        if not counts:
            continue
        with tempfile.TemporaryDirectory(prefix="glasshead-compare-") as folder:
            progress.say(f"{row.name}: the right answer in f64")
            cases.make(row, pathlib.Path(folder))
            for count in counts:
                document["rows"].append(measure(row, pathlib.Path(folder), count, names, options, progress))
                progress.done += 1
                report(document["rows"][-1])
                if part:
                    part.write_text(tables.as_json(document), encoding="utf-8")


def main():
    options, here = arguments(), machine.describe()
    todo = plan(options, here["cores"])
    wanted = [p for p in options.operators.split(",") if p]
    names = [n for n in tables.LABELS if not wanted or tables.is_ours(n) or any(p in n for p in wanted)]
    if not peer_glasshead.SHIM.exists():
        raise SystemExit(f"{peer_glasshead.SHIM} is not built: cmake --preset bench && cmake --build --preset bench")
    given = [word for word in sys.argv[1:] if word != "--resume"]
    document = {"format": "glasshead-compare/1", "command": "make bench-compare" + (f" ARGS={shlex.quote(shlex.join(given))}" if given else ""),
                "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "commit": machine.commit(ROOT), "machine": here,
                "rounds": options.rounds, "runs": options.runs, "threads": sorted({n for _, counts in todo for n in counts}), "rows": []}
    is_whole = not (options.rows or options.operators or options.quick or options.check)
    out = options.out or (ROOT / f"bench/results/compare-{machine.slug(here)}.json" if is_whole else None)
    part = out and out.with_name(out.name + ".part")
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
    if options.resume:
        document = begun(document, part or pathlib.Path("(no --out is given)"))
    run(document, todo, names, options, part)
    if not options.check:
        print("\n" + tables.verdict(document["rows"]))
    if out:
        part.replace(out)
        print(f"\nwritten: {out}")
    failed = [f"{m['row']} by {name} ({result['cannot'][:140]})" for m in document["rows"] for name, result in m["results"].items()
              if tables.is_ours(name) and "cannot" in result and not left_out(name, rows.named(m["row"]))]
    if failed:
        raise SystemExit("Glasshead itself did not run: " + "; ".join(failed))


if __name__ == "__main__":
    main()
