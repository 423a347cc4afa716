"""What the built libraries ask of the outside. `symbols_test.py LIBRARY...` reads them with nm.

The same bits on every machine need our own exp and friends: a library that links libm's would differ. And a
library never prints or ends the program."""
import re
import subprocess
import sys
import unittest

LIBRARIES = sys.argv[1:]
del sys.argv[1:]

LIBM = {"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "sinh", "cosh", "erf", "erfc", "sin", "cos",
        "tan", "sincos", "atan", "atan2", "pow", "cbrt", "tgamma", "lgamma", "fma"}
LIBM |= {name + suffix for name in LIBM for suffix in ("f", "l")}
# Exact by the standard, so the same on every machine: the scalar kernels and the literal row fuse with it.
EXACT = {"fma", "fmaf"}
FUSE = {"scalar.cc.o", "row_reference.cc.o"}
ENDS_OR_PRINTS = {"printf", "fprintf", "puts", "putchar", "exit", "_exit", "quick_exit", "getenv", "setlocale", "rand"}


def undefined(library):
    out = subprocess.run(["nm", "-A", "--undefined-only", library], capture_output=True, text=True, check=True).stdout
    return [(line.split(":")[1], re.split(r"\s+U\s+", line)[-1].split("@")[0])
            for line in out.splitlines() if re.search(r"\sU\s", line)]


def defined(library):
    out = subprocess.run(["nm", "-A", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    fields = [re.fullmatch(r".*?:([^:]+):[0-9a-f]* (\w) (\S+)", line) for line in out.splitlines()]
    return [field.groups() for field in fields if field]


class Symbols(unittest.TestCase):
    def test_there_are_libraries(self):
        self.assertGreaterEqual(len(LIBRARIES), 7)

    def test_no_function_of_libm(self):
        self.assertEqual([use for library in LIBRARIES for use in undefined(library)
                          if use[1] in LIBM and not (use[0] in FUSE and use[1] in EXACT)], [])

    def test_nothing_prints_or_ends_the_program(self):
        self.assertEqual([use for library in LIBRARIES for use in undefined(library)
                          if use[1] in ENDS_OR_PRINTS and use != ("context.cc.o", "getenv")], [])

    def test_the_judges_do_not_stand_on_the_fused_path(self):
        """What judges it is computed by other means: the readable path, the doctor's rows."""
        fused = [use for library in LIBRARIES if re.search("glasshead_(doctor|audit)", library)
                 for use in undefined(library) if use[1].startswith("_ZN9glasshead6attendE")]
        self.assertEqual(fused, [])
        self.assertTrue([use for library in LIBRARIES for use in undefined(library)
                         if use[1].startswith("_ZN9glasshead18attend_transparentE")])

    def test_an_instruction_set_exports_its_table_alone(self):
        """Anything weak in it could stand in for the same function of the whole program, on processors without it."""
        exported = {}
        for library in LIBRARIES:
            if "glasshead_kernels" in library:
                for member, kind, name in defined(library):
                    if member != "select.cc.o" and kind not in "abdrtn":
                        exported.setdefault(member.removesuffix(".cc.o"), []).append((kind, name))
        self.assertIn("scalar", exported)
        for set_name, symbols in exported.items():
            table = f"kernel_set_{set_name}"
            self.assertEqual([name for _, name in symbols], [f"_ZN9glasshead{len(table)}{table}E"])
            self.assertIn(symbols[0][0], "DR")  # strong: W, V and u are not


if __name__ == "__main__":
    unittest.main()
