"""glasshead doctor MODEL --activations: exit codes, and what is refused. `command_test.py GLASSHEAD`."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
MODEL = str(HERE.parent / "data/models/llama")
THEIRS = str(HERE / "recorded/neighbours.safetensors")
PROGRAM = None


def run(*args):
    return subprocess.run([PROGRAM, "doctor", *args], capture_output=True, text=True, timeout=120)


class Command(unittest.TestCase):
    def refused(self, *args):
        done = run(*args)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def test_wrong_is_1_and_json_says_the_same_as_text(self):
        text, told = run(MODEL, "--activations", THEIRS), run(MODEL, "--activations", THEIRS, "--json")
        self.assertEqual((text.returncode, told.returncode), (1, 1))
        report = json.loads(told.stdout)
        self.assertEqual(report["schema"], "glasshead.port/1")
        self.assertEqual(report["verdict"], "mistaken")
        self.assertEqual(report["findings"][0]["causes"][0]["name"], "rope-pairing")
        self.assertIn("cause     rope-pairing: ", text.stdout)

    def test_right_is_0(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder, "ours.safetensors"))
            subprocess.run([PROGRAM, "run", MODEL, "--tokens", "5,17,42", "--max-tokens", "0", "--quiet",
                            "--tap", "decoder.*.self.q", "--tap", "decoder.*.out", "-o", path], check=True)
            done = run(MODEL, "--activations", path, "--tokens", "5,17,42")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.startswith("RIGHT     4 places compared, 3 tokens, f32 arithmetic\n"))
            self.assertIn("--tokens: missing; the file holds no `ids`", self.refused(MODEL, "--activations", path))
            self.assertIn("--activations: decoder.0.self.q: has shape [6, 3, 8]",
                          self.refused(MODEL, "--activations", path, "--tokens", "5,17"))

    def test_a_text_beyond_the_short_form_is_read_in_the_long_one(self):
        # Phi-3's factors change behind 16 positions here: programs take those for the text's length.
        model, ids = str(HERE.parent / "data/models/phi3-longrope"), ",".join(str(5 + n) for n in range(20))
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder, "ours.safetensors"))
            subprocess.run([PROGRAM, "run", model, "--tokens", ids, "--max-tokens", "0", "--quiet", "--context", "20",
                            "--tap", "decoder.*.self.q", "--tap", "logits", "-o", path], check=True)
            done = run(model, "--activations", path, "--tokens", ids)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_flags_of_other_calls_are_refused(self):
        said = self.refused(MODEL, "--activations", THEIRS, "--causal", "--scale", "2")
        self.assertIn("--causal: given beside --activations", said)
        self.assertIn("--scale: given beside --activations", said)
        self.assertIn("--tokens: goes with --activations", self.refused("three-tokens", "--tokens", "1"))
        self.assertIn("MODEL: missing", self.refused("--activations", THEIRS))
        self.assertIn("--prompt: does not go with --tokens",
                      self.refused(MODEL, "--activations", THEIRS, "--tokens", "1", "--prompt", "a"))

    def test_files_that_do_not_fit_are_refused(self):
        self.assertIn("--activations: input_ids: the activations are of other ids than those given",
                      self.refused(MODEL, "--activations", THEIRS, "--tokens", "1,2,3"))
        self.assertIn("no such file", self.refused(MODEL, "--activations", "nowhere.safetensors").lower())
        names = self.refused(MODEL, "--activations", THEIRS, "--names", str(HERE / "recorded/names.json"))
        self.assertIn("--names: final_norm: norm: no tensor of the activations has this name", names)
        self.assertIn("--names: logits: lm_head: no tensor", names)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
