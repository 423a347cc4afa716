#!/usr/bin/env python3
"""Report cards of the libraries of the comparison: `audit.py [--only NAME] [--tables]`, run by the comparison's Python.

Each operator of audit_worker.py goes through `glasshead audit` (GLASSHEAD names the program; build/release/bin/glasshead), its card is stored
in bench/results/audit-NAME.json, and the tables of docs/audit.md are made from all cards. --tables only makes the tables."""
import argparse
import collections
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULTS = ROOT / "bench/results"
PAGE = ROOT / "docs/audit.md"
LIBRARIES = {"glasshead": "Glasshead", "numpy": "NumPy", "torch": "PyTorch", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "ggml": "ggml",
             "jax": "JAX"}
KEPT = ("wrong", "varies", "refuses", "crashes", "hangs")  # rows that a card holds; of the others it counts
LONGEST = 110  # characters of what is said of a row


def ask(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def card_of(name, operator, version, report):
    counts = collections.defaultdict(collections.Counter)
    for row in report["rows"]:
        counts[row["group"]][row["verdict"]] += 1
    kept = [row for row in report["rows"] if row["verdict"] in KEPT or (row["group"] == "accuracy" and row["verdict"] == "right")]
    return {"schema": "glasshead.audit-card/1", "name": name, "operator": operator, "version": version, "takes": report["takes"],
            "seed": report["seed"], "date": datetime.date.today().isoformat(), "counts": {group: dict(its) for group, its in counts.items()},
            "rows": kept}


def run(name, program, operators):
    if name == "glasshead":
        command, operator, version = [program, "audit", "--json"], "attend", ask(program, "--version").split()[-1]
    else:
        worker, library = str(HERE / "audit_worker.py"), name.partition(":")[0]
        operator, _, takes = operators[name]
        version = ask(sys.executable, worker, "--version", library)
        command = [program, "audit", "--json", "--serve", "--timeout", "60", "--takes", takes.replace(" ", ","), "--name", operator, "--",
                   sys.executable, worker, name]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode > 1:
        raise SystemExit(f"{name}: {done.stderr.strip()}")
    return card_of(name, operator, version, json.loads(done.stdout))


# ---- tables


def title(card):
    return f"{LIBRARIES[card['name'].partition(':')[0]]} {card['version']}, `{card['operator']}`"


def cell(counts):
    words = {"right": "{}", "varies": "{} vary", "wrong": "**{} wrong**", "refuses": "{} refused", "crashes": "**{} crash**", "hangs": "**{} hang**"}
    return ", ".join(text.format(counts[verdict]) for verdict, text in words.items() if counts.get(verdict)) or "–"


def matrix(cards):
    groups = list(dict.fromkeys(group for card in cards for group in card["counts"]))
    lines = [["", *groups], ["---"] * (len(groups) + 1)]
    lines += [[title(card), *(cell(card["counts"].get(group, {})) for group in groups)] for card in cards]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def joined(mistakes):
    """`mask-finite:-100..finfo.min`: one mistake with several parameters once."""
    together = collections.defaultdict(list)
    for mistake in mistakes:
        name, _, parameter = mistake.partition(":")
        # Which finite number stands in for -inf is seldom told by one answer.
        together[name].append("" if name.startswith(("mask-finite", "mask-scaled")) else parameter)
    texts = [name + (f":{its[0]}" if its[0] else "") + (f"..{its[-1]}" if its[-1] != its[0] else "") for name, its in together.items()]
    return " or ".join(f"`{text}`" for text in texts)


def said(row):
    """What decides which rows are told in one line."""
    if row["mistakes"]:
        return joined(row["mistakes"])
    return "" if row["verdict"] == "wrong" else re.sub(r"\d+", "N", cut(row["text"]))


def cut(text):
    text = text.replace("|", "\\|").replace("<", "&lt;")
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " ..."


def told(card):
    lines = [f"### {title(card)}", ""]
    rows = [row for row in card["rows"] if row["verdict"] in KEPT]
    together = collections.defaultdict(list)
    for row in rows:
        together[row["verdict"], row["group"], said(row)].append(row)
    for verdict in ("crashes", "hangs", "wrong", "refuses", "varies"):
        for (its, group, says), members in together.items():
            if its != verdict:
                continue
            names = ", ".join(row["input"] for row in members[:4]) + (f" and {len(members) - 4} more" if len(members) > 4 else "")
            first = cut(members[0]["text"])
            detail = f"{says} ({first})" if members[0]["mistakes"] else first
            lines.append(f"- {verdict}, {group}: {names}: {detail}")
    if not rows:
        lines.append("Nothing is wrong, nothing is refused, the bits never vary.")
    return "\n".join(lines)


def digits(x):
    return f"{x:.0f}" if x >= 10 else f"{x:.2g}" if x >= 0.01 else f"{x:.0e}".replace("e-0", "e-")


def accuracy(cards):
    inputs = list(dict.fromkeys(row["input"] for card in cards for row in card["rows"] if row["group"] == "accuracy"))
    plain = {}
    for card in cards:
        for row in card["rows"]:
            if row["group"] == "accuracy" and row["verdict"] == "right":
                plain[row["input"]] = row["plain_ulps"]
    lines = [["", *inputs], ["---"] + ["---:"] * len(inputs)]
    for card in cards:
        of = {row["input"]: row for row in card["rows"] if row["group"] == "accuracy"}
        lines.append([title(card), *(digits(of[name]["ulps"]) if of.get(name, {}).get("verdict") == "right" else "–" for name in inputs)])
    lines.append(["plain attention in that type", *(digits(plain[name]) if name in plain else "–" for name in inputs)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def section(cards):
    dates = sorted({card["date"] for card in cards})
    return "\n\n".join([
        f"Seed {cards[0]['seed']}, {' to '.join(dict.fromkeys((dates[0], dates[-1])))}, on the processor, with the versions that the table names. Counts of inputs that are "
        "right, and of others; – is not offered.", matrix(cards),
        "Largest error of out against f64, in units in the last place of the type, at the size of what each number is a sum of (ggml's result is f32):", accuracy(cards),
        *map(told, cards)])


def in_order(cards):
    order = list(LIBRARIES)
    return sorted(cards, key=lambda card: (order.index(card["name"].partition(":")[0]), card["name"]))


def make_tables():
    cards = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("audit-*.json"))]
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split("<!-- cards -->")
    after = rest.split("<!-- /cards -->")[1]
    PAGE.write_text(f"{before}<!-- cards -->\n\n{section(in_order(cards))}\n\n<!-- /cards -->{after}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="operators whose name contains this")
    parser.add_argument("--tables", action="store_true", help="make the tables from the cards that there are")
    options = parser.parse_args()
    if not options.tables:
        import audit_worker
        program = os.environ.get("GLASSHEAD", str(ROOT / "build/release/bin/glasshead"))
        for name in ("glasshead", *audit_worker.OPERATORS):
            if options.only not in name:
                continue
            card = run(name, program, audit_worker.OPERATORS)
            path = RESULTS / f"audit-{name.replace(':', '-')}.json"
            path.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
            print(title(card), {v: sum(its.get(v, 0) for its in card["counts"].values()) for v in ("right", *KEPT)}, file=sys.stderr, flush=True)
    make_tables()


if __name__ == "__main__":
    main()
