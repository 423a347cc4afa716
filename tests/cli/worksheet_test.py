"""glasshead worksheet: what its flags refuse."""

from glasshead import Case, main


class Seeds(Case):
    def test_a_seed_is_taken_as_written_or_refused(self):
        for seed in ("-1", "18446744073709551616", "1.5", "1e3", "nan", "١٢"):
            self.assertIn(f"--seed: found '{seed}'; a whole number",
                          self.refused("worksheet", f"--seed={seed}"))
        self.assertIn("18446744073709551615",
                      self.run_command("worksheet", "--seed", "18446744073709551615").out)


if __name__ == "__main__":
    main()
