#include "formats/gguf.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "base/shape_text.h"
#include "formats/elements.h"
#include "formats/gguf_value.h"
#include "formats/shown.h"

namespace glasshead::formats {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint64_t kSmallestKey = 8 + 4 + 1;         // the key's length, the type, a byte
constexpr std::uint64_t kSmallestTensor = 8 + 4 + 4 + 8;  // length, axes, type, offset
constexpr std::size_t kNameBelow = 64;                    // ggml's names end in a zero byte
constexpr std::uint32_t kMostAxes = 4;
constexpr std::uint32_t kDefaultAlignment = 32;

// A tensor's type by its number; `stored` is missing for those that are known and not read.
struct TensorType {
  const char* name;
  std::uint32_t number;
  std::optional<Stored> stored;
};
constexpr TensorType kTensorTypes[] = {
    {"F32", 0, Stored::f32},
    {"F16", 1, Stored::f16},
    {"Q4_0", 2, Stored::q4_0},
    {"Q4_1", 3, Stored::q4_1},
    {"Q5_0", 6, Stored::q5_0},
    {"Q5_1", 7, Stored::q5_1},
    {"Q8_0", 8, Stored::q8_0},
    {"Q8_1", 9, {}},
    {"Q2_K", 10, {}},
    {"Q3_K", 11, {}},
    {"Q4_K", 12, Stored::q4_k},
    {"Q5_K", 13, Stored::q5_k},
    {"Q6_K", 14, Stored::q6_k},
    {"Q8_K", 15, {}},
    {"IQ2_XXS", 16, {}},
    {"IQ2_XS", 17, {}},
    {"IQ3_XXS", 18, {}},
    {"IQ1_S", 19, {}},
    {"IQ4_NL", 20, {}},
    {"IQ3_S", 21, {}},
    {"IQ2_S", 22, {}},
    {"IQ4_XS", 23, {}},
    {"I8", 24, {}},
    {"I16", 25, {}},
    {"I32", 26, {}},
    {"I64", 27, {}},
    {"F64", 28, {}},
    {"IQ1_M", 29, {}},
    {"BF16", 30, Stored::bf16},
    {"TQ1_0", 34, {}},
    {"TQ2_0", 35, {}},
    {"MXFP4", 39, {}},
    {"NVFP4", 40, {}},
    {"Q1_0", 41, {}},
};

std::string type_name(std::uint32_t number) {
  for (const TensorType& type : kTensorTypes)
    if (type.number == number) return type.name;
  return "number " + std::to_string(number) + ", which is unknown or was removed from the format";
}

std::optional<Stored> stored_of(std::uint32_t number) {
  for (const TensorType& type : kTensorTypes)
    if (type.number == number) return type.stored;
  return std::nullopt;
}

struct Counts {
  std::uint64_t tensors = 0, keys = 0;
};

class Parser {
 public:
  Parser(std::span<const std::byte> bytes, std::vector<Problem>& problems)
      : bytes_(bytes), reader_(bytes), problems_(problems), problems_before_(problems.size()) {}

  bool run(Config& config, std::vector<StoredTensor>& tensors) {
    Counts counts;
    if (!read_front(counts) || !read_keys(counts.keys, config)) return false;
    check_split(config);
    for (std::uint64_t n = 0; n < counts.tensors; ++n)
      if (!read_tensor(n)) return false;
    name_types_not_read();
    place_data();
    if (problems_.size() != problems_before_) return false;
    for (Info& info : infos_) tensors.push_back(std::move(info.tensor));
    return true;
  }

 private:
  struct Info {
    StoredTensor tensor;
    std::uint64_t offset = 0;            // from the start of the data
    std::optional<std::uint64_t> bytes;  // nullopt: type or shape is wrong
  };

  bool stop(std::string where, std::string what) {
    problems_.push_back({std::move(where), std::move(what)});
    return false;
  }
  void note(std::string where, std::string what) { stop(std::move(where), std::move(what)); }

