"""Ports in NumPy, right and wrong (ported.py), through `glasshead doctor MODEL --activations`.

`numpy_test.py GLASSHEAD`. Needs NumPy: where this interpreter has none, one that has is looked for; without any the
test is skipped (exit code 77), and says so.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parent / "data" / "models"
sys.path.insert(0, str(HERE.parent))
from with_numpy import with_numpy  # noqa: E402

with_numpy()
import numpy as np  # noqa: E402
import ported  # noqa: E402

PROGRAM = None
IDS = np.array([5, 17, 42, 8, 33, 61, 12, 7, 50, 29])

# model: {what is done wrong: the name it should get}
MISTAKES = {
    "llama": {
        "neighbours": "rope-pairing",
        "angles mixed": "rope-angles-mixed",
        "positions from 1": "positions-shifted:1",
        "no rope": "rope-missing",
        "rope on q alone": "rope-one-side:q",
        "rope on k alone": "rope-one-side:k",
        "k turned twice": "rope-twice:k",
        "backwards": "rope-reversed",
        "tiled": "gqa-tiled",
        "merge reshaped": "heads-reshaped:out",
        "split reshaped": "heads-reshaped:q, k and v",
        "not causal": "causal-missing",
        "strict": "mask-strict",
        "unscaled": "scale-missing",
        "scale by d_k": "scale-other:1/d_k",
        "no residual": "residual-missing:attention",
        "no residual of ffn": "residual-missing:feed-forward",
        "residual normed": "residual-normed:attention",
        "parallel": "block-parallel",
        "mean subtracted": "norm-kind:mean subtracted",
        "gate alone": "gate-missing:activation(gate) alone",
        "no final norm": "final-norm-missing",
    },
    "gemma2": {
        "embedding unscaled": "embedding-scale-missing",
        "embedding scale in bf16": "embedding-scale-other:rounded to bf16",
        "no norm behind": "norm-placement:none behind the parts",
        "window one more": "window-off:1",
        "tiled": "gqa-tiled",
        "neighbours": "rope-pairing",
    },
    "gpt2": {
        "mean kept": "norm-kind:mean not subtracted",
        "qkv head by head": "qkv-order:head by head",
        "merge reshaped": "heads-reshaped:out",
        "scale by d_k": "scale-other:1/d_k",
        "strict": "mask-strict",
    },
}
# Turning both by one position more leaves every product as it was, which is a matter of their distance: not to be seen
# in what comes behind. (Backwards turns the distance round, and is seen.)
UNSEEN_BEHIND = {"positions from 1"}


def hidden(name):
    parts = name.split(".")
    return parts[-1] in ("embedding", "in", "final_norm", "logits") or (parts[-1] == "out" and len(parts) == 3)


class Ports(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def ask(self, model, arrays, *flags):
        path = pathlib.Path(self.folder.name) / "theirs.safetensors"
        ported.write(path, {"input_ids": IDS[None], **arrays})
        done = subprocess.run([PROGRAM, "doctor", str(MODELS / model), "--activations", str(path), "--json", *flags],
                              capture_output=True, text=True, timeout=300)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(done.returncode == 0, report["verdict"] == "right")
        return report

    def run_port(self, model, *mistakes):
        return (ported.gpt2 if model == "gpt2" else ported.llama)(MODELS / model, IDS, *mistakes)

    def names(self, report):
        return [[cause["name"] for cause in finding["causes"]] for finding in report["findings"]]

    def test_right_ports_are_right(self):
        for model in MISTAKES:
            report = self.ask(model, self.run_port(model))
            self.assertEqual(report["verdict"], "right", report["findings"])
            self.assertGreater(len(report["places"]), 25)

    def test_mistakes_are_named_and_explain_everything(self):
        for model, mistakes in MISTAKES.items():
            for mistake, name in mistakes.items():
                with self.subTest(model=model, mistake=mistake):
                    names = self.names(self.ask(model, self.run_port(model, mistake)))
                    self.assertEqual([found[:1] for found in names], [[name]], names)

    def test_mistakes_are_named_from_hidden_states_alone(self):
        for model, mistakes in MISTAKES.items():
            for mistake, name in mistakes.items():
                with self.subTest(model=model, mistake=mistake):
                    arrays = {key: array for key, array in self.run_port(model, mistake).items() if hidden(key)}
                    names = self.names(self.ask(model, arrays))
                    self.assertEqual([found[:1] for found in names], [] if mistake in UNSEEN_BEHIND else [[name]],
                                     names)

    def test_noise_gets_no_name(self):
        noise = np.random.default_rng(3)
        for place in ("decoder.0.self.q", "decoder.1.in", "decoder.1.ffn.inner", "logits"):
            arrays = self.run_port("llama")
            arrays[place] = arrays[place] * (1 + 1e-3 * noise.standard_normal(arrays[place].shape))
            report = self.ask("llama", arrays)
            self.assertEqual(report["verdict"], "unexplained", place)
            self.assertEqual(report["findings"][0]["place"]["name"], place)

    def test_layouts_are_read_and_named(self):
        arrays = self.run_port("llama")
        arrays = {name: array[None] for name, array in arrays.items()}
        arrays["decoder.0.self.q"] = arrays["decoder.0.self.q"].transpose(0, 2, 1, 3)
        arrays["decoder.1.self.q"] = arrays["decoder.1.self.q"].transpose(0, 2, 1, 3).reshape(1, len(IDS), -1)
        arrays["decoder.0.self.k"] = np.repeat(arrays["decoder.0.self.k"], 2, 1)
        arrays["logits"] = arrays["logits"][:, -1]
        report = self.ask("llama", arrays)
        self.assertEqual(report["verdict"], "right", report["findings"])
        layouts = {place["name"]: place["layout"] for place in report["places"] if place["layout"]}
        self.assertEqual(layouts, {
            "decoder.0.self.q": "[tokens, heads, d]", "decoder.1.self.q": "[tokens, heads*d]",
            "decoder.0.self.k": "key/value heads repeated (0 0 1 1)", "logits": "of the last token alone"})

    def test_names_come_from_a_mapping(self):
        theirs = {name.replace("decoder.", "blocks.").replace("self.", "attn/"): array
                  for name, array in self.run_port("llama", "neighbours").items() if "self." in name}
        names = pathlib.Path(self.folder.name) / "names.json"
        names.write_text(json.dumps({f"decoder.{{}}.self.{part}": f"blocks.{{}}.attn/{part}"
                                     for part in ("norm", "q", "k", "v", "out")}))
        report = self.ask("llama", theirs, "--names", str(names))
        self.assertEqual(self.names(report), [["rope-pairing"]])
        self.assertEqual(report["findings"][0]["place"]["theirs"], "blocks.0.attn/q")
        self.assertEqual(report["unread"], [f"blocks.{n}.attn/{part}" for n in (0, 1)
                                            for part in ("weights", "projected")])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
