// .safetensors: u64 length N, N bytes of JSON, the data. Source: huggingface/safetensors
// safetensors/src/tensor.rs.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>

#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/fail.h"
#include "formats/elements.h"
#include "formats/safetensors_header.h"
#include "formats/shown.h"
#include "glasshead/tensor_file.h"

namespace glasshead {
namespace {

using formats::SafetensorsEntry;
using formats::shown;
using formats::StoredType;

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit

bool refuse(std::vector<Problem>& problems, const std::string& where, std::string what) {
  problems.push_back({where, std::move(what)});
  return false;
}

std::vector<std::size_t> numbers(std::size_t count) {
  std::vector<std::size_t> result(count);
  std::iota(result.begin(), result.end(), std::size_t{0});
  return result;
}

bool find_header(std::span<const std::byte> bytes, std::string_view& header,
                 std::vector<Problem>& problems) {
  if (bytes.size() < kLengthBytes)
    return refuse(problems, "header length",
                  "the file has " + std::to_string(bytes.size()) +
                      " bytes; a .safetensors file begins with 8 bytes that say it");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const std::uint64_t left = bytes.size() - kLengthBytes;
  if (length > kLongestHeader)
    return refuse(problems, "header length",
                  "is " + std::to_string(length) + "; at most 100000000 is allowed");
  if (length > left)
    return refuse(problems, "header length",
                  "is " + std::to_string(length) + ", but only " + std::to_string(left) +
                      " bytes follow: the file is truncated or corrupt");
  header = {reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
            static_cast<std::size_t>(length)};
  if (header.empty() || header[0] != '{')
    return refuse(problems, "header",
                  "begins with " + shown(header.substr(0, 1)) + "; it must begin with '{'");
  return true;
}

// The type of an entry whose offsets fit it; null, and what is wrong, if there is none.
const StoredType* check_entry(const SafetensorsEntry& entry, std::vector<Problem>& problems) {
  const std::string where = "tensor " + shown(entry.name);
  const StoredType* type = formats::find_safetensors(entry.dtype);
  if (type == nullptr) {
    refuse(problems, where,
           "dtype is " + shown(entry.dtype) +
               "; read are F64 F32 F16 BF16 BOOL U8 and the other integers to 64 bits");
    return nullptr;
  }
  const auto [begin, end] = std::pair(entry.offsets[0], entry.offsets[1]);
  const std::optional<index_t> count = checked_size(entry.shape);
  const std::optional<index_t> bytes =
      count ? checked_mul(*count, static_cast<index_t>(type->bytes)) : std::nullopt;
  const std::string shape = formats::shape_text(entry.shape);
  if (!bytes) {
    refuse(problems, where, "the size of shape " + shape + " in bytes is beyond 2^63");
  } else if (end < begin) {
    refuse(problems, where,
           "data_offsets end at " + std::to_string(end) + ", before they begin at " +
               std::to_string(begin));
  } else if (end - begin != *bytes) {
    refuse(problems, where,
           "data_offsets span " + std::to_string(end - begin) + " bytes; shape " + shape + " of " +
               entry.dtype + " needs " + std::to_string(*bytes));
  } else {
    return type;
  }
  return nullptr;
}

// In order of their offsets the entries must follow each other from 0 to the end of the data.
bool check_layout(const std::vector<SafetensorsEntry>& entries, std::size_t data_bytes,
                  std::vector<Problem>& problems) {
  std::vector<std::size_t> order = numbers(entries.size());
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(entries[a].offsets, a) < std::tie(entries[b].offsets, b);
  });
  const std::size_t before = problems.size();
  index_t end = 0;
  for (const std::size_t n : order) {
    const SafetensorsEntry& entry = entries[n];
    if (entry.offsets[0] != end)
      refuse(problems, "tensor " + shown(entry.name),
             "its data begins at " + std::to_string(entry.offsets[0]) +
                 ", but the data before it ends at " + std::to_string(end) +
                 (entry.offsets[0] > end ? ": a hole" : ": an overlap"));
    end = std::max(end, entry.offsets[1]);
  }
  if (static_cast<std::size_t>(end) != data_bytes)
    refuse(problems, "data",
           std::to_string(data_bytes) + " bytes are there; the tensors need " +
               std::to_string(end) +
               (static_cast<std::size_t>(end) > data_bytes ? ": the file is truncated"
                                                           : ": the file goes on after them"));
  return problems.size() == before;
}

}  // namespace

bool parse_safetensors(std::span<const std::byte> bytes, NamedTensors& out,
                       std::vector<Problem>& problems) {
  std::string_view header;
  if (!find_header(bytes, header, problems)) return false;
  std::vector<SafetensorsEntry> entries;
  if (!formats::parse_safetensors_header(header, entries, problems)) return false;
  std::vector<const StoredType*> types;
  types.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) types.push_back(check_entry(entry, problems));
  if (std::find(types.begin(), types.end(), nullptr) != types.end()) return false;
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + header.size());
  if (!check_layout(entries, data.size(), problems)) return false;

  NamedTensors tensors(entries.size());
  for (std::size_t n = 0; n < entries.size(); ++n) {
    const SafetensorsEntry& entry = entries[n];
    auto& [name, tensor] = tensors[n];
    name = entry.name;
    tensor.shape = entry.shape;
    const auto begin = static_cast<std::size_t>(entry.offsets[0]);
    const auto end = static_cast<std::size_t>(entry.offsets[1]);
    std::string what;
    if (!formats::keep_elements(*types[n], data.subspan(begin, end - begin), tensor, what))
      return refuse(problems, "tensor " + shown(name), what);
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
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');

  const std::uint64_t length = text.size();
  const std::size_t front = kLengthBytes + text.size();
  std::vector<std::byte> file(front + end);
  std::memcpy(file.data(), &length, sizeof length);
  std::memcpy(file.data() + kLengthBytes, text.data(), text.size());
  for (std::size_t n = 0; n < tensors.size(); ++n)
    std::copy(tensors[n].second.bytes.begin(), tensors[n].second.bytes.end(),
              file.begin() + static_cast<std::ptrdiff_t>(front + begin[n]));
  return file;
}

}  // namespace glasshead
