// How `glasshead run` says things.
#pragma once

#include <chrono>
#include <string>

#include <nlohmann/json.hpp>

#include "glasshead/model.h"

namespace glasshead::cli {

double seconds_since(std::chrono::steady_clock::time_point start);
std::string decimals(double x, int places);  // "0.125"
std::string duration_text(double seconds);   // "0.042 s"
std::string rate_text(index_t tokens,
                      double seconds);           // "3 tokens in 0.042 s (71.4 tokens/s)"
void print(const nlohmann::ordered_json& json);  // to stdout

// One row of logits.
View<const float, 1> row_of(const View<const float, 2>& logits, index_t row);

}  // namespace glasshead::cli
