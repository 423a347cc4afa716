"""The report cards of bench/compare/audit.py: their tables, and what the stored ones say. `audit_test.py SOURCE_DIR`."""
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "bench/compare"))
import audit  # noqa: E402


def row(group, name, verdict, text="", mistakes=(), ulps=0.0):
    return {"group": group, "input": name, "what": "", "verdict": verdict, "text": text, "mistakes": list(mistakes), "ulps": ulps,
            "plain_ulps": 2 * ulps}


class Card(unittest.TestCase):
    def setUp(self):
        rows = [row("masks", "a", "right"), row("masks", "b", "wrong", "1 of 2", ["mask-finite:-100", "mask-finite:-1000"]),
                row("masks", "c", "wrong", "2 of 2", ["mask-finite:-100", "mask-finite:-1000"]), row("masks", "d", "not offered", "bias"),
                row("causal", "e", "refuses", "size 3 | 4"), row("causal", "f", "refuses", "size 5 | 6"), row("accuracy", "f32", "right", ulps=1.5)]
        self.card = audit.card_of("numpy:x", "x", "1.0", {"takes": ["mask"], "seed": 1, "rows": rows})

    def test_right_rows_are_counted_and_others_kept(self):
        self.assertEqual(self.card["counts"]["masks"], {"right": 1, "wrong": 2, "not offered": 1})
        self.assertEqual([r["input"] for r in self.card["rows"]], ["b", "c", "e", "f", "f32"])

    def test_a_cell_names_what_is_not_right(self):
        self.assertEqual(audit.cell({"right": 1, "wrong": 2, "not offered": 1}), "1, **2 wrong**")
        self.assertEqual(audit.cell({"not offered": 3}), "–")

    def test_rows_that_say_the_same_are_one_line(self):
        text = audit.told(self.card)
        self.assertIn("- wrong, masks: b, c: `mask-finite` (1 of 2)", text)
        self.assertIn("- refuses, causal: e, f: size 3 \\| 4", text)
        self.assertEqual(text.count("\n- "), 2)

    def test_errors_stand_beside_plain_attentions(self):
        self.assertIn("| NumPy 1.0, `x` | 1.5 |", audit.accuracy([self.card]))
        self.assertIn("| plain attention in that type | 3 |", audit.accuracy([self.card]))


class Stored(unittest.TestCase):
    def cards(self):
        paths = sorted((ROOT / "bench/results").glob("audit-*.json"))
        return {card["name"]: card for card in (json.loads(path.read_text(encoding="utf-8")) for path in paths)}

    def test_the_page_shows_them(self):
        text = audit.PAGE.read_text(encoding="utf-8")
        self.assertTrue(audit.section(audit.in_order(list(self.cards().values()))) in text, "audit.py --tables makes it again")

    def test_own_attention_is_right_throughout(self):
        self.assertEqual({v for its in self.cards()["glasshead"]["counts"].values() for v in its}, {"right"})

    def test_what_is_publicly_known_of_them_is_found(self):
        cards = self.cards()

        def found(name, group, of, mistake):
            rows = [r for r in cards[name]["rows"] if r["group"] == group and r["input"] == of]
            return len(rows) == 1 and rows[0]["verdict"] == "wrong" and any(m.startswith(mistake) for m in rows[0]["mistakes"])

        self.assertTrue(found("numpy:one-liner", "empty rows", "mask-first-row", "empty-row-nan"))
        self.assertTrue(found("numpy:one-liner", "poison", "nan-in-values-hidden-by-mask", "hidden-read"))
        self.assertTrue(found("onnxruntime:attention", "poison", "nan-in-values-hidden-by-mask", "hidden-read"))
        self.assertTrue(found("onnxruntime:attention", "masks", "row-of-lowest-numbers", ""))
        self.assertTrue(found("onnxruntime:mha", "poison", "scores-below-a-stand-in-padding", "mask-finite"))
        self.assertTrue(found("onnxruntime:gqa", "numbers", "scale-0", "scale-other:1/sqrt(d_k)"))
        refused = [r["input"] for r in cards["onnxruntime:attention"]["rows"] if r["verdict"] == "refuses"]
        self.assertLessEqual({"scale-0", "scale-minus-1", "mask-k", "mask-1k", "batch-0"}, set(refused))
        sums = [r for r in cards["ggml:flash"]["rows"] if r["input"] == "f16-sums-of-400-values-of-300"]
        self.assertEqual([r["verdict"] for r in sums], ["wrong"])


if __name__ == "__main__":
    unittest.main()
