"""glasshead heads, on the tiny models of tests/data/models: its numbers are those of the attentions that transformers
computes (their README), by the definitions in head_study.h; the order, the file and what is refused."""

import json
import math
import os

from run_test import MODELS, numbers

from glasshead import Case, main, read_safetensors

METRICS = ("first", "previous", "self", "entropy", "distance", "induction")


def mean(values):
    return sum(values) / len(values) if values else None


def by_definition(w, ids):
    """Of one head's weights, w[query][key], over a text's own keys."""
    n = len(w)
    before = [[j for j in range(1, i + 1) if ids[j - 1] == ids[i]] for i in range(n)]
    return {
        "first": mean([row[0] for row in w]),
        "previous": mean([w[i][i - 1] for i in range(1, n)]),
        "self": mean([w[i][i] for i in range(n)]),
        "entropy": mean([-sum(x * math.log(x) for x in row if x > 0) for row in w]),
        "distance": mean([sum(x * abs(i - j) for j, x in enumerate(w[i])) for i in range(n)]),
        "induction": mean([sum(w[i][j] for j in before[i]) for i in range(n) if before[i]]),
    }


class Heads(Case):
    def model(self, name):
        self.expected = read_safetensors(os.path.join(MODELS, name, "expected.safetensors"))
        return os.path.join(MODELS, name)

    def ids(self, name="0.ids"):
        return numbers(self.expected[name])[1]

    def heads(self, model, *args):
        tokens = ",".join(map(str, self.ids()))
        return json.loads(self.run_command("heads", model, "--tokens", tokens, "--json", "--quiet", *args).out)["heads"]

    def weights(self, name):
        (heads, rows, keys), flat = numbers(self.expected[name])
        return [[flat[(h * rows + i) * keys:(h * rows + i + 1) * keys] for i in range(rows)] for h in range(heads)]

    def test_the_numbers_are_those_of_the_published_implementations_attentions(self):
        for name in ("llama", "mistral", "gemma2", "qwen3", "distilbert"):
            found = self.heads(self.model(name))
            at = 0
            for layer in range(2):
                for head, weights in enumerate(self.weights(f"0.weights.{layer}")):
                    one = found[at]
                    at += 1
                    self.assertEqual((one["layer"], one["head"]), (layer, head))
                    expected = by_definition(weights, self.ids())
                    for metric in METRICS:  # attentions agree to 1e-5 each
                        if expected[metric] is None:
                            self.assertIsNone(one[metric])
                        else:
                            self.assertAlmostEqual(one[metric], expected[metric], delta=1e-5 * len(weights) ** 2,
                                                   msg=f"{name} {layer}.{head} {metric}")
            self.assertGreater(at, 0)

    def test_both_halves_of_an_encoder_decoder_are_shown(self):
        model = self.model("t5")
        found = self.heads(model)
        encoder = [one for one in found if one["attention"] == "encoder.0.self"]
        for one, weights in zip(encoder, self.weights("0.encoder.weights.0"), strict=True):
            self.assertAlmostEqual(one["entropy"], by_definition(weights, self.ids())["entropy"], delta=1e-4)
        cross = [one for one in found if one["attention"] == "decoder.1.cross"]
        self.assertEqual(len(cross), len(encoder))
        for one in cross:
            self.assertIsNotNone(one["first"])
            self.assertIsNone(one["self"])
        text = self.run_command("heads", model, "--tokens", "5,6,7", "--quiet").out
        self.assertIn("\ncross 1.0 ", text)
        self.assertIn("\nencoder 0.0 ", text)

    def test_a_text_that_is_written_is_looked_at_too(self):
        model, path = self.model("llama"), self.path("heads.safetensors")
        args = ("--tokens", "5,6,7", "--json", "--max-tokens", "6", "-o", path, "--cell", "4")
        found = json.loads(self.run_command("heads", model, *args, "--quiet").out)
        ids = json.loads(self.run_command("run", model, "--tokens", "5,6,7", "--max-tokens", "6", "--json",
                                          "--quiet").out)["ids"]
        self.assertEqual(found["prompt"]["ids"], [5, 6, 7])
        self.assertEqual(found["written"], {"ids": ids, "stop": "length"})
        # As if all had been read: but for the last, which nothing was asked about.
        read = ",".join(map(str, [5, 6, 7, *ids[:-1]]))
        whole = self.run_command("heads", model, "--tokens", read, "--json", "--quiet", "-o", self.path("whole.safetensors"),
                                 "--cell", "4")
        self.assertEqual(found["heads"], json.loads(whole.out)["heads"])
        self.assertNotIn("written", json.loads(whole.out))
        self.assertEqual(read_safetensors(path), read_safetensors(self.path("whole.safetensors")))
        self.assertEqual(numbers(read_safetensors(path)["decoder.0.self.max_map"])[0], [6, 2, 2])
        notes = self.run_command("heads", model, "--tokens", "5,6,7", "--max-tokens", "6").err
        self.assertIn("\nwritten: " + " ".join(map(str, ids)) + "\n", notes)
        about = json.loads(self.run_command("heads", self.model("t5"), "--tokens", "5,6,7", "--max-tokens", "2", "--json",
                                            "--quiet").out)
        self.assertLessEqual(len(about["written"]["ids"]), 2)
        self.assertIn("heads: --max-tokens: this model is an encoder, and writes no text\n",
                      self.refused("heads", self.model("bert"), "--tokens", "5,6", "--max-tokens", "2"))

    def test_positions_that_depend_on_the_length_are_chosen_by_context(self):
        # Phi-3's long form: other angles, and so other weights, than the short one's.
        model, tokens = os.path.join(MODELS, "phi3-longrope"), ("--tokens", "5,6,7,8,9,10", "--json")
        short, long = (json.loads(self.run_command("heads", model, *tokens, "--quiet", *more).out)["heads"]
                       for more in ((), ("--context", "100000")))
        self.assertEqual(len(short), len(long))
        self.assertNotEqual(short, long)
        rows = [json.loads(self.run_command("reads", model, *tokens, "--head", "0.0", *more).out)["rows"]
                for more in ((), ("--context", "100000"))]
        self.assertNotEqual(*rows)
        # As the weights of a run under the same --context.
        path = self.path("weights.safetensors")
        self.run_command("run", model, "--tokens", "5,6,7,8,9,10", "--max-tokens", "0", "--context", "100000", "--tap",
                         "decoder.0.self.weights", "--heads", "0", "-o", path, "--quiet")
        kept = numbers(read_safetensors(path)["decoder.0.self.weights"])[1]
        self.assertEqual([x for row in rows[1] for x in row], kept)
        self.assertIn("--context: -1", self.refused("heads", model, "--tokens", "1", "--context", "-1"))
        self.assertIn("--context: x", self.refused("reads", model, "--tokens", "1", "--head", "0.0", "--context", "x"))

    def test_the_largest_come_first(self):
        model = self.model("llama")
        plain = self.heads(model)
        self.assertEqual([(one["layer"], one["head"]) for one in plain],
                         [(layer, head) for layer in range(2) for head in range(6)])
        for metric in METRICS[:5]:
            found = self.heads(model, "--sort", metric, "--top", "5")
            self.assertEqual(found, sorted(plain, key=lambda one: -one[metric])[:5])
        lines = self.run_command("heads", model, "--tokens", "5,6,5,6", "--sort", "entropy", "--top", "3",
                                 "--quiet").out.splitlines()
        self.assertEqual(lines[0].split(), ["head", *METRICS])
        self.assertEqual(len(lines), 4)
        # What no query says anything about is neither a number nor first.
        found = self.run_command("heads", model, "--tokens", "5", "--sort", "induction", "--quiet").out.splitlines()
        self.assertEqual(found[1].split(), ["0.0", "1.0000", "-", "1.0000", "0.0000", "0.00", "-"])

    def test_everything_goes_into_a_file(self):
        model, path = self.model("llama"), self.path("heads.safetensors")
        found = self.heads(model, "-o", path, "--cell", "4", "--sort", "self", "--top", "1")
        self.assertEqual(len(found), 1)
        kept = read_safetensors(path)
        self.assertEqual(sorted(kept), sorted(f"decoder.{layer}.self.{what}" for layer in range(2)
                                              for what in ("metrics", "mean_map", "max_map")))
        shape, metrics = numbers(kept["decoder.1.self.metrics"])
        self.assertEqual(shape, [6, 6])
        weights = self.weights("0.weights.1")
        expected = by_definition(weights[2], self.ids())
        self.assertAlmostEqual(metrics[2 * 6 + 3], expected["entropy"], delta=1e-4)
        n = len(self.ids())
        (heads, rows, columns), largest = numbers(kept["decoder.1.self.max_map"])
        self.assertEqual((heads, rows, columns), (6, (n + 3) // 4, (n + 3) // 4))
        for row in range(rows):
            for column in range(columns):
                self.assertAlmostEqual(
                    largest[(2 * rows + row) * columns + column],
                    max(weights[2][i][j] for i in range(row * 4, min(n, row * 4 + 4))
                        for j in range(column * 4, min(n, column * 4 + 4))), delta=2e-5)

    def test_nonsense_is_refused_with_all_that_is_wrong(self):
        model = self.model("llama")
        said = self.refused("heads", model, "--top", "3", "--cell", "0", "-o", "x.npy", "--threads", "many",
                            "--max-tokens", "few")
        for line in ("heads: --prompt: missing", "heads: --top: goes with --sort", "heads: --cell: 0: a whole number",
                     "heads: -o: x.npy: several tensors", "heads: --threads: many", "heads: --max-tokens: few"):
            self.assertIn(line, said)
        self.assertIn("--sort", self.refused("heads", model, "--tokens", "1", "--sort", "size"))
        self.assertIn("heads: --cell: is of the pictures", self.refused("heads", model, "--tokens", "1", "--cell", "3"))
        self.assertIn("heads: --tokens: id 100000", self.refused("heads", model, "--tokens", "100000"))
        self.assertEqual(self.refused("heads", "nowhere", "--tokens", "1", "-o", "/nonexistent/h.safetensors"),
                         "heads: -o: /nonexistent/h.safetensors: cannot be created: No such file or directory\n")
        self.assertIn("--tokens: does not go with --prompt",
                      self.refused("heads", model, "--tokens", "1", "--prompt", "a"))


if __name__ == "__main__":
    main()
