#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "glasshead/kv_cache.h"
#include "python/native/calls.h"
#include "python/native/options.h"

namespace glasshead::python {
namespace {

// KvCache whose calls may come from several of Python's threads: while one reads, none changes it.
class Cache {
 public:
  explicit Cache(const KvCacheOptions& options) : cache_(options) {}

  void append(std::optional<index_t> sequence, nb::handle k, nb::handle v) {
    std::vector<Problem> problems;
    const Array keys = read_array(k, "k", problems), values = read_array(v, "v", problems);
    for (const auto& [array, name] : {std::pair(&keys, "k"), std::pair(&values, "v")})
      if (sequence && array->is_there() && array->rank() > 3)
        problems.push_back({name, "has 4 axes; of one sequence it is [kv_heads, length, size]"});
    refuse_if_any("append", std::move(problems));
    const nb::gil_scoped_release others_may_run;
    const std::unique_lock alone(mutex_);
    if (sequence)
      cache_.append(*sequence, keys.tensor<3>(), values.tensor<3>());
    else
      cache_.append(keys.tensor<4>(), values.tensor<4>());
  }

  void truncate(index_t sequence, index_t length) {
    const nb::gil_scoped_release others_may_run;
    const std::unique_lock alone(mutex_);
    cache_.truncate(sequence, length);
  }

  index_t fork(index_t sequence) {
    const nb::gil_scoped_release others_may_run;
    const std::unique_lock alone(mutex_);
    return cache_.fork(sequence);
  }

  PlanFacts plan(nb::handle q, const Options* options,
                 const std::optional<std::vector<index_t>>& sequences,
                 const Context* context) const {
    std::vector<Problem> problems = problems_of(options);
    const Array queries = read_array(q, "q", problems);
    refuse_if_any("plan_attend", std::move(problems));
    AttendPlan plan;
    {
      const nb::gil_scoped_release others_may_run;
      const std::shared_lock together(mutex_);
      plan = plan_attend(queries.tensor<4>(), sequences ? cache_.input(*sequences) : cache_.input(),
                         values_of(options), context == nullptr ? default_context() : *context);
    }
    return told(plan);
  }

  template <class Ask>  // ask(cache) -> an answer
  auto ask(const Ask& question) const {
    const nb::gil_scoped_release others_may_run;
    const std::shared_lock together(mutex_);
    return question(cache_);
  }

  void attend(nb::handle q, nb::handle out, const Options* options,
              const std::optional<std::vector<index_t>>& sequences, nb::handle max, nb::handle sum,
              nb::handle lse, const Context* context) const {
    std::vector<Problem> problems = problems_of(options);
    const Array queries = read_array(q, "q", problems), result = read_array(out, "out", problems);
    const Array most = read_optional(max, "rows.max", problems, 3);
    const Array total = read_optional(sum, "rows.sum", problems, 3);
    const Array logarithm = read_optional(lse, "rows.lse", problems, 3);
    refuse_if_any("attend", std::move(problems));
    const RowState rows{most.writable<3>(), total.writable<3>(), logarithm.writable<3>()};
    const nb::gil_scoped_release others_may_run;
    const std::shared_lock together(mutex_);
    glasshead::attend(queries.tensor<4>(), sequences ? cache_.input(*sequences) : cache_.input(),
                      result.writable<4>(), values_of(options), rows,
                      context == nullptr ? default_context() : *context);
  }

 private:
  mutable std::shared_mutex mutex_;
  KvCache cache_;
};

std::optional<KvType> type_of(const std::string& name_) {
  for (const KvType type : {KvType::f64, KvType::f32, KvType::bf16, KvType::f16, KvType::int8})
    if (name_ == name(type)) return type;
  return std::nullopt;
}

KvCacheOptions options_of(index_t batch, index_t kv_heads, index_t d_k, index_t d_v,
                          const std::string& type, std::optional<index_t> page_size,
                          std::optional<index_t> capacity, std::optional<index_t> ring) {
  KvCacheOptions options{batch, kv_heads, d_k, d_v, KvType::f32, KvPaged{}};
  std::vector<Problem> problems;
  if (const std::optional<KvType> known = type_of(type))
    options.type = *known;
  else
    problems.push_back({"dtype", "\"" + type + "\" is none of f64, f32, bf16, f16, int8"});
  if ((page_size ? 1 : 0) + (capacity ? 1 : 0) + (ring ? 1 : 0) > 1)
    problems.push_back({"storage", "page_size, capacity and ring contradict each other; give one"});
  refuse_if_any("KvCache", std::move(problems));
  if (page_size) options.storage = KvPaged{*page_size};
  if (capacity) options.storage = KvContiguous{*capacity};
  if (ring) options.storage = KvRing{*ring};
  return options;
}

}  // namespace

void add_cache(nb::module_& module) {
  nb::class_<Cache>(module, "KvCache", "Keys and values between calls; see glasshead.KvCache.")
      .def(
          "__init__",
          [](Cache* self, index_t batch, index_t kv_heads, index_t d_k, index_t d_v,
             const std::string& dtype, std::optional<index_t> page_size,
             std::optional<index_t> capacity, std::optional<index_t> ring) {
            new (self)
                Cache(options_of(batch, kv_heads, d_k, d_v, dtype, page_size, capacity, ring));
          },
          nb::arg("batch"), nb::arg("kv_heads"), nb::arg("d_k"), nb::arg("d_v"), nb::arg("dtype"),
          nb::arg("page_size").none(), nb::arg("capacity").none(), nb::arg("ring").none())
      .def("append", &Cache::append, nb::arg("sequence").none(), nb::arg("k"), nb::arg("v"))
      .def("truncate", &Cache::truncate, nb::arg("sequence"), nb::arg("length"))
      .def("fork", &Cache::fork, nb::arg("sequence"))
      .def("sequences",
           [](const Cache& self) { return self.ask([](const auto& c) { return c.sequences(); }); })
      .def(
          "length",
          [](const Cache& self, index_t sequence) {
            return self.ask([&](const auto& c) { return c.length(sequence); });
          },
          nb::arg("sequence"))
      .def(
          "first",
          [](const Cache& self, index_t sequence) {
            return self.ask([&](const auto& c) { return c.first(sequence); });
          },
          nb::arg("sequence"))
      .def("bytes",
           [](const Cache& self) { return self.ask([](const auto& c) { return c.bytes(); }); })
      .def("plan", &Cache::plan, nb::arg("q"), nb::arg("options").none(),
           nb::arg("sequences").none(), nb::arg("context").none())
      .def("attend", &Cache::attend, nb::arg("q"), nb::arg("out"), nb::arg("options").none(),
           nb::arg("sequences").none(), nb::arg("max").none(), nb::arg("sum").none(),
           nb::arg("lse").none(), nb::arg("context").none());
}

}  // namespace glasshead::python
