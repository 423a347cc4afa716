"""glasshead worksheet: what its flags refuse."""

from glasshead import Case, main


class Seeds(Case):
    def test_a_seed_is_taken_as_written_or_refused(self):
        for seed in ("-1", "18446744073709551616", "1.5", "1e3", "nan", "١٢"):
            self.assertIn(f"--seed: found '{seed}'; a whole number",
                          self.refused("worksheet", f"--seed={seed}"))
        self.assertIn("18446744073709551615",
                      self.run_command("worksheet", "--seed", "18446744073709551615").out)

    def test_a_file_of_an_ending_that_is_not_written_is_refused(self):
        for flags in (("-o", "sheet.pdf"), ("-o", "sheet.md", "--key", "key.docx")):
            self.assertIn(f"{flags[-1]}: nothing is known about .{flags[-1].split('.')[1]}; .txt, .md, .tex, .html and "
                          ".json are written, or give --format",
                          self.refused("worksheet", "--seed", "1", *flags))


if __name__ == "__main__":
    main()
