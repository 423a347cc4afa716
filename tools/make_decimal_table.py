#!/usr/bin/python3
"""Writes tests/wire/data/decimal.txt: doubles printed, rounded and read by Python's decimal and float.

    python3 tools/make_decimal_table.py > tests/wire/data/decimal.txt

A line is: what, the double's bits in hexadecimal, a number of digits (0 where none is needed), the text.
"half_up" has the result's bits as text; "parse" the text that reads as the double.
"""

import decimal
import random
import struct
import sys
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

SEED = 20240607
decimal.getcontext().prec = 1200
decimal.getcontext().Emin = -5000
decimal.getcontext().Emax = 5000


def bits(x):
    return struct.pack(">d", x).hex()


def from_bits(n):
    return struct.unpack(">d", struct.pack(">Q", n))[0]


def sign(text):
    """Zero never has a sign."""
    return text[1:] if text.startswith("-") and not any(c in "123456789" for c in text.split("e")[0]) else text


def fixed(x, digits):
    step = Decimal(1).scaleb(-digits)
    return sign(f"{Decimal(x).quantize(step, ROUND_HALF_EVEN):f}")


def scientific(x, digits):
    if x == 0:
        return f"{Decimal(0):.{digits}f}e+0"
    d = Decimal(x)
    step = Decimal(1).scaleb(d.adjusted() - digits)
    d = d.quantize(step, ROUND_HALF_EVEN)
    exponent = d.adjusted()  # one more than before if 9.99 became 10.0
    d = d.scaleb(-exponent).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN)
    return f"{d:f}e{exponent:+d}"


def significant(x, digits):
    if x == 0:
        return "0"
    d = Decimal(x)
    d = d.quantize(Decimal(1).scaleb(d.adjusted() - digits + 1), ROUND_HALF_EVEN).normalize()
    if -5 <= d.adjusted() < 7:
        return f"{d:f}"
    return f"{d.scaleb(-d.adjusted()):f}e{d.adjusted():+d}"


def half_up(x, digits):
    step = Decimal(1).scaleb(-digits)
    exact = Decimal(x)
    paper = exact.quantize(Decimal(1).scaleb(exact.adjusted() - 11), ROUND_HALF_EVEN) if exact else exact
    is_tie = abs(paper.scaleb(digits)) % 1 == Decimal("0.5")
    result = float((paper if is_tie else exact).quantize(step, ROUND_HALF_UP))
    return bits(result if result else 0.0)


def shortest(x):
    if x == 0:
        return "-0.0" if bits(x)[0] == "8" else "0"
    d = Decimal(repr(x)).normalize()
    if -5 <= d.adjusted() < 17:
        return f"{d:f}"
    return f"{d.scaleb(-d.adjusted()):f}e{d.adjusted():+d}"


def values(rng, count):
    special = [0.0, -0.0, 1.0, -1.0, 5e-324, 2.2250738585072009e-308, 2.2250738585072014e-308, 0.5, 2.5, 0.615]
    special += [sys.float_info.max, 2.0**53, 2.0**53 + 2, 2.0**-44, 1e15, 1e16, 1e17, 1e22, 1e23, 9.5, 99.95, 0.9999999]
    special += [1e-5, 9.999999999999999e-06, 0.1, 0.2, 0.3, 123456789012345680.0, 9999999.5, 999999.95, 4.35, 0.125]
    for n in range(count):
        kind = n % 6
        if n < len(special):
            yield special[n]
        elif kind == 0:
            yield from_bits(rng.getrandbits(63) % 0x7FF0000000000000)
        elif kind == 1:
            yield rng.random()
        elif kind == 2:
            yield rng.uniform(-1, 1) * 10.0 ** rng.randint(-20, 8)
        elif kind == 3:
            yield rng.randint(-99999, 99999) / 10.0 ** rng.randint(0, 5)
        elif kind == 4:  # exact ties of few binary digits
            yield rng.randint(-2000, 2000) / 2.0 ** rng.randint(1, 9)
        else:
            yield 2.0 ** rng.randint(-60, 60) * (1 + rng.randint(-2, 2) * 2.0**-52)


def parse_texts(rng, count):
    """Decimals near the midpoints of neighbouring doubles, and of every length and size."""
    for n in range(count):
        x = from_bits(rng.getrandbits(63) % 0x7FEFFFFFFFFFFFFF) if n % 2 else rng.random()
        kind = n % 5
        if kind < 2:
            up = from_bits(int(bits(x), 16) + 1)
            middle = (Decimal(x) + Decimal(up)) / 2
            if n % 3 == 0:  # the tie itself, where it is not too long
                text = f"{middle:f}"
                if len(text) < 100:
                    yield text
                    yield text + "000000000000000000000001"
                continue
            yield f"{middle:.{rng.randint(15, 40)}e}"
        elif kind == 2:
            yield f"{Decimal(x):.{rng.randint(0, 25)}e}"
        elif kind == 3:
            yield f"{rng.randint(0, 10 ** rng.randint(1, 30))}e{rng.randint(-40, 40)}"
        else:
            yield f"{rng.randint(0, 999)}.{rng.randint(0, 10 ** rng.randint(1, 20))}"


def main():
    rng = random.Random(SEED)
    print(f"# Made by tools/make_decimal_table.py, Python {sys.version.split()[0]}, seed {SEED}: do not edit.")
    for x in values(rng, 1300):
        if abs(x) < 1e40:
            digits = rng.randint(0, 12)
            print("fixed", bits(x), digits, fixed(x, digits))
    for x in values(rng, 600):
        digits = rng.randint(0, 17)
        print("scientific", bits(x), digits, scientific(x, digits))
    for x in values(rng, 400):
        digits = rng.choice([3, 4, 8])
        print("significant", bits(x), digits, significant(x, digits))
    for x in values(rng, 900):
        if abs(x) < 1e40:
            digits = rng.randint(0, 6)
            print("half_up", bits(x), digits, half_up(x, digits))
    for n in range(5, 2000, 10):  # ties on paper
        print("half_up", bits(n / 1000), 2, half_up(n / 1000, 2))
    for x in values(rng, 700):
        print("shortest", bits(x), 0, shortest(x))
    for text in parse_texts(rng, 500):
        print("parse", bits(float(text)), 0, text)


if __name__ == "__main__":
    main()
