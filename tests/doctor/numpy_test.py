"""Wrong and right attention in NumPy (specimens/), through `glasshead doctor`. `numpy_test.py GLASSHEAD`.

Needs NumPy: where this interpreter has none, one that has is looked for (build/python-env, the system's own); without
any the test is skipped (exit code 77), and says so.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "specimens"))
sys.path.insert(0, str(HERE.parent))
from with_numpy import with_numpy  # noqa: E402

with_numpy()
import numpy as np  # noqa: E402

import right  # noqa: E402
import wrong  # noqa: E402
from narrow import ROUND  # noqa: E402

PROGRAM = None


def say(folder, q, k, v, claims, flags=(), files=None, dtype="f32"):
    """The diagnosis, as JSON, of `claims` {name: array}; files {flag: array} are given by name."""
    args = ["doctor", "--json", *flags, *(["--dtype", "bf16"] if dtype == "bf16" else [])]
    done = run(folder, args, {"q": q, "k": k, "v": v, **claims}, files, dtype)
    if done.returncode not in (0, 1):
        raise AssertionError(f"{args}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def run(folder, args, arrays, files, dtype):
    """The command with `arrays` in dtype's storage (bf16: f32) and `files` as they are, each by its name."""
    stored = np.float16 if dtype == "f16" else np.float32
    args = [PROGRAM, *args]
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array).astype(stored))
        args += [f"--{name}", str(folder / f"{name}.npy")]
    for flag, array in (files or {}).items():
        np.save(folder / f"{flag}.npy", np.ascontiguousarray(array))
        args += [f"--{flag}", str(folder / f"{flag}.npy")]
    return subprocess.run(args, capture_output=True, text=True, timeout=120)


