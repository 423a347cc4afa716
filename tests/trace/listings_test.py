"""The text form, character by character. Sources of the expected listings: three-tokens-causal,
diff, explain and by-hand are the design's worked listings, computed by hand from softmax of
(0, 1)/sqrt 2 and (1, 1, 2)/sqrt 2; the single numbers below are the tutorials',
recomputed with decimal arithmetic."""

import json
import tempfile

from command import HERE, Failures, run

failures = Failures()


def expect_listing(name, found):
    want = (HERE / "expected" / name).read_text(encoding="utf-8")
    if found == want:
        return
    for n, (a, b) in enumerate(zip(want.splitlines() + [""], found.splitlines() + [""])):
        if a != b:
            failures.expect(False, f"{name}, line {n + 1}:\n  want {a!r}\n  have {b!r}")
            return
    failures.expect(False, f"{name}: another number of lines")


def has(arguments, *parts, code=0):
    found = run(*arguments, code=code)
    for part in parts:
        failures.expect(part in found, f"trace {' '.join(arguments)}: no {part!r} in\n{found}")


def check_listings():
    expect_listing("three-tokens-causal.txt", run("three-tokens-causal"))
    expect_listing("diff.txt", run("three-tokens", "--set", "X[B]=1,1", "--diff"))
    expect_listing("by-hand.txt", run("cat-chases-mouse", "--by-hand", "2", "--query", "chases"))
    explained = run("three-tokens-causal", "--query", "B", "--explain").splitlines(keepends=True)
    expect_listing("explain_first.txt", explained[0])
    failures.expect(len(explained) == 3 and explained[2].endswith("hidden (key after query) → ·\n"),
                    f"explain: {explained}")


def check_edits():
    has(["three-tokens-causal", "--mask", "none"], "0.8022  0.5989", "mask none")
    has(["three-tokens", "--remove-scale"], "0.5761", "scale 1 ·")
    has(["one-query", "--hide", "3"], "1.3395  0.6605")
    has(["three-tokens-padding"], "0.5000  0.5000", "padding keys")
    has(["empty-row"], "has no allowed key", code=2)
    has(["empty-row", "--empty-row", "zero"], "—")
    has(["no-such-case"], "no such file", code=2)
    has(["three-token"], "did you mean three-tokens?", code=2)
    has(["three-tokens", "--query", "Z"], "--query", code=2)
    has(["three-tokens", "--head", "1"], "--head", code=2)
    has(["three-tokens", "--steps", "nothing"], "no step or matrix", code=2)
    has(["three-tokens", "--steps", "nothing", "--format", "json"], "no step or matrix", code=2)
    failures.expect(run("three-tokens", "--steps", "all") == run("three-tokens"), "--steps all")
    has(["three-tokens", "--set", "X[Z]=1,1"], "Z", code=2)
    has(["three-tokens", "--by-hand", "13"], "--by-hand", code=2)


# Rows and keys of a sequence run piece by piece carry position and token, counted from its start.
def check_pieces():
    text = run("cat-chases-mouse-next")
    step = text[text.index("step 1 weights"):].splitlines()
    failures.expect(step[1].split() == ["0", "cat", "1", "chases", "2", "mouse", "3", "chases", "Σ"],
                    f"keys of step 1: {step[1]!r}")
    failures.expect(step[2].split()[:2] == ["3", "chases"], f"row of step 1: {step[2]!r}")
    failures.expect("  3 chases → chases" in text, "the row that predicts is the appended one")
    failures.expect(text.count("prints logits") == 1, "one note for the row of logits")
    has(["cat-chases-mouse-next"], "unrounded they are 0.9770 and 0.4925", "then one row at a time: 1 step")
    trace = json.loads(run("cat-chases-mouse-next", "--format", "json"))
    failures.expect(trace["step.1.labels"] == {
        "row": 3, "q": ["chases"], "k": ["cat", "chases", "mouse", "chases"]}, "labels of step 1")
    html = run("cat-chases-mouse-next", "--format", "html")
    for part in ('data-testid="cell-step.1.weights-3-0"', 'data-testid="rowsum-step.1.weights-3"',
                 ">3 chases</th>", ">0 cat</th>"):
        failures.expect(part in html, f"html of step 1: no {part}")
    rows = run("cat-chases-mouse-next", "--steps", "step.1.weights", "--format", "csv").splitlines()
    failures.expect(rows[0] == ",0 cat,1 chases,2 mouse,3 chases" and rows[1].startswith("3 chases,"),
                    f"csv of step 1: {rows}")
    generated = run("cat-chases-mouse-next", "--query", "3")
    failures.expect("step 1 weights" in generated and "\n9 weights" not in generated,
                    f"--query 3 is the generated row: {generated}")
    has(["cat-chases-mouse-next", "--query", "4"], "--query", code=2)
    fed = json.loads(run("cache-steps", "--format", "json"))
    failures.expect(fed["labels"]["q"] == ["A"] and fed["step.2.labels"] == {
        "row": 2, "q": ["C"], "k": ["A", "B", "C"]}, "labels of fed rows")
    lines = run("cache-steps", "--query", "C", "--explain").splitlines()
    failures.expect(len(lines) == 3 and lines[0].startswith("0 A: q·k = 1·1 + 1·0 = 1"),
                    f"explain a fed row: {lines}")


