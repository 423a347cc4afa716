// Where attention runs: which instruction set, how many threads. One context serves any number of
// calls, from several threads at once.
//
//   attend(q, k, v, out, options);                    // default_context()
//   Context two({.isa = "avx2", .threads = 2});
//   attend(q, k, v, out, options, {}, two);           // the same bits
//
// Neither choice changes a bit of a result (docs/same-bits.md), but for the kernel sets that round,
// which nobody gets without naming them:
//
//   Context coarse({.isa = "avx512_bf16"});           // rounding_kernel_sets()
//
// A variable of the environment that is set to nothing counts as not set.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "glasshead/tensor.h"

namespace glasshead {

// Runs task(0) ... task(count - 1), each once, in any order and on any threads, and returns when
// all are done: how a host program lends its own threads. A task never throws.
using ParallelFor = std::function<void(index_t count, const std::function<void(index_t)>& task)>;

struct ContextOptions {
  // The kernel set, by name: "scalar", "avx2", "avx512", "neon", or one of rounding_kernel_sets().
  // Empty: GLASSHEAD_ISA if it is set, else the first of kernel_sets() that the processor has. An
  // unknown name, or one that the processor lacks, is an OptionError that lists what would do.
  std::string isa;
  // Threads that compute, the caller's included, 1 to 1,024. 0: GLASSHEAD_THREADS if it is set,
  // else the cores that this process may use.
  int threads = 0;
  // Give it where the program has a pool already; `threads` then says how many tasks to make. Null:
  // the context keeps threads of its own, started when first needed.
  ParallelFor parallel_for;
};

struct KernelSetInfo {
  const char* name;   // "avx2"
  bool is_supported;  // this processor has what it needs
  std::string lacks;  // the features that are missing: "avx512f avx512bw"; empty if supported
};
// Every set this library was built with, best first; the last, "scalar", is always supported. All
// give the same bits.
std::vector<KernelSetInfo> kernel_sets();

// The sets that round where those do not, for speed on processors that have it, and so give other
// bits: never chosen on their own. "avx512_bf16" (VDPBF16PS of AVX512_BF16), for f32, bf16, f16 and
// int8 input:
//
//     qs = bf16(q * scale)        s = sum_d bf16(k[d]) * qs[d]
//     p = exp(s - max)          out = sum_j bf16(v[j]) * bf16(p[j]) / sum_j p[j]
//
// bf16(x) is the nearest, ties to even, and infinite from 0x1.FFp127 on. Sums are f32: each product
// is added by a multiply-add rounded once, in the order of every other set; subnormal factors and
// sums are 0. With u = 2^-8, D the largest 2 u sum_d |qs[d] k[d]| over the keys a row sees and w
// its weights, an element of out errs by at most
//
//     (exp(2 D) (1 + u)^2 - 1) sum_j w[j] |v[j]|
//
// and what f32 rounds. Bits depend on neither threads nor batch, chunk or cache, and are the same
// on every processor whose VDPBF16PS does what its manual says (docs/same-bits.md). A single query
// takes a whole panel, so decoding is slow. attend_backward refuses the set; f64 input, and what a
// model computes beside attention, are as ever.
std::vector<KernelSetInfo> rounding_kernel_sets();

class Context {
 public:
  // The environment is read here and nowhere else. Everything that is wrong is one OptionError.
  explicit Context(const ContextOptions& options = {});
  ~Context();
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;

  const char* isa() const;  // the kernel set that runs
  // "the first that this processor has", "asked for by GLASSHEAD_ISA", "asked for by the program"
  const std::string& why_isa() const;
  int threads() const;

  struct Impl;  // the library's own
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// Made on first use with ContextOptions{}; lives until the program ends.
const Context& default_context();

}  // namespace glasshead
