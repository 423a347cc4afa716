"""What the commands say when something is wrong: in the words of who typed it, and where to look."""

import csv
import io
import json
import struct

from glasshead import Case, flatten, main


class Attend(Case):
    def setUp(self):
        super().setUp()
        self.q = self.npy("q", [[1, 0]] * 4)
        self.k = self.npy("k", [[1, 0]] * 5)
        self.inputs = ["--q", self.q, "--k", self.k, "--v", self.k]

    def ints(self, name, values):
        header = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({len(values)}, {len(values[0])}), }}".encode()
        header += b" " * (-(len(header) + 11) % 64) + b"\n"
        data = b"".join(struct.pack("<i", x) for row in values for x in row)
        return self.file(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)

    def test_a_file_s_own_type_is_named(self):
        mask = self.ints("mask", [[1] * 5] * 4)
        self.assertIn("--mask: " + mask + ": holds i32; a mask is booleans", self.refused("attend", *self.inputs, "--mask", mask))
        said = self.refused("attend", "--q", self.ints("qi", [[1, 0]]), "--k", self.k, "--v", self.k)
        self.assertIn("i32", said)
        self.assertNotIn("i64", said)

    def test_a_window_asks_for_the_start_of_the_queries_and_speaks_of_no_causal_mask(self):
        said = self.refused("attend", *self.inputs, "--window", "1,1")
        self.assertIn("--query-start start", said)
        self.assertIn("--query-start end", said)
        self.assertIn("--query-start N", said)
        self.assertNotIn("causal", said)
        said = self.refused("attend", *self.inputs, "--causal")
        self.assertIn("--causal=end", said)
        self.assertNotIn("::", said)

    def test_options_are_called_as_flags(self):
        said = self.refused("attend", *self.inputs, "--key-lengths", "0", "--empty-row", "error")
        self.assertIn("--empty-row zero", said)
        self.assertNotIn("::", said)
        self.assertNotIn("nullopt", self.refused("attend", *self.inputs, "--scale", "inf"))

    def test_a_file_that_cannot_be_written_is_named_with_its_flag(self):
        self.assertIn("attend: -o: /nonexistent/o.npy: cannot be",
                      self.refused("attend", *self.inputs, "-o", "/nonexistent/o.npy"))
        self.assertIn("attend: --lse: /nonexistent/l.npy: cannot be",
                      self.refused("attend", *self.inputs, "--lse", "/nonexistent/l.npy"))

    def test_an_archive_of_arrays_is_to_be_saved_one_by_one(self):
        self.assertIn("save them one by one", self.refused("attend", "--q", "a.npz", "--k", self.k, "--v", self.k))


    def test_files_that_cannot_be_written_are_said_with_what_else_is_wrong(self):
        said = self.refused("attend", "--q", "nowhere.npy", "--k", self.k, "--v", self.k, "-o", "/nonexistent/o.npy",
                            "--lse", "/nonexistent/l.npy")
        for line in ("attend: -o: /nonexistent/o.npy: cannot be created: No such file or directory",
                     "attend: --lse: /nonexistent/l.npy: cannot be created", "nowhere.npy"):
            self.assertIn(line, said)
        said = self.refused("bench", "--model", "nowhere", "--json", "/nonexistent/b.json")
        self.assertEqual(said, "bench: --json: /nonexistent/b.json: cannot be created: No such file or directory\n")


class Names(Case):
    def test_what_the_library_refuses_is_said_in_the_command_s_name(self):
        for command in (("bench", "--model", "nowhere"), ("run", "nowhere", "--tokens", "1"),
                        ("heads", "nowhere", "--tokens", "1"), ("reads", "nowhere", "--tokens", "1", "--query", "0"),
                        ("words", "nowhere", "--nearest", "#1"), ("inspect", "./nowhere"),
                        ("doctor", "nowhere", "--activations", "nowhere.safetensors", "--tokens", "1")):
            said = self.refused(*command)
            self.assertRegex(said, f"^{command[0]}: ")
            self.assertNotIn("::", said)

    def test_another_command_s_or_program_s_name_of_a_flag_is_answered_with_this_one_s(self):
        self.assertIn("trace: --json: no such option; did you mean --format json?",
                      self.refused("trace", "three-tokens", "--json"))
        for command in ("trace", "reads", "heads", "run"):
            self.assertIn(f"{command}: --text: no such option; did you mean --prompt?",
                          self.refused(command, "three-tokens", "--text", "a"))


