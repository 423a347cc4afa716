"""glasshead doctor. Expected numbers: the first tutorial's, and softmax worked out here."""

import json
import math
import random

from glasshead import Case, main, read_npy


def softmax(row):
    e = [math.exp(x - max(row)) for x in row]
    return [x / sum(e) for x in e]


def attend(q, k, v, scale, sees):
    out = []
    for i, x in enumerate(q):
        keys = [j for j in range(len(k)) if sees(i, j)]
        w = softmax([scale * sum(a * b for a, b in zip(x, k[j])) for j in keys])
        out.append([sum(w[n] * v[j][e] for n, j in enumerate(keys)) for e in range(len(v[0]))])
    return out


class Doctor(Case):
    def doctor(self, *args, code=1):
        return self.run_command("doctor", *args, code=code).out

    def test_the_tutorials_table_has_one_wrong_row(self):
        said = self.doctor("three-tokens-causal", "--weights", "1 0 0; .5 .5 0; .25 .25 .5",
                           "--decimals", "2")
        self.assertIn("row B is wrong: 0.3302 0.6698; rows A and C are right", said)
        self.assertIn("row B has 0.5000 0.5000, should be 0.3302 0.6698\n", said)
        self.assertIn("equal weights need equal scores, and these are 0.0000 and 0.7071", said)
        self.assertIn("the normalisation is fine", said)
        self.assertIn("the mask hides all that it should", said)
        self.assertIn("no mistake in the catalogue", said)

    def test_right_numbers_are_right_and_blind_spots_are_told(self):
        said = self.doctor("three-tokens-causal", "--weights",
                           "1 0 0; 0.3302 0.6698 0; 0.2483 0.2483 0.5035", code=0)
        self.assertTrue(said.startswith("RIGHT"))
        self.assertIn("can't show", said)
        self.assertIn("scores-transposed", said)

    def test_each_claim_has_its_rows_and_long_rows_are_cut_around_the_worst(self):
        ones, v = [[1, 0]] * 3, [[0] * 15 + [x] for x in (0, 3, 6)]
        inputs = [x for n, m in (("q", ones), ("k", ones), ("v", v)) for x in ("--" + n, self.npy(n, m))]
        mean, third = [0] * 15 + [3], [1 / 3] * 3
        out = [mean, mean[:-1] + [4], mean]
        said = self.doctor(*inputs, "--out", self.npy("out", out), "--weights",
                           self.npy("w", [third, third, [0.5, 0.5, 0]]))
        self.assertIn("\nweights   row 2 is wrong: 0.3333 0.3333 0.3333; rows 0 and 1 are right\n", said)
        self.assertIn("\nout       row 1 is wrong: ... 0.0000", said)
        self.assertIn(f"row 1 has ...{' 0.0000' * 5} 4.0000, should be ...{' 0.0000' * 5} 3.0000\n", said)
        said = self.doctor(*inputs, "--out", self.npy("out", [[1] + mean[1:]] * 2 + [mean]))
        self.assertIn("rows 0 and 1 are wrong; row 2 is right\n", said)
        self.assertIn(f"row 0 has 1.0000{' 0.0000' * 5} ..., should be{' 0.0000' * 6} ...\n", said)

    def probe(self, *args):
        self.run_command("doctor", "--probe", self.path("p"), "--q-len", "6", "--kv-len", "9",
                         "--d-k", "4", *args)
        return [read_npy(self.path(f"p/{name}.npy"))[2][0][0] for name in "qkv"]

    def files(self):
        return [x for n in "qkv" for x in ("--" + n, self.path(f"p/{n}.npy"))]

    def test_a_probe_is_written_and_names_the_mistake_of_what_was_run_on_it(self):
        q, k, v = self.probe("--causal=end")
        sees = lambda i, j: j <= i  # top left, where bottom right is meant
        theirs = self.npy("theirs", attend(q, k, v, 0.5, sees), "<f4")
        said = self.doctor(*self.files(), "--causal=end", "--out", theirs)
        self.assertTrue(said.startswith("WRONG"))
        self.assertIn("cause     causal-corner:0: ", said)
        self.assertIn("fix       ", said)
        right = self.npy("right", attend(q, k, v, 0.5, lambda i, j: j <= i + 3), "<f4")
        self.assertTrue(self.doctor(*self.files(), "--causal=end", "--out", right, code=0)
                        .startswith("RIGHT"))

    def test_a_probe_says_what_its_shape_can_not_tell_apart(self):
        said = self.run_command("doctor", "--probe", self.path("p"), "--causal=end").out
        self.assertIn("can't be seen in this shape: ", said)
        self.assertIn("mask-finite:-1e9", said)

    def test_a_probe_says_how_it_is_judged_with_the_options_it_was_made_with(self):
        flags = ("--causal=end", "--window", "3,", "--alibi", "--sinks=-0.5", "--softcap", "5")
        said = self.run_command("doctor", "--probe", self.path("p"), *flags).out
        command = said[said.index("then: glasshead ") + 16:].split()
        self.assertEqual(command[0], "doctor")
        for word in flags:
            self.assertIn(word, command)
        out = self.npy("mean", [[0.5] * 8] * 12, "<f4")
        self.assertTrue(self.doctor(*command[1:-1], out).startswith("WRONG"))  # all of them are known

    def test_a_hint_is_a_whole_command_and_probes_are_not_sent_to_a_probe(self):
        numbers = [[(7 * i + 3 * j) % 5 - 2 + 0.1 * j for j in range(4)] for i in range(9)]
        flags = ("--causal=end", "--softcap", "5")
        inputs = [x for n, rows in (("q", numbers[:6]), ("k", numbers), ("v", numbers))
                  for x in ("--" + n, self.npy(n, rows, "<f4"))]
        noise = self.npy("noise", [[0.3 * ((i + 2 * j) % 7) for j in range(4)] for i in range(6)], "<f4")
        said = self.doctor(*inputs, *flags, "--out", noise, "--no-pairs")
        self.assertIn("no mistake in the catalogue", said)
        hint = "glasshead doctor --probe DIR --q-len 6 --kv-len 9 --d-k 4 --causal=end --softcap 5\n"
        self.assertIn(hint, said)
        self.probe(*flags)
        for seed in ((), ("--seed", "7")):
            self.probe(*flags, *seed)
            said = self.doctor(*self.files(), *flags, "--out", noise, "--no-pairs")
            self.assertIn("no mistake in the catalogue", said)
            self.assertNotIn("--probe", said)
        q, k, v = self.probe()
        sees = lambda i, j: True
        right = self.npy("right", attend(q, k, v, 0.5, sees), "<f4")
        self.assertNotIn("--probe", self.doctor(*self.files(), "--out", right, code=0))

    def test_lists_in_brackets_are_numbers(self):
        right = [[1, 0, 0], [0.3302, 0.6698, 0], [0.2483, 0.2483, 0.5035]]
        rows = ", ".join(str(row) for row in right)
        numpys = json.dumps(right).replace(",", "").replace("] [", "]\n [")
        for text in (json.dumps(right), f"[[{rows}]]", rows, numpys, f"array([{rows}], dtype=float32)",
                     f"tensor([[{rows}]])", "[1 0 0; .3302 .6698 0; .2483 .2483 .5035]"):
            said = self.doctor("three-tokens-causal", "--weights", text, code=0)
            self.assertIn("9 numbers compared", said, text)
        for text, words in (("[[1, 0], [0.5]]", "one list has 1 entries, those before it 2"),
                            ("[[1, 0", "] is missing"), ("[1, [0]]", "side by side"), ("1, [2]", "found '[2]'"),
                            ("[[[[[1]]]]]", "more than 4 deep"), ("[[1, x]]", "found 'x'"), ("[]", "empty"),
                            ("[[], []]", "empty"), ("theirs.np", "a file (.npy, .safetensors) or numbers are needed")):
            self.assertIn(words, self.refused("doctor", "three-tokens-causal", "--weights", text), text)

    def heads(self, scale=0.5):
        """Flags for q, k, v of 2 texts, 3 heads, 5 tokens, size 4, and what attention gives for them."""
        numbers = random.Random(1)
        q, k, v = ([[[[numbers.gauss(0, 1) for _ in range(4)] for _ in range(5)] for _ in range(3)] for _ in range(2)]
                   for _ in "qkv")
        out = [[attend(*heads, scale, lambda i, j: True) for heads in zip(*texts)] for texts in zip(q, k, v)]
        return [x for name, numbers in (("q", q), ("k", k), ("v", v)) for x in ("--" + name, self.npy(name, numbers))], out

    def test_numbers_with_other_axes_are_read_where_their_shape_tells(self):
        flags, out = self.heads()
        by_length = [[[text[h][i] for h in range(3)] for i in range(5)] for text in out]
        merged = [[[x for head in heads for x in head] for heads in text] for text in by_length]
        said = self.doctor(*flags, "--out", self.npy("out", by_length), code=0)
        self.assertIn("\nread      out as [batch, length, heads, size], since that is how its shape [2,5,3,4] fits\n", said)
        said = self.doctor(*flags, "--out", self.npy("out", merged), code=0)
        self.assertIn("\nread      out as [batch, length, heads*size], since that is how its shape [2,5,12] fits\n", said)
        found = json.loads(self.doctor(*flags, "--out", self.npy("out", merged), "--json", code=0))
        self.assertEqual([found["verdict"], len(found["read"])], ["right", 1])
        self.assertNotIn("read", json.loads(self.doctor(*flags, "--out", self.npy("out", out), "--json", code=0)))
        # A mistake in them is found as in others.
        _, wrong = self.heads(scale=1)
        wrong = [[[text[h][i] for h in range(3)] for i in range(5)] for text in wrong]
        self.assertIn("cause     scale-missing", self.doctor(*flags, "--out", self.npy("out", wrong)))

    def test_one_texts_numbers_may_lack_the_axis_of_texts(self):
        flags, out = self.heads()
        q, k, v = (self.npy(name, read_npy(path)[2][0]) for name, path in zip("qkv", flags[1::2]))
        flags = ["--q", q, "--k", k, "--v", v]
        by_length = [[out[0][h][i] for h in range(3)] for i in range(5)]
        for shape, numbers in (("[5,3,4]", by_length), ("[5,12]", [[x for head in heads for x in head] for heads in by_length])):
            self.assertIn(f"its shape {shape} fits", self.doctor(*flags, "--out", self.npy("out", numbers), code=0))
        # Shapes as the file has them.
        self.assertIn("doctor: --out: has shape [3,4,4]; these inputs give [3,5,4]",
                      self.refused("doctor", *flags, "--out", self.npy("out", [head[:4] for head in out[0]])))

    def test_what_can_not_be_read_is_refused_with_what_to_do(self):
        self.assertIn("--out: theirs.npz: an .npz is an archive of arrays; save them one by one",
                      self.refused("doctor", "three-tokens-causal", "--out", "theirs.npz"))
        for word, meant in (("half", "f16"), ("torch.float16", "f16"), ("Float32", "f32"), ("double", "f64"),
                            ("bfloat16", "bf16"), ("f17", "f16")):
            said = self.refused("doctor", "three-tokens-causal", "--weights", "1", "--dtype", word)
            self.assertIn(f"--dtype: found '{word}'; f64, f32, bf16 or f16 is needed; did you mean {meant}?", said)
        self.assertIn("doctor: --weights: has shape [1,1]; these inputs give [3,3]",
                      self.refused("doctor", "three-tokens-causal", "--weights", "1"))
        said = self.refused("doctor", "three-tokens-casual", "--weights", "1")
        self.assertTrue(said.startswith("doctor: three-tokens-casual: no such file"), said)
        self.assertIn("did you mean three-tokens-causal?", said)

    def test_flags_that_would_be_passed_over_are_refused_all_at_once(self):
        error = self.run_command("doctor", "three-tokens-causal", "--weights", "1 0 0; .5 .5 0; .25 .25 .5",
                                 "--causal", "--rope", "halves", "--heads", "2", code=2).err
        for flag in ("--causal", "--rope", "--heads"):
            self.assertIn(f"{flag}: given beside a case", error)
        error = self.run_command("doctor", "--probe", self.path("p"), "--out", "1 2", "--json", code=2).err
        for flag in ("--out", "--json"):
            self.assertIn(f"{flag}: given beside --probe", error)
        self.probe()
        error = self.run_command("doctor", *self.files(), "--out", "1", "--q-len", "6", code=2).err
        self.assertIn("--q-len: is of a probe", error)

    def test_gradients_are_judged_alone_or_beside_out(self):
        q, k, v = ([[1, 0], [0, 1]], [[1, 0], [0, 1], [1, 1]], [[1], [2], [3]])
        d_out = [[1], [2]]
        w = [softmax([sum(a * b for a, b in zip(x, y)) / math.sqrt(2) for y in k]) for x in q]
        dv = [[sum(w[i][j] * d_out[i][0] for i in range(2))] for j in range(3)]
        flags = [x for n, m in zip("qkv", (q, k, v)) for x in ("--" + n, self.npy(n, m))]
        flags += ["--d-out", self.npy("d_out", d_out)]
        self.assertIn("3 numbers compared", self.doctor(*flags, "--dv", self.npy("dv", dv), code=0))
        half = self.npy("half", [[x[0] / 2] for x in dv])
        self.assertIn("dv [0, 0, 0, 0]", self.doctor(*flags, "--dv", half))
        out = self.npy("out", attend(q, k, v, 1 / math.sqrt(2), lambda i, j: True))
        self.assertIn("3 of 5 numbers", self.doctor(*flags, "--dv", half, "--out", out))

    def test_causes_that_differ_in_their_parameter_share_a_line(self):
        q, k, v = self.probe()
        mean = [[sum(x) / 9 for x in zip(*v)]] * 6  # of nine keys, none of which is visible
        said = self.doctor(*self.files(), "--key-lengths", "0", "--out", self.npy("mean", mean, "<f4"))
        self.assertIn("\nor        mask-finite:-1, -10, -100, -1000, -1e4, -65504, -1e9, finfo.min: hidden scores set to a number\n", said)

    def test_an_exponent_moves_the_point_of_pasted_numbers(self):
        inputs = [x for name, values in (("q", [[1, 0]]), ("k", [[8, 0], [0, 0]]), ("v", [[1, 0], [0, 1]]))
                  for x in ("--" + name, self.npy(name, [[values]]))] + ["--scale", "1"]
        # The right weights are 0.99966465 and 3.3535e-4.
        for right in ("0.999665 3.35e-4", "9997e-4 3e-4", "99.97e-2 +.03E-2", "1.0e+0 .0"):
            self.assertTrue(self.doctor(*inputs, "--weights", right, code=0).startswith("RIGHT"), right)
        for wrong in ("0.99967 3.45e-4", "1.00 8.35e-4", "1 1e-3"):
            self.assertTrue(self.doctor(*inputs, "--weights", wrong).startswith("WRONG"), wrong)

    def test_json(self):
        q, k, v = self.probe()
        theirs = self.npy("theirs", attend(q, k, v, 1, lambda i, j: True), "<f4")
        said = json.loads(self.doctor(*self.files(), "--out", theirs, "--json"))
        self.assertEqual(said["schema"], "glasshead.diagnosis/1")
        self.assertEqual(said["verdict"], "mistaken")
        self.assertEqual([c["name"] for c in said["causes"]], ["scale-missing"])

    def test_all_that_is_wrong_with_a_call_is_said_at_once(self):
        said = self.refused("doctor", "--q", "no.npy", "--out", "1 x", "--decimals", "many")
        for flag in ("--q", "--k", "--v", "--out", "--decimals"):
            self.assertIn(f"doctor: {flag}", said)


if __name__ == "__main__":
    main()
