"""Times whole models beside llama.cpp, transformers on PyTorch and ONNX Runtime: `models.py [--rows TEXT] [--threads 1,2] [--rounds 7] [--out FILE]`.

The same weights for all: SmolLM2-135M as it is stored, in Q4_1, and dequantised to f32; MiniLM-L6 in f32. Every engine runs in a process of
its own and they take turns, as in compare.py; every answer is compared with transformers' in f32 before anything is timed. `--tables` makes
the table of docs/performance.md from bench/results/models-*.json and measures nothing; with `--check` it only says whether it would change."""
import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import machine
import tables

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SHIM = pathlib.Path(os.environ.get("GLASSHEAD_COMPARE_LIBRARY", ROOT / "build/bench/lib/libglasshead_compare.so"))
SMOLLM2 = ROOT / "build/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MINILM = ROOT / "build/models/minilm"
PAGE, RESULTS = ROOT / "docs/performance.md", ROOT / "bench/results"
OPEN, CLOSE = "<!-- models -->", "<!-- /models -->"
LABELS = {"glasshead": "Glasshead", "llama.cpp": "llama.cpp", "transformers": "transformers", "onnxruntime": "ONNX Runtime"}


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    label: str
    model: str  # "q4_1", "f32" (SmolLM2), "minilm"
    work: str  # "read" a prompt, "write" after it, "embed" texts
    engines: tuple
    goal: float  # how many times as fast as each other engine we want to be
    texts: int = 1
    tokens: int = 512  # of each text
    count: int = 0  # tokens written, the first of which comes with the prompt
    repeats: int = 1  # runs of a turn: short ones are not timed one by one

    @property
    def vocab(self):
        return 30522 if self.model == "minilm" else 49152

    @property
    def width(self):
        return 384 if self.model == "minilm" else 576

    @property
    def amount(self):
        """Tokens that a run is timed over."""
        return self.count - 1 if self.work == "write" else self.texts * self.tokens


ROWS = [Row("q4_1-prefill", "SmolLM2 Q4_1, 512 tokens read", "q4_1", "read", ("glasshead", "llama.cpp"), 1.0),
        Row("q4_1-generation", "SmolLM2 Q4_1, 128 tokens written", "q4_1", "write", ("glasshead", "llama.cpp"), 1.0, tokens=15, count=129),
        Row("f32-prefill", "SmolLM2 f32, 512 tokens read", "f32", "read", ("glasshead", "transformers"), 1.5),
        Row("f32-generation", "SmolLM2 f32, 64 tokens written", "f32", "write", ("glasshead", "transformers"), 1.5, tokens=15, count=65),
        Row("minilm-32x128", "MiniLM f32, 32 texts of 128", "minilm", "embed", ("glasshead", "onnxruntime", "transformers"), 1.0, 32, 128),
        Row("minilm-1x32", "MiniLM f32, 1 text of 32", "minilm", "embed", ("glasshead", "onnxruntime", "transformers"), 1.0, 1, 32, repeats=20)]


def named(name):
    return next(row for row in ROWS if row.name == name)


def tokens(row):
    """[texts, tokens], of no meaning and the same each time; a prompt to write after is words that follow each other."""
    import numpy

    if row.work == "write":  # "One, two, three, four, five, six, seven, eight"
        return numpy.array([[2705, 28, 827, 28, 1296, 28, 1876, 28, 2531, 28, 2976, 28, 4962, 28, 4475]], numpy.int64)
    return (numpy.arange(row.texts * row.tokens, dtype=numpy.int64).reshape(row.texts, row.tokens) * 7919 + 1013) % (row.vocab - 1200) + 1100


def path_of(row, folder):
    return {"q4_1": SMOLLM2, "f32": folder / "smollm2-f32", "minilm": MINILM}[row.model]


def reference_of(row):
    return f"{'minilm' if row.model == 'minilm' else 'smollm2'}-{row.work}-{row.texts}x{row.tokens}"


def pooled(rows):
    """The mean of each text's rows, scaled to length 1."""
    import numpy

    vectors = rows.mean(axis=1)
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


