"""glasshead attend. Expected numbers: by hand where they are short, else decimal arithmetic (the
formula is the contract's); `small` is the example on which faults of other implementations are shown."""

import math
import struct

from glasshead import Case, main, npy, pack, read_npy, read_safetensors, safetensors

INF = math.inf
Q = [[1, 0], [0, 1]]
K = [[1, 0], [0, 1], [1, 1]]
V = [[1, 10], [2, 20], [3, 30]]
OUT = [[2, 20], [2.2033362780, 22.0333627804]]
LSE = [1.6206211391, 1.6206211391]
WEIGHTS = [[0.4011120927, 0.1977758146, 0.4011120927], [0.1977758146, 0.4011120927, 0.4011120927]]
KEY_2_HIDDEN = [[1.3302384507, 13.3023845067], [1.6697615493, 16.6976154933]]


class Small(Case):
    def setUp(self):
        super().setUp()
        self.q, self.k, self.v = (self.npy(n, x) for n, x in (("q", Q), ("k", K), ("v", V)))
        self.inputs = ["--q", self.q, "--k", self.k, "--v", self.v]

    def attend(self, *args, output="out"):
        """The output of one run, as nested lists."""
        self.run_command("attend", *self.inputs, *args, "-o" if output == "out" else "--" + output,
                         "r.npy")
        return read_npy(self.path("r.npy"))[2]

    def probe(self, n, m, *args):
        """Zero scores: a row's result is the mean of the 2^j that it sees."""
        self.run_command(
            "attend", "--q", self.npy("pq", [[0]] * n), "--k", self.npy("pk", [[0]] * m),
            "--v", self.npy("pv", [[2**j] for j in range(m)]), *args, "-o", "r.npy")
        return [row[0] for row in read_npy(self.path("r.npy"))[2]]


