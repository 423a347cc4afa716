// How `glasshead heads` says things.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "glasshead/head_study.h"

namespace glasshead::cli {

// "first", "previous", "self", "entropy", "distance", "induction"
const std::vector<std::string>& head_metric_names();

struct HeadOrder {
  std::optional<std::string> metric;  // the largest first, of equal ones as they were; absent: as
                                      // they were
  std::optional<index_t> most;        // so many
};
std::vector<HeadMetrics> in_order(std::vector<HeadMetrics> heads, const HeadOrder& order);

std::string heads_table(const Model& model, const std::vector<HeadMetrics>& heads);
struct HeadsText {
  std::string model;  // as it was named
  std::vector<index_t> ids;
  std::optional<Generation> written;  // behind them, or about them
};
nlohmann::ordered_json heads_json(const Model& model, const HeadsText& text,
                                  const std::vector<HeadMetrics>& heads);

}  // namespace glasshead::cli
