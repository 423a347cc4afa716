"""glasshead run, on the tiny models of tests/data/models: what it prints and writes is what transformers computes
(their README), and nonsense is refused with all that is wrong."""

import json
import math
import os
import re

from glasshead import Case, main, read_safetensors
from models import MODELS, numbers


class Run(Case):
    def model(self, name):
        self.expected = read_safetensors(os.path.join(MODELS, name, "expected.safetensors"))
        return os.path.join(MODELS, name)

    def of(self, name):
        return numbers(self.expected[name])[1]

    def tokens(self, name="0.ids"):
        return ",".join(map(str, self.of(name)))

    def test_a_decoder_continues_a_text(self):
        model = self.model("llama")
        greedy = self.of("0.greedy")
        args = ["run", model, "--tokens", self.tokens(), "--max-tokens", str(len(greedy)), "--ignore-eos"]
        result = self.run_command(*args)
        self.assertEqual(result.out, " ".join(map(str, greedy)) + "\n")
        self.assertRegex(result.err, r"llama \(decoder\), \d+ parameters, read in")
        self.assertRegex(result.err, r"\ntext: 8 tokens; after the first, 7 tokens in .* tokens/s\)\nended by --max-tokens 8\n$")
        found = json.loads(self.run_command(*args, "--json", "--quiet").out)
        self.assertEqual((found["ids"], found["stop"]), (greedy, "length"))
        self.assertEqual(found["prompt"]["ids"], self.of("0.ids"))
        self.assertEqual(self.run_command(*args, "--quiet").err, "")

    def test_a_text_that_fills_the_model_s_positions_says_so(self):
        model = self.model("gpt2")  # of 24 positions
        result = self.run_command("run", model, "--tokens", "5,6", "--ignore-eos")
        self.assertEqual(len(result.out.split()), 23)  # 22 that are read, and one that follows the last position
        self.assertIn("ended by the last of the model's 24 positions\n", result.err)
        found = json.loads(self.run_command("run", model, "--tokens", "5,6", "--ignore-eos", "--json").out)
        self.assertEqual(found["stop"], "position_limit")

    def test_an_encoder_decoder_writes_about_a_text(self):
        model = self.model("t5")
        greedy = self.of("0.greedy")
        args = ["run", model, "--tokens", self.tokens(), "--max-tokens", str(len(greedy)), "--ignore-eos"]
        self.assertEqual(self.run_command(*args).out, " ".join(map(str, greedy)) + "\n")

    def test_an_encoder_says_what_stands_at_each_place(self):
        model = self.model("distilbert")
        shape, logits = numbers(self.expected["0.logits"])
        rows = [logits[i * shape[1]:(i + 1) * shape[1]] for i in range(shape[0])]
        self.assertEqual(self.run_command("run", model, "--tokens", self.tokens()).out,
                         " ".join(str(row.index(max(row))) for row in rows) + "\n")

    def test_taps_are_written(self):
        model = self.model("llama")
        self.run_command("run", model, "--tokens", self.tokens(), "--max-tokens", "0", "--tap",
                         "decoder.*.self.weights", "--tap", "decoder.1.in", "-o", "taps.safetensors")
        found = read_safetensors(self.path("taps.safetensors"))
        self.assertEqual(set(found), {"decoder.0.self.weights", "decoder.1.self.weights", "decoder.1.in"})
        for ours, theirs in (("decoder.0.self.weights", "0.weights.0"), ("decoder.1.in", "0.in.1")):
            (shape, values), (right, expected) = numbers(found[ours]), numbers(self.expected[theirs])
            self.assertEqual(shape, right)
            self.close(values, expected, 1e-5)

    def test_every_place_is_listed_with_its_shape(self):
        for name, tokens in (("llama", 12), ("gemma2", 12), ("qwen3", 12), ("gpt2", 12), ("distilbert", 12), ("t5", 9)):
            model = self.model(name)
            places = json.loads(self.run_command("inspect", model, "--places", "--json").out)
            text = self.run_command("inspect", model, "--places").out
            taps, shapes = [], {}
            for place in places:
                self.assertRegex(text, r"(^|\n)" + re.escape(place["name"]) + r" +\[" + ", ".join(place["shape"]))
                taps += ["--tap", place["name"]]
                for layer in place["layers"] or [0]:
                    shapes[place["name"].replace("*", str(layer))] = place["shape"]
            more = () if name == "distilbert" else ("--max-tokens", "0")
            self.run_command("run", model, "--tokens", self.tokens(), *more, *taps, "-o", "taps.safetensors")
            found = read_safetensors(self.path("taps.safetensors"))
            self.assertEqual(set(found), set(shapes))
            for tap, (_, shape, _) in found.items():
                self.assertEqual(len(shape), len(shapes[tap]), tap)
                for extent, words in zip(shape, shapes[tap]):
                    if words not in ("tokens", "keys") and 0 not in shape:
                        self.assertEqual(extent, int(words), tap)
        self.assertIn("inspect: --places: cpu has none", self.refused("inspect", "cpu", "--places"))

    def test_weights_of_some_heads_and_positions(self):
        model = self.model("llama")
        self.run_command("run", model, "--tokens", self.tokens(), "--max-tokens", "0", "--tap",
                         "decoder.1.self.weights", "--heads", "4", "--positions", "2:3", "-o", "taps.safetensors")
        shape, values = numbers(read_safetensors(self.path("taps.safetensors"))["decoder.1.self.weights"])
        (heads, n, _), expected = numbers(self.expected["0.weights.1"])
        self.assertEqual(shape, [1, 2, n])
        self.assertGreater(heads, 4)
        self.close(values, expected[(4 * n + 2) * n:(4 * n + 4) * n], 1e-5)

    def test_positions_that_are_never_read_are_refused(self):
        model = self.model("llama")
        n = len(self.of("0.ids"))
        args = ["run", model, "--tokens", self.tokens(), "--ignore-eos", "--tap", "decoder.1.self.weights", "-o",
                "taps.safetensors"]
        for most in ("0", "1"):  # the last token that is written is not read
            self.assertIn(f"run: --positions: 2:{n}: the decoder reads {n} tokens, numbered from 0\n",
                          self.refused(*args, "--max-tokens", most, "--positions", f"2:{n}"))
        self.run_command(*args, "--max-tokens", "2", "--positions", f"2:{n}")
        shape, _ = numbers(read_safetensors(self.path("taps.safetensors"))["decoder.1.self.weights"])
        self.assertEqual(shape[1], n - 1)
        self.assertIn(f"the decoder reads {n} tokens, numbered from 0, and at most 2 that it writes",
                      self.refused(*args, "--max-tokens", "3", "--positions", f"{n + 2}"))
        self.assertIn("run: --positions: 9: the encoder reads 2 tokens",
                      self.refused("run", self.model("distilbert"), "--tokens", "5,6", "--tap",
                                   "encoder.0.self.weights", "-o", "taps.safetensors", "--positions", "9"))

    def test_a_file_that_cannot_be_written_is_refused_before_the_model_is_read(self):
        self.assertEqual(self.refused("run", "nowhere", "--tokens", "1", "--tap", "decoder.0.in", "-o",
                                      "/nonexistent/t.safetensors"),
                         "run: -o: /nonexistent/t.safetensors: cannot be created: No such file or directory\n")
        os.mkdir(self.path("d.safetensors"))
        self.assertEqual(self.refused("run", "nowhere", "--tokens", "1", "--tap", "decoder.0.in", "-o", "d.safetensors"),
                         "run: -o: d.safetensors: is a directory; a file is needed\n")

    def test_a_seed_decides_the_draws(self):
        model = self.model("llama")
        draw = ["run", model, "--tokens", "5,6", "--max-tokens", "24", "--temperature", "3", "--ignore-eos"]
        first = self.run_command(*draw, "--seed", "1").out
        self.assertEqual(first, self.run_command(*draw, "--seed", "1", "--threads", "2").out)
        self.assertNotEqual(first, self.run_command(*draw, "--seed", "2").out)

    def test_a_stop_token_ends_the_text(self):
        model = self.model("llama")
        greedy = self.of("0.greedy")
        end = next(n for n, token in enumerate(greedy) if n > 0 and token not in greedy[:n])
        result = self.run_command("run", model, "--tokens", self.tokens(), "--stop-tokens", str(greedy[end]),
                                  "--ignore-eos")
        self.assertEqual(result.out, " ".join(map(str, greedy[:end])) + "\n")
        self.assertIn("ended by an end token", result.err)

    def test_all_nonsense_is_refused_at_once(self):
        said = self.refused("run", self.model("llama"), "--tokens", "1,x", "--max-tokens", "-1", "--temperature",
                            "warm", "--seed", "1.5", "--top-k", "few", "--heads", "1", "--tap", "decoder.0.self.q")
        for line in ("run: --tokens: found 'x' in '1,x'; whole numbers", "run: --max-tokens: -1: a whole number from 0",
                     "run: --temperature: warm: a number is needed", "run: --seed: 1.5: a whole number",
                     "run: --top-k: few: a whole number", "run: --tap: no file for it; give -o FILE.safetensors"):
            self.assertIn(line, said)
        said = self.refused("run", self.model("llama"), "--tokens", "1", "--temperature", "-1", "--top-p", "0",
                            "--min-p", "2", "--seed", "x", "--beams", "0")
        self.assertEqual(said.count("\n"), 5, said)
        mixed = self.refused("run", self.model("llama"), "--tokens", "1", "--top-p", "2", "--min-p", "few")
        self.assertIn("--top-p: 2; a probability", mixed)
        self.assertIn("--min-p: few: a number is needed", mixed)
        for line in ("--temperature: -1; 0 for", "--top-p: 0; a probability above 0", "--min-p: 2; a share"):
            self.assertIn(line, said)
        self.assertIn("--top-k, --top-p and --min-p choose nothing",
                      self.refused("run", self.model("llama"), "--tokens", "1", "--top-k", "5"))

    def test_ids_and_names_that_the_model_has_not_are_refused(self):
        model = self.model("llama")
        self.assertIn("run: --tokens: id 100000 (number 1); this model's are 0 to",
                      self.refused("run", model, "--tokens", "1,100000"))
        self.assertIn("run: --tap: decoder.7.self.q: this model has no such place",
                      self.refused("run", model, "--tokens", "1", "--tap", "decoder.7.self.q", "-o", "t.safetensors"))
        self.assertIn(f"glasshead inspect {model} --places lists all",
                      self.refused("run", model, "--tokens", "1", "--tap", "decoder.7.self.q", "-o", "t.safetensors"))
        self.assertFalse(os.path.exists(self.path("t.safetensors")))
        self.assertIn("no such file", self.refused("run", "nowhere"))
        self.assertIn("run: --tokens: missing; this model is an encoder, which needs a text: token ids, --tokens 1,2,3 "
                      "(words need a vocabulary", self.refused("run", self.model("bert")))
        self.assertIn("run: --tokens: missing; this model is a decoder", self.refused("run", self.model("llama")))
        self.refused("run")

    def test_what_is_wrong_with_files_is_said_in_the_command_s_name(self):
        os.symlink(os.path.join(self.model("llama"), "model.safetensors"), self.path("model.safetensors"))
        self.file("config.json", b"{")
        for command in ("run", "inspect"):
            self.assertRegex(self.refused(command, self.folder), rf"^{command}: .*config\.json")

    def test_what_a_change_does_to_the_next_token(self):
        model = self.model("llama")
        args = ["run", model, "--tokens", self.tokens(), "--quiet"]
        found = json.loads(self.run_command(*args, "--hide", "1", "--ablate", "0.2", "--json").out)
        shape, logits = numbers(self.expected["0.logits"])
        last = logits[-shape[1]:]
        total = sum(math.exp(x) for x in last)
        self.assertGreaterEqual(len(found["tokens"]), 10)
        self.assertGreater(found["kl_divergence"], 0)
        for token in found["tokens"]:  # the fixture's logits are f32's to 2e-4 of the largest
            self.assertAlmostEqual(token["before"], math.exp(last[token["id"]]) / total, delta=1e-4)
        text = self.run_command(*args, "--hide", "1", "--ablate", "0.2").out
        self.assertRegex(text, r"^  before   after   logit  token\n")
        self.assertRegex(text, r"\nKL divergence \d\.\d{6} nats\n$")
        for nonsense, said in (("9.0", "run: --ablate: layer 9; there are 2 layers"), ("0.66", "head 66; there are 6"),
                               ("head", "--ablate: head: LAYER.HEAD is needed")):
            self.assertIn(said, self.refused(*args, "--ablate", nonsense))
        both = self.refused(*args, "--ablate", "9.0", "--hide", "-1")
        self.assertIn("run: --ablate: layer 9", both)
        self.assertIn("run: --hide: position -1; positions count from 0", both)

    def test_positions_that_the_text_has_not_are_refused(self):
        args = "run", self.model("llama"), "--tokens", "5,6,7"
        for flag, given, position in (("--hide", "0,3", 3), ("--cut", "9:3", 9)):
            said = self.refused(*args, flag, given)
            self.assertIn(f"run: {flag}: position {position}; there are 3 tokens, numbered from 0", said)
        self.run_command(*args, "--hide", "1")
        said = self.refused(*args, "--hide", "0,2")
        self.assertIn("run: --hide: position 2 is the last: no later token could read it, and a token always "
                               "reads itself, so nothing would change\n", said)
        self.assertIn("run: --mean-ablate: 1.3 is taken away by --ablate already",
                      self.refused(*args, "--ablate", "1.3", "--mean-ablate", "1.3"))

    def test_an_edge_is_cut_and_a_head_replaced_by_its_mean(self):
        model = self.model("llama")
        ids = self.of("0.ids")
        args = ["run", model, "--tokens", self.tokens(), "--quiet", "--json"]

        def divergence(*changes):
            return json.loads(self.run_command(*args, *changes).out)["kl_divergence"]
        last = len(ids) - 1
        self.assertGreater(divergence("--cut", f"{last}:1"), 0)
        self.assertNotEqual(divergence("--cut", f"{last}:1"), divergence("--hide", "1"))
        # Of two tokens there is one edge, which is all that hiding the first takes away.
        two = ["run", model, "--tokens", "5,6", "--quiet", "--json"]
        self.assertEqual(self.run_command(*two, "--cut", "1:0").out, self.run_command(*two, "--hide", "0").out)
        # The mean over one token is what the head says there.
        one = ["run", model, "--tokens", "5", "--quiet", "--json", "--mean-ablate", "1.2"]
        self.assertEqual(json.loads(self.run_command(*one).out)["kl_divergence"], 0)
        mean, zero = divergence("--mean-ablate", "0.2"), divergence("--ablate", "0.2")
        self.assertGreater(mean, 0)
        self.assertNotEqual(mean, zero)
        for flag, nonsense, said in (("--cut", "3", "run: --cut: 3: QUERY:KEY is needed"),
                                     ("--cut", "1:3", "the key at or before the query"),
                                     ("--mean-ablate", "9.0", "run: --mean-ablate: layer 9; there are 2 layers"),
                                     ("--mean-ablate", "0.66", "run: --mean-ablate: head 66; there are 6")):
            self.assertIn(said, self.refused(*args, flag, nonsense))

    def test_the_lens_ends_with_what_the_model_says(self):
        model = self.model("llama")
        args = ["run", model, "--tokens", self.tokens(), "--lens", "--quiet"]
        found = json.loads(self.run_command(*args, "--json").out)
        self.assertEqual([row["place"] for row in found["lens"]], ["embedding", "decoder.0.out", "decoder.1.out"])
        self.assertEqual(found["lens"][-1]["candidates"][0]["id"], self.of("0.greedy")[0])
        self.assertEqual(len(self.run_command(*args).out.splitlines()), 3)

    def test_a_text_is_given_in_one_way_that_suits_the_model(self):
        said = self.refused("run", self.model("llama"), "--tokens", "1", "--prompt", "a", "--embed", "b")
        self.assertIn("run: --tokens: does not go with --prompt", said)
        self.assertIn("run: --embed: does not go with --prompt", said)
        self.assertIn("fills no masks", self.refused("run", self.model("llama"), "--fill", "[MASK]"))
        self.assertIn("only encoders make vectors", self.refused("run", self.model("llama"), "--embed", "a"))
        self.assertIn("it takes --fill or --embed", self.refused("run", self.model("bert"), "--prompt", "a"))
        self.assertIn("only an encoder-decoder", self.refused("run", self.model("bert"), "--translate", "a"))
        self.assertIn("--stop-tokens", self.refused("run", self.model("llama"), "--tokens", "1", "--stop", "."))

    def test_flags_that_nothing_would_read_are_refused(self):
        llama, bert, t5 = (self.model(name) for name in ("llama", "bert", "t5"))
        for args, said in (
                ((llama, "--tokens", "1", "--lens", "--seed", "3"), "run: --seed: does not go with --lens"),
                ((llama, "--tokens", "1", "--ablate", "0.2", "--max-tokens", "3"), "--max-tokens: does not go with --ablate"),
                ((llama, "--tokens", "1", "--heads", "1", "--tap", "decoder.0.self.q", "-o", "x.safetensors"),
                 "run: --heads: chosen of scores and weights alone"),
                ((bert, "--fill", "[MASK]", "--temperature", "1"), "run: --temperature: does not go with --fill"),
                ((bert, "--tokens", "1", "--max-tokens", "3"), "run: --max-tokens: this model is an encoder"),
                ((bert, "--fill", "[MASK]", "--ablate", "0.2"), "run: --ablate: shows a decoder's next token"),
                ((t5, "--tokens", "1", "--beams", "2", "--ignore-eos"), "run: --ignore-eos: does not go with --beams")):
            self.assertIn(said, self.refused("run", *args))


