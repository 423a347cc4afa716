"""float16 and bfloat16 as a program's storage: numbers are kept in float32 and rounded after each step."""
import numpy as np


def as_f32(x):
    return np.asarray(x, np.float32)


def as_f16(x):
    with np.errstate(over="ignore"):
        return np.asarray(x, np.float32).astype(np.float16).astype(np.float32)


def as_bf16(x):
    """To nearest, ties to even, on the upper 16 bits of a float32; infinities and NaN stay what they are."""
    x = np.ascontiguousarray(x, np.float32)
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(x), rounded, x)


ROUND = {"f32": as_f32, "f16": as_f16, "bf16": as_bf16}
