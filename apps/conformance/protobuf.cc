#include "conformance/protobuf.h"

#include <bit>
#include <cstring>

#include "base/checked.h"
#include "glasshead/error.h"

namespace glasshead::conformance::protobuf {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw FormatError("glasshead-conformance", {{"protobuf", what}});
}

float as_float(const Field& field) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
}

index_t as_integer(std::uint64_t value) { return std::bit_cast<index_t>(value); }

// Calls visit(field) for every field of a message.
template <class Visit>
void for_each(Bytes message, Visit visit) {
  Reader reader(message);
  for (Field field = reader.next(); field.number != 0; field = reader.next()) visit(field);
}

Attribute parse_attribute(Bytes bytes) {
  Attribute attribute;
  float f = 0;
  index_t i = 0;
  for_each(bytes, [&](const Field& field) {
    if (field.number == 1) attribute.name = string(field.bytes);
    if (field.number == 2 && field.wire == Wire::fixed32) f = as_float(field);
    if (field.number == 3) i = as_integer(field.value);
    if (field.number == 4) attribute.text = string(field.bytes);
    if (field.number == 20) attribute.type = static_cast<int>(field.value & 0xff);
  });
  attribute.number = attribute.type == 1 ? static_cast<double>(f) : static_cast<double>(i);
  return attribute;
}

Node parse_node(Bytes bytes) {
  Node node;
  for_each(bytes, [&](const Field& field) {
    if (field.number == 1) node.inputs.push_back(string(field.bytes));
    if (field.number == 2) node.outputs.push_back(string(field.bytes));
    if (field.number == 4) node.op = string(field.bytes);
    if (field.number == 5) node.attributes.push_back(parse_attribute(field.bytes));
    if (field.number == 7) node.domain = string(field.bytes);
  });
  return node;
}

std::string parse_name(Bytes value_info) {
  std::string name;
  for_each(value_info, [&](const Field& field) {
    if (field.number == 1) name = string(field.bytes);
  });
  return name;
}

// TensorProto.DataType; bool is 9.
std::optional<DType> dtype(std::uint64_t type) {
  switch (type) {
    case 1:
      return DType::f32;
    case 7:
      return DType::i64;
    case 9:
      return DType::u8;
    case 10:
      return DType::f16;
    case 11:
      return DType::f64;
    case 16:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

void append_dimensions(const Field& field, std::vector<index_t>& shape) {
  if (field.wire == Wire::varint) {
    shape.push_back(as_integer(field.value));
    return;
  }
  Reader packed(field.bytes);
  while (!packed.is_done()) shape.push_back(as_integer(packed.varint()));
}

}  // namespace

std::uint64_t Reader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) refuse("a number is cut off");
    const auto byte = std::to_integer<std::uint64_t>(rest_.front());
    rest_ = rest_.subspan(1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  refuse("a number of more than ten bytes");
}

std::uint64_t Reader::fixed(std::size_t count) {
  if (rest_.size() < count) refuse("a number is cut off");
  std::uint64_t value = 0;
  for (std::size_t n = 0; n < count; ++n) {
    value |= std::to_integer<std::uint64_t>(rest_[n]) << (8 * n);
  }
  rest_ = rest_.subspan(count);
  return value;
}

Field Reader::next() {
  if (rest_.empty()) return {};
  const std::uint64_t key = varint();
  Field field;
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff) refuse("a field's number is out of range");
  field.number = static_cast<std::uint32_t>(key >> 3);
  switch (key & 7) {
    case 0:
      field.value = varint();
      return field;
    case 1:
      field.wire = Wire::fixed64;
      field.value = fixed(8);
      return field;
    case 2: {
      field.wire = Wire::bytes;
      const std::uint64_t length = varint();
      if (length > rest_.size()) refuse("a field is longer than the bytes there are");
      field.bytes = rest_.first(static_cast<std::size_t>(length));
      rest_ = rest_.subspan(static_cast<std::size_t>(length));
      return field;
    }
    case 5:
      field.wire = Wire::fixed32;
      field.value = fixed(4);
      return field;
    default:
      refuse("a field of unknown wire type " + std::to_string(key & 7));
  }
}

std::string string(Bytes bytes) {
  std::string text(bytes.size(), '\0');
  if (!bytes.empty()) std::memcpy(text.data(), bytes.data(), bytes.size());
  return text;
}

Model parse_model(Bytes bytes) {
  Model model;
  const auto visit_graph = [&model](const Field& field) {
    if (field.number == 1) model.nodes.push_back(parse_node(field.bytes));
    if (field.number == 11) model.inputs.push_back(parse_name(field.bytes));
    if (field.number == 12) model.outputs.push_back(parse_name(field.bytes));
  };
  for_each(bytes, [&](const Field& field) {
    if (field.number == 7) for_each(field.bytes, visit_graph);
  });
  return model;
}

std::optional<FileTensor> parse_tensor(Bytes bytes) {
  FileTensor tensor;
  std::uint64_t type = 0;
  Bytes raw;
  bool has_numbers_elsewhere = false;
  for_each(bytes, [&](const Field& field) {
    if (field.number == 1) append_dimensions(field, tensor.shape);
    if (field.number == 2) type = field.value;
    if (field.number == 9) raw = field.bytes;
    // float_data, int32_data, string_data, int64_data, double_data, uint64_data, external_data
    if ((field.number >= 4 && field.number <= 7) || field.number == 10 || field.number == 11 ||
        field.number == 13) {
      has_numbers_elsewhere = true;
    }
  });
  const auto known = dtype(type);
  if (!known || has_numbers_elsewhere) return std::nullopt;
  tensor.dtype = *known;
  const auto size = checked_size(tensor.shape);
  const auto needed =
      size ? checked_mul(*size, static_cast<index_t>(size_of(tensor.dtype))) : std::nullopt;
  if (!needed || static_cast<std::uint64_t>(*needed) != raw.size()) {
    refuse("a tensor's shape and data do not fit");
  }
  tensor.bytes.assign(raw.begin(), raw.end());
  return tensor;
}

}  // namespace glasshead::conformance::protobuf
