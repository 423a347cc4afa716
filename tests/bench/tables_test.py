"""The tables that bench/compare/tables.py makes. `tables_test.py SOURCE_DIR`. Needs no package."""
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "bench/compare"))
import rows  # noqa: E402
import tables  # noqa: E402

ROW = next(row for row in rows.ROWS if row.name == "full-512")


def result(*turns, **rest):
    return {"version": "1.2", "operator": "f", "layout": "as given", "ms": [list(turn) for turn in turns], "error_rms": 2.5e-7,
            "extra_mb": 3.4, **rest}


def entry(row="full-512", threads=1, **results):
    return {"row": row, "threads": threads, "results": {name.replace("_", ":", 1): r for name, r in results.items()}}


def document(*measured):
    return {"machine": {"cpu": "Some CPU", "family": None, "features": ["avx2"], "cores": 2, "memory_gb": 8, "kernel": "6.1"},
            "date": "2026-01-02", "commit": "abc", "command": "make bench-compare", "rounds": 2, "runs": 2, "threads": [1],
            "rows": list(measured)}


def cells(text, line):
    return [cell.strip() for cell in text.split("\n")[line].strip("|").split("|")]


class Numbers(unittest.TestCase):
    def test_three_digits_without_exponents(self):
        for x, text in ((0.001234, "0.00123"), (0.0999, "0.0999"), (1, "1.00"), (9.999, "10.0"), (12.345, "12.3"), (99.96, "100"),
                        (123.4, "123"), (12345.6, "12,300"), (0, "0")):
            self.assertEqual(tables.three_digits(x), text)

    def test_median_of_an_even_number_is_the_mean_of_the_middle_two(self):
        self.assertEqual(tables.median([4, 1, 3, 2]), 2.5)
        self.assertEqual(tables.median([5, 1, 3]), 3)

    def test_spread_is_the_distance_of_the_quartiles_over_the_median(self):
        self.assertEqual(tables.spread([1, 2, 3, 4, 5]), (4 - 2) / 3)

    def test_rate_counts_both_products_of_the_visible_pairs(self):
        # 12 heads of 512 x 512 pairs, 256 operations each, in 10 ms.
        self.assertEqual(tables.rate(ROW, 10.0), "81 GF/s")


class Tables(unittest.TestCase):
    def test_a_row_shows_medians_over_all_rounds_and_the_fastest_in_bold(self):
        text = tables.time_table([entry(glasshead_attend=result([1, 9], [2, 2]), torch_sdpa=result([3, 5], [5, 7]))], 1)
        self.assertEqual(cells(text, 0)[:3], ["row", "Glasshead", "PyTorch"])
        self.assertEqual(cells(text, 2)[:3], ["H12 N512 d64 full f32", "**2.00**", "5.00"])
        self.assertEqual(cells(text, 0)[3:], ["rate of Glasshead", "best peer ÷ Glasshead", "spread of each"])
        self.assertEqual(cells(text, 2)[4], "1.90")  # 4 / 5 in the first round, 6 / 2 in the second

    def test_a_peer_that_is_faster_is_the_bold_one(self):
        text = tables.time_table([entry(glasshead_attend=result([4]), torch_sdpa=result([2]))], 1)
        self.assertEqual(cells(text, 2)[1:3] + cells(text, 2)[4:5], ["4.00", "**2.00**", "0.50"])

    def test_the_best_peer_is_never_ourselves(self):
        both = tables.standings(entry("decode-4096-f32", glasshead_attend=result([2]), glasshead_cache=result([1]), torch_sdpa=result([6]),
                                      jax_dpa=result([4])))
        self.assertEqual([(s.ours, s.peer, s.ratio) for s in both], [("glasshead:attend", "jax:dpa", 2), ("glasshead:cache", "jax:dpa", 4)])

    def test_a_round_that_was_slow_for_all_does_not_move_the_ratio(self):
        standing, = tables.standings(entry(glasshead_attend=result([2], [20], [2]), torch_sdpa=result([3], [30], [3])))
        self.assertEqual((standing.ratio, standing.ms, standing.peer_ms), (1.5, 2, 3))

    def test_without_a_peer_nothing_is_compared(self):
        self.assertEqual(tables.standings(entry(glasshead_attend=result([2]), torch_sdpa={"cannot": "no"})), [])

    def test_each_row_is_judged_by_its_goal(self):
        # full prefill is to be 1.1 times as fast as the best peer, anything below 0.97 is slower
        for theirs, judged in ((0.96, "slower than a peer"), (0.97, "below its goal"), (1.09, "below its goal"), (1.1, "yes")):
            measured = [entry(glasshead_attend=result([1]), torch_sdpa=result([theirs]), jax_dpa=result([9]))]
            self.assertEqual(cells(tables.standing_table(measured), 2)[-2:], ["1.1", judged])
            self.assertEqual("full-512" in tables.verdict(measured).split("\n")[0], judged == "slower than a peer")
            self.assertEqual("full-512" in tables.verdict(measured).split("\n")[1], judged == "below its goal")

    def test_what_cannot_run_is_a_dash_and_its_reason_is_listed(self):
        measured = [entry(glasshead_attend=result([1]), jax_dpa={"cannot": "it has\nno such rule"}),
                    entry("causal-512", glasshead_attend=result([1]), jax_dpa=result([1]))]
        self.assertEqual(cells(tables.time_table(measured, 1), 2)[2], "–")
        self.assertEqual(tables.missing(measured), "- JAX: full-512: it has no such rule")

    def test_a_wrong_answer_is_never_timed_even_if_times_are_there(self):
        self.assertEqual(tables.times(result([1], cannot="wrong answer: rms error 1.0e-01")), [])

    def test_rows_stand_in_the_order_of_the_row_table(self):
        measured = [entry("decode-4096-f32", glasshead_attend=result([1])), entry("full-512", glasshead_attend=result([1]))]
        lines = tables.time_table(measured, 1).split("\n")[2:]
        self.assertEqual([line.split("|")[1].strip() for line in lines], ["H12 N512 d64 full f32", "H32/8 4,096 keys d128 f32"])

    def test_each_number_of_threads_has_its_table(self):
        measured = [entry(threads=n, glasshead_attend=result([n])) for n in (1, 2)]
        self.assertEqual(len(tables.time_table(measured, 2).split("\n")), 3)

    def test_errors_and_memory_are_those_of_the_fewest_threads(self):
        measured = [entry(threads=n, glasshead_attend=result([1], error_rms=n * 1e-7)) for n in (2, 1)]
        text = tables.section([{**document(*measured), "threads": [1, 2]}]).split("**Error against f64**")[1]
        self.assertIn("| 1.0e-07 |", text)
        self.assertNotIn("2.0e-07", text)

    def test_a_column_without_an_entry_is_left_out_of_its_heading_alone(self):
        measured = [entry(glasshead_attend=result([1]), ggml_flash={"cannot": "no"}),
                    entry("decode-4096-f32", glasshead_attend=result([1]), ggml_flash=result([1]))]
        prefill, decode = tables.section([document(*measured)]).split("**Decode, 1 thread, ms**")
        self.assertNotIn("ggml", prefill.split("**Prefill, 1 thread, ms**")[1])
        self.assertIn("| ggml |", decode)


