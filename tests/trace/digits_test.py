"""Every digit that every case prints, at 0 to 12 decimals, is the exact double's: rule R2 (rounded to
nearest; Python's own formatting rounds correctly, ties to even), R3 (whole numbers), R4 (rows add to
1) and R7 (long rows)."""

import json
import math
from decimal import Decimal

from command import Failures, case_names, run

failures = Failures()

LIMIT = 10.0**7
LONG_ROW, LONG_ROW_TOP = 16, 8
SPELLED = ("nan", "inf", "-inf")


def is_scientific(values, p):
    finite = [abs(x) for x in values if x is not None and x not in SPELLED and x != 0]
    return any(x >= LIMIT for x in finite) or (
        bool(finite) and all(Decimal(x) < Decimal(1).scaleb(-p) for x in finite))


def fixed(x, p):
    text = f"{x:.{p}f}"
    return text.lstrip("-") if float(text) == 0 else text


def scientific(x, p):
    digits, exponent = f"{x:.{max(p - 1, 0)}e}".split("e")
    return f"{digits}e{int(exponent):+d}"


def printed_number(x, p, scientific_matrix):
    if x in ("nan", "inf"):
        return x
    if x == "-inf":
        return "−∞"
    if x == 0:
        return "0"
    if scientific_matrix:
        return scientific(x, p)
    if x == int(x) and abs(x) < LIMIT:
        return str(int(x))
    return fixed(x, p)


def make_digits_add_up(texts, sizes, p):
    """Rule R4 on its own terms: moves units of the largest entries, the later of equals first."""
    unit = Decimal(1).scaleb(-p)
    missing = int((1 - sum(map(Decimal, texts))) / unit)
    order = sorted(range(len(texts)), key=lambda n: (-sizes[n], -n))
    for n in order[: abs(missing)]:
        moved = Decimal(texts[n]) + (unit if missing > 0 else -unit)
        texts[n] = f"{moved:.{p}f}" + "′"
    assert sum(Decimal(t.rstrip("′")) for t in texts) == 1


def weights_row(row, hidden, p):
    """What each cell must print, and the row's sum."""
    shown = [j for j in range(len(row)) if not hidden[j]]
    texts = [printed_number(row[j], p, False) for j in shown]
    whole = all("." not in t for t in texts)
    make_digits_add_up(texts, [row[j] for j in shown], p)
    cells = ["·"] * len(row)
    for j, text in zip(shown, texts):
        cells[j] = text
    return cells, ("1" if whole else f"{Decimal(1):.{p}f}")


def long_row(row, hidden, p):
    """Rule R7: the largest entries, the earlier of equals first, and all others together."""
    shown = [j for j in range(len(row)) if not hidden[j]]
    order = sorted(shown, key=lambda j: (-row[j], j))
    top, rest = order[:LONG_ROW_TOP], order[LONG_ROW_TOP:]
    sizes = [row[j] for j in top] + ([math.fsum(row[j] for j in rest)] if rest else [])
    texts = [printed_number(x, p, False) for x in sizes]
    make_digits_add_up(texts, sizes, p)
    others = texts[len(top)] if rest else "0"
    return {"top": [[j, text] for j, text in zip(top, texts)], "others": [len(rest), others]}


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, list) else [value]


def rows_of(value):
    """The innermost lists, in order; a long row's members stand for the row."""
    if value and isinstance(value[0], list):
        return [row for part in value for row in rows_of(part)]
    return value if value and isinstance(value[0], dict) else [value]


def check_plain(where, exact, printed, p, sign="−∞"):
    values = flat(exact)
    texts = flat(printed)
    big = is_scientific(values, p)
    for x, text in zip(values, texts, strict=True):
        want = sign if x is None else printed_number(x, p, big)
        failures.expect(text == want, f"{where}: {x!r} prints {text}, not {want}")


def check_weights(where, trace, tap, prefix, p):
    rows, printed = rows_of(trace[tap]), rows_of(trace["printed"][tap])
    mask = trace.get(prefix + "mask") if tap.endswith("weights") else None
    allowed = rows_of(mask["allowed"]) if mask else None
    sums = flat(trace["printed"]["sums" if tap == "weights" else tap + ".sums"])
    for n, (row, texts) in enumerate(zip(rows, printed, strict=True)):
        seen = allowed[n % len(allowed)] if allowed else [True] * len(row)
        hidden = [not is_seen for is_seen in seen]
        u = 2.0**-53
        if all(hidden):
            failures.expect(sums[n] == "—", f"{where} row {n}: empty, but Σ is {sums[n]}")
            continue
        if any(x in SPELLED for x in row) or abs(math.fsum(row) - 1) > 4 * len(row) * u:
            continue  # rule R6: no R4; listings_test sees these
        if len(row) > LONG_ROW:
            want = long_row(row, hidden, p)
            failures.expect(texts == want, f"{where} row {n}: {texts}, not {want}")
            continue
        want, want_sum = weights_row(row, hidden, p)
        failures.expect(texts == want, f"{where} row {n}: {texts}, not {want}")
        failures.expect(sums[n] == want_sum, f"{where} row {n}: Σ {sums[n]}, not {want_sum}")


def check_trace(name, p):
    trace = json.loads(run(name, "--format", "json", "--decimals", p))
    printed = trace["printed"]
    count = 0
    for tap, texts in printed.items():
        if not isinstance(texts, list) or tap in ("moved", "sums") or tap.endswith((".moved", ".sums")):
            continue
        where = f"{name} {tap} at {p}"
        leaf = tap.rsplit(".", 1)[-1]
        prefix = tap[: len(tap) - len(leaf)]
        if leaf in ("weights", "probabilities"):
            check_weights(where, trace, tap, prefix, p)
        elif leaf == "exp":
            exact, shown = flat(trace[tap]), flat(texts)
            big = is_scientific(exact, p)
            for x, text in zip(exact, shown, strict=True):
                want = printed_number(x, p, big)
                failures.expect(text in (want, "·"), f"{where}: {x!r} prints {text}, not {want}")
        elif tap in trace["inputs"]:
            big = is_scientific(flat(trace["inputs"][tap]), p)
            for x, text in zip(flat(trace["inputs"][tap]), flat(texts), strict=True):
                if isinstance(x, str):
                    continue
                as_given = float(text) == x
                failures.expect(as_given or text == printed_number(x, p, big),
                                f"{where}: {x!r} prints {text}")
        else:
            check_plain(where, trace[tap], texts, p)
        count += len(flat(texts))
    return count


def main():
    count = 0
    for name in case_names():
        if name == "empty-row":
            continue  # refused: its row has no allowed key
        # Many numbers need few decimals: each number is new.
        for p in (0, 4, 12) if name == "dot-variance" else range(13):
            count += check_trace(name, p)
    failures.expect(count > 10000, f"only {count} numbers were seen")
    print(f"{count} printed numbers")
    failures.finish()


main()
