// q, k, v, mask, bias and options of an input.
#include <algorithm>
#include <string_view>
#include <utility>

#include "audit/inputs.h"
#include "base/random.h"
#include "core/findings.h"
#include "core/mask_plan.h"

namespace glasshead::audits {
namespace {

// Streams of random numbers; a second call's other numbers come from those after them.
constexpr std::uint64_t kQ = 0, kK = 1, kV = 2, kMask = 3, kBias = 4, kStreams = 5;

std::size_t slot(index_t n) { return static_cast<std::size_t>(n); }

MutableTensor<4> writable(FileTensor& file) {
  MutableTensor<4> view;
  const ConstTensor<4> read = file.view<4>();
  view.data = file.bytes.data();
  view.dtype = read.dtype;
  view.shape = read.shape;
  view.strides = read.strides;
  return view;
}

template <class F>  // value(b, h, l, e)
void fill(const MutableTensor<4>& to, const F& value) {
  for (index_t b = 0; b < to.shape[0]; ++b)
    for (index_t h = 0; h < to.shape[1]; ++h)
      for (index_t l = 0; l < to.shape[2]; ++l)
        for (index_t e = 0; e < to.shape[3]; ++e) to.store_at({b, h, l, e}, value(b, h, l, e));
}

// A view of zeroed memory of its own in this layout.
MutableTensor<4> room(const std::array<index_t, 4>& shape, DType type, Layout layout,
                      std::vector<FileTensor>& storage) {
  const auto [b, h, l, e] = shape;
  std::vector<index_t> stored{b, h, l, e};
  std::array<index_t, 4> strides = row_major(shape);
  index_t first = 0;
  switch (layout) {
    case Layout::dense:
      break;
    case Layout::heads_inside:
      stored = {b, l, h, e};
      strides = {l * h * e, e, h * e, 1};
      break;
    case Layout::columns:
      stored = {b, h, e, l};
      strides = {h * e * l, e * l, 1, l};
      break;
    case Layout::every_other:
      stored = {b, h, l, 2 * e};
      strides = {2 * h * l * e, 2 * l * e, 2 * e, 2};
      break;
    case Layout::repeated:
      stored = {1, h, l, e};
      strides[0] = 0;
      break;
    case Layout::backwards:
      first = (l - 1) * e;
      strides[2] = -e;
      break;
  }
  storage.push_back(make_tensor(type, stored));
  MutableTensor<4> view;
  view.data = storage.back().bytes.data() + first * static_cast<index_t>(size_of(type));
  view.dtype = type;
  view.shape = shape;
  view.strides = strides;
  return view;
}

bool is_hidden(const Input& input, std::uint64_t seed, index_t b, index_t h, index_t i, index_t j) {
  const Sizes& s = input.sizes;
  switch (input.hide) {
    case Hide::none:
      return false;
    case Hide::some: {
      const index_t place = ((b * s.heads + h) * s.q_len + i) * s.kv_len + j;
      return (i + j + h) % s.kv_len != 0 &&
             uniform(seed, static_cast<std::uint64_t>(place), kMask) < 0.3;
    }
    case Hide::padding:
      return j >= s.kv_len - s.kv_len / 3 + b % 2;
    case Hide::left:
      return j < s.kv_len / 3 - b % 2;
    case Hide::upper:
      return j > i;
    case Hide::first_row:
      return i == 0;
    case Hide::half_rows:
      return i >= s.q_len / 2;
    case Hide::last_head:
      return h == s.heads - 1;
    case Hide::all:
      return true;
  }
  return false;
}

// The number of a bias at a place of its own axes.
double bias_number(const Input& input, std::uint64_t seed, bool hidden, index_t place) {
  switch (input.form) {
    case Form::boolean:
    case Form::additive:
      return hidden ? -std::numeric_limits<double>::infinity() : 0;
    case Form::biased:
      return hidden ? -std::numeric_limits<double>::infinity()
                    : standard_normal(seed, static_cast<std::uint64_t>(place), kBias);
    case Form::lowest:
      return hidden ? static_cast<double>(std::numeric_limits<float>::lowest()) : 0;
    case Form::zeros_ones:
      return hidden ? 0 : 1;
  }
  return 0;
}

// Mask or bias, in its axes.
void add_table(const Input& input, std::uint64_t seed, MadeCall& made) {
  if (input.hide == Hide::none && input.form == Form::boolean) return;
  const std::string_view axes = input.axes;
  const Sizes& s = input.sizes;
  std::vector<index_t> shape;
  for (const char axis : axes)
    shape.push_back(axis == 'b'   ? s.batch
                    : axis == 'h' ? s.heads
                    : axis == 'q' ? s.q_len
                    : axis == 'k' ? s.kv_len
                                  : 1);
  const bool is_mask = input.form == Form::boolean;
  const DType type = is_mask ? DType::u8 : input.bias_dtype.value_or(input.dtype);
  made.storage.push_back(make_tensor(type, shape));
  FileTensor& table = made.storage.back();
  index_t place = 0;
  fill(writable(table), [&](index_t b, index_t h, index_t i, index_t j) {
    const bool hidden = is_hidden(input, seed, b, h, i, j);
    const index_t here = place++;
    return is_mask ? (hidden ? 0.0 : 1.0) : bias_number(input, seed, hidden, here);
  });
  Broadcast& to = is_mask ? made.call.mask : made.call.bias;
  to.data = table.bytes.data();
  to.dtype = type;
  to.rank = static_cast<int>(shape.size());
  index_t step = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    to.shape[axis] = shape[axis];
    to.strides[axis] = step;
    step *= shape[axis];
  }
}

void add_options(const Input& input, AuditCall& call) {
  call.causal = input.causal;
  call.window = input.window;
  call.key_lengths = input.key_lengths;
  call.scale = input.scale;
  call.softcap = input.softcap;
  AttentionOptions& to = call.options;
  to.scale = call.scale;
  to.softcap = call.softcap;
  if (call.mask.data != nullptr) to.mask = Mask::allowed(call.mask);
  if (call.bias.data != nullptr) to.bias = Bias::dense(call.bias);
  if (call.causal) {
    to.mask = to.mask & Mask::causal();
    to.query_start = *call.causal;
  }
  if (call.window) to.mask = to.mask & Mask::window(call.window->left, call.window->right);
  if (!call.key_lengths.empty()) to.mask = to.mask & Mask::key_lengths(call.key_lengths);
}

// Whether no query row of the group sees key j: flags [batch, kv_heads, kv_len].
std::vector<bool> unseen_keys(const Input& input, const AuditCall& call) {
  const Sizes& s = input.sizes;
  std::vector<bool> unseen(slot(s.batch * s.kv_heads * s.kv_len), true);
  const MaskPlan plan(call.options, {s.batch, s.heads, s.q_len, s.kv_len});
  for (index_t b = 0; b < s.batch; ++b)
    for (index_t h = 0; h < s.heads; ++h)
      for (index_t i = 0; i < s.q_len; ++i)
        for (index_t j = 0; j < s.kv_len; ++j)
          if (plan.allowed(b, h, i, j))
            unseen[slot((b * s.kv_heads + h / (s.heads / s.kv_heads)) * s.kv_len + j)] = false;
  return unseen;
}

// Which numbers a second call has of its own.
bool is_other(const Input& input, bool is_query, index_t b, index_t l) {
  const Sizes& s = input.sizes;
  if (input.relation == Relation::neighbours) return b != s.batch - 1;
  if (input.relation == Relation::other_rows) return is_query && l != s.q_len / 2;
  return false;
}

// The part of a tensor that the second call is given.
ConstTensor<4> cut(const Input& input, bool is_query, ConstTensor<4> x) {
  const Shared part = shared_part(input);
  const auto skip = [&](std::size_t axis, index_t n) {
    x.data = static_cast<const std::byte*>(x.data) +
             n * x.strides[axis] * static_cast<index_t>(size_of(x.dtype));
  };
  if (input.relation == Relation::alone) {
    skip(0, part.b_first);
    x.shape[0] = 1;
  }
  if (input.relation == Relation::few_rows && is_query) {
    skip(2, part.i_first);
    x.shape[2] = part.rows;
  }
  return x;
}

}  // namespace

