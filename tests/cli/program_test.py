"""The program around the commands: help, version, unknown words, exit codes, inspect, completion and
the manual page."""

import json
import pathlib
import shutil
import subprocess

from glasshead import Case, main

import glasshead


def commands(case):
    """The names in the help's list of commands."""
    lines = case.run_command("--help").out.splitlines()
    begin = lines.index("Commands:") + 1
    end = lines.index("", begin)
    return [line.split()[0] for line in lines[begin:end]]


class Help(Case):
    def test_version(self):
        self.assertRegex(self.run_command("--version").out, r"^glasshead \d+\.\d+\.\d+\n$")

    def test_help_lists_the_commands_and_shows_an_example_of_each(self):
        text = self.run_command("--help").out
        for name in commands(self):
            self.assertIn(f"  glasshead {name}", text)
        self.assertIn("Exit codes: 0 fine", text)

    def test_every_command_has_help_with_examples(self):
        for name in commands(self):
            text = self.run_command(name, "--help").out
            self.assertIn("Examples:\n", text)
            self.assertIn(f"  glasshead {name}", text)

    def test_every_example_says_first_what_it_is_for(self):
        for name in commands(self):
            examples = self.run_command(name, "--help").out.split("Examples:\n")[1].splitlines()
            lines = [line.strip() for line in examples if line.strip()]
            self.assertEqual(len(lines) % 2, 0, name)
            for comment, command in zip(lines[::2], lines[1::2]):
                self.assertTrue(comment.startswith("# "), comment)
                self.assertIn("glasshead " + name, command)

    def test_an_option_is_shown_with_what_it_takes_and_nothing_else(self):
        for name in commands(self):
            head = self.run_command(name, "--help").out.split("Examples:\n")[0]
            for word in ("Excludes", "REQUIRED", ":{", " in [", "\n\n\n"):
                self.assertNotIn(word, head, name)
        self.assertRegex(self.run_command("trace", "--help").out, r"\n  --empty-row error\|zero +\w")

    def test_every_option_in_an_example_exists(self):
        for name in commands(self):
            text = self.run_command(name, "--help").out
            head, examples = text.split("Examples:\n")
            for word in examples.split():
                if word.startswith("--") and len(word) > 2:
                    self.assertIn(word.split("=")[0], head, name)

    def test_lines_are_no_wider_than_a_page(self):
        head = self.run_command("attend", "--help").out.split("Examples:\n")[0]
        self.assertLessEqual(max(len(line) for line in head.splitlines()), 100)

    def test_no_colour_outside_a_terminal(self):
        self.assertNotIn("\x1b", self.run_command("--help").out)


