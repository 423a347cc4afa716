#include "glasshead/head_study.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/fail.h"
#include "core/attention_weights_call.h"
#include "model/head_study_impl.h"

namespace glasshead {
namespace {

using Seen = HeadStudy::Impl::Seen;

constexpr index_t kMetrics = 6;

using Numbers = std::array<double, kMetrics>;  // in the order of HeadMetrics

Numbers in_order(const model::HeadNumbers& of) {
  return {of.first, of.previous, of.self, of.entropy, of.distance, of.induction};
}

Numbers metrics_of(const Seen& seen, const model::HeadNumbers& sum) {
  const auto mean = [](double of, index_t count) {
    return count > 0 ? of / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
  };
  const index_t n = seen.queries, own = seen.is_cross ? 0 : n;
  return {mean(sum.first, n),      mean(sum.previous, std::max<index_t>(own - 1, 0)),
          mean(sum.self, own),     mean(sum.entropy, n),
          mean(sum.distance, own), mean(sum.induction, seen.is_cross ? 0 : seen.repeated)};
}

index_t cells(index_t length, index_t cell) { return length == 0 ? 0 : (length - 1) / cell + 1; }

// [heads, rows of cells, cells]; pick(head sums, row, column, pairs of the cell).
template <class Pick>
FileTensor picture(const Seen& seen, index_t cell, const Pick& pick) {
  const auto heads = static_cast<index_t>(seen.heads.size());
  const index_t rows = cells(seen.queries, cell), columns = cells(seen.keys, cell);
  FileTensor tensor = make_tensor(DType::f32, {heads, rows, columns});
  index_t n = 0;
  for (const model::HeadSums& head : seen.heads)
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < columns; ++c, ++n) {
        const auto row = static_cast<std::size_t>(r), column = static_cast<std::size_t>(c);
        float x = 0;
        if (row < head.total.size() && column < head.total[row].size())
          x = pick(head, row, column,
                   std::min(cell, seen.queries - r * cell) * std::min(cell, seen.keys - c * cell));
        std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(n) * sizeof x, &x, sizeof x);
      }
  return tensor;
}

// The rows [1, heads, rows, d] of a pass, token by token.
void append_rows(std::vector<float>& to, const View<float, 4>& rows) {
  const index_t d = rows.shape[3];
  const std::size_t needed =
      to.size() + static_cast<std::size_t>(rows.shape[1] * rows.shape[2] * d);
  if (needed > to.capacity()) to.reserve(std::max(needed, to.capacity() * 2));
  for (index_t i = 0; i < rows.shape[2]; ++i)
    for (index_t h = 0; h < rows.shape[1]; ++h) {
      const float* const from = rows.data + h * rows.strides[1] + i * rows.strides[2];
      to.insert(to.end(), from, from + d);
    }
}

}  // namespace

// --- filled by a session ---

const model::Repeats* HeadStudy::Impl::text(const std::string& stack) const {
  for (const Text& one : texts)
    if (one.stack == stack) return &one.tokens;
  return nullptr;
}

void HeadStudy::Impl::check(const Run& run, std::vector<Problem>& problems) const {
  const auto wrong = [&](std::string what) { problems.push_back({"heads", std::move(what)}); };
  if (session != 0 && session != run.session)
    return wrong("the study has seen a text of another session; a new one is needed");
  if (session != 0 && changes != run.changes)
    return wrong("the session's changes were made anew since the study began; a new one is needed");
  if (about != 0 && about != run.about)
    return wrong(
        "the study looks at another text and what is written about it; a new one is needed");
  for (const Text& one : texts)
    if (one.stack == run.stack && one.sequence != run.sequence)
      return wrong(
          fmt::format("the study has seen a text of sequence {}; sequence {} needs a new one",
                      one.sequence, run.sequence));
  const model::Repeats* const read = text(run.stack);
  const index_t length = read == nullptr ? 0 : read->size();
  if (length != run.position)
    wrong(fmt::format(
        "the study has seen {} tokens of a text, and this run begins at position {}; it looks at "
        "one text from its first token on",
        length, run.position));
}

void HeadStudy::Impl::begin(const Run& run) {
  session = run.session;
  changes = run.changes;
  about = run.about;
  for (Text& one : texts)
    if (one.stack == run.stack) return one.tokens.add(*run.ids);
  texts.push_back({run.stack, run.sequence, {}});
  texts.back().tokens.add(*run.ids);
}

