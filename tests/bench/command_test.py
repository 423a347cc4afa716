"""`glasshead bench` as a user runs it. `command_test.py GLASSHEAD`. Speeds are not tested: the machine may be busy."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = sys.argv.pop(1)


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
