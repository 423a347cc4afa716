#include "cli/bench_report.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace glasshead::cli {
namespace {

bool is_decode(const BenchRow& row) {
  return row.kind == BenchKind::decode || row.kind == BenchKind::decode_cache;
}

// Three digits or more: 12.3, 0.012, 4567.
std::string shown(double x) {
  if (x >= 100) return fmt::format("{:.0f}", x);
  if (x >= 1) return fmt::format("{:.1f}", x);
  return fmt::format("{:.3f}", x);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

nlohmann::ordered_json to_json(const BenchResult& result) {
  const BenchRow& row = result.row;
  nlohmann::ordered_json json{{"name", row.name},          {"group", row.group},
                              {"threads", result.threads}, {"heads", row.heads},
                              {"kv_heads", row.kv_heads},  {"q_len", row.q_len},
                              {"kv_len", row.kv_len},      {"d", row.d},
                              {"dtype", name(row.dtype)},  {"flops", row.flops()},
                              {"bytes", row.bytes()},      {"error_rms", result.error},
                              {"right", result.is_right}};
  if (row.kind == BenchKind::decode_cache) json["cache"] = name(row.cache);
  if (!row.isa.empty()) json["isa"] = row.isa;
  if (!result.is_right) return json;
  json["seconds"] = result.times.seconds;
  json["of_peak"] = result.times.of_peak;
  json["peak_beside"] = result.times.peak;
  if (is_decode(row)) {
    json["of_stream"] = result.times.of_stream;
    json["stream_beside"] = result.times.stream;
  }
  return json;
}

}  // namespace

std::string machine_text(const BenchMachine& machine) {
  std::string text = fmt::format("{}, {} cores; kernels {} ({})\n", machine.cpu, machine.cores,
                                 machine.isa, machine.why_isa);
  for (const BenchMachine::Limits& limits : machine.limits)
    text += fmt::format(
        "{} thread{}: {} GF/s f32, {} GF/s f64 by fused multiply-add ({}); reads {} GB/s\n",
        limits.threads, limits.threads == 1 ? "" : "s", shown(limits.f32 / 1e9),
        shown(limits.f64 / 1e9), machine.widest, shown(limits.stream / 1e9));
  return text;
}

std::string table_head(const std::string& group) {
  return fmt::format("\n{}\n{:<30}{:>8}{:>11}{:>9}{:>10}{:>11}{:>9}{:>10}\n", group, "row",
                     "threads", "ms", "GF/s", "of peak", "of stream", "spread", "error");
}

std::string table_line(const BenchResult& result) {
  const BenchRow& row = result.row;
  if (!result.is_right)
    return fmt::format("{:<30}{:>8}  WRONG: error {:.1e} of the answer, at most {:.0e} is right\n",
                       row.name, result.threads, result.error, result.allowed_error);
  const double seconds = median(result.times.seconds);
  return fmt::format("{:<30}{:>8}{:>11}{:>9}{:>10}{:>11}{:>9}{:>10.1e}\n", row.name, result.threads,
                     shown(1e3 * seconds), shown(row.flops() / seconds / 1e9),
                     percent(median(result.times.of_peak)),
                     is_decode(row) ? percent(median(result.times.of_stream)) : "-",
                     percent(spread(result.times.seconds)), result.error);
}

std::string growth_text(const std::vector<BenchGrowth>& growth) {
  std::string text =
      fmt::format("\ngrowth: causal, 1 head, d 64, f32\n{:>8}{:>12}{:>9}{:>18}{:>18}{:>18}\n", "n",
                  "s", "GF/s", "given, MB", "held beside, MB", "planned, MB");
  const auto megabytes = [](index_t bytes) {
    return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6);
  };
  for (const BenchGrowth& at : growth)
    text += fmt::format("{:>8}{:>12.4f}{:>9}{:>18}{:>18}{:>18}\n", at.n, at.seconds,
                        shown(at.flops / at.seconds / 1e9), megabytes(at.given), megabytes(at.held),
                        megabytes(at.scratch));
  return text;
}

nlohmann::ordered_json machine_json(const BenchMachine& machine) {
  nlohmann::ordered_json limits = nlohmann::ordered_json::array();
  for (const BenchMachine::Limits& at : machine.limits)
    limits.push_back({{"threads", at.threads},
                      {"flops_f32", at.f32},
                      {"flops_f64", at.f64},
                      {"read_bytes_per_second", at.stream}});
  return {{"cpu", machine.cpu},         {"cores", machine.cores},     {"isa", machine.isa},
          {"why_isa", machine.why_isa}, {"peak_isa", machine.widest}, {"limits", limits}};
}

std::string to_json_text(const BenchReport& report) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const BenchResult& result : report.results) rows.push_back(to_json(result));
  nlohmann::ordered_json growth = nlohmann::ordered_json::array();
  for (const BenchGrowth& at : report.growth)
    growth.push_back({{"n", at.n},
                      {"seconds", at.seconds},
                      {"flops", at.flops},
                      {"given_bytes", at.given},
                      {"held_bytes", at.held},
                      {"planned_bytes", at.scratch}});
  const nlohmann::ordered_json json{{"schema", "glasshead.bench/1"},
                                    {"version", GLASSHEAD_VERSION},
                                    {"date", date()},
                                    {"quick", report.is_quick},
                                    {"machine", machine_json(report.machine)},
                                    {"rows", rows},
                                    {"growth", growth}};
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// A bar for each row: its share of the processor's peak, or for decoding of the stream.
std::string to_svg(const BenchReport& report) {
  constexpr int kLabel = 250, kWidth = 500, kLine = 20, kTop = 44, kRight = 60;
  std::vector<const BenchResult*> bars;
  for (const BenchResult& result : report.results)
    if (result.is_right) bars.push_back(&result);
  const int height = kTop + kLine * static_cast<int>(bars.size()) + 10;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<title>Share of the machine's limit</title>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kLabel + kWidth + kRight, height);
  svg += fmt::format("<text x=\"8\" y=\"18\" font-weight=\"bold\">{}</text>\n",
                     escaped(report.machine.cpu + ", " + report.machine.isa));
  svg += fmt::format(
      "<text x=\"8\" y=\"34\" fill=\"#444444\">blue: of the multiply-add peak; orange, striped "
      "edge: of the read rate (decoding)</text>\n");
  for (int share = 0; share <= 100; share += 25)
    svg += fmt::format("<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\" stroke=\"#cccccc\"/>\n",
                       kLabel + kWidth * share / 100, kTop - 4, height - 8);
  for (std::size_t n = 0; n < bars.size(); ++n) {
    const BenchResult& bar = *bars[n];
    const double share = median(is_decode(bar.row) ? bar.times.of_stream : bar.times.of_peak);
    const int y = kTop + kLine * static_cast<int>(n);
    const std::string label =
        bar.row.name + (bar.threads > 1 ? fmt::format(" x{}", bar.threads) : std::string());
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kLabel - 6,
                       y + 13, escaped(label));
    svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"14\" fill=\"{}\"{}/>\n",
                       kLabel, y + 2, kWidth * std::min(1.0, share),
                       is_decode(bar.row) ? "#d9822b" : "#2b6cb0",
                       is_decode(bar.row) ? " stroke=\"#7a4a12\" stroke-dasharray=\"3 2\"" : "");
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>\n",
                       kLabel + kWidth * std::min(1.0, share) + 4, y + 13, percent(share));
  }
  return svg + "</svg>\n";
}

}  // namespace glasshead::cli
