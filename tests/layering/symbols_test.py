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
ENDS_OR_PRINTS = {"printf", "fprintf", "puts", "putchar", "exit", "_exit", "quick_exit", "getenv", "setlocale", "rand"}


def undefined(library):
    out = subprocess.run(["nm", "-A", "--undefined-only", library], capture_output=True, text=True, check=True).stdout
    return [(line.split(":")[1], re.split(r"\s+U\s+", line)[-1].split("@")[0])
            for line in out.splitlines() if re.search(r"\sU\s", line)]


class Symbols(unittest.TestCase):
    def test_there_are_libraries(self):
        self.assertGreaterEqual(len(LIBRARIES), 6)

    def test_no_function_of_libm(self):
        self.assertEqual([use for library in LIBRARIES for use in undefined(library) if use[1] in LIBM], [])

    def test_nothing_prints_or_ends_the_program(self):
        self.assertEqual([use for library in LIBRARIES for use in undefined(library) if use[1] in ENDS_OR_PRINTS], [])


if __name__ == "__main__":
    unittest.main()
