// config.json, a zero byte, and a .safetensors file: refused with a reason, or read as fuzz_gguf
// says.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "small_checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace glasshead;
  const auto at = static_cast<std::size_t>(std::find(data, data + size, 0) - data);
  const std::string_view config{reinterpret_cast<const char*>(data), at};
  const std::span<const std::byte> all{reinterpret_cast<const std::byte*>(data), size};
  const std::span<const std::byte> bytes = all.subspan(std::min(at + 1, size));
  formats::Checkpoint files;
  std::vector<Problem> problems;
  if (formats::Checkpoint::parse_safetensors(bytes, config, files, problems) != problems.empty())
    std::abort();
  if (problems.empty()) fuzz::check_checkpoint(files, bytes);
  return 0;
}
