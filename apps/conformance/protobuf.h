// As much of the protocol buffer wire format as an ONNX test needs: a message is a list of fields,
// read in place and bounded by the bytes there are. Format: protobuf.dev, "Encoding"; field
// numbers: onnx/onnx onnx/onnx.proto.
//
//   for (Field f = reader.next(); f.number != 0; f = reader.next()) ...
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "conformance/array.h"

namespace glasshead::conformance::protobuf {

using Bytes = std::span<const std::byte>;

enum class Wire { varint, fixed64, bytes, fixed32 };

struct Field {
  std::uint32_t number = 0;  // 0: the message is over
  Wire wire = Wire::varint;
  std::uint64_t value = 0;  // of varint, fixed64, fixed32
  Bytes bytes;              // of bytes: a string, a packed list, a message
};

class Reader {
 public:
  explicit Reader(Bytes bytes) : rest_(bytes) {}
  Field next();  // throws FormatError where the bytes are not a message
  bool is_done() const { return rest_.empty(); }
  std::uint64_t varint();

 private:
  std::uint64_t fixed(std::size_t count);
  Bytes rest_;
};

std::string string(Bytes bytes);

struct Attribute {
  std::string name;
  int type = 0;  // AttributeProto.AttributeType: 1 float, 2 int, 3 string
  double number = 0;
  std::string text;
};

struct Node {
  std::string op, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes;
};

struct Model {
  std::vector<Node> nodes;
  std::vector<std::string> inputs, outputs;  // of the graph, in order
};

Model parse_model(Bytes bytes);

// A tensor with its numbers as raw data. nullopt for what this program doesn't read: another type,
// or numbers kept elsewhere.
std::optional<FileTensor> parse_tensor(Bytes bytes);

}  // namespace glasshead::conformance::protobuf
