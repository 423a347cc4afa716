"""Makes the tables of docs/performance.md from bench/results/compare-*.json: `tables.py [--check]`.

What stands between <!-- compare --> and <!-- /compare --> is replaced; --check only says whether it would change."""
import dataclasses
import json
import math
import pathlib
import sys

import rows

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/performance.md"
RESULTS = ROOT / "bench/results"
OPEN, CLOSE = "<!-- compare -->", "<!-- /compare -->"
# Every operator, PEER:OPERATOR as in peer_PEER.py, in the order of the columns.
LABELS = {"glasshead:attend": "Glasshead", "glasshead:cache": "Glasshead, cache", "torch:sdpa": "PyTorch", "torch:sdpa-mask": "PyTorch, mask", "torch:sdpa-rows": "PyTorch, rows",
          "onnxruntime:attention": "ORT Attention", "onnxruntime:attention-rows": "ORT Attention, rows", "onnxruntime:mha": "ORT MHA",
          "onnxruntime:mha-rows": "ORT MHA, rows", "onnxruntime:gqa": "ORT GQA", "openvino:sdpa": "OpenVINO",
          "openvino:sdpa-rows": "OpenVINO, rows", "openvino:stateful": "OpenVINO, state", "ggml:flash": "ggml",
          "ggml:flash-rows": "ggml, rows", "jax:dpa": "JAX"}
LIBRARIES = {"glasshead": "Glasshead", "torch": "PyTorch", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "ggml": "ggml", "jax": "JAX"}
NONE_YET = "No results are stored yet; `make bench-compare` makes them."


def as_json(value, indent=0):
    """Indented by one; a list of plain values, or of lists of them, on one line. Ends with a line break."""
    plain = lambda x: not isinstance(x, (dict, list))  # noqa: E731
    flat = lambda x: plain(x) or (isinstance(x, list) and all(map(plain, x)))  # noqa: E731
    if flat(value) or not value or (isinstance(value, list) and all(map(flat, value))):
        text = json.dumps(value, ensure_ascii=False)
    else:
        pairs = value.items() if isinstance(value, dict) else ((None, x) for x in value)
        lines = [("" if key is None else json.dumps(key) + ": ") + as_json(x, indent + 1) for key, x in pairs]
        edge, inside = "\n" + " " * indent, "\n" + " " * (indent + 1)
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        text = opening + inside + f",{inside}".join(lines) + edge + closing
    return text if indent else text + "\n"


def median(numbers):
    ordered, n = sorted(numbers), len(numbers)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


