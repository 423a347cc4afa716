#!/usr/bin/python3
"""Writes src/base/math_tables.h: the constants of src/base/math.cc and trig.cc.

    apt-get install python3-mpmath && /usr/bin/python3 tools/make_math_constants.py > src/base/math_tables.h

Every number is a value of exp, log, erf or pi, computed with 400 digits and rounded to nearest; a pair
{high, low} is the value rounded to a double, and the rest rounded to a double.
"""

import mpmath
from mpmath import mpf

mpmath.mp.dps = 400

EXP_STEPS = 64  # 2^(j/64)
LOG_STEPS = 128  # reciprocals of k/128, k from 90 to 182
LOG_FIRST, LOG_LAST = 90, 182
ERF_STEPS, ERF_LAST = 16, 96  # centres k/16 up to 6


def hexfloat(x):
    return float(x).hex().replace("0x1.0000000000000p", "0x1p")


def pair(x):
    high = float(x)
    return f"{{{hexfloat(high)}, {hexfloat(x - mpf(high))}}}"


def short(x, bits):
    """x rounded down to so many significant bits."""
    exponent = int(mpmath.floor(mpmath.log(x, 2))) + 1
    return mpmath.floor(x * mpf(2) ** (bits - exponent)) / mpf(2) ** (bits - exponent)


def main():
    out = []
    say = out.append
    say(f"// Made by tools/make_math_constants.py with mpmath {mpmath.__version__}: do not edit.")
    say("// clang-format off")
    say("#pragma once\n")
    say("#include <array>")
    say("#include <cstdint>\n")
    say('#include "base/double_double.h"\n')
    say("namespace glasshead::math {\n")

    step = mpmath.log(2) / EXP_STEPS
    high = short(step, 36)
    say("// ln(2)/64; the high part has 36 bits, so that 17-bit multiples of it are exact.")
    say(f"inline constexpr double kExpStepHigh = {hexfloat(high)};")
    say(f"inline constexpr double kExpStepLow = {hexfloat(step - high)};")
    say(f"inline constexpr double kStepsPerUnit = {hexfloat(1 / step)};  // 64/ln(2)\n")
    high = short(mpmath.log(2), 42)
    say("// ln(2); the high part has 42 bits, so that 11-bit multiples of it are exact.")
    say(f"inline constexpr double kLn2High = {hexfloat(high)};")
    say(f"inline constexpr double kLn2Low = {hexfloat(mpmath.log(2) - high)};\n")
    say(f"inline constexpr DoubleDouble kHalfPi{pair(mpmath.pi / 2)};\n")

    say("// 2^(j/64)")
    say(f"inline constexpr std::array<DoubleDouble, {EXP_STEPS}> kPowersOfTwo{{{{")
    for j in range(EXP_STEPS):
        say(f"    {pair(mpf(2) ** (mpf(j) / EXP_STEPS))},")
    say("}};\n")

    say("// Near k/128: an inverse c of at most 10 bits, and -ln(c).")
    say("struct LogEntry {\n  double inverse;\n  DoubleDouble log;\n};")
    say(f"inline constexpr int kFirstLogEntry = {LOG_FIRST};")
    say(f"inline constexpr std::array<LogEntry, {LOG_LAST - LOG_FIRST + 1}> kLogEntries{{{{")
    for k in range(LOG_FIRST, LOG_LAST + 1):
        c = mpmath.nint(mpf(512) * LOG_STEPS / k) / 512
        value = -mpmath.log(c) if c != 1 else mpf(0)
        say(f"    {{{hexfloat(c)}, {pair(value)}}},")
    say("}};\n")

    say("// erf(k/16), and its derivative there, 2/sqrt(pi) exp(-(k/16)^2)")
    say("struct ErfEntry {\n  DoubleDouble value;\n  DoubleDouble slope;\n};")
    say(f"inline constexpr std::array<ErfEntry, {ERF_LAST + 1}> kErfEntries{{{{")
    for k in range(ERF_LAST + 1):
        c = mpf(k) / ERF_STEPS
        slope = 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-c * c)
        say(f"    {{{pair(mpmath.erf(c))}, {pair(slope)}}},")
    say("}};\n")

    words = (64 + 971 + 192) // 32 + 2
    bits = int(mpmath.floor(2 / mpmath.pi * mpf(2) ** (32 * (words - 2))))
    say("// The binary digits of 2/pi, most significant first, after 64 zeros.")
    say(f"inline constexpr std::array<std::uint32_t, {words}> kTwoOverPi{{{{")
    digits = [(bits >> (32 * (words - 1 - n))) & 0xFFFFFFFF for n in range(words)]
    for n in range(0, words, 6):
        say("    " + ", ".join(f"0x{word:08X}" for word in digits[n : n + 6]) + ",")
    say("}};\n")
    say("}  // namespace glasshead::math")
    print("\n".join(out))


if __name__ == "__main__":
    main()