class Results(Small):
    def test_out_lse_weights_and_row_states(self):
        self.close(self.attend(), OUT, 5e-9)
        self.close(self.attend(output="lse"), LSE)
        self.close(self.attend(output="weights"), WEIGHTS)
        # Row 0's scores are 1, 0, 1 over sqrt 2.
        self.close(self.attend(output="row-max"), [math.sqrt(0.5)] * 2, 1e-15)
        self.close(self.attend(output="row-sum"), [2 + math.exp(-math.sqrt(0.5))] * 2, 1e-15)

    def test_the_largest_weights_of_each_row_and_their_keys(self):
        # Of equal weights the lower key comes first; row 0 sees one key, row 1 two.
        self.run_command("attend", *self.inputs, "--top-k", "2", "--top-keys", "r.safetensors",
                         "--top-weights", "r.safetensors")
        stored = read_safetensors(self.path("r.safetensors"))
        self.assertEqual({name: (dtype, shape) for name, (dtype, shape, _) in stored.items()},
                         {"top_keys": ("I64", [2, 2]), "top_weights": ("F64", [2, 2])})
        self.assertEqual(self.attend("--top-k", "2", output="top-keys"), [[0, 2], [1, 2]])
        self.close(self.attend("--top-k", "2", output="top-weights"), [[WEIGHTS[0][0]] * 2] * 2)
        causal = ("--causal=start", "--top-k", "3")
        self.assertEqual(self.attend(*causal, output="top-keys"), [[0, -1, -1], [1, 0, -1]])
        # Scores 0 and 1 over sqrt 2.
        e = math.exp(math.sqrt(0.5))
        self.close(self.attend(*causal, output="top-weights"),
                   [[1, 0, 0], [e / (1 + e), 1 / (1 + e), 0]])

    def test_without_an_output_the_rows_are_printed(self):
        result = self.run_command("attend", *self.inputs)
        lines = result.out.splitlines()
        self.assertEqual(lines[0], "out f64 [2, 2]")
        self.close([[float(x) for x in line.split()] for line in lines[1:]], OUT, 5e-9)
        self.assertEqual(result.err, "")

    def test_printed_heads_have_headings(self):
        q = self.npy("q3", [[[0]], [[0]]])
        v = self.npy("v3", [[[7]], [[9.5]]])
        result = self.run_command("attend", "--q", q, "--k", q, "--v", v)
        self.assertEqual(result.out, "out f64 [2, 1, 1]\n[0]\n    7\n[1]\n  9.5\n")

    def test_a_large_result_is_not_printed(self):
        q = self.npy("big", [[0]] * 1001)
        self.assertIn("-o: missing; out has 1001 numbers", self.refused(
            "attend", "--q", q, "--k", q, "--v", q))

    def test_a_result_beyond_a_file_is_named_before_memory_is_asked_for(self):
        long = self.npy("long", [[0]] * 100_000)
        said = self.refused("attend", "--q", long, "--k", long, "--v", long, "--weights", "w.npy")
        self.assertIn("--weights: w.npy: weights [100000, 100000] of f64 is larger than 64 GiB", said)
        # no key, so that files without data ask for 2^70 numbers
        k = self.npy("k0", [], shape=(1, 1, 0, 1))
        v = self.npy("v0", [], shape=(1, 1, 0, 2**59))
        q = self.npy("q", [[[[0]] * 2**11]])
        no_keys = ["--q", q, "--k", k, "--v", v]
        self.assertIn("-o: o.npy: out [1, 1, 2048, 576460752303423488] of f64 is larger than 64 GiB",
                      self.refused("attend", *no_keys, "-o", "o.npy"))
        self.assertIn("-o: missing; out has", self.refused("attend", *no_keys))

    def test_row_states_alone_need_no_memory_for_out(self):
        k = self.npy("k0", [], shape=(1, 1, 0, 1))
        v = self.npy("v0", [], shape=(1, 1, 0, 2**50))
        self.run_command("attend", "--q", self.npy("q", [[[[0], [0]]]]), "--k", k, "--v", v,
                         "--lse", "l.npy")
        self.assertEqual(read_npy(self.path("l.npy"))[2], [[[-INF, -INF]]])

    def test_two_spellings_of_a_path_are_one_file(self):
        self.run_command("attend", *self.inputs, "-o", "r.safetensors", "--lse", "./r.safetensors")
        self.assertEqual(set(read_safetensors(self.path("r.safetensors"))), {"out", "lse"})
        self.assertIn("is also the file of -o", self.refused(
            "attend", *self.inputs, "-o", "r.npy", "--lse", "./r.npy"))

    def test_ranks_and_type_of_a_result_are_those_of_the_input(self):
        for descr in ("<f8", "<f4", "<f2"):
            files = [self.npy(n, [[x]], descr) for n, x in (("q4", Q), ("k4", K), ("v4", V))]
            self.run_command("attend", "--q", files[0], "--k", files[1], "--v", files[2],
                             "-o", "o.npy", "--lse", "l.npy", "--weights", "w.npy")
            got_descr, shape, values = read_npy(self.path("o.npy"))
            self.assertEqual((got_descr, shape), (descr, [1, 1, 2, 2]))
            # f16 near 22: one part in 2048; f32 computes with 2^-24 steps
            self.close(values, [[OUT]], {"<f8": 5e-9, "<f4": 1e-5, "<f2": 0.01}[descr])
            compute = "<f8" if descr == "<f8" else "<f4"
            self.assertEqual(read_npy(self.path("l.npy"))[:2], (compute, [1, 1, 2]))
            self.assertEqual(read_npy(self.path("w.npy"))[:2], (compute, [1, 1, 2, 3]))

    def test_results_share_one_safetensors_file_and_can_be_read_again(self):
        self.run_command("attend", *self.inputs, "-o", "r.safetensors", "--lse", "r.safetensors",
                         "--weights", "r.safetensors")
        tensors = read_safetensors(self.path("r.safetensors"))
        self.assertEqual({n: t[:2] for n, t in tensors.items()},
                         {"out": ("F64", [2, 2]), "lse": ("F64", [2]), "weights": ("F64", [2, 3])})
        self.close(list(struct.unpack("<2d", tensors["lse"][2])), LSE)
        # The weights as queries of a call of their own: any output is an input.
        result = self.run_command("attend", "--q", "r.safetensors:weights", "--k",
                                  "r.safetensors:weights", "--v", "r.safetensors:out", "--scale", "0")
        self.assertIn("out f64 [2, 2]", result.out)

    def test_one_file_may_hold_q_k_and_v(self):
        f32 = {n: ("F32", [len(x), 2], pack(x, "<f4")) for n, x in (("q", Q), ("k", K), ("v", V))}
        self.file("qkv.safetensors", safetensors(f32))
        self.run_command("attend", "--qkv", "qkv.safetensors", "-o", "r.npy")
        descr, _, values = read_npy(self.path("r.npy"))
        self.assertEqual(descr, "<f4")
        self.close(values, OUT, 1e-5)

    def test_bf16_goes_to_safetensors_only(self):
        def bf16(values):  # these small numbers are exact in bf16
            return b"".join(struct.pack("<f", x)[2:] for row in values for x in row)
        self.file("b.safetensors", safetensors(
            {n: ("BF16", [len(x), 2], bf16(x)) for n, x in (("q", Q), ("k", K), ("v", V))}))
        self.assertIn("out is bf16, which has no .npy type; write .safetensors",
                      self.refused("attend", "--qkv", "b.safetensors", "-o", "r.npy"))
        self.run_command("attend", "--qkv", "b.safetensors", "-o", "r.safetensors")
        dtype, shape, raw = read_safetensors(self.path("r.safetensors"))["out"]
        self.assertEqual((dtype, shape), ("BF16", [2, 2]))
        # 2, 20, and 2.2033, 22.033 rounded to 8 bits
        self.assertEqual(raw, bf16([[2, 20], [2.203125, 22]]))

    def test_grouped_heads_share_adjacent_query_heads(self):
        q = self.npy("gq", [[[0]], [[0]], [[0]], [[0]]])
        k = self.npy("gk", [[[0]], [[0]]])
        v = self.npy("gv", [[[7]], [[9]]])
        self.run_command("attend", "--q", q, "--k", k, "--v", v, "-o", "r.npy")
        self.assertEqual(read_npy(self.path("r.npy"))[2], [[[7]], [[7]], [[9]], [[9]]])

    def test_no_keys_give_zeros_and_minus_infinity(self):
        self.run_command("attend", "--q", self.q, "--k", self.npy("k0", [], shape=[0, 2]), "--v",
                         self.npy("v0", [], shape=[0, 2]), "-o", "r.npy", "--lse", "l.npy")
        self.assertEqual(read_npy(self.path("r.npy"))[2], [[0, 0], [0, 0]])
        self.assertEqual(read_npy(self.path("l.npy"))[2], [-INF, -INF])