def check_explain_json():
    found = json.loads(run("three-tokens-causal", "--query", "B", "--explain", "--format", "json"))
    row, = found["rows"]
    failures.expect(found["schema"] == "glasshead.explain/1" and row["query"] == 1 and
                    row["label"] == "B" and [key["key"] for key in row["keys"]] == [0, 1, 2], f"{row}")
    first = (HERE / "expected" / "explain_first.txt").read_text(encoding="utf-8").rstrip("\n")
    failures.expect(row["keys"][0]["line"] == first, f"{row['keys'][0]}")


# 3 of the 9 pairs of every head; where heads differ, all of them are counted.
def check_masked_heads():
    has(["two-heads", "--mask", "causal"], "keys after the query, 3 of 9 in every head")
    has(["two-heads"], "Qₕ = columns of head h", "Kₕ = columns of head h", "Vₕ = columns of head h")


def check_numbers():
    has(["softmax-five", "--percent", "--decimals", "2"], "0.69", "1.54", "0.08", "13.86", "83.83′",
        "100.00 ✓")
    has(["softmax-five", "--percent", "--decimals", "2", "--round", "nearest"], "83.84")
    has(["one-query"], "0.4011  0.1978  0.4011", "1.2033  0.7967")
    has(["cat-chases-mouse"], "0.3557  0.6443", "0.4846  0.6443", "0.7282  0.2515")
    has(["cat-eats-fish"], "3.8623", "0.9984′", "2.4928")
    has(["no-softmax"], "2 ✗", "4 ✗")
    # What a tutorial's own rounding gives.
    has(["three-tokens", "--by-hand", "2", "--query", "C"], "4.10", "sum 8.16")
    has(["--list"], "three-tokens-causal")


def check_json():
    trace = json.loads(run("three-tokens-causal", "--format", "json"))
    failures.expect(trace["schema"] == "glasshead.trace/1", "schema")
    failures.expect(trace["masked"][0][1] is None, "a hidden score is null")
    failures.expect(trace["mask"]["reason"][0] == [None, "causal", "causal"], "reasons")
    failures.expect(trace["weights"][1] == [0.3302384506733431, 0.6697615493266569, 0], "weights")
    failures.expect(trace["scale"] == {"value": 0.7071067811865475, "rule": "1/sqrt(d_k)", "d_k": 2},
                    "scale")
    failures.expect(trace["lse"] == [0.7071067811865475, 1.1079403076572498, 2.1004053012281645],
                    f"lse {trace['lse']}")
    failures.expect(trace["row_sum"] == [1, 1, 1] and trace["empty_rows"] == [], "row sums")
    failures.expect(trace["printed"]["weights"][2] == ["0.2483", "0.2483", "0.5034′"], "printed")
    failures.expect(trace["printed"]["moved"] == [[0, 0, 0], [0, 0, 0], [0, 0, -1]], "moved")
    failures.expect(trace["shapes"]["scores"] == [3, 3], "shapes")
    failures.expect(all(check["ok"] for check in trace["checks"]), "checks")


def check_check():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("trace.json", "out.npy"):
            run("three-tokens", "-o", f"{folder}/{name}")
            has(["three-tokens", "--check", f"{folder}/{name}"], "equal")
            has(["three-tokens", "--scale", "1", "--check", f"{folder}/{name}"], "DIFFERS", code=1)
        run("two-heads", "-o", f"{folder}/all.safetensors")
        for ending in ("md", "tex", "html", "svg", "csv"):
            run("two-heads", "-o", f"{folder}/x.{ending}")


# What random scores do, unscaled, at d_k 4, 16, 64, 256. Two decimals of means over
# other draws than ours: 0.02 is three times the means' own error.
SWEEP = {4: (0.43, 0.32), 16: (0.68, 0.28), 64: (0.85, 0.18), 256: (0.92, 0.10)}


def check_sweep():
    points = json.loads(run("--sweep", "d_k=4..256", "--format", "json"))["points"]
    seen = {point["d_k"]: point for point in points}
    for d_k, (largest, norm) in SWEEP.items():
        side = seen[d_k]["unscaled"]
        failures.expect(abs(side["largest"] - largest) < 0.02, f"sweep {d_k}: {side}")
        failures.expect(abs(side["jacobian_norm"] - norm) < 0.02, f"sweep {d_k}: {side}")
        failures.expect(abs(seen[d_k]["scaled"]["std"] - 1) < 0.05, f"sweep {d_k}: {seen[d_k]}")
    failures.expect("<svg" in run("--sweep", "d_k=1..8", "--format", "svg"), "sweep svg")
    has(["--sweep", "d_k=9..2"], "--sweep", code=2)


def check_gradients():
    # Softmax of (180, 210, 95)/sqrt 512: norm of the Jacobian .331; unscaled 1.9e-13.
    has(["saturated-512", "--gradients", "--decimals", "3"], "0.331")
    found = json.loads(run("saturated-512", "--remove-scale", "--gradients", "--format", "json"))
    norms = found["taps"]["jacobian_norm"]["values"]
    failures.expect(1.8e-13 < norms[0] < 2.0e-13, f"saturated norm {norms}")


check_listings()
check_edits()
check_pieces()
check_explain_json()
check_masked_heads()
check_numbers()
check_json()
check_check()
check_sweep()
check_gradients()
failures.finish()
