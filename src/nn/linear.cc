#include "nn/linear.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "base/stream_memory.h"
#include "core/context_impl.h"
#include "core/scratch.h"
#include "nn/linear_pack.h"

namespace glasshead::nn {
namespace {

// One matrix of the layer.
struct Part {
  WeightForm form;
  index_t first, out;     // its outputs among the layer's
  index_t first_group;    // likewise of its groups
  const std::byte* data;  // [groups, group_bytes]
  index_t group_bytes;
  bool is_plain;  // linear_pack.h
};

// 32 outputs or fewer.
struct Group {
  const Part* part;
  const std::byte* weights;
  index_t first, count;  // of its outputs among the layer's
};

}  // namespace

struct Linear::Packed {
  index_t out = 0, in = 0, groups = 0, bytes = 0;
  Stored type = Stored::f32;
  std::vector<Part> parts;
  StreamMemory weights;
  AlignedArray<float> bias;  // [groups, 32]

  Group group(index_t number) const {
    const Part* part = &parts.back();
    while (number < part->first_group) --part;
    const index_t n = number - part->first_group;
    return {part, part->data + n * part->group_bytes, part->first + n * kGroup,
            std::min(kGroup, part->out - n * kGroup)};
  }
};

namespace {

// Elements of `in` of a tile, a multiple of every block: 96 KB of f32 at most, of which a strip of
// rows reads half, 48 KB, from the second cache. With tiles of 128 and 256, which fit the first,
// sums come and go more often: 80 and 85 % of a core's peak against 88 (Zen 3, 768 -> 1536, Q4_1).
constexpr index_t kDepth = 768;
// Rows of a work item: with more the rows leave the second cache, 4 to 8 points.
constexpr index_t kRowBlock = 192;

struct Call {
  const View<const float, 2>& x;  // inner stride 1
  const View<float, 2>& y;        // inner stride 1
  const LinearKernels& kernels;
  index_t in;
  const float* bias;  // [groups, 32]
};

void unpack_literally(const Part& part, const Group& group, index_t in, index_t first,
                      index_t depth, float* tile) {
  std::vector<float> row(static_cast<std::size_t>(depth));
  std::fill_n(tile, depth * kGroup, 0.0F);
  for (index_t lane = 0; lane < group.count; ++lane) {
    unpack_row(part.form, part.data, in, group.first - part.first + lane, first, row);
    for (index_t n = 0; n < depth; ++n) tile[n * kGroup + lane] = row[static_cast<std::size_t>(n)];
  }
}

struct Room {
  float* tile;  // [kDepth, 32]
  float* sums;  // [kRowBlock, 32]
};

void apply_tile(const Call& call, const Group& group, index_t number, index_t first_row,
                index_t rows, const Room& room) {
  const Part& part = *group.part;
  index_t first = 0;
  do {
    const index_t depth = std::min(kDepth, call.in - first);
    const float* tile = room.tile;
    if (!part.is_plain)
      unpack_literally(part, group, call.in, first, depth, room.tile);
    else if (part.form == WeightForm::f32)
      tile = static_cast<const float*>(static_cast<const void*>(group.weights)) + first * kGroup;
    else
      call.kernels.unpack({.form = part.form,
                           .weights = group.weights,
                           .first = first,
                           .depth = depth,
                           .tile = room.tile});
    call.kernels.tile({.x = call.x.data + first_row * call.x.strides[0] + first,
                       .x_stride = call.x.strides[0],
                       .rows = rows,
                       .tile = tile,
                       .depth = depth,
                       .sums = room.sums,
                       .is_first = first == 0,
                       .is_last = first + depth == call.in,
                       .bias = call.bias + number * kGroup,
                       .count = group.count,
                       .y = call.y.data + first_row * call.y.strides[0] + group.first,
                       .y_stride = call.y.strides[0]});
    first += depth;
  } while (first < call.in);
}

// The view itself where its rows are dense, else a copy in `copy`.
View<const float, 2> dense(const View<const float, 2>& x, Scratch<float>& copy) {
  if (x.strides[1] == 1 || x.shape[1] == 1) return x;
  copy = Scratch<float>(x.shape[0] * x.shape[1]);
  for (index_t r = 0; r < x.shape[0]; ++r)
    for (index_t e = 0; e < x.shape[1]; ++e) copy.data()[r * x.shape[1] + e] = x(r, e);
  return {copy.data(), x.shape};
}

}  // namespace

Linear::Linear(const StoredMatrix& weights, std::span<const float> bias)
    : Linear(std::span(&weights, 1), bias) {}

Linear::Linear(std::span<const StoredMatrix> weights, std::span<const float> bias) {
  const auto packed = std::make_shared<Packed>();
  packed->in = weights[0].in;
  packed->type = weights[0].type;
  index_t bytes = 0;
  for (const StoredMatrix& matrix : weights) {
    GLASSHEAD_ASSERT(matrix.in == packed->in);
    const WeightForm form = form_of(matrix.type);
    packed->parts.push_back({.form = form,
                             .first = packed->out,
                             .out = matrix.out,
                             .first_group = packed->groups,
                             .data = nullptr,
                             .group_bytes = group_bytes(form, matrix.in),
                             .is_plain = true});
    packed->out += matrix.out;
    packed->groups += groups_of(matrix.out);
    bytes += groups_of(matrix.out) * packed->parts.back().group_bytes;
  }
  packed->weights = StreamMemory(static_cast<std::size_t>(bytes));
  auto* data = static_cast<std::byte*>(packed->weights.data());
  for (std::size_t n = 0; n < weights.size(); ++n) {
    Part& part = packed->parts[n];
    part.data = data;
    pack(weights[n], data);
    part.is_plain = is_plain(part.form, data, part.out, packed->in);
    data += groups_of(part.out) * part.group_bytes;
  }
  packed->bias = AlignedArray<float>(packed->groups * kGroup);
  GLASSHEAD_ASSERT(bias.empty() || static_cast<index_t>(bias.size()) == packed->out);
  if (!bias.empty()) {
    for (const Part& part : packed->parts)
      std::copy_n(bias.data() + part.first, part.out,
                  packed->bias.data() + part.first_group * kGroup);
  }
  packed->bytes = bytes + packed->groups * kGroup * static_cast<index_t>(sizeof(float));
  packed_ = packed;
}

index_t Linear::out() const { return packed_ ? packed_->out : 0; }
index_t Linear::in() const { return packed_ ? packed_->in : 0; }
Stored Linear::type() const { return packed_ ? packed_->type : Stored::f32; }
index_t Linear::bytes() const { return packed_ ? packed_->bytes : 0; }

void Linear::apply(const View<const float, 2>& x, const View<float, 2>& y,
                   const Context& context) const {
  GLASSHEAD_ASSERT(x.shape[1] == in() && y.shape[1] == out() && x.shape[0] == y.shape[0]);
  const index_t rows = x.shape[0];
  if (rows == 0 || out() == 0) return;
  const Packed& packed = *packed_;
  const Context::Impl& impl = context.impl();
  Scratch<float> x_copy, y_copy;
  const View<const float, 2> x_rows = dense(x, x_copy);
  View<float, 2> y_rows = y;
  if (y.strides[1] != 1 && y.shape[1] != 1) {
    y_copy = Scratch<float>(rows * out());
    y_rows = {y_copy.data(), y.shape};
  }
  const Call call{x_rows, y_rows, impl.kernels.linear, packed.in, packed.bias.data()};
  const bool is_plain = std::all_of(packed.parts.begin(), packed.parts.end(),
                                    [](const Part& p) { return p.is_plain; });
  if (rows == 1 && is_plain) {  // weights are read once, as they are stored
    impl.pool.run(packed.groups, [&](index_t number, int) {
      const Group group = packed.group(number);
      call.kernels.row({.form = group.part->form,
                        .weights = group.weights,
                        .in = call.in,
                        .x = x_rows.data,
                        .bias = call.bias + number * kGroup,
                        .count = group.count,
                        .y = y_rows.data + group.first});
    });
  } else {
    const index_t blocks = (rows + kRowBlock - 1) / kRowBlock;
    const index_t items = blocks * packed.groups;
    const index_t workers = std::min<index_t>(impl.pool.workers(), items);
    constexpr index_t kRoom = (kDepth + kRowBlock) * kGroup;
    Scratch<float> scratch(workers * kRoom);
    impl.pool.run(items, [&](index_t item, int worker) {
      float* const mine = scratch.data() + worker * kRoom;
      const index_t first_row = item / packed.groups * kRowBlock, number = item % packed.groups;
      apply_tile(call, packed.group(number), number, first_row,
                 std::min(kRowBlock, rows - first_row), {mine, mine + kDepth * kGroup});
    });
  }
  if (y_copy.data() != nullptr) {
    for (index_t r = 0; r < rows; ++r)
      for (index_t o = 0; o < out(); ++o) y(r, o) = y_copy.data()[r * out() + o];
  }
}

void Linear::row(index_t o, std::span<float> out) const {
  const Packed& packed = *packed_;
  const Part* part = &packed.parts.back();
  while (o < part->first) --part;
  unpack_row(part->form, part->data, packed.in, o - part->first, 0, out);
}

}  // namespace glasshead::nn
