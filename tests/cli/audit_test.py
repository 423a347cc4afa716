"""glasshead audit: programs that answer, refuse, crash and hang. The one that answers is the example of docs/audit.md."""

import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import time

from glasshead import Case, main

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/audit.md"

# Answers like the page's example, after doing `first` (Python) with the name of the input's file.
CRASHES = """
import os, signal, sys, time
count = 0
for line in sys.stdin:
    count += 1
    if count == 2: os.kill(os.getpid(), signal.SIGSEGV)
    {second}
    print("a library's own words")
    print("refused too tired", flush=True)
"""


class Audit(Case):
    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def audit(self, *args, code=0):
        return self.run_command("audit", *args, code=code).out

    def rows(self, *args, code=0):
        report = json.loads(self.audit("--json", *args, code=code))
        self.assertEqual(report["schema"], "glasshead.audit/1")
        return {f"{row['group']}/{row['input']}": row for row in report["rows"]}

    def example(self):
        text = re.search(r"```python\n(import json.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[1]
        return self.write("example.py", text)

    def once(self, name, then):
        """A program that answers the first input, and does `then` afterwards."""
        import glasshead
        mark = self.path(name + ".done")
        return self.write(name + ".sh", f'if [ -e "{mark}" ]; then {then}; exit; fi\n: > "{mark}"\nexec "{glasshead.PROGRAM}" attend --qkv="$1" --out "$2"\n')

    def test_the_pages_example_is_audited(self):
        rows = self.rows("--takes", "none", "--serve", "--groups", "heads,empty rows,numbers", "--", sys.executable, self.example())
        self.assertEqual(rows["heads/heads-3-kv-3"]["verdict"], "right")
        self.assertEqual(rows["heads/heads-4-kv-2"]["verdict"], "not offered")
        self.assertEqual(rows["numbers/scores-of-150"]["verdict"], "right")
        self.assertEqual(rows["empty rows/kv-0"]["verdict"], "refuses")  # the largest of no scores
        self.assertEqual({row["verdict"] for row in rows.values()}, {"right", "not offered", "refuses"})

    def test_what_a_program_does_not_know_is_found(self):
        # It never looks at the mask: files of other kinds are read by name.
        rows = self.rows("--takes", "mask", "--serve", "--groups", "masks", "--failing", self.path("failing"), "--", sys.executable,
                         self.example(), code=1)
        found = rows["masks/mask-qk"]
        self.assertEqual((found["verdict"], found["mistakes"]), ("wrong", ["mask-ignored"]))
        written = [row for row in rows.values() if row.get("file")]
        self.assertTrue(written)
        for row in written:
            self.assertEqual(row["command"].split()[:2], ["glasshead", "doctor"])
            said = self.run_command(*row["command"].split()[1:], code=1).out
            self.assertIn("mask-ignored", said)

    def test_a_program_for_each_input_has_its_files_in_its_arguments(self):
        import glasshead
        rows = self.rows("--takes", "grouped-heads", "--groups", "heads", "--", glasshead.PROGRAM, "attend", "--qkv={in}", "--out", "{out}")
        self.assertEqual(rows["heads/heads-12-kv-4"]["verdict"], "right")
        self.assertEqual(rows["heads/heads-4-kv-2-causal"]["verdict"], "not offered")

    def test_an_exit_code_is_a_refusal_and_a_signal_a_crash(self):
        program = self.once("refuses", 'echo "first words" >&2; echo "not today" >&2; exit 3')
        rows = self.rows("--takes", "none", "--groups", "heads", "--", "sh", program)
        self.assertEqual(rows["heads/heads-1-kv-1"]["verdict"], "right")
        self.assertEqual(rows["heads/heads-3-kv-3"]["verdict"], "refuses")
        self.assertEqual(rows["heads/heads-3-kv-3"]["text"], "not today")
        program = self.write("dies.sh", "kill -11 $$\n")
        rows = self.rows("--takes", "none", "--groups", "heads", "--", "sh", program, code=1)
        self.assertEqual(rows["heads/heads-3-kv-3"]["verdict"], "crashes")
        self.assertRegex(rows["heads/heads-3-kv-3"]["text"], r"^signal 11 \(")

    def test_an_answer_without_a_file_is_wrong(self):
        for then, text in (("exit 0", "it wrote no file"), ('echo rubbish > "$2"', "its file can't be read: "), ('mkfifo "$2"', "its file is no regular file")):
            program = self.once("silent" + str(len(then)), then)
            row = self.rows("--takes", "none", "--groups", "heads", "--", "sh", program, code=1)["heads/heads-3-kv-3"]
            self.assertEqual(row["verdict"], "wrong")
            self.assertIn(text, row["text"])

    def test_a_program_that_never_gives_numbers_is_bad_usage(self):
        program = self.write("refuses.sh", 'echo "not today" >&2; exit 3\n')
        asked = ("audit", "--takes", "none", "--groups", "heads", "--")
        self.assertRegex(self.refused(*asked, "sh", program), r"answered none of \d inputs with numbers; its last words: not today")
        self.assertIn("it wrote no file", self.refused(*asked, "true"))

    def test_a_line_without_an_end_does_not_fill_the_memory(self):
        program = self.write("talks.py", "import sys\nfor line in sys.stdin: print('x' * 500000 + '\\nrefused too long', flush=True)\n")
        rows = self.rows("--takes", "none", "--serve", "--groups", "heads", "--", sys.executable, program)
        self.assertEqual(rows["heads/heads-3-kv-3"]["text"], "too long")

    def test_a_serving_program_is_started_again_after_a_crash_and_a_hang(self):
        program = self.write("tired.py", CRASHES.format(second="if count == 3: time.sleep(100)"))
        begin = time.monotonic()
        # A second process serves the third and fourth input, and the one after its second crashes again.
        rows = list(self.rows("--takes", "none", "--serve", "--groups", "heads", "--", sys.executable, program, code=1).values())
        asked = [row for row in rows if row["verdict"] != "not offered"]
        self.assertEqual([row["verdict"] for row in asked], ["refuses", "crashes", "refuses"])
        self.assertEqual(asked[0]["text"], "too tired")
        program = self.write("hangs.py", CRASHES.format(second="").replace("os.kill(os.getpid(), signal.SIGSEGV)", "time.sleep(100)"))
        rows = list(self.rows("--takes", "none", "--serve", "--timeout", "0.3", "--groups", "heads", "--", sys.executable, program, code=1).values())
        asked = [row for row in rows if row["verdict"] != "not offered"]
        self.assertEqual([row["verdict"] for row in asked], ["refuses", "hangs", "refuses"])
        self.assertLess(time.monotonic() - begin, 30)

    def test_a_program_that_never_starts_is_bad_usage(self):
        self.assertIn("can't be started", self.refused("audit", "--", self.path("nothing")))
        program = self.write("broken.py", "import no_such_module_at_all\n")
        said = self.refused("audit", "--serve", "--", sys.executable, program)
        self.assertIn("before its first answer", said)
        self.assertIn("no_such_module_at_all", said)

    def test_all_that_is_wrong_with_the_options_is_said_at_once(self):
        said = self.refused("audit", "--takes", "masks", "--timeout", "soon", "--seed", "x")
        for flag in ("--takes", "--timeout", "--seed"):
            self.assertIn(f"audit: {flag}", said)
        self.assertIn("no group 'shape'", self.refused("audit", "--groups", "shape", "--", "true"))

    def test_lists_may_have_spaces_beside_their_commas(self):
        rows = self.rows("--groups", "heads, empty rows", "--takes", "grouped-heads, mask")
        self.assertEqual({name.split("/")[0] for name in rows}, {"heads", "empty rows"})
        self.assertEqual(rows["empty rows/mask-all"]["verdict"], "right")
        self.assertEqual(rows["empty rows/bias-all"]["verdict"], "not offered")

    def test_without_a_command_the_librarys_own_attention_is_audited(self):
        rows = self.rows("--groups", "heads,layouts,poison")
        self.assertEqual({row["verdict"] for row in rows.values()}, {"right"})

    def test_what_a_program_can_not_be_asked_is_not_offered(self):
        program = self.write("few.py", "import sys\nfor n, line in enumerate(sys.stdin): print('not offered no time' if n else 'refused', flush=True)\n")
        rows = list(self.rows("--serve", "--groups", "heads", "--", sys.executable, program).values())
        self.assertEqual({(row["verdict"], row["text"]) for row in rows[1:]}, {("not offered", "no time")})

    def test_an_audit_that_asks_nothing_is_refused_with_the_reason(self):
        asked = ("audit", "--groups", "layouts")
        self.assertIn("--takes: none of 10 inputs is offered: strides: the tensors in a file are dense (10)",
                      self.refused(*asked, "--", "true"))
        self.assertIn("--takes: none of 10 inputs is offered: strides (10)", self.refused(*asked, "--takes", "none"))
        program = self.write("none.py", "import sys\nfor line in sys.stdin: print('not offered no time', flush=True)\n")
        self.assertIn("COMMAND: none of 10 inputs is offered: no time (10)",
                      self.refused("audit", "--serve", "--groups", "heads", "--", sys.executable, program))

    def test_why_views_with_strides_are_not_offered_to_a_program_is_said(self):
        import glasshead
        asked = ("--takes", "strides,grouped-heads", "--groups", "heads,layouts", "--", glasshead.PROGRAM, "attend", "--qkv={in}", "--out", "{out}")
        rows = self.rows(*asked)
        self.assertEqual(rows["layouts/by-columns-6"]["text"], "strides: the tensors in a file are dense")
        self.assertIn("    10  strides: the tensors in a file are dense\n", self.audit(*asked))

    def test_a_terminal_shows_progress_and_nothing_else_does(self):
        import glasshead
        asked = [glasshead.PROGRAM, "audit", "--groups", "heads"]
        main_end, their_end = pty.openpty()
        done = subprocess.run(asked, stdout=subprocess.PIPE, stderr=their_end, env={**self.env, "TERM": "xterm"}, timeout=60)
        os.close(their_end)
        shown = os.read(main_end, 1 << 16).decode()
        os.close(main_end)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(shown.startswith("\raudit  1 of 10  heads/heads-1-kv-1\x1b[K"), shown)
        self.assertIn("\raudit  10 of 10  heads/", shown)
        self.assertTrue(shown.endswith("\x1b[K\r\x1b[K"), shown)
        self.assertEqual(self.run_command("audit", "--groups", "heads").err, "")

    def test_a_closed_pipe_ends_it_as_it_ends_other_programs(self):
        # A program under test that is gone is told by its missing answer; a reader that is gone still ends us.
        import glasshead
        asked = [glasshead.PROGRAM, "audit", "--takes", "none", "--groups", "heads", "--serve", "--", sys.executable, self.example()]
        with subprocess.Popen(asked, stdout=subprocess.PIPE) as process:
            process.stdout.close()
            self.assertEqual(process.wait(60), -signal.SIGPIPE)

    def test_help_names_every_feature(self):
        said = " ".join(self.run_command("audit", "--help").out.split())
        for feature in ("mask", "causal-end", "other-d-v", "strides", "threads"):
            self.assertIn(feature, said)

    def test_the_temporary_files_are_removed(self):
        folder = self.path("tmp")
        os.mkdir(folder)
        self.env = {**(self.env or os.environ), "TMPDIR": folder}
        self.refused("audit", "--takes", "none", "--groups", "heads", "--", "false")
        self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    main()
