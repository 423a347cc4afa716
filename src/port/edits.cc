#include "port/edits.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/math.h"
#include "glasshead/attention.h"
#include "model/block.h"
#include "wire/decimal.h"

namespace glasshead::port {
namespace {

template <class Tensor>
FileTensor file_of(const Tensor& tensor, std::vector<index_t> shape) {
  FileTensor file = make_tensor(DType::f32, std::move(shape));
  std::memcpy(file.bytes.data(), tensor.data(), file.bytes.size());
  return file;
}

float* numbers_of(FileTensor& tensor) { return reinterpret_cast<float*>(tensor.bytes.data()); }

Edit in(Part part, Change1 change, Place1 place) {
  Edit edit;
  if (change)
    edit.change = [part, change = std::move(change)](const Subject& s) {
      if (s.piece.part == part) change(s);
    };
  if (place)
    edit.place = [part, place = std::move(place)](const Subject& s, const Numbers& numbers) {
      return s.piece.part == part ? place(s, numbers) : Placed{};
    };
  return edit;
}

}  // namespace

Edit on_layers(Change1 change, Place1 place) {
  return in(Part::layer, std::move(change), std::move(place));
}
Edit on_embedding(Change1 change) { return in(Part::embedding, std::move(change), nullptr); }
Edit on_end(Change1 change) { return in(Part::end, std::move(change), nullptr); }

Variants once(bool is_possible, Edit edit) {
  return is_possible ? Variants{{"", std::move(edit)}} : Variants{};
}

Dense dense(const nn::Linear& from) {
  Dense to{from.out(), from.in(), {}, {}};
  to.w.resize(static_cast<std::size_t>(to.out * to.in));
  for (index_t o = 0; o < to.out; ++o) from.row(o, {to.row(o), static_cast<std::size_t>(to.in)});
  // Of zeros a layer makes its bias.
  const Tensor<float, 2> zeros({1, to.in});
  Tensor<float, 2> bias({1, to.out});
  from.apply(zeros, bias, default_context());
  to.bias.assign(bias.data(), bias.data() + to.out);
  return to;
}

nn::Linear linear(const Dense& from) {
  return nn::Linear({.type = Stored::f32,
                     .out = from.out,
                     .in = from.in,
                     .data = reinterpret_cast<const std::byte*>(from.w.data())},
                    from.bias);
}

void edit(nn::Linear& matrix, const std::function<void(Dense&)>& change) {
  Dense numbers = dense(matrix);
  change(numbers);
  matrix = linear(numbers);
}

Stretch q_rows(const model::Attention& a) { return {0, a.heads * a.d_k}; }
Stretch k_rows(const model::Attention& a) {
  return {a.heads * a.d_k, a.heads * a.d_k + a.kv_heads * a.d_k};
}
Stretch v_rows(const model::Attention& a) {
  return {k_rows(a).end, k_rows(a).end + a.kv_heads * a.d_v};
}

FileTensor turned(const FileTensor& x, const model::Rotary& how, double offset) {
  FileTensor y = x;
  const index_t heads = x.shape[0], tokens = x.shape[1], d = x.shape[2];
  const auto pairs = static_cast<index_t>(how.frequencies.size());
  const nn::Rope rope{.pairing = how.pairing, .rotary = 2 * pairs, .span = 2 * pairs};
  std::vector<double> cos(how.frequencies.size()), sin(cos), vector(static_cast<std::size_t>(d));
  for (index_t i = 0; i < tokens; ++i) {
    for (std::size_t n = 0; n < cos.size(); ++n) {
      const double angle = (static_cast<double>(i) + offset) * how.frequencies[n];
      cos[n] = math::cos(angle) * how.amplitude;
      sin[n] = math::sin(angle) * how.amplitude;
    }
    for (index_t h = 0; h < heads; ++h) {
      const index_t at = (h * tokens + i) * d;
      for (index_t e = 0; e < d; ++e) vector[static_cast<std::size_t>(e)] = x.load(at + e);
      nn::rotate(vector, cos, sin, rope);
      for (index_t e = 0; e < d; ++e)
        numbers_of(y)[at + e] = static_cast<float>(vector[static_cast<std::size_t>(e)]);
    }
  }
  return y;
}

FileTensor normed(const FileTensor& x, const model::Norm& norm, const model::NormWeights& weights) {
  FileTensor y = x;
  const index_t size = x.shape.back(), rows = x.size() / size;
  const View<float, 2> view(numbers_of(y), {rows, size});
  model::apply_norm(norm, weights, view, view, default_context());
  return y;
}

FileTensor sum(const FileTensor& a, const FileTensor& b, double factor) {
  FileTensor made = make_tensor(DType::f32, a.shape);
  for (index_t n = 0; n < a.size(); ++n)
    numbers_of(made)[n] = static_cast<float>(a.load(n) + factor * b.load(n));
  return made;
}

FileTensor with_shape(FileTensor x, std::vector<index_t> shape) {
  x.shape = std::move(shape);
  return x;
}

Placed attention_over(const Subject& s, const Numbers& numbers,
                      const std::function<index_t(index_t)>& source) {
  const FileTensor &q = numbers.at(s.place("self.q")), &k = numbers.at(s.place("self.k")),
                   &v = numbers.at(s.place("self.v"));
  const index_t heads = q.shape[0], tokens = q.shape[1], d_v = v.shape[2];
  const auto repeated = [&](const FileTensor& x) {
    FileTensor all = make_tensor(DType::f32, {heads, x.shape[1], x.shape[2]});
    const auto size = static_cast<std::size_t>(x.shape[1] * x.shape[2]) * sizeof(float);
    for (index_t h = 0; h < heads; ++h)
      std::memcpy(all.bytes.data() + static_cast<std::size_t>(h) * size,
                  x.bytes.data() + static_cast<std::size_t>(source(h)) * size, size);
    return all;
  };
  const FileTensor keys = repeated(k), values = repeated(v);
  const AttentionOptions options = model::layer_calls(s.stack(), s.stack_weights()).front().self;
  Tensor<float, 4> out({1, heads, tokens, d_v});
  Tensor<float, 3> lse({1, heads, tokens});
  attend(q.view<4>(), keys.view<4>(), values.view<4>(), out, options,
         {.max = {}, .sum = {}, .lse = lse});
  Placed placed;
  placed.changes.push_back(Patch{s.place("self.out"), file_of(out, {heads, tokens, d_v})});
  if (numbers.has(s.place("self.lse")))
    placed.seen.emplace_back(s.place("self.lse"), file_of(lse, {heads, tokens}));
  if (numbers.has(s.place("self.weights"))) {
    Tensor<float, 4> weights({1, heads, tokens, tokens});
    attention_weights(q.view<4>(), keys.view<4>(), options, {0, heads, 0, tokens}, weights);
    placed.seen.emplace_back(s.place("self.weights"), file_of(weights, {heads, tokens, tokens}));
  }
  return placed;
}

std::string shown(double x) { return wire::significant(x, 6); }

}  // namespace glasshead::port
