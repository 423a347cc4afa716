"""The comparison of whole models, without any engine. `models_test.py SOURCE_DIR`. Needs no package."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "bench/compare"))
import models  # noqa: E402

MACHINE = {"cpu": "Some CPU", "family": "25", "model": "1", "features": ["avx2"], "cores": 2}


def document(**results):
    return {"machine": MACHINE, "date": "2026-01-02", "commit": "abc", "rounds": 3, "rows": [{"row": "q4_1-prefill", "threads": 1, "results": results}]}


class Answers(unittest.TestCase):
    def test_log_probabilities_are_compared_where_the_reference_is_likely(self):
        right = {"probabilities": {str(n): -float(n) for n in range(40)}}
        got = {"probabilities": {str(n): -float(n) - (0.01 if n == 3 else 5.0 if n > 20 else 0) for n in range(40)}}
        self.assertEqual(models.distance(models.named("q4_1-prefill"), got, right), {"log_probability_error": 0.01})
        with self.assertRaisesRegex(ValueError, "wrong answer"):
            models.distance(models.named("f32-prefill"), got, right)

    def test_a_text_must_begin_as_the_reference_does(self):
        row, right = models.named("f32-generation"), {"text": list(range(20))}
        self.assertEqual(models.distance(row, {"text": [*range(12), 0, 0]}, right), {"same_tokens": 12})
        with self.assertRaisesRegex(ValueError, "after 3 tokens"):
            models.distance(row, {"text": [0, 1, 2, 9]}, right)

    def test_vectors_may_differ_by_rounding(self):
        row = models.named("minilm-1x32")
        self.assertEqual(models.distance(row, {"vectors": [[0.5, 0.25]]}, {"vectors": [[0.5, 0.250001]]}), {"vector_error": 1e-6})
        with self.assertRaisesRegex(ValueError, "wrong answer"):
            models.distance(row, {"vectors": [[0.5, float("nan")]]}, {"vectors": [[0.5, 0.25]]})


class Tables(unittest.TestCase):
    def test_the_median_of_the_rounds_counts(self):
        ours, theirs = {"version": "1", "ms": [100, 200, 100]}, {"version": "2", "ms": [200, 200, 300]}
        (line,) = models.lines(document(**{"glasshead": ours, "llama.cpp": theirs}))
        # 512 tokens in 100 and 200 ms; 2, 1 and 3 times as fast
        self.assertEqual(line[2], "5,120")
        self.assertEqual(line[5], "2,560")
        self.assertEqual(line[7:], ["2.00", "1.00–3.00", "1", "yes"])

    def test_an_engine_that_could_not_is_named(self):
        text = models.section(document(**{"glasshead": {"version": "1", "ms": [1, 1, 1]}, "llama.cpp": {"cannot": "it is away", "ms": []}}))
        self.assertIn("Not measured: SmolLM2 Q4_1, 512 tokens read, llama.cpp: it is away", text)

    def test_the_page_shows_the_stored_results(self):
        text = models.PAGE.read_text(encoding="utf-8")
        self.assertEqual(models.page_with(text, models.stored()), text)


if __name__ == "__main__":
    unittest.main()
