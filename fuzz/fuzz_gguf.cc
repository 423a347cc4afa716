// Any bytes are refused with a reason, or read: then every key is readable, and every tensor has
// the bytes that its shape needs, within the file, and widens.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "small_checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace glasshead;
  const std::span<const std::byte> bytes{reinterpret_cast<const std::byte*>(data), size};
  formats::Checkpoint files;
  std::vector<Problem> problems;
  if (formats::Checkpoint::parse_gguf(bytes, files, problems) != problems.empty()) std::abort();
  if (problems.empty()) fuzz::check_checkpoint(files, bytes);
  return 0;
}
