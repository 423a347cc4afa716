"""`glasshead trace --interactive`: the built page with a case in it. The page here is a stub with the same place for one;
tests/web opens the real one."""

import json
import os
import pathlib
import re

from glasshead import Case, main

CASES = pathlib.Path(__file__).resolve().parents[2] / "cases"
PLACE = '<script type="application/json" id="glasshead-case">{}</script>'
BEFORE, AFTER = "<!doctype html>\n<p>before</p>\n", '\n<script type="module">1</script>\n'


class Lesson(Case):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("web"))
        self.file("web/index.html", b"<!doctype html>")
        self.file("web/lesson.html", (BEFORE + PLACE + AFTER).encode())

    def lesson(self, *arguments):
        """What stands in the case's place."""
        page = self.run_command("trace", *arguments, "--format", "html", "--interactive", "--web", "web").out
        self.assertTrue(page.startswith(BEFORE) and page.endswith(AFTER), page)
        found = re.fullmatch(re.escape(PLACE).replace(re.escape("{}"), "(.*)"), page[len(BEFORE):-len(AFTER)], re.S)
        self.assertNotIn("<", found[1])
        return json.loads(found[1])

    def start(self, *arguments):
        return self.lesson(*arguments)["start"]

    def test_the_case_is_in_it_as_it_was_written(self):
        for name in ("three-tokens", "cat-chases-mouse-next", "two-heads"):
            text = (CASES / f"{name}.json").read_text(encoding="utf-8")
            self.assertEqual(self.lesson(name), {"name": name, "text": text, "start": f"#/learn/{name}?v=1"})

    def test_text_cannot_end_its_place(self):
        text = '{"schema": "glasshead.case/1", "tokens": ["</script><!--\u2028"], "X": [[1]], "attention": {}}\n'
        path = self.file("my case.json", text.encode())
        self.assertEqual(self.lesson(path), {"name": "my-case", "text": text, "start": "#/learn/my-case?v=1"})

    def test_it_opens_in_the_state_of_the_flags(self):
        start = "#/learn/three-tokens?v=1"
        for flags, state in ((("--set", "X[B]=1,1"), "&e=X.1.0:1"),
                             (("--set", "X[1]=.5,1e-3"), "&e=X.1.0:0.5,X.1.1:1e-3"),
                             (("--set", "X[B]=0.50,1"), "&e=X.1.0:0.50"),
                             (("--set", "W_Q[0,1]=-2", "--set", "X[A,0]=3"), "&e=X.0.0:3,W_Q.0.1:-2"),
                             (("--set", "W_K=0,-1;1,0"), "&e=W_K.0.0:0,W_K.0.1:-1,W_K.1.0:1,W_K.1.1:0"),
                             (("--mask", "causal"), "&mask=causal"),
                             (("--mask", "window:1,0"), "&mask=window:1,0"),
                             (("--hide", "C"), "&hide=2"),
                             (("--hide", "C", "--hide", "0"), "&hide=0,2"),
                             (("--scale", "0.5"), "&scale=0.5"),
                             (("--remove-scale",), "&scale=1"),
                             (("--empty-row", "zero"), "&empty=zero"),
                             (("--by-hand", "2"), "&mode=hand2"),
                             (("--mistake", "scale-missing"), "&mistake=scale-missing"),
                             (("--mask", "causal", "--mistake", "mask-finite:-1"), "&mask=causal&mistake=mask-finite:-1")):
            self.assertEqual(self.start("three-tokens", *flags), start + state)

    def test_a_word_of_the_vocabulary_is_a_row_of_its_table(self):
        self.assertEqual(self.start("cat-chases-mouse", "--set", "E[mouse]=0.7,0.1"),
                         "#/learn/cat-chases-mouse?v=1&e=E.2.0:0.7,E.2.1:0.1")

    def test_the_ending_says_the_format(self):
        self.run_command("trace", "one-query", "--interactive", "--web", "web", "-o", "lesson.html")
        with open(self.path("lesson.html"), encoding="utf-8") as page:
            self.assertIn('"name":"one-query"', page.read())

    def test_what_it_has_no_place_for_is_refused(self):
        page = ("--interactive", "--web", "web", "--format", "html")
        for flags, said in ((("--explain",), "--interactive: has no effect on --explain"),
                            (("--decimals", "2"), "--decimals: has no effect on --interactive"),
                            (("--steps", "weights"), "--steps: has no effect on --interactive"),
                            (("--query", "B"), "--query: has no effect on --interactive"),
                            (("--by-hand", "2,shift"), "without shift"),
                            (("--set", "X[D]=1,1"), "set X[D]"),
                            (("--mistake", "no-such"), "no-such"),
                            (("--hide", "A", "--hide", "B", "--hide", "C"), "no allowed key")):
            self.assertIn(said, self.refused("trace", "three-tokens", *flags, *page))
        for flags, found in ((("--format", "json"), "json"), ((), "text"), (("-o", "lesson.md"), "md")):
            self.assertIn(f"--interactive: is of a page, HTML and not {found}: -o lesson.html",
                          self.refused("trace", "three-tokens", "--interactive", *flags))
        self.assertIn("--web: has no effect on the steps", self.refused("trace", "three-tokens", "--web", "web"))
        mask = self.npy("mask", [[True, False, False], [True, True, False], [True, True, True]], "|b1")
        self.assertIn("a file", self.refused("trace", "three-tokens", "--mask", mask, *page))

    def test_without_a_page_it_says_how_to_build_one(self):
        os.mkdir(self.path("empty"))
        self.assertIn("make web", self.refused("trace", "three-tokens", "--interactive", "--format", "html", "--web",
                                               "empty"))
        for text in ("", PLACE + PLACE, PLACE.replace("{}", "{ }")):
            self.file("web/lesson.html", text.encode())
            self.assertIn("no place for a case", self.refused("trace", "three-tokens", "--interactive", "--format",
                                                              "html", "--web", "web"))


if __name__ == "__main__":
    main()
