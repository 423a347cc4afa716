"""glasshead run and trace with texts: the tiny models of tests/data/models beside vocabularies of a word for each id, so
that a text's ids, and what transformers computed with them, are known."""

import json
import math
import os

from glasshead import Case, main, read_safetensors
from models import MODELS, numbers, with_spelled, with_words

CHATML = "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"


def words(ids):
    return " ".join(f"w{n}" for n in ids)


class Vocabulary(Case):
    def setUp(self):
        super().setUp()
        said = self.run_command("trace", self.model("t5", {}), "--prompt", "w1", "--layer", "0", "--head", "0", code=None)
        if "without tokenizers" in said.err:
            self.skipTest("built without tokenizers")
        self.assertEqual(said.code, 0, said)

    def model(self, name, special, **config):
        self.expected = read_safetensors(os.path.join(MODELS, name, "expected.safetensors"))
        folder = self.path(f"{name}-{len(os.listdir(self.folder))}")
        os.mkdir(folder)
        return with_words(folder, os.path.join(MODELS, name), special, config)

    def of(self, name):
        return numbers(self.expected[name])[1]

    def json(self, *args):
        return json.loads(self.run_command(*args, "--json", "--quiet").out)

    def test_a_mask_is_filled_with_the_words_that_transformers_finds_likeliest(self):
        # text 1 is 15 64 9 28 41 43 19
        model = self.model("distilbert", {15: "[CLS]", 19: "[SEP]", 28: "[MASK]"})
        text = "w64 w9 [MASK] w41 w43"
        found = self.json("run", model, "--fill", text)
        self.assertEqual(found["prompt"]["ids"], self.of("1.ids"))
        (_, vocab), logits = numbers(self.expected["1.logits"])
        row = logits[3 * vocab:4 * vocab]
        total = math.fsum(map(math.exp, row))
        best = sorted(range(vocab), key=lambda n: -row[n])[:5]
        (mask,) = found["masks"]
        self.assertEqual(mask["position"], 3)
        self.assertEqual([c["id"] for c in mask["candidates"]], best)
        self.close([c["probability"] for c in mask["candidates"]], [math.exp(row[n]) / total for n in best], 1e-5)
        lines = self.run_command("run", model, "--fill", text).out.splitlines()
        self.assertEqual([line.split()[1] for line in lines], [c["token"] for c in mask["candidates"]])
        self.assertIn("run: --fill: no [MASK] in the text", self.refused("run", model, "--fill", "w1"))

    def test_a_text_s_vector_is_the_mean_of_its_rows(self):
        model = self.model("minilm", {15: "[CLS]", 19: "[SEP]"})
        vectors = self.json("run", model, "--embed", "w64 w9", "--embed", "w28")["embeddings"]
        for ids, vector in zip(("15,64,9,19", "15,28,19"), vectors):
            self.run_command("run", model, "--tokens", ids, "--tap", "encoder.1.out", "-o", "rows.safetensors")
            (n, d), rows = numbers(read_safetensors(self.path("rows.safetensors"))["encoder.1.out"])
            mean = [math.fsum(rows[i * d + e] for i in range(n)) for e in range(d)]
            length = math.sqrt(math.fsum(x * x for x in mean))
            self.close(vector, [x / length for x in mean], 1e-6)  # f32
        line = self.run_command("run", model, "--embed", "w64 w9").out
        self.close([float(x) for x in line.split()], vectors[0], 1e-7)

    def test_a_translation_is_transformers_continuation(self):
        model = self.model("t5", {})
        text = words(self.of("0.ids"))
        args = ("run", model, "--translate", text, "--max-tokens", "8", "--ignore-eos")
        self.assertEqual(self.json(*args)["ids"], self.of("0.greedy"))
        self.assertEqual(self.run_command(*args).out, words(self.of("0.greedy")) + "\n")
        beams = self.json("run", model, "--translate", text, "--max-tokens", "8", "--beams", "3")["beams"]
        (_, steps), ids = numbers(self.expected["0.beams"])
        self.assertEqual(beams[0]["ids"], [n for n in ids[:steps] if n > 1])
        self.assertEqual(beams[0]["text"], words(beams[0]["ids"]))

    def test_a_chat_has_the_form_of_the_template(self):
        model = self.model("llama", {5: "<|im_start|>", 6: "<|im_end|>", 7: "user", 8: "assistant"},
                           chat_template=CHATML)
        args = ("--max-tokens", "6", "--ignore-eos")
        found = self.json("run", model, "--chat", "w24 w44", *args)
        self.assertEqual(found["prompt"]["ids"], [5, 7, 24, 44, 6, 5, 8])
        self.assertEqual(found["ids"], self.json("run", model, "--tokens", "5,7,24,44,6,5,8", *args)["ids"])
        self.assertIn("run: --chat: the chat template: the model's files have none",
                      self.refused("run", self.model("llama", {}), "--chat", "w1"))
        self.assertIn("run: --stop: an empty text",
                      self.refused("run", self.model("llama", {}), "--prompt", "w1", "--stop", ""))

    def test_a_prompt_goes_on_in_words(self):
        model = self.model("llama", {})
        result = self.run_command("run", model, "--prompt", words(self.of("1.ids")), "--max-tokens", "8", "--ignore-eos")
        self.assertEqual(result.out, words(self.of("1.greedy")) + "\n")
        self.assertRegex(result.err, r"\ntext: 8 tokens; after the first, 7 tokens in .* tokens/s\)\n")

    def test_without_a_text_it_is_said_what_can_be_given(self):
        for name, special, config, ways in (
                ("llama", {}, {}, "this model is a decoder, which needs a text: --prompt TEXT or --tokens IDS"),
                ("llama", {}, {"chat_template": CHATML}, "--prompt TEXT, --chat TEXT or --tokens IDS"),
                ("distilbert", {15: "[CLS]", 19: "[SEP]"}, {}, "an encoder, which needs a text: --fill TEXT, --embed"),
                ("minilm", {15: "[CLS]", 19: "[SEP]"}, {}, "an encoder, which needs a text: --embed TEXT or --tokens"),
                ("t5", {}, {}, "an encoder-decoder, which needs a text: --translate TEXT or --tokens IDS")):
            said = self.refused("run", self.model(name, special, **config))
            self.assertIn("run: --tokens: missing; ", said)
            self.assertIn(ways, said)

    def test_a_head_s_tokens_are_called_by_their_words(self):
        model = self.model("distilbert", {15: "[CLS]", 19: "[SEP]"})
        found = json.loads(self.run_command("trace", model, "--prompt", "w64 w9 w28 w41 w43", "--layer", "1", "--head", "2",
                                            "--query", "3", "--format", "json").out)
        self.assertEqual(found["labels"], {"q": ["w28"], "k": ["[CLS]", "w64", "w9", "w28", "w41", "w43", "[SEP]"]})
        (_, n, _), weights = numbers(self.expected["1.weights.1"])
        self.close(found["weights"][0], weights[(2 * n + 3) * n:(2 * n + 4) * n], 1e-5)
        with_ids = self.run_command("trace", model, "--tokens", "15,64,9,28,41,43,19", "--layer", "1", "--head", "2",
                                    "--query", "3").out
        self.assertIn("query 3: w28", with_ids)
        self.assertEqual(self.refused("trace", model, "--prompt", "w1", "--tokens", "1", "--layer", "0", "--head", "0"),
                         "trace: --prompt: does not go with --tokens; the text is given in one way\n")

    def test_a_text_of_no_token_is_refused(self):
        model = self.model("llama", {})
        said = self.refused("run", model, "--prompt", "")
        self.assertIn("run: --prompt: has no token, and this model's tokenizer adds none", said)
        self.assertIn("--tokens takes the id of a token to begin with, as 1 (w1)", said)
        for command in (("heads",), ("reads", "--query", "0"), ("trace", "--layer", "0", "--head", "0")):
            self.assertIn("--prompt: ", self.refused(command[0], model, "--prompt", "", *command[1:]))

    def test_a_space_in_front_and_letters_are_seen_in_a_token_s_name(self):
        model = with_spelled(self.folder, {5: "\u0120the", 6: "the", 7: "\u0120gr\u00c3\u00b6\u00c3\u0141e"})
        args = ("--tokens", "5,6,7,5", "--head")
        found = json.loads(self.run_command("trace", model, *args, "0", "--layer", "0", "--format", "json").out)
        self.assertEqual(found["labels"]["k"], ["\u0120the", "the", "\u0120gr\u00f6\u00dfe", "\u0120the"])
        text = self.run_command("trace", model, *args, "0", "--layer", "0", "--steps", "weights").out
        for name in ("0 \u0120the", "1 the", "2 \u0120gr\u00f6\u00dfe", "3 \u0120the"):
            self.assertIn(f" {name} ", text)
        # by ids alone no vocabulary is needed, and none is looked for
        self.assertIn("   0 5 ", self.run_command("reads", model, *args, "0.0").out)
        for command in ("run", "heads", "reads", "trace"):
            more = ("--query", "0") if command == "reads" else ()
            said = self.refused(command, os.path.join(MODELS, "llama"), "--prompt", "a", *more)
            self.assertIn("token ids need none: give --tokens 1,2,3", said)
            self.assertRegex(said, f"^{command}: ")


if __name__ == "__main__":
    main()
