#!/usr/bin/python3
"""Writes tests/base/data/math.txt: correctly rounded values of the functions of src/base/math.h.

    apt-get install python3-mpmath && /usr/bin/python3 tools/make_math_table.py > tests/base/data/math.txt

A line is: function, the argument's bits in hexadecimal (two for pow), the bits of the nearest double y to
the exact value v, and (v - y) / ulp in thousandths, so that an error can be measured against v itself. An ulp
is the distance between doubles in y's binade, 2^-1074 at least.
"""

import random
import struct
import sys

import mpmath
from mpmath import mpf

SEED = 20240607
mpmath.mp.prec = 2400  # sin of 2^1023 needs 1024 bits before the point


def bits(x):
    return struct.pack(">d", x).hex()


def from_bits(n):
    return struct.unpack(">d", struct.pack(">Q", n))[0]


def ulp(v):
    exponent = mpmath.frexp(abs(v))[1] - 1
    return mpf(2) ** max(exponent - 52, -1074)


def nearest(v):
    """The nearest double and what is left in ulp; None beyond the largest double."""
    if v == 0:
        return 0.0, mpf(0)
    step = ulp(v)
    y = mpmath.nint(v / step) * step  # ties are never met: the values are irrational, or exact
    if abs(y) >= mpf(2) ** 1024:
        return None
    return float(y), (v - y) / step


def emit(name, function, *args):
    result = nearest(function(*[mpf(a) for a in args]))
    if result is None:
        return
    y, rest = result
    print(name, *[bits(a) for a in args], bits(y), int(mpmath.nint(rest * 1000)))


def both_signs(rng, x):
    return x if rng.random() < 0.5 else -x


def log_uniform(rng, low, high):
    """From 2^low to 2^high, evenly by exponent."""
    return 2.0 ** rng.uniform(low, high)


def samples(rng, name):
    count = 450
    for n in range(count):
        if name in ("exp", "expm1"):
            yield [rng.uniform(-745, 709.7), rng.uniform(-2, 2), both_signs(rng, log_uniform(rng, -60, 9.4))][n % 3]
        elif name == "log":
            if n % 3 == 0:
                yield from_bits(1 + rng.getrandbits(62) % 0x7FEFFFFFFFFFFFFF)
            else:
                yield rng.uniform(0.5, 2) if n % 3 == 1 else 1 + both_signs(rng, log_uniform(rng, -52, -6))
        elif name == "log1p":
            if n % 3 == 0:
                yield rng.uniform(-1, 3)
            else:
                yield log_uniform(rng, -60, 1023) if n % 3 == 1 else -log_uniform(rng, -60, -0.001)
        elif name in ("tanh", "erf"):
            yield rng.uniform(-6, 6) if n % 2 else both_signs(rng, log_uniform(rng, -60, 3))
        else:
            if n % 3 == 0:
                yield rng.uniform(-10, 10)
            elif n % 3 == 1:
                yield both_signs(rng, log_uniform(rng, -40, 1023.9))
            else:  # as near a multiple of pi/2 as a double can be
                yield float(mpmath.pi / 2 * rng.randint(1, 10 ** rng.randint(1, 15)))


def special(name):
    if name == "exp":
        yield from (709.782712893384, -708.4, -744.44007192138126, -745.13321910194111, 5e-324, 1.0)
    elif name == "log":
        yield from (5e-324, 2.2250738585072014e-308, sys.float_info.max, 1 - 2.0**-53, 1 + 2.0**-52, 2.0, 10.0)
    elif name in ("sin", "cos"):
        # The nearest that a double comes to a multiple of pi/2 (found by J.-M. Muller, Elementary Functions).
        yield from (6381956970095103.0 * 2.0**797, 0.7853981633974483, 0.7853981633974484, sys.float_info.max)
    elif name == "erf":
        yield from (5e-324, 1e-310, 5.9, 5.999999, 0.03125, 0.031249999999999997)
    elif name == "tanh":
        yield from (1e-310, 18.0, 19.0, 19.9, 3.7e-9, 3.8e-9)


def powers(rng):
    for n in range(450):
        kind = n % 5
        if kind == 0:
            x, y = rng.uniform(0, 10), rng.uniform(-20, 20)
        elif kind == 1:
            x, y = 10000.0, -2 * rng.randint(0, 64) / 128.0  # as rotary positions use it
        elif kind == 2:
            x, y = both_signs(rng, rng.uniform(0.5, 2)), float(rng.randint(-1000, 1000))
        elif kind == 3:  # results of every size
            x = log_uniform(rng, -1022, 1023)
            y = rng.uniform(-745, 709) / float(mpmath.log(x)) if x != 1 else 1.0
        else:
            x, y = 1 + both_signs(rng, log_uniform(rng, -50, -20)), both_signs(rng, log_uniform(rng, 18, 58))
        if abs(y * float(mpmath.log(abs(x)))) < 745:
            yield x, y


def main():
    rng = random.Random(SEED)
    functions = {
        "exp": mpmath.exp,
        "expm1": lambda x: mpmath.exp(x) - 1,
        "log": mpmath.log,
        "log1p": lambda x: mpmath.log(1 + x),
        "tanh": mpmath.tanh,
        "erf": mpmath.erf,
        "sin": mpmath.sin,
        "cos": mpmath.cos,
    }
    print(f"# Made by tools/make_math_table.py, mpmath {mpmath.__version__},", end=" ")
    print(f"Python {sys.version.split()[0]}, seed {SEED}: do not edit.")
    for name, function in functions.items():
        for x in special(name):
            emit(name, function, x)
        for x in samples(rng, name):
            emit(name, function, x)
    for x, y in powers(rng):
        emit("pow", lambda a, b: mpmath.power(abs(a), b) * (-1 if a < 0 and b % 2 == 1 else 1), x, y)


if __name__ == "__main__":
    main()