class Masks(Small):
    def seen(self, found, expected):
        """Means of powers of two: equal but for the rounding of 1/3 and of the sum."""
        self.close(found, expected, 1e-15 * max(expected))

    def test_booleans_select(self):
        mask = self.npy("m", [True, True, False], "|b1")
        self.close(self.attend("--mask", mask), KEY_2_HIDDEN)
        mask = self.npy("m", [[True, False, False], [False, False, True]], "|b1")
        self.close(self.attend("--mask", mask), [[1, 10], [3, 30]])

    def test_minus_infinity_in_a_bias_hides(self):
        self.close(self.attend("--bias", self.npy("b", [0, 0, -INF])), KEY_2_HIDDEN)

    def test_causal_corners(self):
        self.seen(self.probe(3, 3, "--causal"), [1, 1.5, 7 / 3])
        self.seen(self.probe(1, 16, "--causal=start"), [1])
        self.seen(self.probe(1, 16, "--causal=end"), [4095.9375])
        self.seen(self.probe(1, 16, "--causal=1"), [1.5])
        self.seen(self.probe(5, 2, "--causal", "--query-start", "end"), [0, 0, 0, 1, 1.5])
        self.seen(self.probe(5, 2, "--causal", "start"), [1, 1.5, 1.5, 1.5, 1.5])
        self.seen(self.probe(2, 2, "--causal=-1"), [0, 1])

    def test_causal_without_a_start_is_refused_when_the_lengths_differ(self):
        q, k = self.npy("q1", [[0]]), self.npy("k2", [[0], [0]])
        said = self.refused("attend", "--q", q, "--k", k, "--v", k, "--causal")
        for part in ("query_start", "--causal=start", "--causal=end", "--query-start N"):
            self.assertIn(part, said)

    def test_windows(self):
        self.seen(self.probe(6, 6, "--causal", "--window", "1,0"), [1, 1.5, 3, 6, 12, 24])
        self.seen(self.probe(3, 3, "--window", "0,0"), [1, 2, 4])
        self.seen(self.probe(3, 3, "--window", ",0"), [1, 1.5, 7 / 3])
        self.seen(self.probe(3, 3, "--window=0,"), [7 / 3, 3, 4])
        self.seen(self.probe(3, 3, "--window", ","), [7 / 3] * 3)

    def test_key_lengths(self):
        self.seen(self.probe(2, 8, "--causal=3", "--key-lengths", "5"), [3.75, 6.2])
        batch = self.npy("kb", [[[[0]]], [[[0]]]])
        v = self.npy("vb", [[[[5]]], [[[6]]]])
        self.run_command("attend", "--q", batch, "--k", batch, "--v", v, "--key-lengths", "0,1",
                         "-o", "r.npy")
        self.assertEqual(read_npy(self.path("r.npy"))[2], [[[[0]]], [[[6]]]])

    def test_segments_as_text_and_as_files(self):
        self.seen(self.probe(4, 4, "--query-segments", "0,0,1,1", "--key-segments",
                                    "0,0,1,1"), [1.5, 1.5, 6, 6])
        ids = self.npy("ids", [0, 0, 1, 1], "<i8")
        self.seen(self.probe(4, 4, "--query-segments", ids, "--key-segments", ids),
                         [1.5, 1.5, 6, 6])

    def test_segments_may_be_integers_of_any_size(self):
        for descr, letter in (("|u1", "B"), ("<u2", "H"), ("|i1", "b")):
            ids = lambda name, x: self.file(name, npy([], descr, shape=(len(x),)) + struct.pack(
                f"<{len(x)}{letter}", *x))
            got = self.attend("--query-segments", ids("q1.npy", [7, 9]),
                              "--key-segments", ids("k1.npy", [7, 9, 9]))
            self.close(got, [[1, 10], [2.5, 25]])

    def test_prefix(self):
        self.seen(self.probe(4, 4, "--prefix", "3"), [7 / 3, 7 / 3, 7 / 3, 3.75])

    def test_masks_intersect(self):
        mask = self.npy("m2", [[True, True], [False, True]], "|b1")
        self.seen(self.probe(2, 2, "--causal", "--mask", mask), [1, 2])

    def test_a_row_without_a_key(self):
        mask = self.npy("m", [[False] * 3, [True] * 3], "|b1")
        self.close(self.attend("--mask", mask), [[0, 0], OUT[1]], 5e-9)
        self.assertEqual(self.attend("--mask", mask, "--empty-row", "zero", output="lse")[0], -INF)
        said = self.refused("attend", *self.inputs, "--mask", mask, "--empty-row=error")
        self.assertIn("no allowed key", said)