class Stories(Case):
    """The trained model beside the sources, whose vocabulary makes text of its ids."""

    def setUp(self):
        super().setUp()
        self.model = os.path.join(MODELS, "..", "..", "..", "..", "shared", "models", "stories260K")
        if not os.path.exists(self.model):
            self.skipTest(f"{self.model} is not there")
        said = self.run_command("run", self.model, "--prompt", "Once", "--max-tokens", "0", "--quiet", code=None)
        if "tokenizers" in said.err:
            self.skipTest("built without tokenizers")

    def test_text_is_continued_as_it_comes(self):
        result = self.run_command("run", self.model, "--prompt", "Once upon a time", "--max-tokens", "36")
        self.assertTrue(result.out.startswith(", there was a little girl named Lily. She loved to play"), result)
        self.assertTrue(result.out.endswith("\n"), result)
        result = self.run_command("run", self.model, "--prompt", "Once upon a time", "--stop", "Lily")
        self.assertTrue(result.out.endswith(" named Lily\n"), result)
        self.assertIn("ended by a stop text", result.err)
        found = json.loads(self.run_command("run", self.model, "--prompt", "Once upon a time", "--max-tokens", "3",
                                            "--json").out)
        self.assertEqual(found["prompt"]["ids"], [1, 403, 407, 261, 378])
        self.assertEqual((found["ids"], found["text"]), ([432, 383, 286], ", there was"))


if __name__ == "__main__":
    main()