def distance(row, got, right):
    """How far an answer is from the reference; ValueError where that is more than rounding."""
    if row.work == "read":  # of the tokens that the reference, and llama.cpp where it names only some, finds most probable
        likely = sorted(right["probabilities"], key=right["probabilities"].get)[-10:]
        gaps = [abs(got["probabilities"][n] - right["probabilities"][n]) for n in likely if n in got["probabilities"]]
        # llama.cpp rounds what meets quantised weights to 8 bits, and keys and values to 16.
        allowed, name = (0.5 if row.model == "q4_1" else 1e-3), "log_probability_error"
    elif row.work == "write":
        alike = next((n for n, (a, b) in enumerate(zip(got["text"], right["text"], strict=False)) if a != b), len(got["text"]))
        if alike < 8:
            raise ValueError(f"its text leaves the reference's after {alike} tokens")
        return {"same_tokens": alike}
    else:
        gaps = [abs(a - b) for mine, its in zip(got["vectors"], right["vectors"], strict=True) for a, b in zip(mine, its, strict=True)]
        allowed, name = 1e-5, "vector_error"
    if not all(gap <= allowed for gap in gaps):  # NaN is not
        raise ValueError(f"wrong answer: {name} {max(gaps):.1e}")
    return {name: float(f"{max(gaps):.2g}")}


def prepare(folder):
    """SmolLM2 in f32, dequantised by transformers, and MiniLM as ONNX; made once, in a process that ends."""
    import torch
    import transformers

    if not (folder / "smollm2-f32").exists():
        model = transformers.AutoModelForCausalLM.from_pretrained(SMOLLM2.parent, gguf_file=SMOLLM2.name, dtype=torch.float32)
        config = model.config.to_dict()
        config.pop("quantization_config", None)
        plain = type(model)(type(model.config)(**config)).to(torch.float32)
        plain.load_state_dict(model.state_dict())
        plain.save_pretrained(folder / "smollm2-f32")
    if not (folder / "minilm.onnx").exists():
        model = transformers.BertModel.from_pretrained(MINILM, add_pooling_layer=False, attn_implementation="eager").eval()
        ids = torch.ones(2, 16, dtype=torch.long)
        shape = {0: torch.export.Dim("texts"), 1: torch.export.Dim("tokens")}
        names = ["input_ids", "attention_mask", "token_type_ids"]
        torch.onnx.export(model, (ids, torch.ones_like(ids), torch.zeros_like(ids)), str(folder / "minilm.onnx"), input_names=names,
                          output_names=["rows"], dynamic_shapes=[shape] * 3, dynamo=True)


