// .npy: 6 bytes of magic, 2 of version, the header's length (u16 in version 1.0, u32 later), the
// header, the data. Source: numpy/lib/format.py.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "base/fail.h"
#include "base/shape_text.h"
#include "formats/elements.h"
#include "formats/npy_header.h"
#include "formats/shown.h"
#include "glasshead/tensor_file.h"

namespace glasshead {
namespace {

using formats::NpyHeader;
using formats::shown;
using formats::StoredType;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionEnd = kMagic.size() + 2;
constexpr std::size_t kAlignment = 64;  // of the data, as NumPy writes it

bool refuse(std::vector<Problem>& problems, const char* where, std::string what) {
  problems.push_back({where, std::move(what)});
  return false;
}

// Finds the header's text; `data` is where it ends.
bool find_header(std::string_view file, std::string_view& header, std::size_t& data,
                 std::vector<Problem>& problems) {
  if (file.size() < kVersionEnd || file.substr(0, kMagic.size()) != kMagic)
    return refuse(problems, "magic",
                  "found " + shown(file.substr(0, kMagic.size())) +
                      "; a .npy file begins with '\\x93NUMPY' and its version");
  const int major = static_cast<unsigned char>(file[kMagic.size()]);
  const int minor = static_cast<unsigned char>(file[kMagic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0)
    return refuse(problems, "version",
                  "found " + std::to_string(major) + "." + std::to_string(minor) +
                      "; versions 1.0, 2.0 and 3.0 are read");
  const std::size_t field = major == 1 ? 2 : 4;
  if (file.size() < kVersionEnd + field)
    return refuse(problems, "header length", "the file ends before it");
  std::uint32_t length = 0;
  std::memcpy(&length, file.data() + kVersionEnd, field);
  data = kVersionEnd + field;
  const std::size_t left = file.size() - data;
  if (length > left)
    return refuse(problems, "header length",
                  "is " + std::to_string(length) + ", but only " + std::to_string(left) +
                      " bytes follow: the file is truncated or corrupt");
  header = file.substr(data, length);
  data += length;
  return true;
}

const StoredType* find_type(const std::string& descr, std::vector<Problem>& problems) {
  const std::string what = "is " + shown(descr);
  const char order = descr.empty() ? '\0' : descr[0];
  const StoredType* type = descr.empty() ? nullptr : formats::find_npy(descr.substr(1));
  if (order == '>' && type != nullptr && type->bytes > 1) {
    refuse(problems, "descr",
           what + ", big-endian; save it little-endian: a.astype('<" + descr.substr(1) + "')");
  } else if (order == '|' && descr.substr(1, 1) == "O") {
    refuse(problems, "descr",
           what + ", Python objects, which are pickled code; save an array of numbers");
  } else if (type == nullptr || !(order == '<' || (order == '|' && type->bytes == 1))) {
    refuse(problems, "descr",
           what + "; read are '<f8', '<f4', '<f2', '|b1', and the integers '<i8' to '|u1'");
    return nullptr;
  } else {
    return type;
  }
  return nullptr;
}

// Elements stored with the first axis fastest, put in row-major order.
std::vector<std::byte> to_row_major(std::span<const std::byte> raw,
                                    const std::vector<index_t>& shape, std::size_t element) {
  std::vector<std::byte> result(raw.size());
  std::vector<std::size_t> steps(shape.size());  // in elements
  std::size_t step = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    steps[axis] = step;
    step *= static_cast<std::size_t>(shape[axis]);
  }
  std::vector<index_t> at(shape.size());
  std::size_t from = 0;
  for (std::size_t to = 0; to < raw.size(); to += element) {
    std::memcpy(result.data() + to, raw.data() + from * element, element);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      from += steps[axis];
      if (++at[axis] < shape[axis]) break;
      from -= steps[axis] * static_cast<std::size_t>(shape[axis]);
      at[axis] = 0;
    }
  }
  return result;
}

// Checks the size of the data against what the header says before anything is allocated.
bool check_size(const NpyHeader& header, const StoredType& type, std::size_t found,
                std::vector<Problem>& problems) {
  const std::optional<index_t> count = checked_size(header.shape);
  const std::optional<index_t> bytes =
      count ? checked_mul(*count, static_cast<index_t>(type.bytes)) : std::nullopt;
  const std::string shape = file_shape_text(header.shape);
  if (!bytes) return refuse(problems, "shape", "the size of " + shape + " in bytes is beyond 2^63");
  if (static_cast<std::size_t>(*bytes) != found)
    return refuse(problems, "data",
                  std::to_string(found) + " bytes are there; shape " + shape + " of '" + type.npy +
                      "' needs " + std::to_string(*bytes) +
                      (static_cast<std::size_t>(*bytes) > found ? ": the file is truncated"
                                                                : ": the file goes on after it"));
  return true;
}

}  // namespace

bool parse_npy(std::span<const std::byte> bytes, FileTensor& out, std::vector<Problem>& problems) {
  const std::string_view file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string_view text;
  std::size_t data = 0;
  if (!find_header(file, text, data, problems)) return false;
  NpyHeader header;
  if (!formats::parse_npy_header(text, header, problems)) return false;
  const StoredType* type = find_type(header.descr, problems);
  if (type == nullptr) return false;
  const std::span<const std::byte> raw = bytes.subspan(data);
  if (!check_size(header, *type, raw.size(), problems)) return false;

  FileTensor tensor;
  tensor.shape = header.shape;
  std::string what;
  const bool is_kept = header.is_fortran_order && tensor.shape.size() > 1
                           ? formats::keep_elements(
                                 *type, to_row_major(raw, tensor.shape, type->bytes), tensor, what)
                           : formats::keep_elements(*type, raw, tensor, what);
  if (!is_kept) return refuse(problems, "data", what);
  out = std::move(tensor);
  return true;
}

std::vector<std::byte> npy_bytes(const FileTensor& tensor) {
  const StoredType& type = formats::stored_type(tensor);
  if (type.npy == nullptr)
    fail(ErrorKind::format, "write_npy", "dtype",
         std::string(name(tensor.dtype)) + " has no .npy type; write a .safetensors file");
  std::string shape;
  for (const index_t extent : tensor.shape) shape += std::to_string(extent) + ", ";
  if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
  if (tensor.shape.size() == 1) shape.pop_back();
  std::string header = std::string("{'descr': '") + (type.bytes == 1 ? "|" : "<") + type.npy +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";

  const bool is_long = kVersionEnd + 2 + header.size() + kAlignment > UINT16_MAX;
  const std::size_t field = is_long ? 4 : 2;
  const std::size_t end = kVersionEnd + field + header.size() + 1;
  header.append((kAlignment - end % kAlignment) % kAlignment, ' ');
  header += '\n';

  const auto length = static_cast<std::uint32_t>(header.size());
  std::string front(kMagic);
  front += is_long ? '\2' : '\1';
  front += '\0';
  front.append(reinterpret_cast<const char*>(&length), field);
  front += header;
  std::vector<std::byte> file(front.size() + tensor.bytes.size());
  std::memcpy(file.data(), front.data(), front.size());
  std::copy(tensor.bytes.begin(), tensor.bytes.end(),
            file.begin() + static_cast<std::ptrdiff_t>(front.size()));
  return file;
}

}  // namespace glasshead
