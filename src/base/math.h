// Elementary functions that give the same bits with every compiler, at every optimisation level and
// in WebAssembly: f64 throughout, made of + - * / sqrt and bit operations alone, each rounded
// apart. The C library's functions are not used: their last bits differ from one library to the
// next.
//
//   double weight = math::exp(score - row_max) / row_sum;
//   double lse = row_max + math::log(row_sum);
//   double gelu = 0.5 * x * (1 + math::erf(x * 0.70710678118654752));
//
// All of them: NaN gives NaN, no floating-point environment but the default one is supported, and
// errno is not touched. Errors are in units in the last place of the exact result (ulp), 2^-1074 at
// least; where a result is subnormal, every bound is 0.8 ulp. tests/base/math_test.cc checks the
// bounds against a table made with mpmath and by a dense sweep against long double.
#pragma once

namespace glasshead::math {

// e^x, every x; at most 0.51 ulp. Overflow (x > 709.78) is inf, underflow
// (x < -745.13) is 0; exp(0) and exp(-0) are exactly 1, exp(-inf) is 0.
double exp(double x);

// e^x - 1, every x; at most 0.55 ulp. expm1(-0) is -0, expm1(-inf) is -1, overflow is inf.
double expm1(double x);

// Natural logarithm, x > 0, subnormal included; at most 0.51 ulp. log(1) is +0, log(+-0) is -inf,
// log(inf) is inf, negative x gives NaN.
double log(double x);

// log(1 + x), x > -1; at most 0.51 ulp. log1p(-0) is -0, log1p(-1) is -inf, x < -1 gives NaN.
double log1p(double x);

// Every x; at most 0.55 ulp. tanh(-0) is -0, tanh(+-inf) is +-1.
double tanh(double x);

// 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x, every x; at most 0.55 ulp. erf(-0) is -0,
// erf(+-inf) is +-1.
double erf(double x);

// x in radians, every finite x (the reduction modulo pi/2 uses as many digits of 2/pi as x needs);
// at most 0.8 ulp. sin(-0) is -0; an infinite x gives NaN.
double sin(double x);
double cos(double x);

// x to the power y, every x and y; at most 0.51 ulp. Special values as in
// C: pow(x, 0) and pow(1, y) are 1 even for NaN; a negative x needs a whole y, else NaN; pow(-0, y)
// keeps the sign for odd y; overflow is inf, underflow is 0, with the sign of an odd power.
double pow(double x, double y);

}  // namespace glasshead::math