class Trace(Case):
    def test_a_csv_of_several_matrices_is_a_list_of_all_their_numbers(self):
        for case, steps in (("three-tokens-causal", ("--steps", "weights,out")), ("two-heads", ())):
            found = json.loads(self.run_command("trace", case, "--format", "json").out)
            rows = list(csv.reader(io.StringIO(self.run_command("trace", case, *steps, "--format", "csv").out)))
            self.assertEqual(rows[0], ["matrix", "head", "row", "column", "value"])
            for name in ("weights", "out"):
                ours = [row for row in rows if row[0] == name]
                expected = flatten(found[name])
                hidden = [not x for x in flatten(found["mask"]["allowed"])] if name == "weights" and "mask" in found else []
                self.assertEqual(len(ours), len(expected))
                for n, (row, x) in enumerate(zip(ours, expected)):
                    self.assertEqual(row[4], "" if hidden and hidden[n % len(hidden)] else row[4])
                    if row[4]:
                        self.assertEqual(float(row[4]), x)
            if steps:
                self.assertEqual({row[0] for row in rows[1:]}, {"weights", "out"})
        heads = {row[1] for row in rows if row[0] == "weights"}
        self.assertEqual(heads, {"0", "1"})
        one = self.run_command("trace", "three-tokens", "--steps", "weights", "--format", "csv").out
        self.assertTrue(one.startswith(",A,B,C\n"), one)
        both = self.run_command("trace", "three-tokens-causal", "--mistake", "mask-after", "--format", "csv").out
        for name in ("weights wrong", "weights right", "out wrong", "out right"):
            self.assertIn(f"\n{name},,A,", both)
        self.assertIn("trace: --format: csv holds matrices, and --explain shows none",
                      self.refused("trace", "three-tokens", "--explain", "--format", "csv"))

    def test_a_file_that_cannot_be_written_is_named_with_its_flag(self):
        for name in ("t.txt", "t.json", "t.npy"):
            self.assertIn(f"trace: -o: /nonexistent/{name}: cannot be",
                          self.refused("trace", "three-tokens", "-o", "/nonexistent/" + name))

    def test_an_unknown_ending_is_refused_unless_the_format_is_given(self):
        said = self.refused("trace", "three-tokens", "-o", "mine.docx")
        self.assertIn("-o: mine.docx: nothing is known about .docx", said)
        self.assertIn(".html", said)
        self.run_command("trace", "three-tokens", "-o", "mine.docx", "--format", "text")
        self.run_command("trace", "three-tokens", "-o", "./plain")

    def test_diff_without_a_change_asks_for_one(self):
        self.assertIn("--diff: nothing was changed; give --set", self.refused("trace", "three-tokens", "--diff"))
        same = self.run_command("trace", "three-tokens", "--set", "X[A]=1,0", "--diff").out
        self.assertIn("nothing was changed", same)
        self.assertNotIn("although", same)

    def test_an_unknown_step_suggests_the_nearest_and_lists_all(self):
        for format in ("text", "json"):
            said = self.refused("trace", "three-tokens", "--steps", "K,wieghts", "--format", format)
            self.assertIn("K: no step or matrix of this name; did you mean k?", said)
            self.assertIn("wieghts: no step or matrix of this name; did you mean weights?", said)
            self.assertRegex(said, "there are .*X, .*scores, .*weights, .*out")

    def test_remarks_stand_only_beside_what_they_are_about(self):
        edited = ["trace", "three-tokens-causal", "--set", "W_K[0,0]=2", "--steps"]
        few = self.run_command(*edited, "k,scores").out
        for part in ("′", "checks", "note"):
            self.assertNotIn(part, few)
        weights = self.run_command("trace", "three-tokens-causal", "--steps", "weights").out
        for part in ("′ moved", "checks  rows ✓", "note  the tutorial prints row B"):
            self.assertIn(part, weights)
        # A mark in the line of an output row is explained, too.
        self.assertIn("′ moved", self.run_command("trace", "three-tokens-causal", "--steps", "out").out)

    def test_the_title_of_a_case_of_one_s_own_is_printed(self):
        case = self.file("mine.json", b'{"schema": "glasshead.case/1", "title": "my own", "X": [[1, 0], [0, 1]], '
                                      b'"attention": {}}')
        self.assertIn("mine \u00b7 my own \u00b7 1 head", self.run_command("trace", case).out)
        said = self.refused("trace", case, "--mistake", "values-unprojected")
        self.assertIn("not applicable: there is no W_V to leave out", said)

    def test_hidden_keys_are_called_by_their_names(self):
        self.assertIn("B hidden, 3 of 9", self.run_command("trace", "three-tokens", "--hide", "B").out)
        self.assertIn("A and C hidden, 6 of 9",
                      self.run_command("trace", "three-tokens", "--hide", "A", "--hide", "C").out)

    def test_by_hand_starts_from_the_scores_and_the_scale(self):
        self.assertIn("q·k 0.20 1.04 · scale 0.7071 · z 0.14 0.74",
                      self.run_command("trace", "cat-chases-mouse", "--by-hand", "2", "--query", "chases").out)


class Worksheet(Case):
    def test_what_is_not_found_says_what_would_be(self):
        said = self.refused("worksheet", "--level", "3", "--tokens", "6", "--decimals", "1")
        self.assertIn("--tokens 3", said)
        self.assertIn("--decimals 2", said)
        self.assertIn("worksheet: --key: /nonexistent/k.txt: cannot be",
                      self.refused("worksheet", "-o", "s.txt", "--key", "/nonexistent/k.txt"))


if __name__ == "__main__":
    main()
