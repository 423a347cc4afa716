#include "cli/heads_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "cli/run_report.h"

namespace glasshead::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Metric {
  const char* name;
  double HeadMetrics::* value;
  int places;  // behind the point
};
constexpr Metric kMetrics[] = {
    {"first", &HeadMetrics::first, 4},       {"previous", &HeadMetrics::previous, 4},
    {"self", &HeadMetrics::self, 4},         {"entropy", &HeadMetrics::entropy, 4},
    {"distance", &HeadMetrics::distance, 2}, {"induction", &HeadMetrics::induction, 4}};

const Metric& metric_named(const std::string& name) {
  return *std::find_if(std::begin(kMetrics), std::end(kMetrics),
                       [&](const Metric& metric) { return name == metric.name; });
}

// "9.6", as --ablate takes it; of an encoder-decoder with the attention it belongs to.
std::string head_name(const Model& model, const HeadMetrics& head) {
  const std::string place = fmt::format("{}.{}", head.layer, head.head);
  if (model.kind() != ModelKind::encoder_decoder) return place;
  const bool is_cross = head.attention.ends_with("cross");
  return (is_cross ? "cross " : head.attention.substr(0, head.attention.find('.')) + " ") + place;
}

}  // namespace

const std::vector<std::string>& head_metric_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Metric& metric : kMetrics) all.emplace_back(metric.name);
    return all;
  }();
  return names;
}

std::vector<HeadMetrics> in_order(std::vector<HeadMetrics> heads, const HeadOrder& order) {
  if (!order.metric) return heads;
  const auto value = metric_named(*order.metric).value;
  std::vector<std::size_t> at(heads.size());
  std::iota(at.begin(), at.end(), std::size_t{0});
  std::sort(at.begin(), at.end(), [&](std::size_t x, std::size_t y) {
    const double a = heads[x].*value, b = heads[y].*value;
    if (std::isnan(a) != std::isnan(b)) return std::isnan(b);  // what says nothing goes last
    return a > b || (!(b > a) && x < y);
  });
  if (order.most && static_cast<std::size_t>(*order.most) < at.size())
    at.resize(static_cast<std::size_t>(*order.most));
  std::vector<HeadMetrics> sorted;
  for (const std::size_t n : at) sorted.push_back(heads[n]);
  return sorted;
}

std::string heads_table(const Model& model, const std::vector<HeadMetrics>& heads) {
  std::size_t width = 4;
  for (const HeadMetrics& head : heads) width = std::max(width, head_name(model, head).size());
  std::string text = fmt::format("{:<{}}", "head", width);
  for (const Metric& metric : kMetrics) text += fmt::format("  {:>9}", metric.name);
  text += "\n";
  for (const HeadMetrics& head : heads) {
    text += fmt::format("{:<{}}", head_name(model, head), width);
    for (const Metric& metric : kMetrics) {
      const double x = head.*metric.value;
      text += fmt::format("  {:>9}", std::isnan(x) ? "-" : decimals(x, metric.places));
    }
    text += "\n";
  }
  return text;
}

Json heads_json(const Model& model, const HeadsText& text, const std::vector<HeadMetrics>& heads) {
  Json all = Json::array();
  for (const HeadMetrics& head : heads) {
    Json one{{"attention", head.attention}, {"layer", head.layer}, {"head", head.head}};
    for (const Metric& metric : kMetrics) {
      const double x = head.*metric.value;
      one[metric.name] = std::isnan(x) ? Json() : Json(x);
    }
    all.push_back(std::move(one));
  }
  Json json{{"model", text.model}, {"kind", name(model.kind())}, {"prompt", {{"ids", text.ids}}}};
  if (text.written)
    json["written"] = {{"ids", text.written->ids}, {"stop", name(text.written->why)}};
  json["heads"] = std::move(all);
  return json;
}

}  // namespace glasshead::cli
