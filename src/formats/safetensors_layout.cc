#include "formats/safetensors_layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/checked.h"
#include "base/shape_text.h"
#include "formats/elements.h"
#include "formats/shown.h"

namespace glasshead::formats {
namespace {

constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit

bool refuse(std::vector<Problem>& problems, const std::string& where, std::string what) {
  problems.push_back({where, std::move(what)});
  return false;
}

bool find_header(std::span<const std::byte> bytes, std::string_view& header,
                 std::vector<Problem>& problems) {
  if (bytes.size() < kSafetensorsLengthBytes)
    return refuse(problems, "header length",
                  "the file has " + std::to_string(bytes.size()) +
                      " bytes; a .safetensors file begins with 8 bytes that say it");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const std::uint64_t left = bytes.size() - kSafetensorsLengthBytes;
  if (length > kLongestHeader)
    return refuse(problems, "header length",
                  "is " + std::to_string(length) + "; at most 100000000 is allowed");
  if (length > left)
    return refuse(problems, "header length",
                  "is " + std::to_string(length) + ", but only " + std::to_string(left) +
                      " bytes follow: the file is truncated or corrupt");
  header = {reinterpret_cast<const char*>(bytes.data()) + kSafetensorsLengthBytes,
            static_cast<std::size_t>(length)};
  if (header.empty() || header[0] != '{')
    return refuse(problems, "header",
                  "begins with " + shown(header.substr(0, 1)) + "; it must begin with '{'");
  return true;
}

// An entry's offsets must fit its type and shape.
bool check_entry(const SafetensorsEntry& entry, std::size_t element_bytes,
                 std::vector<Problem>& problems) {
  const std::string where = "tensor " + shown(entry.name);
  if (element_bytes == 0)
    return refuse(problems, where,
                  "dtype is " + shown(entry.dtype) +
                      "; read are F64 F32 F16 BF16 BOOL U8 and the other integers to 64 bits");
  const auto [begin, end] = std::pair(entry.offsets[0], entry.offsets[1]);
  const std::optional<index_t> count = checked_size(entry.shape);
  const std::optional<index_t> bytes =
      count ? checked_mul(*count, static_cast<index_t>(element_bytes)) : std::nullopt;
  const std::string shape = file_shape_text(entry.shape);
  if (!bytes)
    return refuse(problems, where, "the size of shape " + shape + " in bytes is beyond 2^63");
  if (end < begin)
    return refuse(problems, where,
                  "data_offsets end at " + std::to_string(end) + ", before they begin at " +
                      std::to_string(begin));
  if (end - begin != *bytes)
    return refuse(problems, where,
                  "data_offsets span " + std::to_string(end - begin) + " bytes; shape " + shape +
                      " of " + entry.dtype + " needs " + std::to_string(*bytes));
  return true;
}

// In order of their offsets the entries must follow each other from 0 to the end of the data.
bool check_layout(const std::vector<SafetensorsEntry>& entries, std::size_t data_bytes,
                  std::vector<Problem>& problems) {
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
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

std::span<const std::byte> SafetensorsLayout::bytes_of(const SafetensorsEntry& entry) const {
  const auto begin = static_cast<std::size_t>(entry.offsets[0]);
  const auto end = static_cast<std::size_t>(entry.offsets[1]);
  return data.subspan(begin, end - begin);
}

bool parse_safetensors_layout(std::span<const std::byte> bytes,
                              std::size_t (*element_bytes)(std::string_view),
                              SafetensorsLayout& out, std::vector<Problem>& problems) {
  std::string_view header;
  if (!find_header(bytes, header, problems)) return false;
  SafetensorsLayout layout;
  if (!parse_safetensors_header(header, layout.entries, problems)) return false;
  bool is_good = true;
  for (const SafetensorsEntry& entry : layout.entries)
    is_good = check_entry(entry, element_bytes(entry.dtype), problems) && is_good;
  layout.data = bytes.subspan(kSafetensorsLengthBytes + header.size());
  if (!is_good || !check_layout(layout.entries, layout.data.size(), problems)) return false;
  out = std::move(layout);
  return true;
}

}  // namespace glasshead::formats
