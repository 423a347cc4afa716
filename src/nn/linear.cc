#include "nn/linear.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/assert.h"
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

  template <class F>
  bool any(const F& f) const {
    return std::any_of(parts.begin(), parts.end(), f);
  }
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
// The same of few rows, for which unpacking is much of the work: a tile of 16 KB stays in the first
// cache, where it is written in less than half the time. bf16, AVX-512 on an Intel Xeon, of 4, 8,
// 16 rows: 52, 70, 82 % of the peak, with 768 elements 30, 51, 67; of 128 rows both take as long.
constexpr index_t kFewRowsDepth = 128;
constexpr index_t kFewRows = 96;
// Rows of a work item: with more the rows leave the second cache, 4 to 8 points.
constexpr index_t kRowBlock = 192;

// Room of a worker: a tile, the scales and offsets of its runs, and sums.
constexpr index_t kRuns = kDepth / 16;
constexpr index_t kRoom = (kDepth + 2 * kRuns + kRowBlock) * kGroup;

// The sums of x over the runs of a form with an offset, of one row after another.
struct RunSums {
  const float* first = nullptr;
  index_t stride = 0;
};

struct Call {
  const View<const float, 2>& x;  // inner stride 1
  const float* x_sums;            // of runs of 16: [rows, in / 16], then of 32: [rows, in / 32]
  const View<float, 2>& y;        // inner stride 1
  const LinearKernels& kernels;
  index_t in;
  const float* bias;  // [groups, 32]

  RunSums run_sums(WeightForm form) const {
    if (!has_offset(form)) return {};
    if (run_of(form) == 16) return {x_sums, in / 16};
    return {x_sums + x.shape[0] * (in / 16), in / 32};
  }
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

void apply_tile(const Call& call, const Group& group, index_t number, index_t first_row,
                index_t rows, float* room) {
  const Part& part = *group.part;
  float* const scale = room + kDepth * kGroup;
  float* const offset = scale + kRuns * kGroup;
  const RunSums x_sums = call.run_sums(part.form);
  const bool is_unpacked = !part.is_plain || part.form != WeightForm::f32;
  const index_t most =
      is_unpacked && rows <= kFewRows ? std::max(kFewRowsDepth, form_elements(part.form)) : kDepth;
  index_t first = 0;
  do {
    const index_t depth = std::min(most, call.in - first);
    const float* tile = room;
    if (!part.is_plain)
      unpack_literally(part, group, call.in, first, depth, room);
    else if (part.form == WeightForm::f32)
      tile = reinterpret_cast<const float*>(group.weights) + first * kGroup;
    else
      call.kernels.unpack({.form = part.form,
                           .weights = group.weights,
                           .first = first,
                           .depth = depth,
                           .tile = room,
                           .scale = scale,
                           .offset = offset});
    call.kernels.tile(
        {.x = call.x.data + first_row * call.x.strides[0] + first,
         .x_stride = call.x.strides[0],
         .rows = rows,
         .tile = tile,
         .depth = depth,
         .run = part.is_plain ? run_of(part.form) : 0,
         .has_offset = has_offset(part.form),
         .scale = scale,
         .offset = offset,
         .x_sums = x_sums.first == nullptr
                       ? nullptr
                       : x_sums.first + first_row * x_sums.stride + first / run_of(part.form),
         .x_sums_stride = x_sums.stride,
         .sums = offset + kRuns * kGroup,
         .is_first = first == 0,
         .is_last = first + depth == call.in,
         .bias = call.bias + number * kGroup,
         .count = group.count,
         .y = call.y.data + first_row * call.y.strides[0] + group.first,
         .y_stride = call.y.strides[0]});
    first += depth;
  } while (first < call.in);
}

// The sums of every 16 and every 32 of x, in the order of linear_kernels.h.
void sum_runs(const float* x, index_t in, float* sixteens, float* pairs) {
  for (index_t n = 0; n < in / 16; ++n, x += 16) {
    float a[8];
    for (int i = 0; i < 8; ++i) a[i] = x[i] + x[i + 8];
    sixteens[n] = ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
  }
  for (index_t n = 0; n < in / 32; ++n) pairs[n] = sixteens[2 * n] + sixteens[2 * n + 1];
}

// x as takes_x_in_place wants it; whether nothing was rounded.
bool put_in_place(const float* x, index_t in, float* placed) {
  constexpr float kPlaces[] = {1, 0x1p-4F, 0x1p-8F, 0x1p-12F, 0x1p-16F, 0x1p-20F, 0x1p-24F, 1};
  constexpr float kBack[] = {1, 0x1p4F, 0x1p8F, 0x1p12F, 0x1p16F, 0x1p20F, 0x1p24F, 1};
  int others = 0;
  for (index_t e = 0; e < in; e += 8)
    for (index_t k = 0; k < 8; ++k) {
      placed[e + k] = x[e + k] * kPlaces[k];
      others += static_cast<int>(placed[e + k] * kBack[k] != x[e + k]);
    }
  return others == 0;
}

// What is known of x before a weight is read.
struct Prepared {
  Scratch<float> sums;     // Call::x_sums
  Scratch<float> placed;   // one row as takes_x_in_place wants it
  bool is_placed = false;  // it is there, and nothing was rounded
};

// In tasks, for their floating-point environment.
Prepared prepare(const View<const float, 2>& x, bool has_places, const Pool& pool) {
  const index_t rows = x.shape[0], in = x.shape[1], sixteens = in / 16, pairs = in / 32;
  Prepared made;
  made.sums = Scratch<float>(rows * (sixteens + pairs));
  if (has_places && rows == 1) made.placed = Scratch<float>(in);
  pool.run((rows + kRowBlock - 1) / kRowBlock, [&](index_t item, int) {
    for (index_t r = item * kRowBlock; r < std::min(rows, (item + 1) * kRowBlock); ++r)
      sum_runs(x.data + r * x.strides[0], in, made.sums.data() + r * sixteens,
               made.sums.data() + rows * sixteens + r * pairs);
    if (made.placed.data() != nullptr)
      made.is_placed = put_in_place(x.data, in, made.placed.data());
  });
  return made;
}

// The view itself where its rows are dense, else a copy in `copy`.
View<const float, 2> dense(const View<const float, 2>& x, Scratch<float>& copy) {
  if (x.strides[1] == 1 || x.shape[1] == 1) return x;
  copy = Scratch<float>(x.shape[0] * x.shape[1]);
  for (index_t r = 0; r < x.shape[0]; ++r)
    for (index_t e = 0; e < x.shape[1]; ++e) copy.data()[r * x.shape[1] + e] = x(r, e);
  return {copy.data(), x.shape};
}

// Work items are groups times rows.
template <class Packed>
void apply_tiles(const Call& call, const Packed& packed, const Pool& pool) {
  const index_t rows = call.x.shape[0];
  const index_t blocks = (rows + kRowBlock - 1) / kRowBlock;
  const index_t items = blocks * packed.groups;
  const index_t workers = std::min<index_t>(pool.workers(), items);
  Scratch<float> scratch(workers * kRoom);
  pool.run(items, [&](index_t item, int worker) {
    const index_t first_row = item / packed.groups * kRowBlock, number = item % packed.groups;
    apply_tile(call, packed.group(number), number, first_row, std::min(kRowBlock, rows - first_row),
               scratch.data() + worker * kRoom);
  });
}

// Whether all factors are finite.
bool pack_all(const StoredMatrix& matrix, const Part& part, std::byte* data) {
  constexpr index_t kItem = index_t{1} << 18;  // bytes of a work item
  const index_t groups = groups_of(matrix.out);
  const index_t each = kItem / std::max<index_t>(1, part.group_bytes) + 1;
  std::atomic<bool> is_plain{true};
  default_context().impl().pool.run((groups + each - 1) / each, [&](index_t item, int) {
    const index_t first = item * each, count = std::min(each, groups - first);
    if (!pack(matrix, first, count, data + first * part.group_bytes)) is_plain = false;
  });
  return is_plain;
}

}  // namespace