  bool read_front(Counts& counts) {
    const auto front = bytes_.first(std::min(bytes_.size(), kMagic.size()));
    const std::string_view magic{reinterpret_cast<const char*>(front.data()), front.size()};
    if (magic != kMagic)
      return stop("file", "begins with " + shown(magic) + "; a GGUF file begins with 'GGUF'");
    reader_.take(kMagic.size());
    std::uint32_t version = 0;
    if (!reader_.number(version)) return stop_in("version");
    if (version != 0 && (version & 0xFFFFU) == 0)
      return stop("version", "is " + std::to_string(version) +
                                 ": a big-endian file; only little-endian ones are read");
    if (version != 2 && version != 3)
      return stop("version", "is " + std::to_string(version) + "; 2 and 3 are read");
    if (!reader_.number(counts.tensors)) return stop_in("tensor count");
    if (!reader_.number(counts.keys)) return stop_in("key count");
    const bool tensors_fit = check_count("tensor count", counts.tensors, kSmallestTensor);
    return check_count("key count", counts.keys, kSmallestKey) && tensors_fit;
  }

  bool check_count(const char* where, std::uint64_t count, std::uint64_t smallest) {
    const std::uint64_t most = reader_.left() / smallest;
    return count <= most ||
           stop(where, "is " + std::to_string(count) + ", but the " +
                           std::to_string(reader_.left()) + " bytes that follow hold " +
                           std::to_string(most) + " at most");
  }

  bool stop_in(const std::string& where) {
    return stop(where, "the file ends in it, at byte " + std::to_string(bytes_.size()) +
                           ": it is truncated or corrupt");
  }

  bool read_keys(std::uint64_t count, Config& config) {
    std::set<std::string_view> seen;
    for (std::uint64_t n = 0; n < count; ++n) {
      const std::string number = "key number " + std::to_string(n);
      std::string_view key;
      if (!read_gguf_text(reader_, number, key, problems_)) return false;
      const std::string where = key.empty() ? number : "key " + shown(key);
      if (key.empty()) note(where, "is empty; a key has a name");
      if (!seen.insert(key).second && !key.empty()) note(where, "occurs twice");
      std::uint32_t type = 0;
      if (!reader_.number(type)) return stop_in(where);
      ConfigValue value;
      if (!read_gguf_value(reader_, type, where, value, problems_)) return false;
      if (key == "general.alignment") set_alignment(where, type, value);
      config.push_back({std::string(key), std::move(value)});
    }
    return true;
  }

  void set_alignment(const std::string& where, std::uint32_t type, const ConfigValue& value) {
    alignment_.reset();
    const auto* whole = std::get_if<std::int64_t>(&value.is);
    if (type != kGgufU32 || whole == nullptr)
      note(where, "has a value of type " + std::to_string(type) + "; it must be a u32, type 4");
    else if (!std::has_single_bit(static_cast<std::uint64_t>(*whole)))
      note(where, "is " + std::to_string(*whole) + "; a power of two is needed");
    else
      alignment_ = static_cast<std::uint64_t>(*whole);
  }

  void check_split(const Config& config) {
    const ConfigValue* value = find(config, "split.count");
    const auto* files = value == nullptr ? nullptr : std::get_if<std::int64_t>(&value->is);
    if (files != nullptr && *files > 1)
      note("key 'split.count'", "is " + std::to_string(*files) +
                                    ": the model is split over files, which is not read; "
                                    "merge them with llama-gguf-split --merge");
  }

  bool read_tensor(std::uint64_t n) {
    Info info;
    const std::string number = "tensor number " + std::to_string(n);
    std::string_view name;
    if (!read_gguf_text(reader_, number, name, problems_)) return false;
    const std::string where = "tensor " + shown(name);
    if (name.size() >= kNameBelow)
      note(where, "its name has " + std::to_string(name.size()) + " bytes; at most 63 are allowed");
    if (!names_.insert(name).second) note(where, "occurs twice");
    std::uint32_t axes = 0, type = 0;
    if (!reader_.number(axes)) return stop_in(where);
    if (axes > kMostAxes)
      return stop(where, "has " + std::to_string(axes) + " dims; at most 4 are allowed");
    std::vector<std::uint64_t> dims(axes);
    for (std::uint64_t& dim : dims)
      if (!reader_.number(dim)) return stop_in(where);
    if (!reader_.number(type) || !reader_.number(info.offset)) return stop_in(where);
    info.tensor.name = name;
    set_type_and_shape(where, type, dims, info);
    infos_.push_back(std::move(info));
    return true;
  }

