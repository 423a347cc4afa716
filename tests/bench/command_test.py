"""`glasshead bench` as a user runs it. `command_test.py GLASSHEAD`. Speeds are not tested: the machine may be busy."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = sys.argv.pop(1)
MODELS = pathlib.Path(__file__).resolve().parents[1] / "data/models"


def bench(*arguments):
    return subprocess.run([PROGRAM, "bench", *arguments], capture_output=True, text=True, check=False)


class Quick(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.folder = pathlib.Path(folder)
            files = (cls.folder / "b.json", cls.folder / "b.svg")
            cls.done = bench("--quick", "--growth", "--threads", "1,2", "--json", str(files[0]), "--svg", str(files[1]))
            cls.json = json.loads(files[0].read_text()) if files[0].exists() else None
            cls.svg = files[1].read_text() if files[1].exists() else ""

    def test_every_row_is_right_and_has_its_samples(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.assertEqual(self.json["schema"], "glasshead.bench/1")
        self.assertTrue(self.json["quick"])
        names = bench("--quick", "--list").stdout.split()
        self.assertEqual([(row["name"], row["threads"]) for row in self.json["rows"]], [(name, n) for n in (1, 2) for name in names])
        for row in self.json["rows"]:
            self.assertTrue(row["right"], row)
            self.assertLess(row["error_rms"], 2e-5, row)
            self.assertEqual(len(row["seconds"]), len(row["of_peak"]))
            self.assertGreaterEqual(len(row["seconds"]), 3)
            self.assertTrue(all(share > 0 for share in row["of_peak"]), row)
            self.assertEqual("of_stream" in row, row["name"].startswith("decode"))

    def test_the_work_is_that_of_the_two_products(self):
        full = next(row for row in self.json["rows"] if row["name"].startswith("full"))
        self.assertEqual(full["flops"], 4 * full["heads"] * full["q_len"] * full["kv_len"] * full["d"])
        causal = next(row for row in self.json["rows"] if row["name"].startswith("causal"))
        n = causal["q_len"]
        self.assertEqual(causal["flops"], 4 * causal["heads"] * n * (n + 1) // 2 * causal["d"])

    def test_the_machine_s_limits_stand_beside_each_number_of_threads(self):
        limits = self.json["machine"]["limits"]
        self.assertEqual([limit["threads"] for limit in limits], [1, 2])
        for limit in limits:
            for what in ("flops_f32", "flops_f64", "read_bytes_per_second"):
                self.assertGreater(limit[what], 1e6)

    def test_memory_grows_with_tokens_not_with_pairs(self):
        first, second = self.json["growth"]
        self.assertEqual((first["n"], second["n"]), (1024, 2048))
        self.assertLess(second["planned_bytes"], 4 * first["planned_bytes"])
        self.assertLess(second["held_bytes"], 2048 * 2048 * 4)  # the scores alone

    def test_the_table_fits_100_columns(self):
        for line in self.done.stdout.split("\n"):
            self.assertLessEqual(len(line), 100, line)

    def test_progress_goes_to_stderr(self):
        self.assertIn("limits of the machine", self.done.stderr)
        self.assertNotIn("limits of the machine", self.done.stdout)

    def test_the_plot_has_a_bar_for_each_row(self):
        root = xml.etree.ElementTree.fromstring(self.svg)
        bars = [e for e in root.iter("{http://www.w3.org/2000/svg}rect") if e.get("height") == "14"]
        self.assertEqual(len(bars), len(self.json["rows"]))


class Models(unittest.TestCase):
    def measured(self, name, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "m.json"
            done = bench("--model", str(MODELS / name), "--quick", "--json", str(file), *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(file.read_text()), done.stdout

    def test_a_decoder_reads_and_writes(self):
        report, text = self.measured("llama", "--threads", "1,2")
        self.assertEqual([(row["name"], row["threads"], row["tokens"]) for row in report["rows"]],
                         [("prefill", 1, 16), ("generation", 1, 4), ("prefill", 2, 16), ("generation", 2, 4)])
        self.assertEqual(report["model"]["file_bytes"], (MODELS / "llama/model.safetensors").stat().st_size)
        config = json.loads((MODELS / "llama/config.json").read_text())
        d, ff, layers, heads = (config[n] for n in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"))
        q, kv = heads * config["head_dim"], config["num_key_value_heads"] * config["head_dim"]
        of_layer = [(q, d), (kv, d), (kv, d), (d, q), (ff, d), (ff, d), (d, ff)]  # [out, in]
        logits = (config["vocab_size"], d)
        size = lambda matrices: sum(out * inner for out, inner in matrices)  # noqa: E731
        pairs = 16 * 17 // 2
        self.assertEqual(report["rows"][0]["flops"], 2 * (16 * layers * size(of_layer) + size([logits])) + layers * 4 * q * pairs)
        # Outputs stand in groups of 32, each with a bias, in f32.
        packed = sum(4 * -(-out // 32) * 32 * (inner + 1) for out, inner in layers * of_layer + [logits])
        self.assertEqual(report["rows"][1]["bytes"], 4 * packed)
        for row in report["rows"]:
            self.assertTrue(len(row["seconds"]) >= 2 and all(s > 0 for s in row["seconds"]), row)
            self.assertTrue(all(share > 0 for share in row["of_peak" if row["name"] == "prefill" else "of_stream"]), row)
        for words in ("prefill, 16 tokens", "generation, 4 tokens", "of multiply-adds", "of reading", "while running"):
            self.assertIn(words, text)
        for line in text.split("\n")[4:]:
            self.assertLessEqual(len(line), 100, line)

    def test_an_encoder_makes_vectors_and_an_encoder_decoder_reads_first(self):
        report, text = self.measured("minilm", "--threads", "1")
        self.assertEqual([(row["name"], row["texts"], row["tokens"]) for row in report["rows"]], [("batch", 2, 8)])
        self.assertIn("batch, 2 texts of 8", text)
        report, _ = self.measured("t5", "--threads", "1")
        self.assertEqual([row["name"] for row in report["rows"]], ["reading", "generation"])

    def test_flags_of_the_rows_of_attention_are_refused(self):
        for flag in (("--rows", "full"), ("--list",), ("--growth",), ("--svg", "x.svg")):
            done = bench("--model", str(MODELS / "llama"), *flag)
            self.assertEqual(done.returncode, 2, flag)
            self.assertIn("excludes", done.stderr)


class Usage(unittest.TestCase):
    def test_bad_usage_is_refused_before_anything_is_measured(self):
        for arguments, words in ((("--rows", "no-such-row"), "no row's name contains 'no-such-row'"), (("--threads", "1,x"), "found 'x'"),
                                 (("--threads", "0"), "found '0'"), (("--quick", "--isa", "abacus"), 'no kernel set "abacus"')):
            done = bench(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(words, done.stderr)

    def test_the_whole_list_covers_what_it_promises(self):
        names = bench("--list").stdout
        for part in ("full-n2048-d64", "causal-n16-d64", "window-", "gqa-", "-d80", "-d40", "-f64", "bias-", "mask-half", "strided-",
                     "decode-16k-f32", "decode-16k-cache-int8", "backward-causal-n2048-d64"):
            self.assertIn(part, names)


if __name__ == "__main__":
    unittest.main()
