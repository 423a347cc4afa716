"""glasshead trace MODEL, on the tiny models of tests/data/models: the weights are those that transformers recorded, every
step follows from the one before when it is worked out here, and what no model has is refused with what would be right."""

import json
import math
import os

from glasshead import Case, main, read_safetensors
from models import MODELS, numbers

TOLERANCE = 1e-5  # of weights: tests/data/models/index.json


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


class Heads(Case):
    def model(self, name):
        self.expected = read_safetensors(os.path.join(MODELS, name, "expected.safetensors"))
        return os.path.join(MODELS, name)

    def ids(self, name="0.ids"):
        return ",".join(map(str, numbers(self.expected[name])[1]))

    def row(self, name, head, query):
        (_, rows, keys), values = numbers(self.expected[name])
        at = (head * rows + query) * keys
        return values[at:at + keys]

    def trace(self, model, *args):
        return json.loads(self.run_command("trace", model, *args, "--format", "json").out)

    def head(self, model, layer, head, query, *args):
        found = self.trace(model, "--tokens", self.ids(), "--layer", str(layer), "--head", str(head), "--query",
                           str(query), *args)
        self.assertTrue(found["model"]["agrees"], (model, layer, head, query, found["model"]))
        self.assertEqual([check["ok"] for check in found["checks"]], [True] * 3)
        self.steps_follow(found)
        return found

    def steps_follow(self, found):
        """Each number of the trace from those it is made of, with Python's own arithmetic."""
        inputs, (weights,) = found["inputs"], found["weights"]
        scores = [dot(inputs["q"][0], k) for k in inputs["k"]]
        self.close(found["scores"][0], scores, 1e-12 * (1 + max(map(abs, scores))))
        z = [s * found["scale"]["value"] for s in scores]
        self.close(found["scaled"][0], z, 1e-12 * (1 + max(map(abs, z))))
        for name in ("capped", "biased"):
            z = found[name][0] if name in found else z
        allowed = [bool(x) for x in found["mask"]["allowed"][0]] if "mask" in found else [True] * len(z)
        most = max(s for s, can in zip(z, allowed) if can)
        exps = [math.exp(s - most) if can else 0.0 for s, can in zip(z, allowed)]
        total = math.fsum(exps)
        self.close(weights, [e / total for e in exps], 1e-13)
        self.assertAlmostEqual(math.fsum(weights), 1, delta=1e-15 * len(weights))
        self.assertTrue(all(w == 0 for w, can in zip(weights, allowed) if not can))
        out = [dot(weights, column) for column in zip(*inputs["v"])]
        self.close(found["out"][0], out, 1e-12)
        self.close(found["projected"][0], [dot(out, column) for column in zip(*inputs["W_O"])], 1e-12)

    def test_a_decoder_s_weights_are_transformers(self):
        for name in ("llama", "gemma2", "mistral", "qwen3", "gpt2"):
            model = self.model(name)
            for layer, head, query in ((0, 1, 11), (1, 4, 7), (1, 5, 0)):
                found = self.head(model, layer, head, query)
                self.close(found["weights"][0], self.row(f"0.weights.{layer}", head, query), TOLERANCE)

    def test_an_encoder_s_weights_are_transformers(self):
        model = self.model("distilbert")
        for layer, head, query in ((0, 0, 0), (1, 5, 11)):
            found = self.head(model, layer, head, query)
            self.assertEqual(found["mask"]["kind"], "none")
            self.close(found["weights"][0], self.row(f"0.weights.{layer}", head, query), TOLERANCE)

    def test_an_encoder_decoder_has_three_kinds_of_heads(self):
        model = self.model("t5")
        decoder = ("--decoder-tokens", self.ids("0.decoder_ids"))
        for name, args, query in (("encoder.weights", ("--encoder",), 30), ("decoder.weights", decoder, 8),
                                  ("decoder.cross_weights", ("--cross", *decoder), 4)):
            found = self.head(model, 1, 2, query, *args)
            self.assertEqual(found["scale"]["value"], 1)
            self.assertEqual("biased" in found, "cross" not in name)
            self.close(found["weights"][0], self.row(f"0.{name}.1", 2, query), TOLERANCE)

    def test_the_softcap_stands_between_scale_and_softmax(self):
        found = self.head(self.model("gemma2"), 1, 3, 9)
        self.close(found["capped"][0], [2 * math.tanh(s / 2) for s in found["scaled"][0]], 1e-12)

    def test_heads_that_share_keys_show_the_same_ones(self):
        model = self.model("llama")
        fourth, fifth, third = (self.head(model, 1, h, 11) for h in (4, 5, 3))
        for name in ("k", "v"):
            self.assertEqual(fourth["inputs"][name], fifth["inputs"][name])
            self.assertNotEqual(fourth["inputs"][name], third["inputs"][name])
        self.assertEqual([fourth["model"][name] for name in ("kv_head", "heads", "kv_heads")], [2, 6, 3])
        self.assertEqual(third["model"]["kv_head"], 1)

    def test_a_query_is_shown_before_its_position_turns_it(self):
        model = self.model("llama")
        found = self.head(model, 1, 4, 11)
        q, half = found["model"]["q_before"], 4
        turned = [0.0] * 8
        for pair in range(half):  # rope, base 100, halves: Su et al. 2021
            angle = 11 * 100 ** (-pair / half)
            cos, sin = math.cos(angle), math.sin(angle)
            turned[pair] = q[pair] * cos - q[pair + half] * sin
            turned[pair + half] = q[pair] * sin + q[pair + half] * cos
        self.close(found["inputs"]["q"][0], turned, 1e-5)  # f32
        self.assertNotIn("q_before", self.head(self.model("gpt2"), 1, 4, 11)["model"])

    def test_hidden_keys_have_their_reasons(self):
        found = self.head(self.model("mistral"), 1, 0, 7)  # a window of 3
        reasons = found["mask"]["reason"][0]
        self.assertEqual([bool(x) for x in found["mask"]["allowed"][0]], [5 <= j <= 7 for j in range(12)])
        self.assertTrue(all("window" in reason for reason in reasons[:5]), reasons)
        self.assertTrue(all("causal" in reason for reason in reasons[8:]), reasons)
        text = self.run_command("trace", self.model("mistral"), "--tokens", self.ids(), "--layer", "1", "--head", "0",
                                "--query", "7").out
        self.assertIn("mask causal and window 2,0", text)
        self.assertIn("9 of 12", text)

    def test_the_text_form_says_where_the_head_is_and_what_the_run_made_of_it(self):
        model = self.model("llama")
        args = ("trace", model, "--tokens", self.ids(), "--layer", "1", "--head", "4")
        text = self.run_command(*args).out
        for line in ("llama · decoder.1.self, head 4, query 11 · ",
                     "query 11: 31 · head 4 of 6 reads key/value head 2 of 3, as heads 4 and 5 do · counted from 0",
                     "rows ✓", "fused path agrees ✓", "the model's own run agrees ✓", "q before its position",
                     "the model computed this head in f32: its weights differ from these by about"):
            self.assertIn(line, text)
        self.assertEqual(text, self.run_command(*args, "--query", "-1").out)
        self.assertEqual(text, self.run_command(*args, "--query", "11").out)
        self.assertIn("\n  W_O\n", self.run_command(*args, "--full").out)

    def test_long_rows_print_their_largest_and_the_rest(self):
        model = self.model("t5")
        text = self.run_command("trace", model, "--tokens", self.ids(), "--layer", "1", "--head", "2", "--encoder",
                                "--steps", "weights").out
        weights = self.head(model, 1, 2, 39, "--encoder")["weights"][0]
        largest = max(range(40), key=lambda j: weights[j])
        first = text[text.index("q·k\n") + 4:].split()
        self.assertEqual(first[1], str(largest))
        self.assertAlmostEqual(float(first[0].rstrip("′")), weights[largest], delta=1.5e-4)  # rounded, and moved a unit
        self.assertIn("others (32)", text)

    def test_a_trained_head_s_atoms_are_the_published_map(self):
        model = os.path.join(MODELS, "rxnmapper-albert")
        real = os.path.join(MODELS, "real", "rxnmapper-albert")
        self.expected = read_safetensors(real + ".safetensors")
        with open(real + ".json", encoding="utf-8") as file:
            published = json.load(file)["query_to_key"]
        for query, key in published[::4]:
            weights = self.head(model, 10, 5, query)["weights"][0]
            self.close(weights, self.row("0.weights.10", 5, query), TOLERANCE)
            self.assertEqual(max(range(56), key=lambda j: weights[j]), key)
        args = ("trace", model, "--tokens", self.ids(), "--layer", "10", "--head", "5")
        text = self.run_command(*args).out
        found = json.loads(self.run_command(*args, "--format", "json").out)["projected"][0]
        largest = sorted(range(256), key=lambda n: -abs(found[n]))[:2]
        self.assertIn(f"256 coordinates, of length {math.sqrt(dot(found, found)):.4f}; the largest "
                      + ", ".join(f"[{n}] {found[n]:.4f}" for n in largest), text)
        self.assertIn("left out: k, v, W_O (--full shows all", text)
        self.assertNotIn("coordinates, of length", self.run_command(*args, "--full").out)

    def test_every_form_of_a_case_is_one_of_a_head(self):
        args = ("trace", self.model("llama"), "--tokens", self.ids(), "--layer", "1", "--head", "4")
        for form, mark in (("md", "| 0"), ("latex", "\\begin{"), ("html", "<html"), ("svg", "<svg"), ("csv", ",")):
            self.assertIn(mark, self.run_command(*args, "--format", form).out)
        for view in (("--explain",), ("--by-hand", "2"), ("--gradients",), ("--mistake", "scale-missing"),
                     ("--hide", "3", "--diff")):
            self.assertTrue(self.run_command(*args, *view).out)
        changed = self.run_command(*args, "--hide", "0").out  # the run had no key hidden
        self.assertNotIn("the model", changed)

    def test_wide_views_keep_to_the_width(self):
        model = self.model("t5")
        args = ("trace", model, "--tokens", self.ids(), "--encoder", "--layer", "1", "--head", "2", "--query", "3")
        before = self.trace(*args[1:])
        heaviest = max(range(40), key=lambda j: before["weights"][0][j])
        hidden = str(heaviest)
        text = self.run_command(*args, "--hide", hidden, "--diff").out
        self.assertLessEqual(max(map(len, text.splitlines())), 100, text)
        lines = text.splitlines()
        self.assertRegex(lines[0], "^weights of .*, the 8 of 40 that moved most$")
        shown = float(lines[1].split("→")[0].rstrip("′"))  # rounded, and moved a unit
        self.assertAlmostEqual(shown, before["weights"][0][heaviest], delta=1.5e-4)
        self.assertIn(f" {hidden} ", lines[1])
        self.assertRegex(text, r"others \(32\) \d\.\d{4}→\d\.\d{4}; all 1\.0000 ✓")
        whole = self.run_command(*args, "--hide", hidden, "--diff", "--full", "--width", "60").out
        grid = [line for line in whole.splitlines() if line.startswith("  ") and "→" in line]
        self.assertGreater(len(grid), 10)
        self.assertLessEqual(max(map(len, grid)), 60, whole)
        for width in (100, 60):
            text = self.run_command(*args, "--explain", "--width", str(width)).out
            self.assertLessEqual(max(map(len, text.splitlines())), width, text)
            self.assertEqual(text.count("q·k = "), 8)

    def test_equal_tokens_of_short_rows_are_numbered(self):
        model = self.model("llama")
        args = ("trace", model, "--layer", "1", "--head", "4", "--steps", "weights", "--tokens")
        self.assertRegex(self.run_command(*args, "5,6,7,6").out, r"\n +0 5 +1 6 +2 7 +3 6 +Σ\n")
        self.assertRegex(self.run_command(*args, "5,6,7,8").out, r"\n +5 +6 +7 +8 +Σ\n")

    def test_a_head_is_saved_as_a_case(self):
        for name, more in (("llama", ()), ("gemma2", ()), ("t5", ("--encoder",)), ("t5", ("--cross",))):
            model = self.model(name)
            found = self.trace(model, "--tokens", self.ids(), "--layer", "1", "--head", "2", "--save-case",
                               self.path("head.json"), *more)
            again = json.loads(self.run_command("trace", self.path("head.json"), "--format", "json").out)
            for step in ("inputs", "scores", "weights", "out", "projected", "labels", "mask"):
                self.assertEqual(again[step], found[step], step)

    def test_nonsense_is_refused_at_once(self):
        model = self.model("llama")
        said = self.refused("trace", model, "--tokens", self.ids(), "--layer", "2", "--head", "6", "--query", "12")
        for line in ("trace: --layer: 2; there are 2 layers, numbered from 0",
                     "trace: --head: 6; there are 6 heads, numbered from 0",
                     "trace: --query: 12; there are 12 tokens: 0 to 11, or -12 to -1 from the end"):
            self.assertIn(line, said)
        said = self.refused("trace", model)
        for flag in ("--prompt: missing", "--layer: missing; there are 2 layers", "--head: missing; there are 6 heads"):
            self.assertIn("trace: " + flag, said)
        place = ("--layer", "0", "--head", "0")
        for args, said in ((("--tokens", "1,x"), "--tokens: found 'x' in '1,x'"),
                           (("--tokens", "1,67"), "--tokens: id 67 (number 1); this model's are 0 to 66"),
                           (("--tokens", "1", "--cross"), "--cross: this model is a decoder; only an encoder-decoder"),
                           (("--tokens", "1", "--encoder"), "--encoder: this model is a decoder"),
                           (("--tokens", "1", "--decoder-tokens", "1"), "--decoder-tokens: this model is a decoder"),
                           (("--tokens", "1", "--save-case", "head.txt"), "--save-case: head.txt: a case is JSON")):
            self.assertIn("trace: " + said, self.refused("trace", model, *args, *place))
        self.assertIn("--cross: does not go with --encoder",
                      self.refused("trace", self.model("t5"), "--tokens", "1", "--cross", "--encoder", *place))
        self.assertIn("--decoder-tokens: id 99",
                      self.refused("trace", self.model("t5"), "--tokens", "1", "--decoder-tokens", "0,99", *place))

    def test_what_is_wrong_with_files_is_said_in_the_command_s_name(self):
        os.symlink(os.path.join(self.model("llama"), "model.safetensors"), self.path("model.safetensors"))
        self.file("config.json", b"{")
        self.assertRegex(self.refused("trace", self.folder, "--tokens", "1"), r"^trace: .*config\.json")

    def test_a_case_has_no_layers(self):
        said = self.refused("trace", "three-tokens", "--layer", "1", "--prompt", "a", "--save-case", "x.json")
        for flag in ("--layer", "--prompt", "--save-case"):
            self.assertIn(f"trace: {flag}: reads a head of a model, and three-tokens is a case", said)
        said = self.refused("trace", "nowhere/model", "--tokens", "5", "--layer", "1", "--head", "4")
        self.assertIn("trace: --tokens: reads a head of a model; nowhere/model: no such file", said)
        self.assertFalse(os.path.exists(self.path("x.json")))


if __name__ == "__main__":
    main()