  void set_type_and_shape(const std::string& where, std::uint32_t type,
                          const std::vector<std::uint64_t>& dims, Info& info) {
    const std::optional<Stored> stored = stored_of(type);
    if (!stored) {
      auto& [first, count] = not_read_[type];
      if (count++ == 0) first = where;
    }
    for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
      if (*dim > static_cast<std::uint64_t>(INT64_MAX))
        return note(where, "a dim is " + std::to_string(*dim) + "; it must be below 2^63");
      info.tensor.shape.push_back(static_cast<index_t>(*dim));
    }
    const std::optional<index_t> count = checked_size(info.tensor.shape);
    const std::string shape = file_shape_text(info.tensor.shape);
    if (!count) return note(where, "shape " + shape + " has 2^63 elements or more");
    if (!stored) return;
    info.tensor.type = *stored;
    const index_t block = block_elements(*stored);
    const index_t innermost = info.tensor.shape.empty() ? 1 : info.tensor.shape.back();
    if (innermost % block != 0)
      return note(where, "rows of shape " + shape + " are not a multiple of the " +
                             std::to_string(block) + " elements in a block of " + type_name(type));
    const std::optional<index_t> bytes = checked_mul(*count / block, block_bytes(*stored));
    if (!bytes) return note(where, "the size of shape " + shape + " in bytes is beyond 2^63");
    info.bytes = static_cast<std::uint64_t>(*bytes);
  }

  // One problem for each type, not for each of its tensors: a file has hundreds.
  void name_types_not_read() {
    for (const auto& [type, tensors] : not_read_) {
      const auto& [first, count] = tensors;
      note(first, (count > 1 ? "and " + std::to_string(count - 1) + " more: " : "") +
                      std::string("its type is ") + type_name(type) +
                      "; read are F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q4_K Q5_K Q6_K");
    }
  }

  // Each tensor begins where the one before it ends, padded to the alignment, and lies in the file.
  void place_data() {
    if (!alignment_) return;
    const std::uint64_t mask = *alignment_ - 1;
    // A multiple of a power of two at or above n; n is far below 2^63 where this is called.
    const auto padded = [mask](std::uint64_t n) { return (n + mask) & ~mask; };
    const std::uint64_t start = padded(reader_.position());
    std::optional<std::uint64_t> expected = 0;  // unknown after a tensor of unknown size
    std::uint64_t needed = 0;                   // bytes of the file
    const Info* beyond = nullptr;               // the first that the file does not hold
    for (Info& info : infos_) {
      const std::string where = "tensor " + shown(info.tensor.name);
      if (expected && info.offset != *expected)
        note(where, "its offset is " + std::to_string(info.offset) + "; it must be " +
                        std::to_string(*expected) + ", where the data before it ends");
      expected.reset();
      if (!info.bytes) continue;
      // The sum is checked before it is made: the start is within the file, the other two are its
      // own claims.
      const std::uint64_t room = static_cast<std::uint64_t>(INT64_MAX) - start - mask;
      if (*info.bytes > room || info.offset > room - *info.bytes) {
        note(where, "its data at offset " + std::to_string(info.offset) + " ends beyond 2^63");
        continue;
      }
      expected = padded(info.offset + *info.bytes);
      const std::uint64_t end = start + info.offset + *info.bytes;
      if (end > bytes_.size() && beyond == nullptr) beyond = &info;
      needed = std::max(needed, end);
      if (end <= bytes_.size())
        info.tensor.bytes = bytes_.subspan(static_cast<std::size_t>(start + info.offset),
                                           static_cast<std::size_t>(*info.bytes));
    }
    if (beyond != nullptr)
      note("data", "the tensors need a file of " + std::to_string(needed) + " bytes; it has " +
                       std::to_string(bytes_.size()) + " and ends before the end of tensor " +
                       shown(beyond->tensor.name) + ": it is truncated or corrupt");
  }

  std::span<const std::byte> bytes_;
  ByteReader reader_;
  std::vector<Problem>& problems_;
  std::size_t problems_before_;
  std::optional<std::uint64_t> alignment_ = kDefaultAlignment;  // nullopt: the file's is wrong
  std::vector<Info> infos_;
  std::set<std::string_view> names_;
  // By the number of a type that is not read: its first tensor, and how many have it.
  std::map<std::uint32_t, std::pair<std::string, std::uint64_t>> not_read_;
};

}  // namespace

bool parse_gguf(std::span<const std::byte> bytes, Config& config,
                std::vector<StoredTensor>& tensors, std::vector<Problem>& problems) {
  Config keys;
  std::vector<StoredTensor> found;
  if (!Parser(bytes, problems).run(keys, found)) return false;
  config = std::move(keys);
  tensors = std::move(found);
  return true;
}

}  // namespace glasshead::formats