class Scores(Small):
    def test_scale(self):
        # Scores 0: every weight is a third.
        self.close(self.attend("--scale", "0"), [[2, 20], [2, 20]], 1e-14)
        # Row 0's scores are -1, 0, -1: weights 1, e, 1 over 2 + e.
        e = math.e
        self.close(self.attend("--scale", "-1")[0], [(1 + 2 * e + 3) / (2 + e)] * 1 +
                   [10 * (1 + 2 * e + 3) / (2 + e)], 1e-13)

    def test_softcap(self):
        mask = self.npy("m", [True, True, False], "|b1")
        self.close(self.attend("--softcap", "1", "--mask", mask),
                   [[1.3523194361, 13.5231943607], [1.6476805639, 16.4768056393]])

    def test_a_bias_is_added(self):
        q, k, v = self.npy("q1", [[1], [2]]), self.npy("k1", [[3], [6]]), self.npy("v1", [[2], [4]])
        self.run_command("attend", "--q", q, "--k", k, "--v", v, "--bias", self.npy("b", [0, 1]),
                         "-o", "r.npy")
        self.close(read_npy(self.path("r.npy"))[2], [[3.9640275801], [3.9981778976]])

    def test_sinks_take_part_in_the_sum_only(self):
        # Two scores 0 and a sink 0: each key has weight 1/3, the rest goes nowhere.
        self.close(self.probe(1, 2, "--sinks", "0"), [1], 1e-15)

    def test_alibi(self):
        # Position 1 of two keys, slope ln 2 and distance 1: weights 1/3 and 2/3.
        self.close(self.probe(2, 2, "--alibi", str(math.log(2)), "--causal")[1:], [5 / 3], 1e-15)
        # key-index gives the same under a causal mask.
        self.close(self.probe(2, 2, "--alibi", str(math.log(2)), "--alibi-form", "key-index",
                              "--causal")[1:], [5 / 3], 1e-15)
        # The paper's slope for one head is 2^-8.
        w = math.exp(-2**-8)
        for flag in ("--alibi", "--alibi=auto"):
            self.close(self.probe(2, 2, flag, "--causal")[1:], [(w + 2) / (w + 1)], 1e-15)

    def test_t5_table(self):
        # 4 buckets, one-sided: bucket 0 for the query's own place, 1 for the key before it.
        table = self.npy("t", [[0], [math.log(2)], [0], [0]])
        self.close(self.probe(2, 2, "--t5", table, "--t5-one-sided", "--t5-max-distance", "8",
                              "--causal")[1:], [4 / 3], 1e-15)

    def test_dropout_is_decided_by_its_seed(self):
        first = self.probe(8, 8, "--dropout", "0.5", "--seed", "7")
        self.assertEqual(first, self.probe(8, 8, "--dropout", "0.5", "--seed", "7"))
        self.assertNotEqual(first, self.probe(8, 8, "--dropout", "0.5", "--seed", "8"))
        # A kept weight counts 1 / (1 - 0.5): each row is a sum of 2^j * 2 / 8.
        for x in first:
            self.assertEqual(x * 4, round(x * 4))


