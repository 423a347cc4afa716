#include "base/float_environment.h"

namespace glasshead {
namespace {

#if defined(__x86_64__)

// MXCSR: every exception masked, round to nearest, neither flush to zero nor denormals are zero
// (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 10.2.3).
constexpr std::uint64_t kDefault = 0x1F80;
constexpr std::uint64_t kExceptionFlags = 0x3F;  // what has happened, not what shall

std::uint64_t read() { return __builtin_ia32_stmxcsr(); }
void write(std::uint64_t value) { __builtin_ia32_ldmxcsr(static_cast<unsigned>(value)); }

#elif defined(__aarch64__)

// FPCR: the same is all zero (Arm Architecture Reference Manual, C5.2.8). Its flags are elsewhere.
constexpr std::uint64_t kDefault = 0;
constexpr std::uint64_t kExceptionFlags = 0;

std::uint64_t read() {
  std::uint64_t value = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(value));
  return value;
}
void write(std::uint64_t value) { __asm__ volatile("msr fpcr, %0" : : "r"(value)); }

#else  // WebAssembly knows no other environment

constexpr std::uint64_t kDefault = 0;
constexpr std::uint64_t kExceptionFlags = 0;

std::uint64_t read() { return kDefault; }
void write(std::uint64_t) {}

#endif

// Writing drains the pipeline: only where there is something to change.
bool is_default(std::uint64_t value) { return (value & ~kExceptionFlags) == kDefault; }

}  // namespace

DefaultFloatEnvironment::DefaultFloatEnvironment() : saved_(read()) {
  if (!is_default(saved_)) write(kDefault);
}

DefaultFloatEnvironment::~DefaultFloatEnvironment() {
  if (!is_default(saved_)) write(saved_);
}

}  // namespace glasshead