class Process:
    def __init__(self, engine, row, folder, threads):
        self.process = subprocess.Popen([sys.executable, str(HERE / "models_worker.py"), engine, row.name, str(folder), str(threads)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        self.about = json.loads(line) if line else {"cannot": f"its process ended ({self.process.wait()})"}
        self.about.update(ms=[], cpu_ms=[])

    def turn(self):
        print("go", file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        self.about["ms"].append(answer["ms"])
        self.about["cpu_ms"].append(answer["cpu_ms"])

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        return self.about


def measure(row, folder, threads, rounds):
    if not (folder / f"{reference_of(row)}.json").exists():
        like = next(r for r in ROWS if reference_of(r) == reference_of(row) and "transformers" in r.engines)
        Process("transformers", like, folder, threads).end()
    load, (ticks, stolen) = os.getloadavg()[0], machine.ticks()
    workers = {name: Process(name, row, folder, threads) for name in row.engines}
    able = [worker for worker in workers.values() if "cannot" not in worker.about]
    for number in range(rounds):
        first = number % len(able) if able else 0
        for worker in able[first:] + able[:first]:
            time.sleep(0.03)  # idle threads that spin go to sleep
            worker.turn()
    after, stolen_after = machine.ticks()
    return {"row": row.name, "threads": threads, "load_before": round(load, 2), "stolen": round((stolen_after - stolen) / max(1, after - ticks), 4),
            "results": {name: worker.end() for name, worker in workers.items()}}


def ratios(measured):
    """{engine: how many times as fast as it we were, of each round}."""
    ours = measured["results"]["glasshead"]
    return {name: [theirs / mine for theirs, mine in zip(result["ms"], ours["ms"], strict=True)]
            for name, result in measured["results"].items() if name != "glasshead" and result["ms"] and ours["ms"]}


def lines(document):
    body = []
    for measured in document["rows"]:
        row, ours = named(measured["row"]), measured["results"]["glasshead"]
        for name, by_round in ratios(measured).items():
            times = measured["results"][name]["ms"]
            speed = lambda ms: tables.three_digits(1e3 * row.amount / tables.median(ms))  # noqa: E731
            ratio = tables.median(by_round)
            body.append([row.label, str(measured["threads"]), speed(ours["ms"]), f"{tables.spread(ours['ms']):.1%}", LABELS[name], speed(times),
                         f"{tables.spread(times):.1%}", f"{ratio:.2f}", f"{min(by_round):.2f}–{max(by_round):.2f}", f"{row.goal:g}",
                         "yes" if ratio >= row.goal else "no"])
    return body


def section(document):
    here = document["machine"]
    kind = here["cpu"] + (f", family {here['family']} model {here['model']}" if here.get("family") else "")
    versions = {LABELS[name]: result["version"] for measured in document["rows"] for name, result in measured["results"].items() if "version" in result}
    absent = [f"{named(m['row']).label}, {LABELS[name]}: {result['cannot']}" for m in document["rows"] for name, result in m["results"].items()
              if "cannot" in result]
    parts = [f"**{kind}** ({' '.join(here['features'])}), {here['cores']} cores; {document['date']}, commit {document['commit']}; "
             f"{document['rounds']} rounds of one run. {'; '.join(f'{name} {version}' for name, version in versions.items())}. Tokens a second are of medians; "
             "*ours ÷ theirs* is the median over the rounds of their time over ours.",
             tables.table(["row", "threads", "Glasshead, tokens/s", "spread", "other", "its tokens/s", "spread", "ours ÷ theirs", "by rounds", "goal",
                           "reached"], lines(document))]
    return "\n\n".join(parts + ["Not measured: " + "; ".join(absent)] * bool(absent))


def page_with(text, documents):
    before, rest = text.split(OPEN)
    content = "\n\n".join(map(section, documents)) or "No results are stored yet; `bench/compare/models.py` makes them."
    return f"{before}{OPEN}\n\n{content}\n\n{CLOSE}{rest.split(CLOSE)[1]}"


def stored():
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("models-*.json"))]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="", help="only rows whose name contains this")
    parser.add_argument("--threads", default="1", help="numbers with commas between them")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--out", type=pathlib.Path, help="default: bench/results/models-PROCESSOR.json, for a run of all rows")
    parser.add_argument("--folder", type=pathlib.Path, help="where what is made of the weights is kept (default: a temporary one)")
    parser.add_argument("--tables", action="store_true", help="only make the table of docs/performance.md")
    parser.add_argument("--check", action="store_true", help="with --tables: only say whether it would change")
    return parser.parse_args()


def main():
    options = arguments()
    text = PAGE.read_text(encoding="utf-8")
    if options.tables:
        new = page_with(text, stored())
        if options.check and new != text:
            raise SystemExit("docs/performance.md is not what its results give: run bench/compare/models.py --tables")
        return PAGE.write_text(new, encoding="utf-8")
    here = machine.describe()
    document = {"format": "glasshead-models/1", "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
                "commit": machine.commit(ROOT), "machine": here, "rounds": options.rounds, "rows": []}
    with tempfile.TemporaryDirectory(prefix="glasshead-models-") as temporary:
        folder = (options.folder or pathlib.Path(temporary)).resolve()
        folder.mkdir(exist_ok=True)
        subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(HERE)!r}); import models, pathlib; "
                        f"models.prepare(pathlib.Path({str(folder)!r}))"], check=True)
        for row in (row for row in ROWS if options.rows in row.name):
            for threads in map(int, options.threads.split(",")):
                document["rows"].append(measure(row, folder, threads, options.rounds))
                for line in lines({"rows": document["rows"][-1:]}):
                    print("  ".join(line), flush=True)
                for name, result in document["rows"][-1]["results"].items():
                    if "cannot" in result:
                        print(f"{row.name}: {name} cannot: {result['cannot']}", flush=True)
    out = options.out or (None if options.rows else RESULTS / f"models-{machine.slug(here)}.json")
    if out:
        out.write_text(tables.as_json(document), encoding="utf-8")
        PAGE.write_text(page_with(text, stored()), encoding="utf-8")


if __name__ == "__main__":
    main()