class Gradients(Small):
    def test_gradients_of_the_masked_example(self):
        mask = self.npy("m", [[False] * 3, [True] * 3], "|b1")
        ones = self.npy("d", [[1, 1], [1, 1]])
        self.run_command("attend", *self.inputs, "--mask", mask, "--backward", "--d-out", ones,
                         "--dq", "dq.npy", "--dk", "dk.npy", "--dv", "dv.npy")
        self.close(read_npy(self.path("dq.npy"))[2], [[0, 0], [0.6343928979, 1.8511340925]])
        self.close(read_npy(self.path("dk.npy"))[2],
                   [[0, -1.8511340925], [0, -0.6343928979], [0, 2.4855269904]])
        self.close(read_npy(self.path("dv.npy"))[2], [[w, w] for w in WEIGHTS[1]])

    def test_what_belongs_together_is_asked_for_together(self):
        said = self.refused("attend", *self.inputs, "--backward")
        self.assertIn("--d-out: missing", said)
        self.assertIn("--backward: no file for a gradient", said)
        self.assertIn("--backward: missing", self.refused("attend", *self.inputs, "--dq", "x.npy"))
        wrong = self.npy("d", [[1, 1, 1]])
        self.assertIn("--d-out: has shape [1, 1, 1, 3]; it must have out's, [1, 1, 2, 2]",
                      self.refused("attend", *self.inputs, "--backward", "--d-out", wrong,
                                   "--dq", "x.npy"))