void HeadStudy::Impl::start(const model::LookedAt& call, const model::Span& rows) {
  const std::string name =
      fmt::format("{}.{}.{}", call.stack, call.layer, call.is_cross ? "cross" : "self");
  for (now = 0; now < seen.size() && seen[now].name != name;) ++now;
  if (now == seen.size()) {
    Seen one;
    one.name = name;
    one.layer = call.layer;
    one.is_cross = call.is_cross;
    one.heads.resize(static_cast<std::size_t>(call.q.shape[1]));
    seen.push_back(std::move(one));
  }
  Seen& to = seen[now];
  const model::Repeats* const tokens = call.is_cross ? nullptr : text(call.stack);
  to.queries = rows.position + rows.rows;
  to.keys = call.keys();
  for (index_t i = rows.position; tokens != nullptr && i < to.queries; ++i)
    to.repeated += tokens->came_before(i) ? 1 : 0;
  pass.start({.heads = call.q.shape[1],
              .rows = rows.rows,
              .position = rows.position,
              .keys = to.keys,
              .cell = options.cell,
              .keeps_rows = options.keeps_rows,
              .text = tokens});
}

void HeadStudy::Impl::finish(const RowState& state, const Context& context) {
  pass.finish(state, seen[now].heads, context);
}

void HeadStudy::Impl::keep(const model::LookedAt& call, const RowState& state) {
  if (!options.keeps_rows) return;
  Seen& to = seen[now];
  to.options = call.options;
  append_rows(to.q, call.q);
  if (!call.is_cross) {
    to.kv_heads = call.k.shape[1];
    to.d_k = call.k.shape[3];
    append_rows(to.k, call.k);
  } else if (to.k.empty()) {  // those of the text that was read, which stay
    Tensor<float, 4> keys = model::keys_of(*call.cache, call.sequence);
    to.kv_heads = keys.shape()[1];
    to.d_k = keys.shape()[3];
    append_rows(to.k, keys.view());
  }
  const ConstTensor<3> max = state.max, sum = state.sum;
  for (index_t i = 0; i < max.shape[2]; ++i)
    for (index_t h = 0; h < max.shape[1]; ++h) {
      to.max.push_back(static_cast<float>(max.load(0, h, i)));
      to.sum.push_back(static_cast<float>(sum.load(0, h, i)));
    }
  to.kept_queries = to.queries;
  to.kept_keys = to.keys;
}

// --- HeadStudy ---

HeadStudy::HeadStudy(const HeadStudyOptions& options) : impl_(std::make_unique<Impl>(options)) {
  std::vector<Problem> problems;
  if (options.cell < 0)
    problems.push_back(
        {"cell", fmt::format("{}; 1 or more pairs, or 0 for no pictures", options.cell)});
  if (options.sequence < 0)
    problems.push_back({"sequence", fmt::format("{}; 0 or more", options.sequence)});
  if (!problems.empty()) fail(ErrorKind::option, "HeadStudy", std::move(problems));
}
HeadStudy::~HeadStudy() = default;
HeadStudy::HeadStudy(HeadStudy&&) noexcept = default;
HeadStudy& HeadStudy::operator=(HeadStudy&&) noexcept = default;

std::vector<HeadMetrics> HeadStudy::metrics() const {
  std::vector<HeadMetrics> all;
  for (const Seen& seen : impl_->seen)
    for (std::size_t h = 0; h < seen.heads.size(); ++h) {
      const auto [first, previous, self, entropy, distance, induction] =
          metrics_of(seen, seen.heads[h].sum);
      all.push_back({seen.name, seen.layer, static_cast<index_t>(h), first, previous, self, entropy,
                     distance, induction});
    }
  return all;
}

NamedTensors HeadStudy::results() const {
  NamedTensors results;
  const index_t cell = impl_->options.cell;
  for (const Seen& seen : impl_->seen) {
    FileTensor metrics =
        make_tensor(DType::f64, {static_cast<index_t>(seen.heads.size()), kMetrics});
    for (std::size_t h = 0; h < seen.heads.size(); ++h) {
      const Numbers of_head = metrics_of(seen, seen.heads[h].sum);
      std::memcpy(metrics.bytes.data() + h * sizeof of_head, of_head.data(), sizeof of_head);
    }
    results.emplace_back(seen.name + ".metrics", std::move(metrics));
    if (cell == 0) continue;
    results.emplace_back(
        seen.name + ".mean_map",
        picture(seen, cell, [](const auto& head, std::size_t r, std::size_t c, index_t pairs) {
          return static_cast<float>(head.total[r][c] / static_cast<double>(pairs));
        }));
    results.emplace_back(
        seen.name + ".max_map",
        picture(seen, cell, [](const auto& head, std::size_t r, std::size_t c, index_t) {
          return head.largest[r][c];
        }));
  }
  return results;
}

