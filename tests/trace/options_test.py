"""What `glasshead trace` refuses and where it writes. Nothing that is given is silently ignored, and
a result never takes the place of a device, a pipe or a link. The numbers are softmax's, worked out
here."""

import json
import math
import os
import pathlib
import stat
import struct
import subprocess
import tempfile
import threading

from command import PROGRAM, Failures, run

failures = Failures()
FOLDER = tempfile.TemporaryDirectory()


def refuses(arguments, *parts):
    done = subprocess.run([PROGRAM, "trace", *map(str, arguments)], capture_output=True, check=False)
    found = done.stderr.decode()
    failures.expect(done.returncode == 2, f"trace {' '.join(map(str, arguments))}: exit {done.returncode}")
    for part in parts:
        failures.expect(part in found, f"trace {' '.join(map(str, arguments))}: no {part!r} in\n{found}")


def has(arguments, *parts, code=0):
    found = run(*arguments, code=code)
    for part in parts:
        failures.expect(part in found, f"trace {' '.join(map(str, arguments))}: no {part!r} in\n{found}")
    return found


def lacks(arguments, *parts):
    found = run(*arguments)
    for part in parts:
        failures.expect(part not in found, f"trace {' '.join(map(str, arguments))}: {part!r} in\n{found}")


def case(name, **fields):
    path = pathlib.Path(FOLDER.name) / (name + ".json")
    path.write_text(json.dumps({"schema": "glasshead.case/1", **fields}), encoding="utf-8")
    return path


def npy(name, values, shape, descr="|b1", pack="B"):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * ((-len(header) - 11) % 64) + "\n"
    path = pathlib.Path(FOLDER.name) / name
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     b"".join(struct.pack("<" + pack, value) for value in values))
    return path


def check_targets():
    folder = pathlib.Path(FOLDER.name)
    pipe = folder / "pipe.json"
    os.mkfifo(pipe)
    # Held open, so that whoever writes never waits for a reader.
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    got = []
    thread = threading.Thread(target=lambda: got.append(run("one-query", "-o", pipe)))
    thread.start()
    thread.join()
    failures.expect(stat.S_ISFIFO(os.stat(pipe).st_mode), "a pipe was replaced by a file")
    failures.expect(os.read(reader, 1 << 20) == run("one-query", "--format", "json").encode(),
                    "the pipe got something else than the trace")
    os.close(reader)
    real, link = folder / "real.json", folder / "link.json"
    real.write_text("old", encoding="utf-8")
    link.symlink_to(real)
    run("one-query", "-o", link)
    failures.expect(link.is_symlink() and json.loads(real.read_text(encoding="utf-8")),
                    "a link was replaced, not the file that it names")
    refuses(["one-query", "--format", "json", "-o", folder], "directory")
    failures.expect(not list(folder.glob("*.part*")), "a partial file was left behind")


CROSS = {"tokens": ["a", "b"], "X": [[1, 0], [0, 1]],
         "context": {"tokens": ["b", "c", "d"], "X": [[1, 0], [1, 1], [0, 2]]},
         "attention": {}, "cross_attention": {}}


def check_context_labels():
    path = case("cross", **CROSS, claims=[
        {"says": "b of the context", "tap": "cross.scores", "index": ["a", "d"], "is": 0}])
    trace = json.loads(run(path, "--set", "context.X[c]=7,9", "--format", "json"))
    failures.expect(trace["inputs"]["context"] == [[1, 0], [7, 9], [0, 2]], f"context: {trace['inputs']['context']}")
    trace = json.loads(run(path, "--set", "context.X[b]=7,9", "--format", "json"))
    failures.expect(trace["inputs"]["context"] == [[7, 9], [1, 1], [0, 2]], f"context: {trace['inputs']['context']}")


def check_hide():
    path = case("cross", **CROSS)
    trace = json.loads(run(path, "--hide", "d", "--format", "json"))
    failures.expect([row[2] for row in trace["cross.weights"]] == [0, 0], f"{trace['cross.weights']}")
    failures.expect(all(min(row) > 0 for row in trace["weights"]), f"{trace['weights']}")
    trace = json.loads(run(path, "--hide", "b", "--format", "json"))
    failures.expect([row[1] for row in trace["weights"]] == [0, 0], "the sequence's own b is hidden")
    failures.expect(all(min(row) > 0 for row in trace["cross.weights"]), "and the context's b is not")
    refuses([path, "--hide", "z"], "hide")
    context = {key: CROSS[key] for key in ("tokens", "X", "context")}
    blocks = case("blocks", **context, blocks=[{"attention": {}}, {"attention": {}}])
    trace = json.loads(run(blocks, "--hide", "c", "--format", "json"))
    failures.expect([row[1] for row in trace["block.1.weights"]] == [0, 0], "hidden in every block")
    for name, field in (("cache-steps", "feed"), ("cat-chases-mouse-next", "generate")):
        refuses([name, "--hide", "0"], "row by row", field)


