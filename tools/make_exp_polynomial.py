#!/usr/bin/python3
"""Prints the coefficients of P in src/kernels/arithmetic.h, lowest power first, as C++ writes them.

    tools/make_exp_polynomial.py            # both types, with their errors
    tools/make_exp_polynomial.py --check    # fails where arithmetic.h has other numbers

exp(r) = 1 + r + r^2 P(r) on |r| <= ln2/2 (a ten-thousandth wider: the reduction rounds). P is the
polynomial with the smallest largest relative error of exp, found by Remez exchange in 60 digits; its
coefficients are then rounded to the type. Needs mpmath (Debian: python3-mpmath).
"""

import pathlib
import re
import struct
import sys

from mpmath import cos, exp, fabs, log, lu_solve, matrix, mp, mpf, pi

mp.dps = 60
HEADER = pathlib.Path(__file__).resolve().parent.parent / "src/kernels/arithmetic.h"
WIDTH = log(2) / 2 * mpf("1.0001")
GRID = 2000  # places at which the error is looked at, at either side of 0 together
TYPES = (("float", "<f", 4), ("double", "<d", 9))  # name, struct's letter, degree of P


def wanted(r):
    """What P stands for: (exp(r) - 1 - r) / r^2."""
    if fabs(r) < mpf(10) ** -12:
        return mpf(1) / 2 + r / 6
    return (exp(r) - 1 - r) / r**2


def weight(r):
    """What an error of P at r does to the relative error of exp."""
    return r**2 / exp(r)


def interpolate(nodes, degree):
    """P whose weighted errors at the nodes are alike in size, with alternating signs."""
    size = len(nodes)
    a, b = matrix(size, size), matrix(size, 1)
    for row, x in enumerate(nodes):
        for power in range(degree + 1):
            a[row, power] = x**power
        a[row, degree + 1] = (-1) ** row / max(weight(x), mpf(10) ** -30)
        b[row] = wanted(x)
    solution = lu_solve(a, b)
    return [solution[power] for power in range(degree + 1)]


def alternating_extremes(errors):
    """Indices of local extremes whose signs alternate, of each run of one sign the largest."""
    last = len(errors) - 1
    kept = []
    for n in range(last + 1):
        size = abs(errors[n])
        if (n > 0 and size < abs(errors[n - 1])) or (n < last and size < abs(errors[n + 1])):
            continue
        if kept and (errors[n] > 0) == (errors[kept[-1]] > 0):
            if size > abs(errors[kept[-1]]):
                kept[-1] = n
        else:
            kept.append(n)
    return kept


def minimax(degree):
    """Coefficients and the largest relative error of exp, before rounding."""
    size = degree + 2
    nodes = [WIDTH * cos(pi * (2 * n + 1) / (2 * size)) for n in range(size)]
    grid = [-WIDTH + 2 * WIDTH * mpf(n) / GRID for n in range(GRID + 1)]
    for _ in range(30):
        coefficients = interpolate(nodes, degree)
        errors = [
            weight(r) * (sum(c * r**n for n, c in enumerate(coefficients)) - wanted(r))
            for r in grid
        ]
        extremes = alternating_extremes(errors)
        while len(extremes) > size:
            first, last = extremes[0], extremes[-1]
            extremes.pop(0 if abs(errors[first]) < abs(errors[last]) else -1)
        if len(extremes) < size:
            break
        moved = [grid[n] for n in reversed(extremes)]
        is_settled = max(abs(x - y) for x, y in zip(moved, nodes)) < mpf(10) ** -9
        nodes = moved
        if is_settled:
            break
    return coefficients, max(abs(e) for e in errors)


def rounded(x, letter):
    return struct.unpack(letter, struct.pack(letter, float(x)))[0]


def in_header(name):
    """The numbers of kP in arithmetic.h."""
    text = HEADER.read_text()
    body = text.split(f"struct Arithmetic<{name}>", 1)[1]
    listed = re.search(r"kP\[kTerms\] = \{(.*?)\}", body, re.DOTALL).group(1)
    return [float.fromhex(x.strip().rstrip("F")) for x in listed.split(",")]


def main():
    is_check = sys.argv[1:] == ["--check"]
    is_same = True
    for name, letter, degree in TYPES:
        coefficients, error = minimax(degree)
        numbers = [rounded(x, letter) for x in coefficients]
        if is_check:
            if numbers != in_header(name):
                print(f"{name}: {HEADER.name} has other coefficients than {sys.argv[0]} makes")
                is_same = False
            continue
        print(f"{name}: relative error {float(error):.2g} before rounding")
        for x in numbers:
            print("  " + x.hex())
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