class Usage(Case):
    def test_no_command_shows_the_help_and_is_bad_usage(self):
        self.assertIn("Commands:", self.refused())

    def test_an_unknown_command_suggests_the_nearest(self):
        self.assertIn("glasshead: atend: no such command; did you mean attend?",
                      self.refused("atend"))
        said = self.refused("frobnicate")
        self.assertNotIn("did you mean", said)
        self.assertRegex(said, "There are .*attend, .*man; glasshead --help")

    def test_an_unknown_option_suggests_the_nearest(self):
        said = self.refused("attend", "--cuasal=end", "--frobnicate")
        self.assertIn("attend: --cuasal: no such option; did you mean --causal?", said)
        self.assertIn("attend: --frobnicate: no such option\n", said)

    def test_a_missing_value_and_a_stray_word_are_bad_usage(self):
        self.assertIn("--q", self.refused("attend", "--q"))
        self.assertIn("stray: not expected here", self.refused("attend", "stray"))
        self.refused("attend", "--q", "a.npy", "--q", "b.npy")
        self.refused("--frobnicate")

    def test_a_full_disk_is_reported(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([glasshead.PROGRAM, "man"], stdout=full, stderr=subprocess.PIPE,
                                  text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("stdout: cannot be written", done.stderr)


class Inspect(Case):
    def setUp(self):
        super().setUp()
        for name in ("GLASSHEAD_ISA", "GLASSHEAD_THREADS"):
            self.env.pop(name, None)

    def test_json_lists_features_and_kernel_sets(self):
        found = json.loads(self.run_command("inspect", "cpu", "--json").out)
        self.assertGreaterEqual(found["cores"], 1)
        self.assertGreaterEqual(found["threads"], 1)
        for entry in found["features"]:
            self.assertEqual(set(entry), {"name", "supported"})
            self.assertIsInstance(entry["supported"], bool)
        for entry in found["kernel_sets"] + found["rounding_kernel_sets"]:
            self.assertEqual(set(entry), {"name", "supported", "lacks"})
            self.assertIs(entry["supported"], entry["lacks"] == [])

    def test_the_first_supported_kernel_set_runs(self):
        found = json.loads(self.run_command("inspect", "cpu", "--json").out)
        self.assertEqual(found["kernel_sets"][-1], {"name": "scalar", "supported": True, "lacks": []})
        supported = [entry["name"] for entry in found["kernel_sets"] if entry["supported"]]
        self.assertEqual(found["isa"], supported[0])
        self.assertEqual(found["why_isa"], "the first that this processor has")

    def test_a_kernel_set_lacks_what_the_processor_has_not(self):
        found = json.loads(self.run_command("inspect", "cpu", "--json").out)
        has = {entry["name"] for entry in found["features"] if entry["supported"]}
        for entry in found["kernel_sets"] + found["rounding_kernel_sets"]:
            self.assertEqual(has & set(entry["lacks"]), set())

    def test_a_kernel_set_that_rounds_runs_where_it_is_named(self):
        for entry in json.loads(self.run_command("inspect", "cpu", "--json").out)["rounding_kernel_sets"]:
            self.assertRegex(self.run_command("inspect", "cpu").out, rf"\nby name alone  {entry['name']} +can")
            self.env.update(GLASSHEAD_ISA=entry["name"])
            if not entry["supported"]:
                self.assertIn(f'"{entry["name"]}" needs {entry["lacks"][0]}', self.refused("inspect", "cpu"))
                continue
            self.assertRegex(self.run_command("inspect", "cpu").out, rf"{entry['name']} +runs: asked for by GLASSHEAD_ISA\n")
            self.assertIn(f"--rows {entry['name']}", self.refused("bench", "--isa", entry["name"]))

    def test_the_environment_chooses(self):
        self.env.update(GLASSHEAD_ISA="scalar", GLASSHEAD_THREADS="3")
        found = json.loads(self.run_command("inspect", "cpu", "--json").out)
        self.assertEqual((found["isa"], found["threads"]), ("scalar", 3))
        self.assertEqual(found["why_isa"], "asked for by GLASSHEAD_ISA")
        self.assertRegex(self.run_command("inspect", "cpu").out, r"scalar +runs: asked for by GLASSHEAD_ISA\n")

    def test_a_wrong_environment_is_refused(self):
        self.env.update(GLASSHEAD_ISA="avx3", GLASSHEAD_THREADS="two")
        text = self.refused("inspect", "cpu")
        self.assertIn('there is no kernel set "avx3"', text)
        self.assertIn('found "two"; the number of threads is 1 to 1024', text)

    def test_features_agree_with_the_operating_system(self):
        with open("/proc/cpuinfo") as file:
            flags = [line for line in file if line.startswith("flags")]
        if not flags:
            self.skipTest("not an x86 Linux")
        known = set(flags[0].split(":")[1].split())
        linux = {"sse4.2": "sse4_2"}  # where Linux writes a name differently
        for entry in json.loads(self.run_command("inspect", "cpu", "--json").out)["features"]:
            name = linux.get(entry["name"], entry["name"])
            self.assertEqual(entry["supported"], name in known, name)

    def test_text_lists_the_kernel_sets(self):
        text = self.run_command("inspect", "cpu").out
        self.assertIn("cores", text)
        self.assertEqual(text.count(" runs: the first that this processor has\n"), 1)
        self.assertRegex(text, r"\n +scalar +")

    def test_nothing_is_refused(self):
        self.refused("inspect")


class InspectModels(Case):
    def test_a_published_configuration_needs_no_files(self):
        found = json.loads(self.run_command("inspect", "llama-2-70b", "--context", "4096", "--json").out)
        self.assertEqual(found["parameters"], 68976648192)
        self.assertEqual(found["family"], "llama")
        layers = found["stacks"][0]["layers"]
        self.assertEqual(len(layers), 80)
        self.assertEqual((layers[0]["self"]["heads"], layers[0]["self"]["kv_heads"]), (64, 8))
        # 80 layers, 8 heads, 128 numbers each of key and value, 4 bytes, 4,096 tokens
        self.assertEqual(found["cost"]["cache_bytes"], 80 * 8 * 256 * 4 * 4096)
        text = self.run_command("inspect", "llama-2-70b").out
        self.assertIn("64 query heads of 128, 8 key/value heads: 8 share one", text)
        self.assertIn("68,976,648,192", text)

    def test_windows_are_told_apart(self):
        text = self.run_command("inspect", "gemma-3-270m").out
        self.assertIn("layers       0-4, 6-10, 12-16\n", text)
        self.assertIn("a window of 512 tokens", text)
        self.assertIn("layers       5, 11, 17\n", text)

    def test_files_are_read_and_every_tensor_is_looked_for(self):
        here = pathlib.Path(__file__).parent.parent / "data/models"
        for model in ("llama", "llama/model.gguf"):
            found = json.loads(self.run_command("inspect", str(here / model), "--json").out)
            self.assertEqual(found["parameters"], 15288)
            self.assertEqual(found["stored"][0]["type"], "f32")
            self.assertEqual(found["bytes"], 4 * 15288)
            self.assertEqual(found["cost"]["tokens"], 64)

    def test_every_name_works_and_every_family_has_a_row(self):
        for name in self.run_command("inspect", "models").out.split():
            self.assertIn(name, self.run_command("inspect", name).out)
        rows = self.run_command("inspect", "families").out.splitlines()[2:]
        found = json.loads(self.run_command("inspect", "families", "--json").out)
        self.assertEqual(len(rows), len(found))

    def test_a_slip_and_a_senseless_length_are_refused(self):
        self.assertIn("did you mean mistral-7b?", self.refused("inspect", "mistal-7b"))
        self.assertIn("glasshead inspect models lists", self.refused("inspect", "something"))
        self.assertIn("no such file", self.refused("inspect", "model.gguf"))
        self.assertIn("tokens: 0: must be from 1", self.refused("inspect", "gpt2", "--context", "0"))


class Completion(Case):
    def bash(self, *words):
        """What bash offers for the last of `words`, as readline splits them."""
        script = self.run_command("completion", "bash").out
        script += f"COMP_WORDS=({' '.join(repr(w) for w in words)})\n"
        script += f"COMP_CWORD={len(words) - 1}\n_glasshead\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, cwd=self.folder)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_options_words_and_files(self):
        self.assertEqual(self.bash("glasshead", "att"), ["attend"])
        self.assertEqual(set(commands(self)) - set(self.bash("glasshead", "")), set())
        self.assertEqual(self.bash("glasshead", "attend", "--key-l"), ["--key-lengths"])
        self.assertEqual(self.bash("glasshead", "attend", "--empty-row", ""), ["zero", "error"])
        self.assertEqual(self.bash("glasshead", "trace", "--empty-row", ""), ["error", "zero"])
        self.assertEqual(self.bash("glasshead", "trace", "--format", "s"), ["svg"])
        self.assertEqual(self.bash("glasshead", "attend", "--causal", "=", "e"), ["end"])
        self.assertEqual(self.bash("glasshead", "attend", "--causal", "="), ["start", "end"])
        self.assertEqual(self.bash("glasshead", "inspect", ""), ["cpu", "families", "models"])
        self.npy("queries", [1])
        self.assertEqual(self.bash("glasshead", "attend", "--q", "que"), ["queries.npy"])
        self.assertEqual(self.bash("glasshead", "attend", "--scale", ""), [])

    def test_every_option_is_in_every_script(self):
        options = [word.rstrip(",") for line in self.run_command("attend", "--help").out.split(
            "Examples:")[0].splitlines() if line.startswith("  -")
            for word in line.split() if word.startswith("--")]
        self.assertGreater(len(options), 30)
        for shell in ("bash", "zsh", "fish"):
            script = self.run_command("completion", shell).out
            for option in options:
                name = option.split(",")[-1].split("=")[0].split("[")[0]
                self.assertIn(name if shell != "fish" else "-l " + name[2:], script)

    def test_the_scripts_are_well_formed_where_the_shell_is_there_to_say_so(self):
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell):
                script = self.file("script", self.run_command("completion", shell).out.encode())
                done = subprocess.run([shell, "-n", script], stderr=subprocess.PIPE, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_another_shell_is_refused(self):
        self.assertIn("bash, zsh or fish is needed", self.refused("completion", "tcsh"))


class Man(Case):
    def test_it_has_every_command_and_option(self):
        page = self.run_command("man").out
        self.assertTrue(page.startswith(".TH GLASSHEAD 1"))
        for name in commands(self):
            self.assertIn(f".SS {name}\n", page)
        for option in ("\\-\\-q", "\\-\\-key\\-lengths", "\\-\\-causal", "\\-\\-json"):
            self.assertIn(option, page)

    def test_it_is_ascii_whatever_the_help_says(self):
        page = self.run_command("man").out
        self.assertTrue(page.isascii())
        self.assertIn("\\[u2032]", page)  # the prime that marks a moved digit

    def test_groff_has_nothing_to_complain_about(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        page = self.run_command("man").out
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=page, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("glasshead attend --q q.npy --k k.npy --v v.npy", done.stdout)


if __name__ == "__main__":
    main()