const Seen* HeadStudy::Impl::kept(const std::string& attention,
                                  std::vector<Problem>& problems) const {
  if (!options.keeps_rows)
    problems.push_back({"study", "was made without keeps_rows, and has none of its rows"});
  for (const Seen& one : seen)
    if (one.name == attention) return &one;
  problems.push_back({"attention", attention + ": none of this name has been seen"});
  return nullptr;
}

Tensor<double, 3> HeadStudy::rows(const std::string& attention) const {
  std::vector<Problem> problems;
  const Seen* const at = impl_->kept(attention, problems);
  if (!problems.empty()) fail(ErrorKind::option, "HeadStudy::rows", std::move(problems));
  const auto queries = static_cast<index_t>(at->heads.front().rows.size());
  Tensor<double, 3> all({static_cast<index_t>(at->heads.size()), queries, kMetrics});
  double* to = all.data();
  for (const model::HeadSums& head : at->heads)
    for (const model::HeadNumbers& row : head.rows) to = std::ranges::copy(in_order(row), to).out;
  return all;
}

Tensor<float, 2> HeadStudy::weights(const std::string& attention, index_t head,
                                    const PairRange& pairs, const Context& context) const {
  std::vector<Problem> problems;
  const Seen* const at = impl_->kept(attention, problems);
  const auto check_range = [&](const char* what, index_t begin, index_t end, index_t count) {
    if (begin < 0 || end < begin || end > count)
      problems.push_back(
          {"pairs", fmt::format("{} [{}, {}); 0 <= begin <= end <= {}", what, begin, end, count)});
  };
  if (at != nullptr) {
    const auto heads = static_cast<index_t>(at->heads.size());
    if (head < 0 || head >= heads)
      problems.push_back(
          {"head", fmt::format("{}; {} has {}, numbered from 0", head, attention, heads)});
    check_range("queries", pairs.query_begin, pairs.query_end, at->kept_queries);
    check_range("keys", pairs.key_begin, pairs.key_end, at->kept_keys);
  }
  if (!problems.empty()) fail(ErrorKind::option, "HeadStudy::weights", std::move(problems));
  const index_t rows = pairs.query_end - pairs.query_begin, keys = pairs.key_end - pairs.key_begin;
  Tensor<float, 2> weights({rows, keys});
  if (rows == 0 || keys == 0) return weights;

  const auto heads = static_cast<index_t>(at->heads.size());
  const index_t d = at->d_k, q_step = heads * d, k_step = at->kv_heads * d;
  const ConstTensor<4> q = View<const float, 4>(at->q.data() + pairs.query_begin * q_step,
                                                {1, heads, rows, d}, {rows * q_step, d, q_step, 1});
  const ConstTensor<4> k = View<const float, 4>(at->k.data(), {1, at->kv_heads, at->kept_keys, d},
                                                {at->kept_keys * k_step, d, k_step, 1});
  const auto state = [&](const std::vector<float>& all) {
    // Only read: attend's rows are writable for whoever fills them.
    return View<float, 3>(const_cast<float*>(all.data()) + pairs.query_begin * heads,
                          {1, heads, rows}, {rows * heads, 1, heads});
  };
  AttentionOptions options = at->options;
  if (!at->is_cross) options.query_start = pairs.query_begin;
  const RowState rows_state{.max = state(at->max), .sum = state(at->sum), .lse = {}};
  attention_weights_of_keys({q,
                             k,
                             options,
                             rows_state,
                             {head, head + 1, 0, rows},
                             KeyRange{pairs.key_begin, pairs.key_end}},
                            View<float, 4>(weights.data(), {1, 1, rows, keys}), context);
  return weights;
}

index_t HeadStudy::bytes() const {
  using model::bytes_of;
  index_t bytes = bytes_of(impl_->seen) + impl_->pass.bytes();
  for (const Impl::Text& text : impl_->texts) bytes += text.tokens.bytes();
  for (const Seen& seen : impl_->seen) {
    bytes += bytes_of(seen.q) + bytes_of(seen.k) + bytes_of(seen.max) + bytes_of(seen.sum) +
             bytes_of(seen.heads);
    for (const model::HeadSums& head : seen.heads) {
      bytes += bytes_of(head.rows) + bytes_of(head.total) + bytes_of(head.largest);
      for (const std::vector<double>& row : head.total) bytes += bytes_of(row);
      for (const std::vector<float>& row : head.largest) bytes += bytes_of(row);
    }
  }
  return bytes;
}

}  // namespace glasshead
