"""What releases of real libraries returned (recorded/), through `glasshead doctor`. `recorded_test.py GLASSHEAD`.

Each must be named or, where no mistake fits, be located. Many of the smallest inputs that show a fault can't tell it
from others: then it must be among those named, and the doctor must say that it can't tell.
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent / "recorded"
INDEX = json.loads((HERE / "index.json").read_text(encoding="utf-8"))
PROGRAM = None


class Recorded(unittest.TestCase):
    maxDiff = None

    def diagnosis(self, name, *flags):
        file = f"{name}.safetensors"
        args = [PROGRAM, "doctor", "--json", "--qkv", file, "--out", f"{file}:out",
                *(f"{file}:{flag[1:]}" if flag.startswith(":") else flag for flag in flags)]
        done = subprocess.run(args, capture_output=True, text=True, timeout=120, cwd=HERE)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)  # wrong, and read
        return json.loads(done.stdout)

    def names(self, said):
        return [cause["name"] for cause in said["causes"]]

    def named(self, mistake, name, *flags):
        said = self.diagnosis(name, *flags)
        self.assertEqual(self.names(said), [mistake], said)

    def among(self, mistake, name, *flags):
        said = self.diagnosis(name, *flags)
        self.assertIn(mistake, self.names(said))
        self.assertIn("can't tell these apart", " ".join(said["next"]))

    def located(self, words, name, *flags):
        said = self.diagnosis(name, *flags)
        self.assertEqual((said["verdict"], self.names(said)), ("unexplained", []), said)
        self.assertIn(words, " | ".join(said["pattern"] + said["proven"]))

    def test_hidden_nan_is_multiplied_by_a_weight_of_zero(self):  # F12, pytorch#101967
        for name in ("ort-attention-hidden-nan", "ort-attention-hidden-inf", "torch-hidden-nan"):
            self.among("hidden-read:keys-and-values", name, "--mask", ":mask")
        for name in ("ort-attention-hidden-nan-value", "jax-hidden-nan-value"):
            self.among("hidden-read:values", name, "--mask", ":mask")
        said = self.diagnosis("ort-attention-hidden-nan-column", "--mask", ":mask")
        self.assertEqual(self.names(said)[:2], ["hidden-read:values", "hidden-read:keys-and-values"])

    def test_the_lowest_float_is_taken_for_minus_infinity(self):  # F08, F09, pytorch#110213
        for name in ("ort-attention-lowest-row", "ort-attention-lowest-rows"):
            said = self.diagnosis(name, "--bias", ":bias")
            self.assertEqual(self.names(said), ["lowest-as-hidden", "mask-as-boolean:nonzero-hides"])

    def test_a_mask_is_multiplied_by_minus_infinity(self):  # F11, onnx#8068
        self.named("mask-times-inf", "onnx-mask-and-causal", "--causal", "--mask", ":mask")

    def test_a_hidden_key_beats_a_real_one_where_scores_are_large(self):  # F10, lattice#361
        self.named("mask-finite-added:-1e4", "ort-mha-hidden-keys", "--mask", ":mask")
        self.among("mask-finite-added:-1e4", "ort-mha-hidden-key", "--mask", ":mask", "--scale", "1")

    def test_a_batch_entry_of_padding_alone_sees_its_padding(self):
        self.among("mask-finite-added:-1e4", "ort-mha-empty", "--key-lengths", "0")

    def test_heads_are_tiled(self):  # F29, onnx#7274
        self.named("gqa-tiled", "onnx-heads-tiled")

    def test_softcap_after_the_mask(self):  # F17, onnx#7865, onnx#7867
        self.named("softcap-order", "onnx-softcap-after-mask", "--softcap", "3", "--causal")

    def test_a_window_one_too_wide(self):  # F25, onnxruntime#25927
        self.named("window-off:1", "ort-gqa-window", "--causal", "--window", "3,0")

    def test_a_row_without_a_key(self):  # F01, F02, openvino#35959
        self.named("empty-row-nan", "openvino-empty-row", "--mask", ":mask")
        self.named("empty-row-nan", "onnx-empty-row", "--mask", ":mask")
        self.among("empty-row-uniform", "jax-empty-row", "--mask", ":mask")

    def test_a_window_of_size_0_hides_the_query_itself(self):  # F25
        flags = ("--causal", "--window", "0,0")
        self.among("mask-strict", "ort-gqa-window-0-mixed", *flags)
        self.among("mask-strict", "ort-gqa-window-0", *flags, "--scale", "1")

    def test_causal_from_the_other_corner(self):  # F22, pytorch#103082
        said = self.diagnosis("torch-corner", "--causal=end")
        self.assertEqual(self.names(said), ["causal-corner:0", "positions-shifted:-13"])

    def test_values_are_summed_in_f16(self):  # F35, llama.cpp#12433
        for name in ("ggml-f16-sum-overflows", "ggml-f16-values-300", "ggml-f16-random"):
            self.named("accumulate-f16", name)

    def test_two_threads_sums_in_f16_are_nobodys_mistake_but_located(self):  # F35
        self.located("outside the values that its row sees", "ggml-f16-sum-stalls")

    def test_a_query_beyond_f16(self):  # F36
        self.located("only query row 0", "ggml-f16-query-row", "--dtype", "f16")
        self.located("every number is NaN", "ggml-f16-query")

    def test_each_record_says_where_it_is_from(self):
        files = sorted(path.stem for path in HERE.glob("*.safetensors"))
        self.assertEqual(sorted(INDEX), files)
        for entry in INDEX.values():
            self.assertEqual(sorted(entry), ["call", "operator", "release"])


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
