// .safetensors files as tensors in memory of their own.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "formats/elements.h"
#include "formats/safetensors_layout.h"
#include "formats/shown.h"
#include "glasshead/tensor_file.h"

namespace glasshead {
namespace {

using formats::SafetensorsEntry;
using formats::shown;

using formats::kSafetensorsLengthBytes;

std::vector<std::size_t> numbers(std::size_t count) {
  std::vector<std::size_t> result(count);
  std::iota(result.begin(), result.end(), std::size_t{0});
  return result;
}

std::size_t element_bytes(std::string_view dtype) {
  const formats::StoredType* type = formats::find_safetensors(dtype);
  return type == nullptr ? 0 : type->bytes;
}

}  // namespace

bool parse_safetensors(std::span<const std::byte> bytes, NamedTensors& out,
                       std::vector<Problem>& problems) {
  formats::SafetensorsLayout layout;
  if (!formats::parse_safetensors_layout(bytes, element_bytes, layout, problems)) return false;
  const std::vector<SafetensorsEntry>& entries = layout.entries;
  NamedTensors tensors(entries.size());
  for (std::size_t n = 0; n < entries.size(); ++n) {
    const SafetensorsEntry& entry = entries[n];
    auto& [name, tensor] = tensors[n];
    name = entry.name;
    tensor.shape = entry.shape;
    std::string what;
    if (!formats::keep_elements(*formats::find_safetensors(entry.dtype), layout.bytes_of(entry),
                                tensor, what)) {
      problems.push_back({"tensor " + shown(name), what});
      return false;
    }
  }
  out = std::move(tensors);
  return true;
}

std::vector<std::byte> safetensors_bytes(const NamedTensors& tensors) {
  // Falling element size keeps every tensor aligned to its own elements.
  const auto element = [&](std::size_t n) { return size_of(tensors[n].second.dtype); };
  std::vector<std::size_t> order = numbers(tensors.size());
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return element(a) != element(b) ? element(a) > element(b) : a < b;
  });
  std::vector<std::size_t> begin(tensors.size());
  std::size_t end = 0;
  for (const std::size_t n : order) {
    begin[n] = end;
    end += tensors[n].second.bytes.size();
  }

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  for (std::size_t n = 0; n < tensors.size(); ++n) {
    const auto& [name, tensor] = tensors[n];
    if (name == "__metadata__" || header.contains(name))
      fail(ErrorKind::format, "write_safetensors", "tensor " + shown(name),
           name == "__metadata__" ? "this name is the format's own" : "the name occurs twice");
    header[name] = {{"dtype", formats::stored_type(tensor).safetensors},
                    {"shape", tensor.shape},
                    {"data_offsets", {begin[n], begin[n] + tensor.bytes.size()}}};
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.append(
      (kSafetensorsLengthBytes - text.size() % kSafetensorsLengthBytes) % kSafetensorsLengthBytes,
      ' ');

  const std::uint64_t length = text.size();
  const std::size_t front = kSafetensorsLengthBytes + text.size();
  std::vector<std::byte> file(front + end);
  std::memcpy(file.data(), &length, sizeof length);
  std::memcpy(file.data() + kSafetensorsLengthBytes, text.data(), text.size());
  for (std::size_t n = 0; n < tensors.size(); ++n)
    std::copy(tensors[n].second.bytes.begin(), tensors[n].second.bytes.end(),
              file.begin() + static_cast<std::ptrdiff_t>(front + begin[n]));
  return file;
}

}  // namespace glasshead
