"""glasshead reads, on tiny models of tests/data/models: the weights are those that transformers computes (their
README), and nonsense is refused with all that is wrong."""

import json
import os

from glasshead import Case, main, read_safetensors
from models import MODELS, numbers, with_words


def expected(name):
    """{array: nested or flat numbers} of a model's file of expectations, weights as [heads][queries][keys]."""
    arrays = {}
    for key, entry in read_safetensors(os.path.join(MODELS, name, "expected.safetensors")).items():
        shape, values = numbers(entry)
        if "weights." in key:
            heads, n, keys = shape
            values = [[values[(h * n + i) * keys:(h * n + i + 1) * keys] for i in range(n)] for h in range(heads)]
        arrays[key] = values
    return arrays


class Reads(Case):
    def ids(self, arrays):
        return ",".join(map(str, arrays["0.ids"]))

    def test_a_head_of_a_decoder_and_of_an_encoder(self):
        for name in ("llama", "distilbert"):
            arrays = expected(name)
            args = ["reads", os.path.join(MODELS, name), "--tokens", self.ids(arrays), "--head", "1.2"]
            found = json.loads(self.run_command(*args, "--json").out)
            self.close(found["rows"], arrays["0.weights.1"][2], 1e-5)
            self.assertEqual([token["id"] for token in found["tokens"]], list(arrays["0.ids"]))

    def test_lines_name_the_keys_that_are_read_most(self):
        arrays = expected("llama")
        lines = self.run_command("reads", os.path.join(MODELS, "llama"), "--tokens", self.ids(arrays), "--head",
                                 "1.2").out.splitlines()
        rows = arrays["0.weights.1"][2]
        self.assertEqual(len(lines), len(rows))
        for i, (line, row) in enumerate(zip(lines, rows)):
            words = line.split()
            self.assertEqual(words[:2], [str(i), str(arrays["0.ids"][i])])
            shown = [(int(words[n]), float(words[n + 2])) for n in range(2, len(words), 3)]
            self.assertEqual(len(shown), min(3, i + 1))
            for (key, weight), right in zip(shown, sorted(row, reverse=True)):
                self.assertAlmostEqual(weight, right, delta=6e-5)
                self.assertAlmostEqual(row[key], right, delta=2e-5)

    def test_what_one_token_reads_in_every_head(self):
        arrays = expected("llama")
        model = os.path.join(MODELS, "llama")
        args = ["reads", model, "--tokens", self.ids(arrays), "--query"]
        found = json.loads(self.run_command(*args, "4", "--json").out)
        layers = [[head[4] for head in arrays[f"0.weights.{n}"]] for n in range(2)]
        self.close(found["weights"], layers, 1e-5)
        n = len(arrays["0.ids"])
        same = self.run_command(*args, str(4 - n)).out
        heads = [head for layer in layers for head in layer]
        lines = same.splitlines()
        self.assertIn(f"in {len(heads)} heads of 2 layers", lines[0])
        self.assertEqual(len(lines), 2 + 5)  # keys 0 to 4: the others are hidden
        for j, line in enumerate(lines[2:]):
            words = line.split()
            self.assertAlmostEqual(float(words[2]), sum(head[j] for head in heads) / len(heads), delta=6e-5)
            self.assertEqual(int(words[3]), sum(max(head) == head[j] for head in heads))
            self.assertAlmostEqual(float(words[5]), max(head[j] for head in heads), delta=6e-5)

    def test_what_is_wrong_with_a_models_files_is_said_in_the_commands_name(self):
        self.assertRegex(self.refused("reads", self.path("nowhere"), "--tokens", "1", "--query", "0"), "^reads: .*nowhere")

    def test_nonsense_is_refused(self):
        model = os.path.join(MODELS, "llama")
        self.assertRegex(self.refused("reads", model, "--text", "a"), "--text: no such option; did you mean --prompt")
        self.assertEqual(self.refused("reads", model),
                         "reads: --prompt: missing; --prompt TEXT or --tokens IDS is needed\n"
                         "reads: --head: missing; --head LAYER.HEAD or --query N is needed\n")
        for head, why in (("9.0", "there are 2 layers"), ("0.99", "layer 0 has"), ("1", "LAYER.HEAD is needed")):
            said = self.refused("reads", model, "--tokens", "1,2", "--head", head)
            self.assertIn(f"reads: --head: {head}: {why}", said)
        self.assertIn("reads: --query: 2: there are 2 tokens: 0 to 1, or -2 to -1 from the end",
                      self.refused("reads", model, "--tokens", "1,2", "--query", "2"))
        self.assertIn("reads: --tokens: ", self.refused("reads", model, "--tokens", "1,100000", "--query", "0"))
        self.assertIn("only an encoder-decoder writes", self.refused("reads", model, "--tokens", "1,2", "--query", "0",
                                                                     "--decoder-tokens", "0"))

    def test_a_text_is_shown_in_its_vocabularys_words(self):
        arrays = expected("llama")
        model = with_words(self.folder, os.path.join(MODELS, "llama"), {})
        ids = arrays["0.ids"]
        result = self.run_command("reads", model, "--prompt", " ".join(f"w{n}" for n in ids), "--head", "1.2", code=None)
        if "without tokenizers" in result.err:
            self.skipTest("configured without tokenizers")
        same = self.run_command("reads", model, "--tokens", self.ids(arrays), "--head", "1.2").out
        self.assertEqual([line.split()[1] for line in result.out.splitlines()], [f"w{n}" for n in ids])
        self.assertEqual([line.split()[4::3] for line in result.out.splitlines()],
                         [line.split()[4::3] for line in same.splitlines()])

    def test_an_encoder_decoders_rows_are_those_of_cross_attention(self):
        arrays = expected("t5")
        written = ",".join(map(str, arrays["0.decoder_ids"]))
        args = ["reads", os.path.join(MODELS, "t5"), "--tokens", self.ids(arrays)]
        found = json.loads(self.run_command(*args, "--decoder-tokens", written, "--head", "1.0", "--json").out)
        self.close(found["rows"], arrays["0.decoder.cross_weights.1"][0], 1e-5)
        # without them the start token alone, id 0
        first = json.loads(self.run_command(*args, "--query", "0", "--json").out)
        self.assertEqual([token["id"] for token in first["decoder_tokens"]], [0])
        self.assertIn("--query: 1: there are 1 tokens", self.refused(*args, "--query", "1"))
        self.assertIn("reads: --decoder-tokens: ", self.refused(*args, "--decoder-tokens", "99999", "--query", "0"))


if __name__ == "__main__":
    main()
