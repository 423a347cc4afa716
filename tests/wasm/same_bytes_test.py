"""The same trace has the same bytes from every compiler, at every optimisation, and as WebAssembly.
`same_bytes_test.py SOURCE_DIR GLASSHEAD`. The module is build/wasm/bin/glasshead.wasm (make wasm)."""
import base64
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT, GLASSHEAD = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
del sys.argv[1:3]
MODULE = ROOT / "build/wasm/bin/glasshead.wasm"
LEARN, LESSON = (ROOT / f"build/wasm/bin/{name}.wasm" for name in ("learn", "lesson"))  # web/tests compares their views
OTHERS = [p for p in (ROOT / "build" / preset / "bin/glasshead" for preset in ("asan", "dev", "release", "coverage"))
          if p.exists() and p != GLASSHEAD]
CASES = sorted((ROOT / "cases").glob("*.json"))
FORMS = ["json", "text", "md", "latex", "html", "svg", "csv"]
MORE = [({"by_hand": 2, "format": "text"}, ["--by-hand", "2"]),
        ({"by_hand": 3, "format": "json"}, ["--by-hand", "3", "--format", "json"]),
        ({"decimals": 12, "format": "json"}, ["--decimals", "12", "--format", "json"]),
        ({"mistake": "scale-missing", "format": "json"}, ["--mistake", "scale-missing", "--format", "json"]),
        ({"mistake": "softmax-columns", "format": "text"}, ["--mistake", "softmax-columns"])]


def wanted():
    """(what, request, command line) of everything that is compared."""
    found = []
    for path in CASES:
        base = {"call": "trace", "name": path.stem, "case": path.read_text(encoding="utf-8")}
        for form in FORMS:
            found.append((f"{path.stem} {form}", {**base, "format": form}, ["trace", str(path), "--format", form]))
        for extra, flags in MORE:
            found.append((f"{path.stem} {extra}", {**base, **extra}, ["trace", str(path), *flags]))
    found.append(("sweep", {"call": "sweep", "sweep": "d_k=1..64"}, ["trace", "--sweep", "d_k=1..64", "--format", "json"]))
    for level in (1, 2, 3):
        found.append((f"worksheet {level}", {"call": "worksheet", "seed": 7, "level": level, "format": "md"},
                      ["worksheet", "--seed", "7", "--level", str(level), "--format", "md"]))
    return found


def of_command(program, arguments):
    """The bytes the command prints; None where it refuses."""
    done = subprocess.run([program, *arguments], capture_output=True, env={**os.environ, "LC_ALL": "C"}, timeout=120)
    return done.stdout if done.returncode == 0 else None


def of_all(program, items):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda item: of_command(program, item[2]), items))


def of_module(items):
    """The bytes the module answers; None where it refuses. A trap is an error: the front door let it through."""
    requests = "".join(json.dumps(request) + "\n" for _, request, _ in items)
    done = subprocess.run(["node", ROOT / "tests/wasm/host.mjs", MODULE], input=requests.encode(), capture_output=True,
                          timeout=600, check=True)
    answers = []
    for line, (what, _, _) in zip(done.stdout.decode().splitlines(), items, strict=True):
        kind, _, data = line.partition(" ")
        if kind == "trap":
            raise AssertionError(f"{what}: the module trapped: {base64.b64decode(data).decode()}")
        answers.append(base64.b64decode(data) if kind == "ok" else None)
    return answers


class SameBytes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.items = wanted()
        cls.here = of_all(GLASSHEAD, cls.items)

    def compare(self, answers):
        differing = [what for (what, _, _), a, b in zip(self.items, self.here, answers) if a != b]
        self.assertEqual(differing, [])

    def test_most_runs_give_an_answer(self):
        given = sum(answer is not None for answer in self.here)
        self.assertGreater(given, 0.8 * len(self.items))

    def test_other_builds(self):
        self.assertTrue(OTHERS, "no other build beside this one (make dev)")
        for other in OTHERS:
            with self.subTest(build=str(other.relative_to(ROOT))):
                self.compare(of_all(other, self.items))

    def test_the_webassembly_module(self):
        self.compare(of_module(self.items))

    def test_what_the_modules_ask_of_their_host(self):
        script = ("const m=new WebAssembly.Module(require('fs').readFileSync(process.argv[1]));"
                  "console.log(WebAssembly.Module.imports(m).map(i=>i.module+'.'+i.name).join('\\n'))")
        allowed = {f"wasi_snapshot_preview1.{name}" for name in
                   ("fd_close", "fd_seek", "fd_write", "environ_get", "environ_sizes_get", "proc_exit")}
        for module in (MODULE, LEARN, LESSON):
            done = subprocess.run(["node", "-e", script, module], capture_output=True, text=True, check=True)
            self.assertLessEqual(set(done.stdout.split()), allowed)


if __name__ == "__main__":
    if not MODULE.exists():
        print("left out: build/wasm/bin/glasshead.wasm is not built (make wasm)")
        sys.exit(77)
    unittest.main()