Shared shared_part(const Input& input) {
  const Sizes& s = input.sizes;
  Shared all{0, 0, s.batch, 0, 0, s.q_len};
  const index_t last = s.batch - 1;
  if (input.relation == Relation::alone) return {last, 0, 1, 0, 0, s.q_len};
  if (input.relation == Relation::neighbours) return {last, last, 1, 0, 0, s.q_len};
  if (input.relation == Relation::other_rows) return {0, 0, s.batch, s.q_len / 2, s.q_len / 2, 1};
  if (input.relation == Relation::few_rows) return {0, 0, s.batch, s.q_len / 3, 0, s.q_len / 3};
  return all;
}

MadeCall make_call(const Input& input, std::uint64_t seed, bool is_second) {
  MadeCall made;
  made.storage.reserve(4);  // views point into it
  AuditCall& call = made.call;
  call.input = std::string(input.group) + "/" + input.name;
  add_table(input, seed, made);
  add_options(input, call);
  const Sizes& s = input.sizes;
  std::vector<bool> unseen;
  if (input.hidden_k || input.hidden_v) unseen = unseen_keys(input, call);

  const auto tensor = [&](std::uint64_t stream, const std::array<index_t, 4>& shape,
                          const Filling& filling, const std::optional<double>& poison) {
    const MutableTensor<4> view = room(shape, input.dtype, input.layout, made.storage);
    fill(view, [&](index_t b, index_t h, index_t l, index_t e) {
      if (poison && unseen[slot((b * s.kv_heads + h) * s.kv_len + l)]) return *poison;
      // One entry for all where the memory has but one.
      const index_t entry = input.layout == Layout::repeated ? 0 : b;
      const index_t place = ((entry * shape[1] + h) * shape[2] + l) * shape[3] + e;
      const bool other = is_second && is_other(input, stream == kQ, b, l);
      const double z = filling.spread == 0
                           ? 0
                           : standard_normal(seed, static_cast<std::uint64_t>(place),
                                             other ? stream + kStreams : stream);
      return filling.mean + filling.slope * static_cast<double>(l) + filling.spread * z;
    });
    return is_second ? cut(input, stream == kQ, view) : ConstTensor<4>(view);
  };
  call.q = tensor(kQ, {s.batch, s.heads, s.q_len, s.d_k}, input.q, std::nullopt);
  call.k = tensor(kK, {s.batch, s.kv_heads, s.kv_len, s.d_k}, input.k, input.hidden_k);
  call.v = tensor(kV, {s.batch, s.kv_heads, s.kv_len, s.d_v}, input.v, input.hidden_v);
  if (input.relation == Relation::threads) call.threads = is_second ? 4 : 1;
  return made;
}

