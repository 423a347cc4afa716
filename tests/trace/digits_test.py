"""Every digit that every case prints, at 0 to 12 decimals, equals decimal arithmetic on the exact
doubles: rule R2 (rounded to nearest), R3 (whole numbers), R4 (rows add to 1)."""

import json
from decimal import ROUND_HALF_EVEN, Decimal, getcontext

from command import Failures, case_names, run

getcontext().prec = 1200
failures = Failures()

LIMIT = Decimal(10) ** 7


def is_scientific(values, p):
    finite = [abs(Decimal(v)) for v in values if v not in ("nan", "inf", "-inf", None) and v != 0]
    return any(x >= LIMIT for x in finite) or (
        bool(finite) and all(x < Decimal(1).scaleb(-p) for x in finite))


def fixed(x, p):
    q = Decimal(x).quantize(Decimal(1).scaleb(-p), rounding=ROUND_HALF_EVEN)
    return f"{abs(q):f}" if q == 0 else f"{q:f}"


def scientific(x, p):
    x = Decimal(x)
    digits = max(p - 1, 0)
    exponent = x.adjusted()
    q = x.scaleb(-exponent).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN)
    if abs(q) >= 10:
        exponent += 1
        q = x.scaleb(-exponent).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN)
    return f"{q:f}e{exponent:+d}"


def printed_number(x, p, scientific_matrix):
    if x == "nan" or x == "inf":
        return x
    if x == "-inf":
        return "−∞"
    if x == 0:
        return "0"
    if scientific_matrix:
        return scientific(x, p)
    if Decimal(x) == int(x) and abs(x) < LIMIT:
        return str(int(x))
    return fixed(x, p)


def weights_row(row, hidden, p):
    """Rule R4, on its own terms: what each cell must print, and the row's sum."""
    shown = [j for j in range(len(row)) if not hidden[j]]
    texts = {j: printed_number(row[j], p, False) for j in shown}
    total = sum(Decimal(t) for t in texts.values())
    unit = Decimal(1).scaleb(-p)
    missing = int((1 - total) / unit)
    order = sorted(shown, key=lambda j: (-Decimal(row[j]), -j))
    whole = all("." not in t for t in texts.values())
    for j in order[: abs(missing)]:
        moved = Decimal(texts[j]) + (unit if missing > 0 else -unit)
        texts[j] = f"{moved:.{p}f}" + "′"
    assert sum(Decimal(t.rstrip("′")) for t in texts.values()) == 1
    cells = [texts.get(j, "·") for j in range(len(row))]
    return cells, ("1" if whole else f"{Decimal(1):.{p}f}")


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, list) else [value]


def rows_of(value):
    """The innermost lists, in order."""
    if value and isinstance(value[0], list):
        return [row for part in value for row in rows_of(part)]
    return [value]


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
        if not isinstance(texts, list):  # a long row: see long_rows_add_to_one
            continue
        seen = allowed[n % len(allowed)] if allowed else [True] * len(row)
        hidden = [not is_seen for is_seen in seen]
        u = 2.0**-53
        if all(hidden):
            failures.expect(sums[n] == "—", f"{where} row {n}: empty, but Σ is {sums[n]}")
            continue
        total = sum(Decimal(x) for x in row)
        if abs(total - 1) > Decimal(4 * len(row) * u):
            continue  # rule R6: no R4; listings_test sees these
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
            for x, text in zip(flat(trace["inputs"][tap]), flat(texts), strict=True):
                if isinstance(x, str):
                    continue
                as_given = abs(Decimal(text) - Decimal(x)) <= abs(Decimal(x)) * Decimal(2.0**-53)
                rounded = text == printed_number(x, p, is_scientific(flat(trace["inputs"][tap]), p))
                failures.expect(as_given or rounded, f"{where}: {x!r} prints {text}")
        else:
            check_plain(where, trace[tap], texts, p)
        count += len(flat(texts))
    return count


def main():
    count = 0
    for name in case_names():
        if name == "empty-row":
            continue  # refused: its row has no allowed key
        for p in range(13):
            count += check_trace(name, p)
    failures.expect(count > 10000, f"only {count} numbers were seen")
    print(f"{count} printed numbers")
    failures.finish()


main()