class Explain(Small):
    def test_it_says_the_path_the_type_the_shapes_the_masks_and_the_pairs(self):
        self.env.update(GLASSHEAD_ISA="scalar", GLASSHEAD_THREADS="1")
        result = self.run_command("attend", *self.inputs, "--causal=start", "--window", "0,",
                                  "--bias", self.npy("b", [0, -INF, -1e30]), "--explain")
        said = " ".join(result.err.split())
        # The scalar set's vectors hold one number, so two rows fill a panel's; three keys are one block.
        for part in ("the fused path runs", "kernels scalar: asked for by GLASSHEAD_ISA",
                     "form panels: lanes are query rows; 2 query rows per key/value head", "work 1 item for 1 thread",
                     "tiles 1 of a panel by up to 128 keys: 0 skipped, 0 without a mask, 1 with one", "scratch ",
                     "compute type f64", "q [1, 1, 2, 2] f64",
                     "k [1, 1, 3, 2] f64", "v [1, 1, 3, 2] f64", "1/sqrt(2), the default",
                     "causal", "window: 0 earlier, all later", "dense [3] f64", "at position 0",
                     "allowed pairs 1 of 6", "rows 2, of which 1 see no key"):
            self.assertIn(part, said)
        self.assertIn("out f64", result.out)


