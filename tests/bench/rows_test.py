"""The table of rows of bench/compare. `rows_test.py SOURCE_DIR`. Needs no package."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "bench/compare"))
import rows  # noqa: E402
import tables  # noqa: E402


def counted(row):
    """Visible pairs of one head, one by one."""
    first = row.kv_len - row.q_len
    sees = lambda i, j: (not row.causal or j <= first + i) and (not row.window or j > first + i - row.window)  # noqa: E731
    return sum(sees(i, j) for i in range(row.q_len) for j in range(row.kv_len))


class Rows(unittest.TestCase):
    def test_names_are_unique(self):
        names = [row.name for row in rows.ROWS]
        self.assertEqual(len(names), len(set(names)))

    def test_query_heads_are_a_multiple_of_key_heads(self):
        for row in rows.ROWS:
            self.assertEqual(row.heads % row.kv_heads, 0, row.name)

    def test_pairs_are_those_that_the_rules_leave(self):
        small = [rows.Row("a", "", 1, 7, 7, 8), rows.Row("b", "", 1, 7, 7, 8, causal=True), rows.Row("c", "", 1, 3, 9, 8, causal=True),
                 rows.Row("d", "", 1, 9, 9, 8, causal=True, window=4), rows.Row("e", "", 1, 1, 11, 8, causal=True)]
        for row in small + [row for row in rows.ROWS if row.q_len <= 256]:
            self.assertEqual(row.pairs, counted(row), row)

    def test_work_of_a_causal_row_is_half_of_a_full_one(self):
        # 12 heads, 2,048 * 2,049 / 2 pairs, two products of 2 * 64 operations a pair.
        row = next(row for row in rows.ROWS if row.name == "causal-2048")
        self.assertEqual(row.flops, 12 * 2098176 * 2 * 2 * 64)

    def test_a_decode_step_reads_each_key_and_value_once(self):
        # 8 heads of 16,384 keys and as many values, 128 numbers of 2 bytes each.
        row = next(row for row in rows.ROWS if row.name == "decode-16384-bf16")
        self.assertEqual(row.kv_bytes, 2 * 8 * 16384 * 128 * 2)
        self.assertEqual(rows.named("decode-16384-int8").kv_bytes, row.kv_bytes / 2)

    def test_a_filter_keeps_the_order_of_the_table(self):
        self.assertEqual([row.name for row in rows.choose("full-512,causal-2048")], ["full-512", "causal-2048", "gqa-causal-2048"])

    def test_a_filter_that_matches_nothing_is_refused_with_the_names(self):
        with self.assertRaisesRegex(SystemExit, "decode-4096-f32"):
            rows.choose("nonsense")

    def test_rows_that_are_named_exist(self):
        self.assertLessEqual({*rows.QUICK, *rows.TWO_THREADS}, {row.name for row in rows.ROWS})

    def test_goals_are_those_of_the_kinds_of_work(self):
        for name, goal in (("full-2048", 1.1), ("causal-512", 1.4), ("gqa-causal-2048", 1.4), ("decode-4096-bf16", 2), ("backward-2048", 1.5),
                           ("short-16", 0.97), ("bias-2048", 0.97)):
            self.assertEqual(rows.named(name).goal, goal, name)

    def test_every_operator_is_one_of_its_library_s_file(self):
        for name in tables.LABELS:
            library, operator = name.split(":")
            text = (ROOT / f"bench/compare/peer_{library}.py").read_text(encoding="utf-8")
            self.assertRegex(text, rf'"{operator}"(: peer\.Operator|\] = peer\.rows_of_a_group)\(')

    def test_every_package_has_one_exact_version(self):
        lines = (ROOT / "bench/compare/requirements.txt").read_text(encoding="utf-8").splitlines()
        for line in lines:
            if line and not line.startswith("#"):
                self.assertRegex(line, r"^[a-z0-9_-]+==[0-9][0-9.]*$")


unittest.main()
