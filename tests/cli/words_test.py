"""glasshead words, on tiny models of tests/data/models: cosines and places are those computed here from the files'
numbers, and nonsense is refused with all that is wrong."""

import json
import math
import os

from glasshead import Case, main, read_safetensors
from models import MODELS, numbers, with_spelled

LLAMA = os.path.join(MODELS, "llama")


def table():
    (rows, width), values = numbers(
        read_safetensors(os.path.join(LLAMA, "model.safetensors"))["model.embed_tokens.weight"])
    return [values[n * width:(n + 1) * width] for n in range(rows)]


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def minus(a, b):
    return [x - y for x, y in zip(a, b)]


def cosine(a, b):
    return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))


class Words(Case):
    def test_the_nearest_tokens_are_those_of_the_table(self):
        rows = table()
        best = sorted((n for n in range(len(rows)) if n != 5), key=lambda n: -cosine(rows[n], rows[5]))[:4]
        result = self.run_command("words", LLAMA, "--nearest", "#5", "--count", "4")
        self.assertEqual(result.out, "#5  #5\n" + "".join(f"{cosine(rows[n], rows[5]):.4f}  #{n}\n" for n in best))
        found = json.loads(self.run_command("words", LLAMA, "--nearest", "#5", "--count", "4", "--json").out)
        self.assertEqual([one["id"] for one in found["nearest"]], best)
        self.close([one["cosine"] for one in found["nearest"]], [cosine(rows[n], rows[5]) for n in best], 1e-14)

    def test_an_analogy_leaves_its_words_out_and_says_where_they_are(self):
        rows = table()
        total = [a - b + c for a, b, c in zip(rows[7], rows[8], rows[9])]
        best = max((n for n in range(len(rows)) if n not in (7, 8, 9)), key=lambda n: cosine(rows[n], total))
        found = json.loads(self.run_command("words", LLAMA, "--analogy", "#7 - #8 + #9", "--json").out)
        self.assertEqual(found["nearest"][0]["id"], best)
        self.assertEqual(len(found["nearest"]), 10)
        self.close([one["cosine"] for one in found["left_out"]], [cosine(rows[n], total) for n in (7, 8, 9)], 1e-14)

    def test_ways_between_words_and_where_others_stand(self):
        rows = table()
        args = ["words", LLAMA, "--between", "#3,#4", "--between", "#5,#6", "--of", "#7,#8"]
        found = json.loads(self.run_command(*args, "--json").out)
        self.close([pair["cosine"] for pair in found["pairs"]],
                   [cosine(rows[3], rows[4]), cosine(rows[5], rows[6])], 1e-14)
        one, other = minus(rows[4], rows[3]), minus(rows[6], rows[5])
        self.close([found["ways"][0]["cosine"]], [cosine(one, other)], 1e-14)
        places = [dot(minus(rows[x], rows[a]), way) / dot(way, way)
                  for a, way in ((3, one), (5, other)) for x in (7, 8)]
        self.close([place["place"] for place in found["places"]], places, 1e-13)
        text = self.run_command(*args).out
        self.assertEqual(self.run_command(*args[:-1], " #7,  #8 ").out, text)  # spaces are not of a word
        self.assertIn(f"#3 → #4 and #5 → #6: cosine {cosine(one, other):.4f}\n", text)
        self.assertIn(f"{places[1]:>8.4f}  #8\n", text)

    def test_a_word_is_taken_with_its_space_else_without_else_in_pieces(self):
        model = with_spelled(self.folder, {5: "\u0120king", 6: "king", 7: "queen", 8: "-", 9: "\u0120man"})
        if "without tokenizers" in self.run_command("words", model, "--nearest", "king", code=None).err:
            self.skipTest("configured without tokenizers")
        rows = table()
        mean = [sum(three) / 3 for three in zip(rows[5], rows[8], rows[7])]
        for word, said, vector, left_out in (
                ("king", "\u0120king #5 (the same word is also king #6)", rows[5], (5, 6)),
                ("queen", "queen #7", rows[7], (7,)),
                ("man", "\u0120man #9", rows[9], (9,)),
                ("king-queen", "the mean of 3 tokens: \u0120king #5 - #8 queen #7", mean, ())):
            args = ["words", model, "--nearest", word]
            self.assertEqual(self.run_command(*args).out.splitlines()[0], f"{word}  {said}")
            found = json.loads(self.run_command(*args, "--json").out)["nearest"][0]
            best = max((n for n in range(len(rows)) if n not in left_out), key=lambda n: cosine(rows[n], vector))
            self.assertEqual(found["id"], best)
        self.assertEqual(self.refused("words", model, "--nearest", "zebra"),
                         "words: --nearest: zebra: not a word of this model's vocabulary\n")

    def test_what_is_wrong_with_a_models_files_is_said_in_the_commands_name(self):
        self.assertRegex(self.refused("words", self.path("nowhere"), "--nearest", "#1"), "^words: .*nowhere")

    def test_nonsense_is_refused(self):
        self.assertEqual(self.refused("words", LLAMA),
                         "words: --nearest: missing; give --nearest WORD, --analogy SUM or --between FROM,TO\n")
        self.assertEqual(self.refused("words", LLAMA, "--nearest", "#1", "--analogy", "#1 + #2", "--between", "#1,#2"),
                         "words: --analogy: does not go with --nearest; one is answered\n"
                         "words: --between: does not go with --nearest; one is answered\n")
        self.assertRegex(self.refused("words", LLAMA, "--analogy", "#5 - #5"), "^words: --analogy: is 0 everywhere")
        self.assertIn("a token by its id needs none: #123", self.refused("words", LLAMA, "--nearest", "king"))
        self.assertEqual(self.refused("words", LLAMA, "--analogy", "#1 -", "--count", "0", "--of", "#2"),
                         "words: --count: 0: a whole number from 1 is needed\n"
                         "words: --analogy: #1 -: words with + or - between them, spaces around: king - man + woman\n"
                         "words: --of: goes with --between FROM,TO\n")
        self.assertRegex(self.refused("words", LLAMA, "--between", "#1", "--between", "#1,#2,#3"),
                         "^words: --between: #1: two words, FROM,TO\nwords: --between: #1,#2,#3: two words")
        self.assertRegex(self.refused("words", LLAMA, "--between", "#1,#1000"),
                         r"^words: --between: #1000: # and a token id from 0 to \d+\n$")
        self.assertIn("#4,#4: the same", self.refused("words", LLAMA, "--between", "#4,#4"))


if __name__ == "__main__":
    main()
