#include "cli/run_report.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "cli/command.h"

namespace glasshead::cli {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string decimals(double x, int places) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", places, x);
  return text;
}

std::string duration_text(double seconds) { return decimals(seconds, seconds < 10 ? 3 : 1) + " s"; }

std::string rate_text(index_t tokens, double seconds) {
  return fmt::format("{} {} in {} ({} tokens/s)", tokens, tokens == 1 ? "token" : "tokens",
                     duration_text(seconds),
                     decimals(static_cast<double>(tokens) / std::max(seconds, 1e-9), 1));
}

void print(const nlohmann::ordered_json& json) {
  write_result("",
               json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

View<const float, 1> row_of(const View<const float, 2>& logits, index_t row) {
  return {logits.data + row * logits.strides[0], {logits.shape[1]}};
}

}  // namespace glasshead::cli