std::string words(const AuditCall& call) {
  const auto shape = [](const ConstTensor<4>& x) { return shape_text(x.shape); };
  std::string text = "q " + shape(call.q) + " k " + shape(call.k) + " v " + shape(call.v) + " " +
                     name(call.q.dtype);
  const auto table = [&](const char* what, const Broadcast& x) {
    if (x.data == nullptr) return;
    text += std::string(", ") + what + " " + shape_text(std::span(x.shape).first(slot(x.rank)));
    if (x.dtype != DType::u8 && x.dtype != call.q.dtype) text += std::string(" ") + name(x.dtype);
  };
  table("mask", call.mask);
  table("bias", call.bias);
  if (call.causal)
    text += *call.causal == Align::start ? ", causal from the start" : ", causal to the end";
  if (call.window) {
    const auto side = [](const std::optional<index_t>& n) {
      return n ? std::to_string(*n) : std::string();
    };
    text += ", window " + side(call.window->left) + "," + side(call.window->right);
  }
  for (std::size_t n = 0; n < call.key_lengths.size(); ++n)
    text += (n == 0 ? ", key lengths " : ",") + std::to_string(call.key_lengths[n]);
  if (call.scale) text += ", scale " + number_text(*call.scale);
  if (call.softcap > 0) text += ", softcap " + number_text(call.softcap);
  return text;
}

}  // namespace glasshead::audits
