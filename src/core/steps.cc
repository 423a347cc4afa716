// The list of steps of one attention, and the runner of any list.
#include "core/steps.h"

#include <map>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "core/findings.h"
#include "core/scale.h"
#include "core/validate.h"

namespace glasshead {
namespace {

// A mask hides pairs, and so may a dense bias, by entries of -inf.
bool can_hide(const AttentionOptions& options) {
  if (!options.mask.parts().empty()) return true;
  for (const Bias::Term& term : options.bias.terms())
    if (std::holds_alternative<Bias::Dense>(term)) return true;
  return false;
}

class ListBuilder {
 public:
  ListBuilder(const AttentionOptions& options, std::string prefix)
      : options_(std::make_shared<const AttentionOptions>(options)), prefix_(std::move(prefix)) {}

  // Adds the step that writes prefix + tap, named like its operation; returns the full tap.
  std::string add(const char* id, std::vector<std::string> reads,
                  std::vector<StepNumber> numbers = {}) {
    std::string tap = prefix_ + id;
    list_.push_back({tap, find_attention_op(id), std::move(reads), std::move(numbers), options_});
    return tap;
  }

  std::vector<Step> take() { return std::move(list_); }

 private:
  std::shared_ptr<const AttentionOptions> options_;
  std::string prefix_;
  std::vector<Step> list_;
};

// Which value each step reads, and who reads each value last. Values are numbered: the inputs, then
// the steps.
struct Wiring {
  std::vector<std::vector<std::size_t>> reads;  // of each step
  std::vector<std::size_t> last_reader;         // step number of each value; kNobody
};
constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

using Inputs = std::vector<std::pair<std::string, TraceTensor>>;

Wiring wire_up(std::span<const Step> list, const Inputs& inputs) {
  Wiring wiring;
  wiring.last_reader.assign(inputs.size() + list.size(), kNobody);
  std::map<std::string, std::size_t, std::less<>> latest;
  std::vector<Problem> problems;
  for (std::size_t n = 0; n < inputs.size(); ++n) latest[inputs[n].first] = n;
  for (std::size_t n = 0; n < list.size(); ++n) {
    std::vector<std::size_t> reads;
    if (list[n].op == nullptr) problems.push_back({list[n].tap, "the step has no operation"});
    for (const std::string& tap : list[n].reads) {
      const auto found = latest.find(tap);
      if (found == latest.end()) {
        problems.push_back(
            {tap, "step '" + list[n].tap +
                      "' reads it, but it is no input and no earlier step writes it"});
        continue;
      }
      reads.push_back(found->second);
      wiring.last_reader[found->second] = n;
    }
    wiring.reads.push_back(std::move(reads));
    latest[list[n].tap] = inputs.size() + n;
  }
  if (!problems.empty()) fail(ErrorKind::option, "run_steps", std::move(problems));
  return wiring;
}

void check_inputs(const Inputs& inputs) {
  std::vector<Problem> problems;
  for (const auto& [tap, tensor] : inputs) {
    const auto size = checked_size(tensor.shape);
    if (!size || static_cast<std::size_t>(*size) != tensor.values.size())
      problems.push_back({tap, "shape " + shape_text(tensor.shape) + ", but " +
                                   std::to_string(tensor.values.size()) + " values"});
  }
  if (!problems.empty()) fail(ErrorKind::shape, "run_steps", std::move(problems));
}

bool reads_once(const std::vector<std::size_t>& reads, std::size_t value) {
  std::size_t times = 0;
  for (const std::size_t read : reads) times += read == value ? 1 : 0;
  return times == 1;
}

// Runs the list over `values`, which holds the inputs and is filled with the steps' results. With
// `is_streaming` a value is given up after its last reader.
void run_over(std::span<const Step> list, const Wiring& wiring, std::vector<TraceTensor>& values,
              bool is_streaming, const StepSink& sink) {
  const std::size_t first = values.size() - list.size();
  for (std::size_t n = 0; n < list.size(); ++n) {
    const std::vector<std::size_t>& reads = wiring.reads[n];
    std::vector<const TraceTensor*> inputs;
    for (const std::size_t read : reads) inputs.push_back(&values[read]);
    StepArgs args{list[n], inputs};
    if (is_streaming && !reads.empty() && wiring.last_reader[reads[0]] == n &&
        reads_once(reads, reads[0]))
      args.spare = &values[reads[0]];
    TraceTensor value = list[n].op->run(args);
    if (is_streaming)
      for (const std::size_t read : reads)
        if (wiring.last_reader[read] == n) values[read] = {};
    if (sink) sink(list[n], value);
    if (!is_streaming || wiring.last_reader[first + n] != kNobody)
      values[first + n] = std::move(value);
  }
}

std::vector<TraceTensor> room_for(std::span<const Step> list, Inputs& inputs) {
  std::vector<TraceTensor> values;
  values.reserve(inputs.size() + list.size());
  for (auto& input : inputs) values.push_back(std::move(input.second));
  values.resize(inputs.size() + list.size());
  return values;
}

TraceTensor widened(const ConstTensor<4>& tensor) {
  TraceTensor copy{{tensor.shape.begin(), tensor.shape.end()}, {}};
  const auto [batch, heads, length, size] = tensor.shape;
  copy.values.reserve(static_cast<std::size_t>(batch * heads * length * size));
  for (index_t b = 0; b < batch; ++b)
    for (index_t h = 0; h < heads; ++h)
      for (index_t i = 0; i < length; ++i)
        for (index_t d = 0; d < size; ++d) copy.values.push_back(tensor.load(b, h, i, d));
  return copy;
}

}  // namespace

double number(const Step& step, std::string_view key, double otherwise) {
  for (const auto& [name, value] : step.numbers)
    if (name == key) return value;
  return otherwise;
}

void set_number(Step& step, std::string_view key, double value) {
  for (auto& entry : step.numbers) {
    if (entry.first == key) {
      entry.second = value;
      return;
    }
  }
  step.numbers.emplace_back(key, value);
}

TraceTensor take_first(const StepArgs& args) {
  if (args.spare != nullptr) return std::move(*args.spare);
  return *args.inputs[0];
}

const TraceTensor* Trace::find(std::string_view tap) const {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    if (step->step.tap == tap) return &step->value;
  for (const auto& [name, value] : inputs)
    if (name == tap) return &value;
  return nullptr;
}

const TraceTensor& Trace::at(std::string_view tap) const {
  const TraceTensor* found = find(tap);
  if (found == nullptr)
    fail(ErrorKind::option, "Trace::at", std::string(tap), "the trace has no tap of this name");
  return *found;
}

std::vector<Step> attention_steps(const AttentionOptions& options, index_t d_k,
                                  const AttentionTaps& taps) {
  ListBuilder list(options, taps.prefix);
  std::string z = list.add("scores", {taps.q, taps.k});
  z = list.add("scaled", {z}, {{"scale", scale_of(options, d_k)}});
  if (options.softcap > 0) z = list.add("capped", {z}, {{"softcap", options.softcap}});
  if (!options.bias.terms().empty()) z = list.add("biased", {z});
  if (can_hide(options)) z = list.add("masked", {z});
  const std::vector<StepNumber> shift{{"shift", 1}};
  const std::string max = list.add("row_max", {z});
  const std::string e = list.add("exp", {z, max}, shift);
  const std::string sum = list.add("row_sum", {e, max}, shift);
  list.add("lse", {max, sum}, shift);
  std::string weights = list.add("weights", {e, sum}, shift);
  if (options.dropout.p > 0) weights = list.add("dropped", {weights}, {{"p", options.dropout.p}});
  // All weights of 0: without dropout that is a row with no score above -inf, with it the maximum
  // says whether it is one.
  if (options.dropout.p > 0)
    list.add("out", {weights, taps.v, max});
  else
    list.add("out", {weights, taps.v});
  return list.take();
}

std::vector<Step> steps(const AttentionOptions& options, index_t d_k, const std::string& prefix) {
  return attention_steps(options, d_k, {prefix, prefix + "q", prefix + "k", prefix + "v"});
}

Trace run_steps(std::span<const Step> list, Inputs inputs) {
  check_inputs(inputs);
  const Wiring wiring = wire_up(list, inputs);
  std::vector<TraceTensor> values = room_for(list, inputs);
  run_over(list, wiring, values, false, {});
  Trace trace;
  trace.inputs = std::move(inputs);
  const std::size_t first = trace.inputs.size();
  for (std::size_t n = 0; n < first; ++n) trace.inputs[n].second = std::move(values[n]);
  trace.steps.reserve(list.size());
  for (std::size_t n = 0; n < list.size(); ++n)
    trace.steps.push_back({list[n], std::move(values[first + n])});
  return trace;
}

void run_steps(std::span<const Step> list, Inputs inputs, const StepSink& sink) {
  check_inputs(inputs);
  const Wiring wiring = wire_up(list, inputs);
  std::vector<TraceTensor> values = room_for(list, inputs);
  for (std::size_t n = 0; n < inputs.size(); ++n)
    if (wiring.last_reader[n] == kNobody) values[n] = {};
  run_over(list, wiring, values, true, sink);
}

Trace run_steps(std::span<const Step> list, const ConstTensor<4>& q, const ConstTensor<4>& k,
                const ConstTensor<4>& v, const AttentionOptions& options) {
  require_call("run_steps", {&q, &k, &v}, options);
  Inputs inputs;
  inputs.emplace_back("q", widened(q));
  inputs.emplace_back("k", widened(k));
  inputs.emplace_back("v", widened(v));
  return run_steps(list, std::move(inputs));
}

Trace attend_traced(const ConstTensor<4>& q, const ConstTensor<4>& k, const ConstTensor<4>& v,
                    const AttentionOptions& options) {
  return run_steps(steps(options, q.shape[3]), q, k, v, options);
}

}  // namespace glasshead