class Refusals(Small):
    def test_all_problems_are_named_at_once(self):
        bad = self.file("bad.npy", b"not a file")
        said = self.refused(
            "attend", "--q", "none.npy", "--k", bad, "--mask", self.npy("m", [0.0]), "--window", "x",
            "--key-lengths", "1,,2", "--scale", "big", "--softcap", "1,2", "--sinks", "a",
            "--causal=middle", "--alibi", "steep", "--alibi-form", "round", "--dropout", "0.1",
            "--empty-row", "maybe", "--prefix", "two", "--query-segments", "0",
            "-o", "out.txt", "--lse", "a.npy", "--weights", "a.npy", "--backward")
        for part in (
                "attend: --q: none.npy: no such file",
                "bad.npy: magic: found 'not a '",
                "attend: --v: missing; give --v FILE",
                "m.npy: holds f64; a mask is booleans",
                "--window: found 'x'; LEFT,RIGHT is needed",
                "--key-lengths: found '' in '1,,2'",
                "--scale: found 'big'; a number is needed",
                "--softcap: found '1,2'",
                "--sinks: found 'a' in 'a'",
                "--causal: found 'middle'; start, end, or the position",
                "--alibi: found 'steep'",
                "--alibi-form: found 'round'; distance or key-index",
                "--seed: missing; --dropout needs",
                "--empty-row: found 'maybe'; zero or error",
                "--prefix: found 'two'",
                "--key-segments: missing; --query-segments and --key-segments go together",
                "-o: out.txt: must end in .npy or .safetensors",
                "--weights: a.npy: is also the file of --lse",
                "--d-out: missing",
                "--backward: no file for a gradient"):
            self.assertIn(part, said)

    def test_shapes_options_and_flags_are_refused_together(self):
        q = self.npy("q8", [[[0, 0]]] * 4)
        k = self.npy("k3", [[[0, 0, 0]]] * 3)
        said = self.refused("attend", "--q", q, "--k", k, "--v", self.v, "--softcap", "-1",
                            "--window", "-1,0", "--bias", self.npy("b", [math.nan]), "--sinks", "1")
        for part in ("heads", "multiple", "d_k", "softcap", "bias", "sinks", "--window"):
            self.assertIn(part, said)

    def test_types_do_not_mix(self):
        k = self.npy("kf", K, "<f4")
        self.assertIn("has dtype f32 where q has f64", self.refused(
            "attend", "--q", self.q, "--k", k, "--v", self.v))
        self.assertIn("has dtype i64", self.refused(
            "attend", "--q", self.npy("qi", Q, "<i8"), "--k", self.k, "--v", self.v))

    def test_contradictions_and_options_without_effect_are_refused(self):
        self.assertIn("say it once", self.refused(
            "attend", *self.inputs, "--causal=end", "--query-start", "0"))
        self.assertIn("--seed: has no effect without --dropout", self.refused(
            "attend", *self.inputs, "--seed", "1"))
        self.assertIn("--alibi-form: has no effect without --alibi", self.refused(
            "attend", *self.inputs, "--alibi-form", "distance"))
        self.assertIn("--t5-one-sided: has no effect without --t5", self.refused(
            "attend", *self.inputs, "--t5-one-sided"))
        self.assertIn("--q: given beside --qkv", self.refused(
            "attend", "--qkv", "x.safetensors", "--q", self.q))

    def test_wrong_files_for_masks_and_biases(self):
        said = self.refused("attend", *self.inputs, "--bias", self.npy("m", [True], "|b1"))
        self.assertIn("a bias is floating-point numbers. Booleans (true = may attend) are a --mask",
                      said)
        said = self.refused("attend", *self.inputs, "--mask", self.npy("m5", [[[[[True]]]]], "|b1"))
        self.assertIn("rank 4 or less is needed", said)
        said = self.refused("attend", *self.inputs, "--mask", self.npy("m2", [True, False], "|b1"))
        self.assertIn("mask", said)

    def test_an_empty_name_of_a_file_and_a_stray_word_are_not_overlooked(self):
        for flag in ("-o", "--lse", "--weights"):
            self.assertIn("is empty", self.refused("attend", *self.inputs, flag, ""))
        self.assertIn("is empty", self.refused("attend", *self.inputs, "--backward", "--d-out", ""))
        for flag in ("--top-keys", "--top-weights"):
            self.assertIn("is empty", self.refused("attend", *self.inputs, "--top-k", "1", flag, ""))
        self.assertIn("stray: not expected here", self.refused("attend", *self.inputs, "stray"))

    def test_top_k_and_its_files_need_each_other(self):
        self.assertIn("--top-k: missing; --top-keys and --top-weights go with --top-k N",
                      self.refused("attend", *self.inputs, "--top-keys", "t.npy"))
        self.assertIn("--top-k: no file for it; give --top-keys or --top-weights FILE",
                      self.refused("attend", *self.inputs, "--top-k", "2"))
        for wrong in ("0", "-1", "two", "1.5"):
            said = self.refused("attend", *self.inputs, "--top-k=" + wrong, "--top-keys", "t.npy")
            self.assertIn(f"--top-k: {wrong}: must be a whole number, at least 1", said)

    def test_a_refused_call_writes_nothing(self):
        self.refused("attend", *self.inputs, "-o", "r.npy", "--softcap", "-1")
        with self.assertRaises(FileNotFoundError):
            open(self.path("r.npy"), "rb")

    def test_an_output_in_no_folder_is_an_error_of_the_input(self):
        self.assertIn("cannot be created", self.refused("attend", *self.inputs, "-o", "no/r.npy"))

    def test_qkv_must_hold_all_three(self):
        self.file("x.safetensors", safetensors({"q": ("F64", [2, 2], pack(Q, "<f8"))}))
        said = self.refused("attend", "--qkv", "x.safetensors")
        self.assertIn("holds no tensor 'k'", said)
        self.assertIn("holds no tensor 'v'", said)
        self.assertIn("must be a .safetensors file", self.refused("attend", "--qkv", self.q))


if __name__ == "__main__":
    main()
