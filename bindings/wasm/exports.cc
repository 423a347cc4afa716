// What the WebAssembly module exports. A host writes a request into memory from gh_alloc, calls
// gh_call, and reads the answer: gh_answer() points at its length (u32) and address (u32), gh_call
// returns 1 for an answer and 0 for problems. If the engine refuses what the front door let
// through, the module traps, and gh_failure() points at the same pair for the problems; the host
// then starts a fresh instance.
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include "base/fail.h"
#include "wasm/call.h"

namespace {

struct Bytes {
  std::uint32_t size = 0;
  const char* data = nullptr;
};

glasshead::wasm::Session session;
glasshead::wasm::Answer answer;
Bytes shown;

}  // namespace

#define GLASSHEAD_EXPORT(name) extern "C" __attribute__((export_name(#name)))

GLASSHEAD_EXPORT(gh_alloc) void* gh_alloc(std::size_t size) { return ::operator new(size); }
GLASSHEAD_EXPORT(gh_free) void gh_free(void* data) { ::operator delete(data); }

GLASSHEAD_EXPORT(gh_call) int gh_call(const char* request, std::size_t size) {
  answer = glasshead::wasm::call({request, size}, session);
  shown = {static_cast<std::uint32_t>(answer.bytes.size()), answer.bytes.data()};
  return answer.is_ok ? 1 : 0;
}

GLASSHEAD_EXPORT(gh_answer) const void* gh_answer() { return &shown; }
GLASSHEAD_EXPORT(gh_failure) const void* gh_failure() { return glasshead::last_failure(); }
