// The only place that asks what the processor has. Compiled with generic flags: nothing here may
// use what it asks about.
#include <cstdint>
#include <cstring>

#include "glasshead/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__linux__) && defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace glasshead {
namespace {

#if defined(__x86_64__)

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zero where the processor has no such leaf.
Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

bool bit(unsigned value, int number) { return ((value >> number) & 1U) != 0; }

// XCR0: which registers the operating system saves.
std::uint64_t saved_registers() {
  if (!bit(cpuid(1).ecx, 27)) return 0;  // OSXSAVE
  unsigned low = 0, high = 0;  // NOLINT(misc-const-correctness): the instruction writes both
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

// Bit numbers: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID.
std::vector<CpuFeature> find_features() {
  constexpr std::uint64_t kAvxState = 0x6, kAvx512State = 0xE6, kAmxState = 0x60000;
  const std::uint64_t saved = saved_registers();
  const bool has_avx_state = (saved & kAvxState) == kAvxState;
  const bool has_avx512_state = (saved & kAvx512State) == kAvx512State;
  const bool has_amx_state = (saved & kAmxState) == kAmxState;
  const Registers one = cpuid(1), seven = cpuid(7), seven_one = cpuid(7, 1);
  return {
      {"sse2", bit(one.edx, 26)},
      {"sse4.2", bit(one.ecx, 20)},
      {"avx", has_avx_state && bit(one.ecx, 28)},
      {"f16c", has_avx_state && bit(one.ecx, 29)},
      {"fma", has_avx_state && bit(one.ecx, 12)},
      {"avx2", has_avx_state && bit(seven.ebx, 5)},
      {"avx512f", has_avx512_state && bit(seven.ebx, 16)},
      {"avx512dq", has_avx512_state && bit(seven.ebx, 17)},
      {"avx512bw", has_avx512_state && bit(seven.ebx, 30)},
      {"avx512vl", has_avx512_state && bit(seven.ebx, 31)},
      {"avx512_vnni", has_avx512_state && bit(seven.ecx, 11)},
      {"avx512_bf16", has_avx512_state && bit(seven_one.eax, 5)},
      {"avx512_fp16", has_avx512_state && bit(seven.edx, 23)},
      {"amx_tile", has_amx_state && bit(seven.edx, 24)},
      {"amx_bf16", has_amx_state && bit(seven.edx, 22)},
      {"amx_int8", has_amx_state && bit(seven.edx, 25)},
  };
}

// The 48-byte brand string of leaves 0x80000002 to 0x80000004, without the spaces around it.
std::string find_model() {
  std::string text;
  for (const unsigned leaf : {0x80000002U, 0x80000003U, 0x80000004U}) {
    const Registers r = cpuid(leaf);
    char part[sizeof r];
    std::memcpy(part, &r, sizeof r);
    text.append(part, sizeof r);
  }
  text.resize(std::strlen(text.c_str()));
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

constexpr const char* kArchitecture = "x86-64";

#elif defined(__aarch64__)

std::vector<CpuFeature> find_features() {
#if defined(__linux__)
  const unsigned long first = ::getauxval(AT_HWCAP), second = ::getauxval(AT_HWCAP2);
#else
  const unsigned long first = 0, second = 0;
#endif
  const auto has = [](unsigned long bits, unsigned long which) { return (bits & which) != 0; };
  // Bit values: Linux, arch/arm64/include/uapi/asm/hwcap.h.
  constexpr unsigned long kAsimdHp = 1UL << 10, kAsimdDp = 1UL << 20, kSve = 1UL << 22;
  constexpr unsigned long kSve2 = 1UL << 1, kI8mm = 1UL << 13, kBf16 = 1UL << 14;
  return {
      {"neon", true},  // part of the base architecture
      {"fp16", has(first, kAsimdHp)},
      {"dotprod", has(first, kAsimdDp)},
      {"i8mm", has(second, kI8mm)},
      {"bf16", has(second, kBf16)},
      {"sve", has(first, kSve)},
      {"sve2", has(second, kSve2)},
  };
}

std::string find_model() { return ""; }

constexpr const char* kArchitecture = "aarch64";

#else

std::vector<CpuFeature> find_features() { return {}; }

std::string find_model() { return ""; }

#if defined(__wasm32__)
constexpr const char* kArchitecture = "wasm32";
#else
constexpr const char* kArchitecture = "other";
#endif

#endif

int find_cores() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
#endif
  return 1;
}

}  // namespace

Cpu cpu() { return {kArchitecture, find_model(), find_cores(), find_features()}; }

}  // namespace glasshead