Linear::Linear(const StoredMatrix& weights, std::span<const float> bias)
    : Linear(std::span(&weights, 1), bias) {}

Linear::Linear(std::span<const StoredMatrix> weights, std::span<const float> bias) {
  StreamRoom room;
  *this = Linear(weights, bias, room);
}

Linear::Linear(std::span<const StoredMatrix> weights, std::span<const float> bias,
               StreamRoom& room) {
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
  packed->weights = room.take(static_cast<std::size_t>(bytes));
  auto* data = static_cast<std::byte*>(packed->weights.data());
  for (std::size_t n = 0; n < weights.size(); ++n) {
    Part& part = packed->parts[n];
    part.data = data;
    part.is_plain = pack_all(weights[n], part, data);
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
  // Forms whose x is placed have offsets, too.
  const bool has_places = packed.any([](const Part& p) { return takes_x_in_place(p.form); });
  Prepared prepared;
  if (packed.any([](const Part& p) { return has_offset(p.form); }))
    prepared = prepare(x_rows, has_places, impl.pool);
  const Call call{x_rows,    prepared.sums.data(), y_rows, impl.kernels.linear,
                  packed.in, packed.bias.data()};
  // One row: weights are read once, as they are stored.
  const bool is_row = rows == 1 && (prepared.is_placed || !has_places) &&
                      !packed.any([](const Part& p) { return !p.is_plain; });
  if (is_row) {
    impl.pool.run(packed.groups, [&](index_t number, int) {
      const Group group = packed.group(number);
      call.kernels.row(
          {.form = group.part->form,
           .weights = group.weights,
           .in = call.in,
           .x = takes_x_in_place(group.part->form) ? prepared.placed.data() : x_rows.data,
           .x_sums = call.run_sums(group.part->form).first,
           .bias = call.bias + number * kGroup,
           .count = group.count,
           .y = y_rows.data + group.first});
    });
  } else {
    apply_tiles(call, packed, impl.pool);
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