def check_masks_of_files():
    ones = npy("ones.npy", [1] * 9, "(3, 3)")
    refuses(["no-softmax", "--mask", "causal"], "without softmax nothing can be hidden")
    refuses(["no-softmax", "--mask", ones], "without softmax nothing can be hidden")
    # [2, 2] fits the first attention alone.
    path = case("cross", **CROSS)
    causal = npy("causal.npy", [1, 0, 1, 1], "(2, 2)")
    by_file, by_name = (json.loads(run(path, "--mask", mask, "--format", "json"))
                        for mask in (causal, "causal"))
    for tap in ("weights", "cross.weights"):
        failures.expect(by_file[tap] == by_name[tap], f"{tap}: {by_file[tap]}, {by_name[tap]}")


def check_sinks():
    # Scores 1 and 0, sink 0: e/(e + 2), 1/(e + 2), and the sink's share 1/(e + 2).
    fields = {"tokens": ["a"], "keys": ["x", "y"],
              "attention": {"q": [[1]], "k": [[1], [0]], "v": [[1], [2]], "scale": 1, "sinks": 0}}
    path = case("sink", **fields)
    share = 1 / (math.e + 2)
    # 0.5761 + 0.2119 + 0.2119 is one unit short, which the largest gets.
    has([path], "0.5762′  0.2119", "0.7881 + sink 0.2119 ✓",
        f"sink {math.exp(-1):.4f}", "checks  rows ✓", "each row and its sink add to 1")
    failures.expect(abs(share - 0.2119) < 5e-5, "the sink's share")
    lacks([path], "✗")
    trace = json.loads(run(path, "--format", "json"))
    failures.expect(all(check["ok"] for check in trace["checks"]), f"{trace['checks']}")
    # By hand with 2 decimals: exp(1) = 2.72, exp(0) = 1, the sink's exp(0) = 1, sum 4.72; 2.72/4.72
    # = 0.58, 1/4.72 = 0.21 twice.
    has([path, "--by-hand", "2"], "sink 1 · sum 4.72", "0.58 0.21 Σ 0.79 + sink 0.21 ✓",
        "Σ 0.7881 + sink 0.2119 ✓")
    fields["attention"]["sinks"] = 900
    has([case("large-sink", **fields)], "✓")


def check_compare():
    run("three-tokens", "-o", f"{FOLDER.name}/out.npy")
    out = [x for row in json.loads(run("three-tokens", "--format", "json"))["out"] for x in row]
    # One unit of the last place of an f16 below 1 is 2^-11; off by 3 such units is another number.
    for off, code in ((0, 0), (3 * 2**-11, 1)):
        path = npy("half.npy", [x + off for x in out], "(3, 2)", "<f2", "e")
        has(["three-tokens", "--check", path], "equal" if code == 0 else "DIFFERS", code=code)
    blocks = case("two", tokens=["a"], X=[[1]], blocks=[{"attention": {}}, {"attention": {}}])
    one = npy("one.npy", [1.0], "(1, 1)", "<f8", "d")
    refuses([blocks, "--check", one], "several blocks")


def check_diff():
    equal = case("equal", tokens=["A", "B"], X=[[1], [1]], attention={})
    found = has([equal, "--scale", "5", "--diff"], "the scores that row A sees are equal (1 1)")
    failures.expect("same amount" not in found, found)
    path = case("one-key", tokens=["q"], keys=["A"],
                attention={"q": [[1]], "k": [[1]], "v": [[1]]})
    has([path, "--set", "v[0,0]=2", "--diff"], "weights A")


