#include "formats/gguf_value.h"

#include <algorithm>
#include <array>
#include <utility>

namespace glasshead::formats {
namespace {

constexpr std::uint64_t kLongestText = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostItems = std::uint64_t{1} << 30;
constexpr std::uint32_t kString = 8, kArray = 9;

// Types 0 to 12 in the order of their numbers; strings and arrays have no size of their own.
struct Type {
  const char* name;
  Stored stored;
};
constexpr std::array<Type, 13> kTypes{{{"u8", Stored::u8},
                                       {"i8", Stored::i8},
                                       {"u16", Stored::u16},
                                       {"i16", Stored::i16},
                                       {"u32", Stored::u32},
                                       {"i32", Stored::i32},
                                       {"f32", Stored::f32},
                                       {"bool", Stored::boolean},
                                       {"string", Stored::u8},
                                       {"array", Stored::u8},
                                       {"u64", Stored::u64},
                                       {"i64", Stored::i64},
                                       {"f64", Stored::f64}}};

bool stop(std::vector<Problem>& problems, const std::string& where, std::string what) {
  problems.push_back({where, std::move(what)});
  return false;
}

bool stop_at_end(ByteReader& reader, std::vector<Problem>& problems, const std::string& where) {
  return stop(problems, where,
              "the file ends in it: only " + std::to_string(reader.left()) +
                  " bytes are left; it is truncated or corrupt");
}

bool check_type(std::uint32_t type, const std::string& where, std::vector<Problem>& problems) {
  return type < kTypes.size() ||
         stop(problems, where,
              "has a value of type " + std::to_string(type) + "; types 0 to 12 are known");
}

// Booleans other than 0 and 1 are noted, once for the key.
void check_booleans(std::span<const std::byte> raw, const std::string& where,
                    std::vector<Problem>& problems) {
  const auto bad =
      std::find_if(raw.begin(), raw.end(), [](std::byte b) { return b > std::byte{1}; });
  if (bad != raw.end())
    problems.push_back({where, "holds a boolean of the byte " +
                                   std::to_string(std::to_integer<int>(*bad)) +
                                   "; it must be 0 or 1"});
}

bool read_array(ByteReader& reader, const std::string& where, ConfigValue& out,
                std::vector<Problem>& problems) {
  std::uint32_t type = 0;
  std::uint64_t count = 0;
  if (!reader.number(type) || !reader.number(count)) return stop_at_end(reader, problems, where);
  if (!check_type(type, where, problems)) return false;
  if (type == kArray) return stop(problems, where, "is an array of arrays; these are not read");
  if (count > kMostItems)
    return stop(problems, where,
                "is an array of " + std::to_string(count) + " items; at most 2^30 are read");
  const Stored stored = kTypes[type].stored;
  const auto smallest =  // bytes of an item; a string has at least its length
      type == kString ? sizeof(std::uint64_t) : static_cast<std::size_t>(block_bytes(stored));
  if (count > reader.left() / smallest)
    return stop(problems, where,
                "is an array of " + std::to_string(count) + " " + kTypes[type].name +
                    ", but only " + std::to_string(reader.left()) +
                    " bytes are left: the file is truncated or corrupt");
  if (type != kString) {
    const auto raw = reader.take(static_cast<std::size_t>(count) * smallest);
    if (stored == Stored::boolean) check_booleans(raw, where, problems);
    out.is = ConfigNumbers{stored, {raw.begin(), raw.end()}};
    return true;
  }
  ConfigTexts texts;  // grows with what is read: the count is only a claim
  for (std::uint64_t n = 0; n < count; ++n) {
    std::string_view text;
    if (!read_gguf_text(reader, where, text, problems)) return false;
    texts.emplace_back(text);
  }
  out.is = std::move(texts);
  return true;
}

}  // namespace

bool read_gguf_text(ByteReader& reader, const std::string& where, std::string_view& out,
                    std::vector<Problem>& problems) {
  std::uint64_t length = 0;
  if (!reader.number(length)) return stop_at_end(reader, problems, where);
  if (length > kLongestText)
    return stop(problems, where,
                "a text of " + std::to_string(length) + " bytes; at most 2^30 are read");
  if (length > reader.left())
    return stop(problems, where,
                "a text of " + std::to_string(length) + " bytes, but only " +
                    std::to_string(reader.left()) + " are left: the file is truncated or corrupt");
  const auto raw = reader.take(static_cast<std::size_t>(length));
  out = {reinterpret_cast<const char*>(raw.data()), raw.size()};
  return true;
}

bool read_gguf_value(ByteReader& reader, std::uint32_t type, const std::string& where,
                     ConfigValue& out, std::vector<Problem>& problems) {
  if (!check_type(type, where, problems)) return false;
  if (type == kArray) return read_array(reader, where, out, problems);
  if (type == kString) {
    std::string_view text;
    if (!read_gguf_text(reader, where, text, problems)) return false;
    out.is = std::string(text);
    return true;
  }
  const Stored stored = kTypes[type].stored;
  const auto size = static_cast<std::size_t>(block_bytes(stored));
  if (reader.left() < size) return stop_at_end(reader, problems, where);
  const auto raw = reader.take(size);
  if (stored == Stored::boolean) check_booleans(raw, where, problems);
  out = value_at({stored, {raw.begin(), raw.end()}}, 0);
  return true;
}

}  // namespace glasshead::formats
