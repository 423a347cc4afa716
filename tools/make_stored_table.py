#!/usr/bin/python3
"""Writes tests/base/data/stored.txt: blocks of every type that src/base/stored.h dequantises, with their values.

    pip install gguf==0.19.0 && python3 tools/make_stored_table.py > tests/base/data/stored.txt

A line is: type, the bytes, and the bits of each value as f32, all in hexadecimal. The values of blocks are those of
gguf's own dequantise, in f32; those of single numbers are NumPy's casts. The bytes are random, but for the scales:
every kind of half that a file could hold occurs: subnormal, the largest, zero, negative zero, infinity and NaN.
"""

import importlib.metadata
import platform

import numpy
from gguf import GGMLQuantizationType, quants

SEED = 20261130
BLOCKS = 6  # of each type, beside the special ones
# Halves: the least and the largest subnormal, the least normal, the largest, 0, -0, one, a third, -2.5.
SCALES = [0x0001, 0x03FF, 0x0400, 0x7BFF, 0x0000, 0x8000, 0x3C00, 0x3555, 0xC100, 0x8001, 0xFBFF]
NOT_FINITE = [0x7C00, 0xFC00, 0x7E00]
# Of a block: bytes, and where its halves stand.
TYPES = {
    "q8_0": (34, [0]),
    "q4_0": (18, [0]),
    "q4_1": (20, [0, 2]),
    "q5_0": (22, [0]),
    "q5_1": (24, [0, 2]),
    "q4_k": (144, [0, 2]),
    "q5_k": (176, [0, 2]),
    "q6_k": (210, [208]),
}


def line(name, raw, values):
    bits = numpy.ascontiguousarray(values, dtype=numpy.float32).view(numpy.uint32).ravel()
    print(name, raw.tobytes().hex(), "".join(f"{b:08x}" for b in bits))


def half(rng, special=None):
    if special is not None:
        return special
    return int(numpy.float16(rng.normal() * 0.01).view(numpy.uint16))


def blocks(rng, name, size, places):
    specials = SCALES + NOT_FINITE if size < 100 else SCALES[:4] + NOT_FINITE[-1:]
    for special in [None] * BLOCKS + specials:
        block = rng.integers(0, 256, size, dtype=numpy.uint8)
        for n, place in enumerate(places):  # an odd special scale stands beside an ordinary minimum
            bits = half(rng, special if n == 0 or special is None or special % 2 else None)
            block[place : place + 2] = numpy.array([bits], dtype="<u2").view(numpy.uint8)
        with numpy.errstate(all="ignore"):
            values = quants.dequantize(block.reshape(1, size), GGMLQuantizationType[name.upper()])
        line(name, block, values)


def singles(rng):
    halves = numpy.array(SCALES + NOT_FINITE[:2] + list(rng.integers(0, 0x7C00, 8)), dtype="<u2")
    line("f16", halves, halves.view(numpy.float16).astype(numpy.float32))
    patterns = [1, 0x7F, 0x80, 0x7F7F, 0, 0x8000, 0x7F80, 0xFF80, *rng.integers(0, 0x7F80, 8)]
    uppers = numpy.array(patterns, dtype="<u2")
    line("bf16", uppers, (uppers.astype(numpy.uint32) << 16).view(numpy.float32))
    # Ties to even both ways, subnormal results, halfway to infinity, what rounds to 0.
    doubles = [
        1 + 2.0**-24,
        1 + 3 * 2.0**-24,
        2.0**-149,
        2.0**-150,
        1.5 * 2.0**-149,
        3.4028235677973366e38,
        1e300,
        -0.0,
    ]
    doubles += list(rng.normal(size=8))
    wide = numpy.array(doubles, dtype="<f8")
    with numpy.errstate(all="ignore"):
        line("f64", wide, wide.astype(numpy.float32))
    narrow = numpy.array([1e-45, -0.0, numpy.inf, *rng.normal(size=4)], dtype="<f4")
    line("f32", narrow, narrow)


def main():
    versions = (
        f"gguf {importlib.metadata.version('gguf')}, NumPy {numpy.__version__}, Python {platform.python_version()}"
    )
    print(f"# Made by tools/make_stored_table.py, {versions}, seed {SEED}: do not edit.")
    rng = numpy.random.default_rng(SEED)
    singles(rng)
    for name, (size, places) in TYPES.items():
        blocks(rng, name, size, places)


main()
