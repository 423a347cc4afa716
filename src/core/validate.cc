#include "core/validate.h"

#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "base/checked.h"

namespace glasshead {
namespace {

constexpr std::size_t kRowsNamed = 8;  // a message that lists more is not read

}  // namespace

bool spans_memory(std::span<const index_t> shape, std::span<const index_t> strides, DType type) {
  index_t lowest = 0;
  index_t highest = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] <= 1) continue;
    const std::optional<index_t> reach = checked_mul(shape[axis] - 1, strides[axis]);
    if (!reach) return false;
    index_t& end = *reach < 0 ? lowest : highest;
    const std::optional<index_t> sum = checked_add(end, *reach);
    if (!sum) return false;
    end = *sum;
  }
  const auto bytes = static_cast<index_t>(size_of(type));
  return checked_mul(lowest, bytes) && checked_mul(highest, bytes);
}

template <int Rank>
void check_writable(const std::string& where, const MutableTensor<Rank>& tensor,
                    const std::array<index_t, ConstTensor<Rank>::kRank>& shape,
                    const std::array<const char*, ConstTensor<Rank>::kRank>& axes,
                    Findings& findings) {
  if (!is_floating(tensor.dtype)) {
    findings.option(where, fmt::format("has dtype {}; f64, f32, bf16 or f16 would be right",
                                       name(tensor.dtype)));
  }
  bool has_elements = true;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (tensor.shape[axis] != shape[axis]) {
      findings.shape(where, fmt::format("axis {} has {} where {} is right ({} {}, needed {})",
                                        axes[axis], tensor.shape[axis], shape[axis], where,
                                        shape_text(tensor.shape), shape_text(shape)));
    }
    has_elements = has_elements && tensor.shape[axis] > 0;
  }
  if (!has_elements) return;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (tensor.shape[axis] > 1 && tensor.strides[axis] == 0) {
      findings.option(where, fmt::format("axis {} has stride 0: its {} elements are one, and would "
                                         "be written over each other",
                                         axes[axis], tensor.shape[axis]));
    }
  }
  if (!spans_memory(tensor.shape, tensor.strides, tensor.dtype)) {
    findings.shape(where, "shape and strides " + shape_text(tensor.shape) + ", " +
                              shape_text(tensor.strides) + " reach beyond 64-bit addresses");
  }
  if (tensor.data == nullptr) {
    findings.option(where, "data is null, but " + shape_text(tensor.shape) + " has elements");
  }
}

template void check_writable(const std::string&, const MutableTensor<1>&,
                             const std::array<index_t, 1>&, const std::array<const char*, 1>&,
                             Findings&);
template void check_writable(const std::string&, const MutableTensor<3>&,
                             const std::array<index_t, 3>&, const std::array<const char*, 3>&,
                             Findings&);
template void check_writable(const std::string&, const MutableTensor<4>&,
                             const std::array<index_t, 4>&, const std::array<const char*, 4>&,
                             Findings&);

void check_apart(const std::vector<NamedData>& read, const std::vector<NamedData>& written,
                 Findings& findings) {
  std::vector<NamedData> taken(read);
  for (const NamedData& result : written) {
    if (result.data == nullptr) continue;
    for (const NamedData& other : taken) {
      if (other.data == result.data)
        findings.option(result.name, std::string("shares its memory with ") + other.name +
                                         "; results need memory of their own");
    }
    taken.push_back(result);
  }
}

void EmptyRows::add(index_t b, index_t h, index_t i) {
  if (rows.size() < kRowsNamed) rows.push_back({b, h, i});
  ++count;
}

void report_empty_rows(const EmptyRows& empty, const char* why, Findings& findings) {
  if (empty.count == 0) return;
  std::string list;
  for (const auto& row : empty.rows) list += (list.empty() ? "" : ", ") + index_text(row);
  const auto named = static_cast<index_t>(empty.rows.size());
  if (empty.count > named) list += fmt::format(" and {} more", empty.count - named);
  findings.option("empty_row",
                  fmt::format("{} {} {}: (batch, head, row) {}; softmax over nothing "
                              "is undefined. EmptyRow::zero gives such rows zeros",
                              empty.count, empty.count == 1 ? "row has" : "rows have", why, list));
}

void require_call(const char* function, const CallInputs& inputs, const AttentionOptions& options) {
  Findings findings;
  check_call(inputs, options, findings);
  refuse(function, findings);
}

}  // namespace glasshead