def spread(numbers):
    """Between the quartiles, over the median."""
    ordered, n = sorted(numbers), len(numbers)
    return (ordered[(3 * n) // 4 if n > 1 else 0] - ordered[n // 4]) / median(numbers)


def times(result):
    """Milliseconds of all timed runs; nothing if the operator does not have the row."""
    return [] if result is None or "cannot" in result else [ms for turn in result["ms"] for ms in turn]


def three_digits(x):
    """12.3, 0.0123, 1,230: three significant digits, never an exponent."""
    rounded = float(f"{x:.3g}")
    return f"{rounded:,.{max(0, 2 - math.floor(math.log10(rounded)))}f}" if rounded else "0"


def rate(row, ms):
    """What the time means: GB/s of keys and values for a decode step, GF/s of the products for the rest."""
    return f"{row.kv_bytes / ms / 1e6:.1f} GB/s" if row.is_decode else f"{row.flops / ms / 1e6:.0f} GF/s"


def table(head, body, left=1):
    rule = ["---" if n < left else "---:" for n in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *body))


def is_ours(name):
    return name.startswith("glasshead:")


def ratios(ours, theirs):
    """How many times as fast as theirs ours is, in each round: their median over ours, which were taken seconds apart."""
    return [median(t) / median(o) for o, t in zip(ours["ms"], theirs["ms"], strict=True)]


def judged(ratio, row):
    """In words: the ratio beside the row's goal."""
    if ratio < rows.NOT_SLOWER:
        return "slower than a peer"
    return "below its goal" if ratio < row.goal else "yes"


@dataclasses.dataclass(frozen=True)
class Standing:
    """One of our operators beside its best peer in one entry."""
    row: rows.Row
    threads: int
    ours: str
    peer: str
    ms: float
    peer_ms: float
    rounds: list  # the ratios of the rounds

    @property
    def ratio(self):
        return median(self.rounds)

    @property
    def judged(self):
        return judged(self.ratio, self.row)


def standings(entry):
    """Each of our operators that has the row, beside the peer that does best against it in most rounds; none without peers."""
    timed = {name: result for name, result in entry["results"].items() if times(result)}
    found = []
    for ours in filter(is_ours, timed):
        against = {peer: ratios(timed[ours], timed[peer]) for peer in timed if not is_ours(peer)}
        if against:
            best = min(against, key=lambda peer: median(against[peer]))
            found.append(Standing(rows.named(entry["row"]), entry["threads"], ours, best, median(times(timed[ours])),
                                  median(times(timed[best])), against[best]))
    return found


def says(standing):
    s = standing
    return (f"{LABELS[s.ours]}: {s.ratio:.2f} times as fast as the best peer, {LABELS[s.peer]} "
            f"({min(s.rounds):.2f} to {max(s.rounds):.2f} by rounds); goal {s.row.goal}: {s.judged}")


def verdict(measured):
    """The rows where we are slower than a peer, and those below their goal."""
    found = [s for _, m in _known(measured) for s in standings(m)]
    lines = []
    for judged, says_it in (("slower than a peer", f"Slower than a peer (below {rows.NOT_SLOWER})"),
                            ("below its goal", "Below the goal, but not slower")):
        these = [f"{s.row.name}, {s.threads} thread{'s' if s.threads > 1 else ''}, {LABELS[s.ours]} ({s.ratio:.2f} of {LABELS[s.peer]})"
                 for s in found if s.judged == judged]
        lines.append(f"- {says_it}: {'; '.join(these) or 'no row'}.")
    return "\n".join(lines)


def standing_table(measured):
    body = [[s.row.says, str(s.threads), LABELS[s.ours], three_digits(s.ms), LABELS[s.peer], three_digits(s.peer_ms),
             f"**{s.ratio:.2f}**" if s.ratio < rows.NOT_SLOWER else f"{s.ratio:.2f}", f"{min(s.rounds):.2f}–{max(s.rounds):.2f}",
             f"{s.row.goal:g}", s.judged] for _, m in _known(measured) for s in standings(m)]
    return table(["row", "threads", "operator", "ms", "best peer", "its ms", "best peer ÷ ours", "by rounds", "goal", "reached"], body)


def runs_table(documents):
    """Each of our operators in several runs of the same rows: best peer ÷ ours in each, and their median beside the goal."""
    found = {}
    for number, document in enumerate(documents):
        for _, m in _known(document["rows"]):
            for s in standings(m):
                found.setdefault((s.row.name, s.threads, s.ours), {})[number] = s
    body = []
    for by_run in found.values():
        some = next(iter(by_run.values()))
        middle = median([s.ratio for s in by_run.values()])
        body.append([some.row.says, str(some.threads), LABELS[some.ours],
                     *(f"{by_run[n].ratio:.2f} ({LABELS[by_run[n].peer]})" if n in by_run else "–" for n in range(len(documents))),
                     f"**{middle:.2f}**" if middle < rows.NOT_SLOWER else f"{middle:.2f}", f"{some.row.goal:g}", judged(middle, some.row)])
    return table(["row", "threads", "operator", *(f"run {n + 1}" for n in range(len(documents))), "median", "goal", "reached"], body)


def _time_line(row, m, names):
    results = m["results"]
    medians = {name: median(times(results[name])) if times(results.get(name)) else None for name in names}
    fastest = min((ms for ms in medians.values() if ms is not None), default=None)
    cells = ["–" if ms is None else f"**{three_digits(ms)}**" if ms == fastest else three_digits(ms) for ms in medians.values()]
    beside = {standing.ours: standing for standing in standings(m)}
    tail = []
    for name in filter(is_ours, names):
        tail += [rate(row, medians[name]) if medians[name] else "–", f"{beside[name].ratio:.2f}" if name in beside else "–"]
    spreads = [f"{spread(times(results[name])):.0%}" if medians[name] else "–" for name in names]
    return [row.says, *cells, *tail, " / ".join(spreads)]


def _operators(measured):
    """In the order of LABELS, those that have one of the rows."""
    present = {name for m in measured for name, result in m["results"].items() if "cannot" not in result}
    return [name for name in LABELS if name in present]


def _known(measured):
    """(row, entry) in the order of the row table; an entry of a row that no longer exists is left out."""
    return [(row, m) for row in rows.ROWS for m in measured if m["row"] == row.name]


def _groups(measured, threads):
    """The entries with this number of threads, by their rows' heading, in the order of the row table."""
    found = {}
    for row, m in _known(measured):
        if m["threads"] == threads:
            found.setdefault(row.group, []).append(m)
    return found.items()


def time_table(measured, threads):
    names = _operators(measured)
    tail = [text for name in filter(is_ours, names) for text in (f"rate of {LABELS[name]}", f"best peer ÷ {LABELS[name]}")]
    head = ["row", *(LABELS[name] for name in names), *tail, "spread of each"]
    return table(head, [_time_line(row, m, names) for row, m in _known(measured) if m["threads"] == threads])


def value_table(measured, field, shown):
    """One number per row and operator."""
    names, body = _operators(measured), []
    for row, m in _known(measured):
        got = [m["results"].get(name, {}) for name in names]
        body.append([row.says, *(shown(r[field]) if field in r and "cannot" not in r else "–" for r in got)])
    return table(["row", *(LABELS[name] for name in names)], body)


def operator_table(measured):
    """The exact operators, their libraries' versions, and what is laid out or copied for them."""
    body = []
    for name in _operators(measured):
        got = [m["results"][name] for _, m in _known(measured) if name in m["results"]]
        about = next((r for r in got if "operator" in r), None)
        layouts = dict.fromkeys(r["layout"] for r in got if "layout" in r)
        if about:
            body.append([LABELS[name], f"{LIBRARIES[name.split(':')[0]]} {about['version']}", f"`{about['operator']}`",
                         "; or: ".join(layouts) or "–"])
    return table(["column", "library", "operator", "layout and copies"], body, left=4)


def missing(measured):
    """Which rows an operator does not have, and why, in its library's words."""
    found = {}
    for row, m in _known(measured):
        for name, result in m["results"].items():
            if "cannot" in result:
                words = " ".join(result["cannot"].split())
                found.setdefault((name, words if len(words) < 200 else words[:197] + "..."), {})[row.name] = None
    order = list(LABELS)
    lines = [f"- {LABELS.get(name, name)}: {', '.join(names)}: {reason}"
             for (name, reason), names in sorted(found.items(), key=lambda item: order.index(item[0][0]))]
    return "\n".join(lines)


def machines(documents):
    """The documents of one machine in one list, in the order in which they come."""
    found = {}
    for document in documents:
        found.setdefault(json.dumps(document["machine"], sort_keys=True), []).append(document)
    return list(found.values())


def section(documents):
    """The tables of one machine: its first document in full, all of them in the table of runs."""
    document = documents[0]
    machine, measured = document["machine"], document["rows"]
    kind = f"{machine['cpu']}" + (f", family {machine['family']} model {machine['model']}" if machine.get("family") else "")
    runs = document["rounds"] * document["runs"]
    parts = [f"### {kind} ({' '.join(machine['features'])})",
             f"{machine['cores']} cores, {machine['memory_gb']} GB, Linux {machine['kernel']}; {document['date']}, commit {document['commit']}; "
             f"`{document['command']}`. Medians of {runs} runs in {document['rounds']} rounds, in milliseconds; the spread is the distance "
             "of the quartiles over the median. *Best peer ÷ ours* is how many times as fast as the best peer we are: the median over the rounds of "
             "their time over ours.",
             "**Beside the best peer**", verdict(measured), standing_table(measured)]
    if len(documents) > 1:
        parts += [f"**Best peer ÷ ours in {len(documents)} runs** (the first is the one above; commits "
                  f"{', '.join(d['commit'] for d in documents)})", runs_table(documents)]
    for threads in document["threads"]:
        for group, entries in _groups(measured, threads):
            parts += [f"**{group}, {threads} thread{'s' if threads > 1 else ''}, ms**", time_table(entries, threads)]
    fewest = _groups(measured, min(document["threads"]))
    parts += ["**Error against f64** (root mean square, over that of the right answer; the inputs' own rounding is not counted)",
              *(value_table(entries, "error_rms", lambda x: f"{x:.1e}") for _, entries in fewest),
              "**Memory of the first run, MB** (the peak above what inputs, model and library hold before it; the result and the pages of "
              "the library that are first touched here are in it)",
              *(value_table(entries, "extra_mb", lambda x: f"{x:,.0f}") for _, entries in fewest),
              "**What was called**", operator_table(measured)]
    absent = missing(measured)
    if absent:
        parts += ["**Rows that an operator does not have**", absent]
    return "\n\n".join(parts)


def stored():
    """What the results hold; FILE.json stands before FILE-2.json."""
    paths = sorted(RESULTS.glob("compare-*.json"), key=lambda path: path.stem)
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def page_with(text, documents):
    """The page with the tables of these results between its markers."""
    before, rest = text.split(OPEN)
    after = rest.split(CLOSE)[1]
    tables = "\n\n".join(section(of_one) for of_one in machines(documents)) or NONE_YET
    return f"{before}{OPEN}\n\n{tables}\n\n{CLOSE}{after}"


def main():
    documents = stored()
    text = PAGE.read_text(encoding="utf-8")
    new = page_with(text, documents)
    if "--check" in sys.argv[1:]:
        if new != text:
            raise SystemExit("docs/performance.md is not what its results give: run bench/compare/tables.py")
        return
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
