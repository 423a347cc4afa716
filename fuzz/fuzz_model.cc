// A GGUF file, or config.json, a zero byte and a .safetensors file: whatever they say, a model is
// refused with a reason, or loaded: then it has as many numbers as its description calls for.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "formats/checkpoint.h"
#include "model/parameters.h"
#include "model/weights.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace glasshead;
  const std::span<const std::byte> all{reinterpret_cast<const std::byte*>(data), size};
  const bool is_gguf = size >= 4 && std::memcmp(data, "GGUF", 4) == 0;
  const auto at = static_cast<std::size_t>(std::find(data, data + size, 0) - data);
  formats::Checkpoint files;
  std::vector<Problem> problems;
  const bool is_read = is_gguf ? formats::Checkpoint::parse_gguf(all, files, problems)
                               : formats::Checkpoint::parse_safetensors(
                                     all.subspan(std::min(at + 1, size)),
                                     {reinterpret_cast<const char*>(data), at}, files, problems);
  if (!is_read) return 0;
  model::Loaded loaded;
  if (model::load(files, {}, loaded, problems) != problems.empty()) std::abort();
  if (problems.empty() &&
      loaded.inventory.parameters != model::count_parameters(loaded.description))
    std::abort();
  return 0;
}
