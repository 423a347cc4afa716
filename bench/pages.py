#!/usr/bin/env python3
"""Puts what was measured of this library into its pages: `pages.py [--check]`.

bench/results/ladder.json (example_ladder --measure) gives the table of docs/kernels.md, between <!-- ladder --> and
<!-- /ladder -->; bench/results/bench-*.json (glasshead bench --json) give that of docs/performance.md, between
<!-- bench --> and <!-- /bench -->. --check only says whether a page would change."""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results"
RUNGS = {"naive": "1 naive: three loops, every score kept", "tiled": "2 tiled: 128 scores at a time",
         "lanes": "3 one query per lane", "threaded": "4 threaded", "decode-naive": "one query: rung 1",
         "decode": "5 one query: the decode form"}


def median(numbers):
    ordered, n = sorted(numbers), len(numbers)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


def spread(numbers):
    ordered, n = sorted(numbers), len(numbers)
    return (ordered[3 * n // 4 if n > 1 else 0] - ordered[n // 4]) / median(numbers)


def digits(x):
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 1 else f"{x:.3f}"


def table(head, body, left=1):
    rule = ["---" if n < left else "---:" for n in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *body))


def ladder_table(document):
    if document is None:
        return "Nothing is measured yet; `example_ladder --measure bench/results/ladder.json` and `bench/pages.py` fill this."
    rungs = {rung["name"]: rung for rung in document["rungs"]}
    body = []
    for name, says in RUNGS.items():
        rung, floor = rungs[name], rungs["decode-naive" if name.startswith("decode") else "naive"]
        body.append([says, digits(1e3 * rung["seconds"]), digits(rung["flops"] / rung["seconds"] / 1e9),
                     f"{floor['seconds'] / rung['seconds']:.1f}"])
    where = (f"{document['cpu']}, kernel set {document['isa']}, {document['threads']} threads on rung 4; one head, {document['n']} keys, "
             f"d {document['d']}, f32, no mask. The best of ten runs.")
    return f"{where}\n\n{table(['rung', 'ms', 'GF/s', 'times rung 1'], body)}"


def row_line(row):
    if not row["right"]:
        return [row["name"], "wrong", "–", "–", "–", "–", f"{row['error_rms']:.1e}"]
    seconds = median(row["seconds"])
    return [row["name"], digits(1e3 * seconds), digits(row["flops"] / seconds / 1e9), f"{median(row['of_peak']):.1%}",
            f"{median(row['of_stream']):.1%}" if "of_stream" in row else "–", f"{spread(row['seconds']):.1%}", f"{row['error_rms']:.1e}"]


def growth_table(growth):
    mb = lambda n: f"{n / 1e6:.1f}"  # noqa: E731
    body = [[f"{at['n']:,}", digits(at["seconds"]), digits(at["flops"] / at["seconds"] / 1e9), mb(at["given_bytes"]), mb(at["held_bytes"]),
             mb(at["planned_bytes"])] for at in growth]
    return table(["tokens", "s", "GF/s", "inputs and result, MB", "held beside them, MB", "planned, MB"], body)


def bench_section(document):
    machine = document["machine"]
    parts = [f"### {machine['cpu']}: shares of the machine's limits",
             f"{machine['cores']} cores; kernel set {machine['isa']}, peak measured with {machine['peak_isa']}; {document['date']}, version "
             f"{document['version']}, `glasshead bench --json`. Each sample stands beside a measurement of the peak (and for decoding of "
             "reading the same bytes); shares are medians, the spread is the distance of the quartiles over the median."]
    for limit in machine["limits"]:
        n = limit["threads"]
        parts.append(f"**{n} thread{'s' if n > 1 else ''}**: {digits(limit['flops_f32'] / 1e9)} GF/s f32, {digits(limit['flops_f64'] / 1e9)} "
                     f"GF/s f64, reads {digits(limit['read_bytes_per_second'] / 1e9)} GB/s")
        rows = [row for row in document["rows"] if row["threads"] == n]
        for group in dict.fromkeys(row["group"] for row in rows):
            parts.append(table([group, "ms", "GF/s", "of peak", "of stream", "spread", "error"],
                               [row_line(row) for row in rows if row["group"] == group]))
    if document["growth"]:
        parts += ["**Growth**: causal attention of one head, d 64, f32", growth_table(document["growth"])]
    return "\n\n".join(parts)


def bench_tables(documents):
    return "\n\n".join(map(bench_section, documents)) or "No results are stored yet; `glasshead bench --json` makes them."


def between(text, mark, content):
    """The page with `content` between its markers."""
    opening, closing = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    before, rest = text.split(opening)
    return f"{before}{opening}\n\n{content}\n\n{closing}{rest.split(closing)[1]}"


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def main():
    ladder = RESULTS / "ladder.json"
    pages = {ROOT / "docs/kernels.md": ("ladder", ladder_table(load(ladder) if ladder.exists() else None)),
             ROOT / "docs/performance.md": ("bench", bench_tables([load(path) for path in sorted(RESULTS.glob("bench-*.json"))]))}
    for page, (mark, content) in pages.items():
        text = page.read_text(encoding="utf-8")
        new = between(text, mark, content)
        if "--check" not in sys.argv[1:]:
            page.write_text(new, encoding="utf-8")
        elif new != text:
            raise SystemExit(f"{page.relative_to(ROOT)} is not what its results give: run bench/pages.py")


if __name__ == "__main__":
    main()
