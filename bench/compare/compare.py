"""Times Glasshead and its peers on the same numbers: `compare.py [--rows full,decode] [--threads 1,2] [--quick] [--check]`.

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
# round the weights or the result to 8 bits; ggml rounds a bias to f16.
TOLERANCE = {"f32": 1e-3, "bf16": 2e-2}
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
    return row.is_decode or not name.endswith(("-rows", ":stateful"))


def measure(row, folder, threads, names, options):
    """One row at one number of threads: what every operator gave."""
    load, (ticks, stolen) = os.getloadavg()[0], machine.ticks()
    workers = [Process(name, row, folder, threads) for name in names if takes_part(name, row)]
    able = [worker for worker in workers if "cannot" not in worker.about]
    for number in range(0 if options.check else options.rounds):
        first = number % len(able) if able else 0
        for worker in able[first:] + able[:first]:
            time.sleep(SETTLE)
            worker.turn(options.runs)
    for worker in able:
        worker.end()
    after, stolen_after = machine.ticks()
    return {"row": row.name, "threads": threads, "load_before": round(load, 2),
            "stolen": round((stolen_after - stolen) / max(1, after - ticks), 4),
            "results": {worker.name: worker.about for worker in workers}}


def report(measured):
    print(f"\n{measured['row']}, {measured['threads']} thread{'s' if measured['threads'] > 1 else ''}"
          f"   (load {measured['load_before']}, {measured['stolen']:.1%} of the time stolen)")
    for name, result in measured["results"].items():
        if "cannot" in result:
            print(f"  {name:24} -  {result['cannot'].splitlines()[0][:140]}")
            continue
        times = [ms for turn in result["ms"] for ms in turn]
        speed = f"{tables.median(times):10.3f} ms, best {min(times):9.3f}" if times else f"{'':10}"
        print(f"  {name:24} {speed}   rms error {result['error_rms']:.1e}   extra {result['extra_mb']:7.1f} MB", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="", help="only rows whose name contains one of these (comma-separated)")
    parser.add_argument("--operators", default="", help="only operators whose name contains one of these; ours always takes part")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3, help="timed runs of a turn")
    parser.add_argument("--quick", action="store_true", help=f"three rows ({', '.join(rows.QUICK)}), one thread; nothing is stored")
    parser.add_argument("--check", action="store_true", help="answers only, nothing is timed or stored")
    parser.add_argument("--out", type=pathlib.Path, help="default: bench/results/compare-PROCESSOR.json, for a run of all rows")
    return parser.parse_args()


def main():
    options = arguments()
    chosen = rows.choose(options.rows or (",".join(rows.QUICK) if options.quick else ""))
    threads = [1] if options.quick else [int(n) for n in options.threads.split(",")]
    wanted = [p for p in options.operators.split(",") if p]
    names = [n for n in tables.LABELS if not wanted or n.startswith("glasshead") or any(p in n for p in wanted)]
    if not peer_glasshead.SHIM.exists():
        raise SystemExit(f"{peer_glasshead.SHIM} is not built: cmake --preset bench && cmake --build --preset bench")
    here = machine.describe()
    if max(threads) > here["cores"]:
        raise SystemExit(f"{max(threads)} threads on {here['cores']} cores would measure the scheduler; give fewer with --threads")
    start, measured = datetime.datetime.now(datetime.timezone.utc), []
    for row in chosen:
        with tempfile.TemporaryDirectory(prefix="glasshead-compare-") as folder:
            cases.make(row, pathlib.Path(folder))
            for count in threads:
                measured.append(measure(row, pathlib.Path(folder), count, names, options))
                report(measured[-1])
    given = f" ARGS={shlex.quote(shlex.join(sys.argv[1:]))}" if sys.argv[1:] else ""
    document = {"format": "glasshead-compare/1", "command": "make bench-compare" + given,
                "date": start.strftime("%Y-%m-%d"), "commit": machine.commit(ROOT), "machine": here,
                "rounds": options.rounds, "runs": options.runs, "threads": threads, "rows": measured}
    is_whole = not (options.rows or options.operators or options.quick or options.check)
    out = options.out or (ROOT / f"bench/results/compare-{machine.slug(here)}.json" if is_whole else None)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(tables.as_json(document), encoding="utf-8")
        print(f"\nwritten: {out}")
    failed = [f"{m['row']} ({m['results'][tables.OURS]['cannot']})" for m in measured if "cannot" in m["results"][tables.OURS]]
    if failed:
        raise SystemExit("Glasshead itself did not run: " + "; ".join(failed))


if __name__ == "__main__":
    main()
