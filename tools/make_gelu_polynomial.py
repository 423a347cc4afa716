#!/usr/bin/python3
"""Prints the coefficients of kGelu in src/kernels/layer.inl.h, lowest power first, as C++ writes them.

    tools/make_gelu_polynomial.py            # with their error
    tools/make_gelu_polynomial.py --check    # fails where layer.inl.h has other numbers

The half of erfc(a/sqrt 2) is exp(-a^2/2) t P(t) with t = 1/(1 + a/4) for 0 <= a <= 16.5, where the result has
long been 0 in float. P is fitted at 400 Chebyshev nodes of t by least squares of the relative error, whose largest
is then within a factor of 1.5 of the smallest possible; its coefficients are rounded to float. Needs mpmath
(Debian: python3-mpmath).
"""

import pathlib
import re
import struct
import sys

from mpmath import cos, erfc, exp, lu_solve, matrix, mp, mpf, pi, sqrt

mp.dps = 50
HEADER = pathlib.Path(__file__).resolve().parent.parent / "src/kernels/layer.inl.h"
LARGEST, DEGREE, NODES = mpf("16.5"), 9, 400


def wanted(t):
    """P(t)."""
    a = (1 / t - 1) * 4
    return exp(a * a / 2) * erfc(a / sqrt(mpf(2))) / 2 / t


def coefficients():
    low = 1 / (1 + LARGEST / 4)
    nodes = [(1 + low) / 2 + (1 - low) / 2 * cos(pi * (2 * n + 1) / (2 * NODES)) for n in range(NODES)]
    values = [wanted(t) for t in nodes]
    size = DEGREE + 1
    normal, right = matrix(size, size), matrix(size, 1)
    for t, value in zip(nodes, values, strict=True):
        row = [t**power / value for power in range(size)]
        for i in range(size):
            right[i] += row[i]
            for j in range(size):
                normal[i, j] += row[i] * row[j]
    found = lu_solve(normal, right)
    numbers = [found[n] for n in range(size)]
    error = max(
        abs(sum(c * t**n for n, c in enumerate(numbers)) / value - 1) for t, value in zip(nodes, values, strict=True)
    )
    return numbers, error


def in_header():
    listed = re.search(r"kGelu\[\] = \{(.*?)\}", HEADER.read_text(), re.DOTALL).group(1)
    return [float.fromhex(x.strip().rstrip("F")) for x in listed.split(",") if x.strip()]


def main():
    exact, error = coefficients()
    numbers = [struct.unpack("<f", struct.pack("<f", float(x)))[0] for x in exact]
    if sys.argv[1:] == ["--check"]:
        if numbers == in_header():
            return 0
        print(f"{HEADER.name} has other coefficients than {sys.argv[0]} makes")
        return 1
    print(f"relative error {float(error):.2g} before rounding")
    for x in numbers:
        print("  " + x.hex())
    return 0


if __name__ == "__main__":
    sys.exit(main())