def check_notes():
    weights = {"q": [[[1]], [[2]]], "k": [[[1]], [[2]]], "v": [[[1]], [[2]]], "heads": 2}
    path = case("no-source", tokens=["q"], keys=["A"], attention=weights, printed=[
        {"tap": "weights", "index": [1, 0, 0], "text": "0.9", "kind": "slip", "note": "a slip"}])
    has([path], "note  the source prints head 1 row q as 0.9; a slip")
    # Each run of a case that is fed has one row, which has its own name.
    slip = {"text": "0.9", "kind": "slip", "note": "a slip"}
    path = case("fed", tokens=["A", "B", "C"], X=[[1], [2], [3]], feed=1,
                attention={"W_Q": [[1]], "mask": "causal"}, printed=[
        {"tap": "weights", "index": [0, 0], **slip},
        {"tap": "step.2.weights", "index": [0, 1], **slip},
        {"tap": "step.2.k_cache", "index": [1, 0], **slip}])
    has([path], "the source prints row A as 0.9", "prints step.2.weights row 2 C as 0.9",
        "prints step.2.k cache row 1 B as 0.9")


def linear(value, scale=1.0):
    return {"tokens": ["q"], "keys": ["A", "B"], "attention": {
        "q": [[1]], "k": [[value], [1 - value]], "v": [[1], [1]], "scale": scale, "softmax": "none"}}


def check_numbers():
    # Rule R2: an entry of 10^7 or more makes the matrix scientific.
    has([case("large", **linear(20000000.5)), "--steps", "weights"], "2.000e+7")
    # Two large numbers that add to 1: 2^40 and 1 - 2^40, whose units of 10^-12 pass 64 bits.
    has([case("cancel", **linear(2.0**40)), "--decimals", "12"], "rows ✓")
    has(["three-tokens", "--scale", "1e308"], "scale 1.000e+308", "Z = S · 1.000e+308")
    tiny = {"tokens": ["q"], "keys": ["A"],
            "attention": {"q": [[1]], "k": [[1]], "v": [[1]], "softcap": 1e-320}}
    has([case("tiny", **tiny)], "softcap 1.000e-320")


def check_combinations():
    out = f"{FOLDER.name}/x"
    refuses(["three-tokens", "--scale", "2", "--remove-scale"], "--scale", "--remove-scale")
    refuses(["three-tokens", "--sweep", "d_k=1..4"], "CASE", "--sweep")
    refuses(["--sweep", "d_k=1..4", "--query", "A", "--mask", "causal"], "--query", "--mask", "--sweep")
    for view in (["--explain"], ["--by-hand", "2"], ["--gradients"], ["--diff"]):
        refuses(["three-tokens", *view, "--steps", "weights"], "--steps", view[0])
    for option in (["--percent"], ["--round", "nearest"]):
        refuses(["three-tokens", "--gradients", *option],
                f"{option[0]}: has no effect on --gradients, which shows no weights")
    for form in ("text", "json"):
        refuses(["three-tokens", "--steps", "weights,nope", "--format", form], "nope")
    for ending in ("safetensors", "npy"):
        refuses(["three-tokens", "--steps", "nope", "-o", f"{out}.{ending}"], "nope")
        refuses(["three-tokens", "--query", "A", "-o", f"{out}.{ending}"], "--query", ending)
        failures.expect(not os.path.exists(f"{out}.{ending}"), f"a {ending} was written")
    refuses(["three-tokens", "--steps", "weights,out", "-o", f"{out}.npy"], "one matrix")
    run("cache-steps", "-o", f"{out}.npy")
    refuses(["three-tokens", "--math"], "--math", "text")
    refuses(["three-tokens", "--standalone", "--format", "md"], "--standalone", "md")
    refuses(["three-tokens", "--ascii", "--format", "html"], "--ascii", "html")
    refuses(["three-tokens", "--width", "80", "--format", "csv"], "--width", "csv")
    refuses(["three-tokens", "--query", "A", "--format", "json"], "--query", "JSON")
    refuses(["three-tokens", "--list"], "CASE", "--list")
    refuses(["two-heads", "--head", "99999999999999999999"], "99999999999999999999 is none of the 2")
    attention = {"q": [[1]], "k": [[1]], "v": [[1]], "dropout": {"p": 0.5}}
    refuses([case("dropout", tokens=["q"], keys=["A"], attention=attention)], "dropout.seed", "missing")


check_targets()
check_context_labels()
check_hide()
check_masks_of_files()
check_sinks()
check_compare()
check_diff()
check_notes()
check_numbers()
check_combinations()
failures.finish()