class Runs(unittest.TestCase):
    RUNS = [document(entry(glasshead_attend=result([1]), torch_sdpa=result([theirs]))) for theirs in (1.2, 0.5, 0.9)]

    def test_a_row_is_judged_by_the_median_of_its_runs(self):
        self.assertEqual(cells(tables.runs_table(self.RUNS), 2),
                         ["H12 N512 d64 full f32", "1", "Glasshead", "1.20 (PyTorch)", "0.50 (PyTorch)", "0.90 (PyTorch)", "**0.90**", "1.1",
                          "slower than a peer"])

    def test_a_run_without_the_row_is_a_dash(self):
        self.assertEqual(cells(tables.runs_table([self.RUNS[0], document()]), 2)[3:6], ["1.20 (PyTorch)", "–", "1.20"])

    def test_runs_on_one_machine_share_a_section_and_another_machine_has_its_own(self):
        other = {**self.RUNS[0], "machine": {**self.RUNS[0]["machine"], "cpu": "Other CPU"}}
        self.assertEqual(tables.machines([self.RUNS[0], other, self.RUNS[1]]), [[self.RUNS[0], self.RUNS[1]], [other]])
        self.assertIn("in 3 runs", tables.section(self.RUNS))
        self.assertNotIn("in 1 runs", tables.section([other]))


class Page(unittest.TestCase):
    def test_only_what_stands_between_the_markers_changes(self):
        page = f"# before\n\n{tables.OPEN}\nwas here\n{tables.CLOSE}\n\nafter\n"
        new = tables.page_with(page, [document(entry(glasshead_attend=result([1], [2])))])
        self.assertTrue(new.startswith(f"# before\n\n{tables.OPEN}\n\n### Some CPU (avx2)"))
        self.assertTrue(new.endswith(f"{tables.CLOSE}\n\nafter\n"))
        self.assertNotIn("was here", new)
        self.assertEqual(tables.page_with(new, [document(entry(glasshead_attend=result([1], [2])))]), new)

    def test_without_results_the_page_says_so(self):
        self.assertIn(tables.NONE_YET, tables.page_with(f"{tables.OPEN}{tables.CLOSE}", []))

    def test_the_page_is_what_the_stored_results_give(self):
        page = tables.PAGE.read_text(encoding="utf-8")
        self.assertEqual(tables.page_with(page, tables.stored()), page)


class Files(unittest.TestCase):
    def test_json_is_unchanged_in_content_and_keeps_numbers_on_one_line(self):
        original = {"a": [1, 2.5], "b": [[1, 2], [3]], "c": [{"d": []}, {"e": [[]]}], "f": "x[", "g": ["x", "y["], "h": {}, "i": None, "j": "–"}
        text = tables.as_json(original)
        self.assertEqual(json.loads(text), original)
        self.assertIn('"a": [1, 2.5]', text)


unittest.main()
