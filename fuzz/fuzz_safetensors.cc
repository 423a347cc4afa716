// Any bytes are refused with a reason, or read; what is read is written and read again unchanged.
#include <cstdint>
#include <cstdlib>

#include "glasshead/tensor_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace glasshead;
  NamedTensors tensors, again;
  std::vector<Problem> problems;
  if (!parse_safetensors({reinterpret_cast<const std::byte*>(data), size}, tensors, problems)) {
    if (problems.empty()) std::abort();
    return 0;
  }
  if (!problems.empty() || !parse_safetensors(safetensors_bytes(tensors), again, problems))
    std::abort();
  if (tensors != again) std::abort();
  return 0;
}
