"""The tables that bench/pages.py makes. `pages_test.py SOURCE_DIR`."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "bench"))
import pages  # noqa: E402


def cells(text, line):
    return [cell.strip() for cell in text.split("\n")[line].strip("|").split("|")]


class Ladder(unittest.TestCase):
    def test_each_rung_is_compared_with_the_lowest_of_its_kind(self):
        seconds = {"naive": 0.2, "tiled": 0.1, "lanes": 0.01, "threaded": 0.005, "decode-naive": 2e-4, "decode": 5e-5}
        text = pages.ladder_table({"cpu": "Some CPU", "isa": "avx2", "threads": 2, "n": 1024, "d": 64,
                                   "rungs": [{"name": name, "seconds": s, "flops": 1e8} for name, s in seconds.items()]})
        lines = text.split("\n")
        self.assertIn("Some CPU", lines[0])
        self.assertEqual(cells(text, 4)[1:], ["200", "0.500", "1.0"])
        self.assertEqual(cells(text, 6)[1:], ["10.0", "10.0", "20.0"])
        self.assertEqual(cells(text, 9)[1:], ["0.050", "2000", "4.0"])

    def test_nothing_measured_says_so(self):
        self.assertIn("Nothing is measured yet", pages.ladder_table(None))


class Bench(unittest.TestCase):
    ROW = {"name": "full-n256-d64", "group": "prefill", "threads": 1, "right": True, "seconds": [1e-3, 2e-3, 3e-3, 2e-3],
           "flops": 2e8, "of_peak": [0.9, 0.8, 0.85, 0.85], "error_rms": 4e-7}

    def test_a_row_shows_medians_and_the_distance_of_the_quartiles(self):
        self.assertEqual(pages.row_line(self.ROW), ["full-n256-d64", "2.0", "100", "85.0%", "–", "50.0%", "4.0e-07"])

    def test_a_wrong_row_shows_no_speed(self):
        wrong = {"name": "x", "right": False, "error_rms": 0.5}
        self.assertEqual(pages.row_line(wrong), ["x", "wrong", "–", "–", "–", "–", "5.0e-01"])

    def test_a_page_keeps_what_stands_around_the_markers(self):
        page = "before\n<!-- bench -->\nold\n<!-- /bench -->\nafter\n"
        self.assertEqual(pages.between(page, "bench", "new"), "before\n<!-- bench -->\n\nnew\n\n<!-- /bench -->\nafter\n")


class Stored(unittest.TestCase):
    def test_the_pages_are_what_the_results_give(self):
        sys.argv[1:] = ["--check"]
        pages.main()


if __name__ == "__main__":
    unittest.main()