class Specimens(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.random = np.random.default_rng(2024)

    def inputs(self, b=1, hq=2, hkv=2, n=20, m=20, d=8, e=None, spread=1.5, dtype="f32"):
        normal = lambda *shape: ROUND[dtype](self.random.standard_normal(shape) * spread)  # noqa: E731
        return normal(b, hq, n, d), normal(b, hkv, m, d), normal(b, hkv, m, e or d)

    def diagnosis(self, qkv, claims, flags, files, dtype):
        if not isinstance(claims, dict):
            claims = {"out": claims}
        return say(self.folder, *qkv, claims, flags, files, dtype)

    def named(self, expected, qkv, claims, *flags, files=None, dtype="f32"):
        """`expected` is among the names; returns what was said."""
        said = self.diagnosis(qkv, claims, flags, files, dtype)
        names = [cause["name"] for cause in said["causes"]]
        self.assertEqual(said["verdict"], "mistaken", said)
        self.assertIn(expected, names)
        self.assertLessEqual(len(names), 3, names)  # what no input of this shape tells apart
        return said

    def located(self, expected, qkv, claims, *flags, files=None, dtype="f32"):
        said = self.diagnosis(qkv, claims, flags, files, dtype)
        self.assertEqual((said["verdict"], said["causes"]), ("unexplained", []), said)
        told = " | ".join(said["pattern"] + said["proven"] + said["next"])
        for words in expected:
            self.assertIn(words, told)


class Masks(Specimens):
    def test_decoding_forgets_the_cache(self):
        x = self.inputs(hq=4, n=3, m=14)
        self.named("causal-corner:0", x, wrong.decode_forgets_the_cache(*x), "--causal=end")

    def test_position_counts_the_new_token_twice(self):
        x = self.inputs(hq=4, n=3, m=14)
        said = self.named("positions-shifted:1", x, wrong.position_counts_the_new_token_twice(*x, past=7), "--causal=7")
        self.assertEqual([cause["name"] for cause in said["causes"]], ["mask-wide", "positions-shifted:1"])

    def test_mask_ends_before_the_new_token(self):
        x = self.inputs(hq=4, n=3, m=16)
        said = self.named("mask-strict", x, wrong.mask_ends_before_the_new_token(*x), "--causal=end")
        self.assertEqual([cause["name"] for cause in said["causes"]], ["mask-strict", "positions-shifted:-1"])
        mistake = said["causes"][0]["mistakes"][0]
        self.assertIn("q_len < kv_len", mistake["done"])
        self.assertIn("past_len", mistake["fix_code"])
        self.assertEqual(said["probe"], "")  # two names for one program: no input tells them apart

    def test_tri_with_k_one(self):
        x = self.inputs()
        said = self.named("mask-wide", x, wrong.tri_with_k_one(*x), "--causal")
        self.assertEqual([cause["name"] for cause in said["causes"]], ["mask-wide", "positions-shifted:1"])

    def test_a_corner_is_a_shift_too(self):
        for n, m in ((2, 3), (3, 5), (3, 14)):
            x = self.inputs(hq=4, n=n, m=m)
            said = self.named("causal-corner:0", x, wrong.decode_forgets_the_cache(*x), "--causal=end")
            self.assertIn(f"positions-shifted:{n - m}", [cause["name"] for cause in said["causes"]])

    def test_window_without_its_own_place(self):
        x = self.inputs(hq=4, n=12, m=17)
        self.named("window-off:-1", x, wrong.window_without_its_own_place(*x, window=5), "--causal=end", "--window", "4,0")

    def test_window_by_absolute_distance(self):
        x = self.inputs()
        self.named("window-symmetric", x, wrong.window_by_absolute_distance(*x, left=3), "--window", "3,0")

    def test_lowest_float_for_hidden(self):
        x = self.inputs(b=2, hq=4, n=6, m=11)
        said = self.diagnosis(x, wrong.lowest_float_for_hidden(*x, (7, 0)), ("--key-lengths", "7,0"), None, "f32")
        names = {cause["name"] for cause in said["causes"]}  # stand-ins that are low enough for these scores
        self.assertLessEqual({"mask-finite:finfo.min", "mask-finite:-1e9", "empty-row-uniform"}, names)

    def test_ones_and_zeros_added(self):
        x = self.inputs(spread=0.7)
        self.named("mask-as-number", x, wrong.ones_and_zeros_added(*x), "--causal")

    def test_filled_where_true(self):
        x = self.inputs()
        mask = self.random.random((20, 20)) < 0.6
        mask[:, 0], mask[:, 1] = True, False
        self.named("mask-inverted", x, wrong.filled_where_true(*x, mask), files={"mask": mask})

    def test_causal_wins_over_mask(self):
        x = self.inputs()
        mask = self.random.random((20, 20)) < 0.6
        self.named("mask-argument-ignored", x, wrong.causal_wins_over_mask(*x, mask), "--causal", files={"mask": mask})

    def test_mask_or_causal(self):
        x = self.inputs(b=2)
        padding = np.arange(20) < np.array([[13], [17]])
        self.named("mask-union", x, wrong.mask_or_causal(*x, padding), "--causal", "--key-lengths", "13,17")

    def test_padding_on_the_rows(self):
        x = self.inputs(b=2)
        self.named("mask-query-side", x, wrong.padding_on_the_rows(*x, (13, 17)), "--key-lengths", "13,17")

    def test_documents_run_together(self):
        x, ids = self.inputs(), np.array([[0] * 7 + [1] * 13])
        self.named("segments-ignored", x, wrong.documents_run_together(*x), "--causal",
                   files={"query-segments": ids, "key-segments": ids})

    def test_prefix_is_causal_too(self):
        x = self.inputs()
        self.named("prefix-causal", x, wrong.prefix_is_causal_too(*x), "--prefix", "6")


class Scores(Specimens):
    def test_scaled_by_the_model_width(self):
        x = self.inputs(hq=3, hkv=3)
        self.named("scale-other:1/sqrt(d_model)", x, wrong.scaled_by_the_model_width(*x))

    def test_yarn_factor_left_in(self):
        x = self.inputs(spread=1)
        said = self.diagnosis(x, wrong.yarn_factor_left_in(*x), (), None, "f32")
        self.assertEqual([c["mistakes"][0]["id"] for c in said["causes"]], ["scale-other"])
        found = float(said["causes"][0]["mistakes"][0]["parameter"])
        self.assertAlmostEqual(found, (0.1 * np.log(16) + 1) ** 2 / 8 ** 0.5, places=4)

    def test_exp2_without_log2e(self):
        x = self.inputs()
        self.named("scale-other:ln2", x, wrong.exp2_without_log2e(*x))

    def test_capped_then_scaled(self):
        x = self.inputs(hq=4)
        self.named("softcap-before-scale", x, wrong.capped_then_scaled(*x, 5), "--softcap", "5")

    def test_first_rows_of_the_bias(self):
        x = self.inputs(n=2, m=17)
        buckets = self.random.standard_normal((32, 2)).astype(np.float32)
        self.named("bias-shifted:15", x, wrong.first_rows_of_the_bias(*x, buckets.T), "--causal=end", "--t5-one-sided", "--t5-max-distance", "32",
                   files={"t5": buckets})

    def test_bias_as_keep(self):
        x = self.inputs()
        bias = np.where(self.random.random((20, 20)) < 0.5, self.random.standard_normal((20, 20)), 0).astype(np.float32)
        bias[:, 0] = 1
        self.named("mask-as-boolean:nonzero-keeps", x, wrong.bias_as_keep(*x, bias), files={"bias": bias})

    def test_slopes_for_any_head_count(self):
        x = self.inputs(hq=6, hkv=6)
        self.named("alibi-slopes:not-interleaved", x, wrong.slopes_for_any_head_count(*x), "--causal", "--alibi")

    def test_sink_left_out(self):
        x = self.inputs(hq=4)
        self.named("sinks-missing", x, wrong.sink_left_out(*x), "--sinks", "1,-0.5,2,0.25")

    def test_rotary_restarts(self):
        x = self.inputs(n=5, m=14)
        self.named("rope-offset:-9", x, wrong.rotary_restarts(*x), "--causal=end", "--rope", "halves")

    def test_cached_keys_turned_again(self):
        x = self.inputs(n=3, m=16, d=16)
        said = self.named("rope-twice:cached", x, wrong.cached_keys_turned_again(*x, past=13), "--causal=end", "--rope", "halves")
        self.assertEqual(len(said["causes"]), 1)

    def test_rotary_of_another_base(self):
        x = self.inputs()
        self.named("rope-base:10000", x, wrong.rotary_of_another_base(*x), "--causal", "--rope", "halves", "--rope-base", "500000")


class Memory(Specimens):
    def test_repeated_along_the_keys(self):
        x = self.inputs(hq=6, n=9, m=13, e=5)
        self.named("kv-repeated-along-keys:interleaved", x, wrong.repeated_along_the_keys(*x))

    def test_concatenated_without_transpose(self):
        x = self.inputs(hq=4, hkv=4, n=9, m=13, e=5)
        self.named("heads-reshaped:out", x, wrong.concatenated_without_transpose(*x))

    def test_value_pointer_of_a_transpose(self):
        x = self.inputs(n=9, m=13, e=5)
        self.named("strides-ignored:v", x, wrong.value_pointer_of_a_transpose(*x))

    def test_cache_index_off_by_one(self):
        for n in (1, 3):
            x = self.inputs(hq=4, n=n, m=16)
            said = self.named("cache-slot-early:zero", x, wrong.cache_index_off_by_one(*x, past=16 - n), "--causal=end")
            self.assertEqual(len(said["causes"]), 1)

    def test_value_slots_one_late(self):
        x = self.inputs(n=9, m=13)
        self.named("values-shifted:-1", x, wrong.value_slots_one_late(*x))


class Numbers(Specimens):
    def test_exponentials_of_the_scores(self):
        x = self.inputs(spread=9, d=16)
        self.named("softmax-unshifted", x, wrong.exponentials_of_the_scores(*x))

    def test_exponentials_in_half(self):
        x = self.inputs(n=60, m=60, d=64, spread=2.2, dtype="f16")
        for sum_type, what in ((np.float16, "exps-and-sum"), (np.float32, "exps")):
            out = wrong.exponentials_in_half(*x, sum_type)
            self.assertTrue(0 < np.isnan(out).sum() < out.size)
            said = self.named(f"softmax-unshifted-f16:{what}", x, out, "--causal", dtype="f16")
            self.assertEqual(len(said["causes"]), 1)

    def test_half_accumulator(self):
        q, k, v = self.inputs(n=2, m=150, spread=1)
        x = q, k, v + np.float32(4)
        self.named("accumulate-f16", x, wrong.half_accumulator(*x))

    def test_bf16_everywhere(self):
        x = self.inputs(n=9, m=40)
        said = self.diagnosis(x, wrong.bf16_everywhere(*x), (), None, "f32")
        names = {cause["name"] for cause in said["causes"]}  # sizes of errors can't tell which narrower type it was
        self.assertTrue(names and names <= {"arithmetic-narrow:bf16", "arithmetic-narrow:f16", "accumulate-f16"}, names)


class Tiles(Specimens):
    def test_the_kernel_that_they_are_made_from_is_right(self):
        x = self.inputs(m=100)
        self.assertEqual(self.diagnosis(x, wrong.flash(*x, tile=32), (), None, "f32")["verdict"], "right")

    def test_never_rescaled(self):
        x = self.inputs(m=100)
        self.named("tile-neither-rescaled:32", x, wrong.never_rescaled(*x))

    def test_bf16_tiles_summed_unscaled(self):
        x = self.inputs(n=60, m=200, d=16, spread=1, dtype="bf16")
        self.named("tile-no-rescale:64", x, wrong.bf16_tiles_summed_unscaled(*x), dtype="bf16")

    def test_whole_diagonal_tiles(self):
        x = self.inputs(n=75, m=75)
        self.named("causal-by-tile:32", x, wrong.whole_diagonal_tiles(*x), "--causal")

    def test_tail_of_zero_keys_f16(self):
        x = self.inputs(n=9, m=100, spread=0.7, dtype="f16")
        self.named("tile-tail-zero:64", x, wrong.tail_of_zero_keys_f16(*x), dtype="f16")

    def test_splits_averaged(self):
        x = self.inputs(m=100)
        self.named("merge-averaged:32", x, wrong.splits_averaged(*x))


class NotInTheCatalogue(Specimens):
    def test_last_key_of_each_tile_lost(self):
        x = self.inputs(n=7, m=70)
        self.located(["each output lies between"], x, wrong.last_key_of_each_tile_lost(*x))

    def test_one_head_overwritten(self):
        x = self.inputs(b=2, hq=4, hkv=4)
        self.located(["only batch entry 1", "only head 2"], x, wrong.one_head_overwritten(*x))

    def test_merged_by_sums_alone(self):
        x = self.inputs(m=70)
        self.located(["each output lies between"], x, wrong.merged_by_sums_alone(*x))

    def test_rows_past_64_stale(self):
        x = self.inputs(n=75, m=30)
        self.located(["from 64"], x, wrong.rows_past_64_stale(*x))


class Gradients(Specimens):
    def backward(self, **edits):
        x = self.inputs(hq=4, n=9, m=13)
        d_out = self.random.standard_normal((1, 4, 9, 8)).astype(np.float32)
        return x, wrong.backward(*x, d_out, **edits), d_out

    def test_the_backward_pass_that_they_are_made_from_is_right(self):
        x, claims, d_out = self.backward()
        self.assertEqual(self.diagnosis(x, claims, (), {"d-out": d_out}, "f32")["verdict"], "right")

    def test_delta_forgotten(self):
        x, claims, d_out = self.backward(has_mean=False)
        self.named("gradient-mean-missing", x, claims, files={"d-out": d_out})

    def test_scale_forgotten_on_the_way_back(self):
        x, claims, d_out = self.backward(has_scale=False)
        self.named("gradient-scale-missing", x, claims, files={"d-out": d_out})

    def test_heads_of_a_group_not_summed(self):
        x, claims, d_out = self.backward(sums_heads=False)
        self.named("gradient-heads-not-summed", x, claims, files={"d-out": d_out})


class Right(Specimens):
    def test_scores_that_bf16_can_not_hold_apart(self):
        q = np.array([[[[2272, 16]]]], np.float32)
        k = np.array([[[[1, 0], [1, -0.4375]]]], np.float32)  # scores 2272 and 2265: in bf16 both are 2272
        v = np.array([[[[1, -2], [3, 4]]]], np.float32)
        out = np.array([[[[2, 1]]]], np.float32)
        said = self.diagnosis((q, k, v), out, ("--scale", "1"), None, "bf16")
        self.assertEqual(said["verdict"], "right", said["worst"])
        said = self.diagnosis((q, k, v), out + np.float32(8), ("--scale", "1"), None, "bf16")
        self.assertEqual(said["verdict"], "unexplained", said["worst"])  # no average of these values

    def test_right_outputs_are_called_right(self):
        with tempfile.TemporaryDirectory() as folder:
            for number, (text, call) in enumerate(right.outputs(seed=1, count=160)):
                said = say(pathlib.Path(folder), **call)
                with self.subTest(number=number, what=text):
                    self.assertEqual(said["verdict"], "right", said["worst"])


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
