#include "wasm/believed.h"

#include <array>
#include <string_view>

#include "wire/case_reader.h"
#include "wire/decimal.h"

namespace glasshead::wasm {
namespace {

std::optional<index_t> whole(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 12) return std::nullopt;
  index_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + (c - '0');
  }
  return is_negative ? -value : value;
}

std::vector<std::string_view> at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.push_back(part);
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

class Reader {
 public:
  Reader(Request& fields, Believed& to) : fields_(fields), to_(to) {}

  void read() {
    positions();
    window();
    lengths("key_lengths", "--key-lengths");
    lengths("prefix", "--prefix");
    number("scale", "--scale", [&](double x) { to_.options.scale = x; });
    number("softcap", "--softcap", [&](double x) { to_.options.softcap = x; });
    if (const std::string text = typed("alibi"); !text.empty()) {
      to_.alibi = text;
      flag("--alibi", text);
    }
    rotary();
    to_.heads = typed_integer(fields_, "heads", 1, wire::kMostExtent);
    fields_.refuse_others();
  }

 private:
  std::string typed(const char* key) { return fields_.text(key, ""); }
  void problem(const char* key, const std::string& found, const char* needed) {
    fields_.problems().push_back({key, "found '" + wire::excerpt(found) + "'; " + needed});
  }
  void flag(const char* name, const std::string& value) {
    to_.flags.emplace_back(name);
    to_.flags.push_back(value);
  }

  std::optional<QueryStart> start(const char* key, const std::string& text) {
    if (text == "start") return Align::start;
    if (text == "end") return Align::end;
    if (const std::optional<index_t> position = whole(text)) return *position;
    problem(key, text, "start, end, or the position of query row 0 is needed");
    return std::nullopt;
  }

  void positions() {
    const std::string causal = typed("causal"), query_start = typed("query_start");
    if (!query_start.empty()) {
      if (const auto at = start("query_start", query_start)) to_.options.query_start = *at;
      flag("--query-start", query_start);
    }
    if (causal.empty()) return;
    to_.options.mask = to_.options.mask & Mask::causal();
    to_.flags.push_back(causal == "yes" ? "--causal" : "--causal=" + causal);
    if (causal == "yes") return;  // q_len = kv_len, or query_start says where
    const auto at = start("causal", causal);
    if (!at) return;
    if (!query_start.empty() && query_start != causal)
      problem("causal", causal, "query_start says another place; say it once");
    to_.options.query_start = *at;
  }

  void window() {
    const std::string text = typed("window");
    if (text.empty()) return;
    const std::vector<std::string_view> sides = at_commas(text);
    std::array<std::optional<index_t>, 2> limits;
    bool is_right = sides.size() == 2;
    for (std::size_t side = 0; is_right && side < 2; ++side) {
      limits[side] = whole(sides[side]);
      is_right = sides[side].empty() || (limits[side] && *limits[side] >= 0);
    }
    if (is_right)
      to_.options.mask = to_.options.mask & Mask::window(limits[0], limits[1]);
    else
      problem("window", text, "left,right is needed, each 0 or more or left out: 128,0 or 128,");
    flag("--window", text);
  }

  void lengths(const char* key, const char* name) {
    const std::string text = typed(key);
    if (text.empty()) return;
    std::vector<index_t> numbers;
    for (const std::string_view part : at_commas(text)) {
      const std::optional<index_t> n = whole(part);
      if (!n || *n < 0) {
        problem(key, text, "whole numbers separated by commas are needed");
        return;
      }
      numbers.push_back(*n);
    }
    to_.options.mask = to_.options.mask &
                       (std::string_view(key) == "prefix" ? Mask::prefix(std::move(numbers))
                                                          : Mask::key_lengths(std::move(numbers)));
    flag(name, text);
  }

  template <class Set>
  void number(const char* key, const char* name, const Set& set) {
    const std::string text = typed(key);
    if (text.empty()) return;
    if (const std::optional<double> x = wire::finite_number(text))
      set(*x);
    else
      problem(key, text, "a number is needed");
    flag(name, text);
  }

  void rotary() {
    const std::string pairing = typed("rope"), base = typed("rope_base");
    const std::optional<index_t> size = typed_integer(fields_, "rope_size", 1, wire::kMostExtent);
    if (pairing.empty()) {
      if (!base.empty() || size)
        problem("rope", "", "halves or adjacent is needed where a base or a size is given");
      return;
    }
    Rotary rotary;
    rotary.is_adjacent = pairing == "adjacent";
    if (pairing != "adjacent" && pairing != "halves")
      problem("rope", pairing, "halves or adjacent is needed");
    flag("--rope", pairing);
    if (!base.empty()) {
      const std::optional<double> x = wire::finite_number(base);
      if (x && *x > 0)
        rotary.base = *x;
      else
        problem("rope_base", base, "a number above 0 is needed");
      flag("--rope-base", base);
    }
    if (size) {
      rotary.size = *size;
      flag("--rope-size", std::to_string(*size));
    }
    to_.rotary = rotary;
  }

  Request& fields_;
  Believed& to_;
};

}  // namespace

Believed read_believed(Request& request) {
  Believed believed;
  if (const wire::JsonValue json = request.object("options")) {
    Request fields(json, request.problems());
    Reader(fields, believed).read();
  }
  return believed;
}

void set_alibi(Believed& believed, index_t heads, Problems& problems) {
  if (!believed.alibi) return;
  std::vector<double> slopes;
  if (*believed.alibi == "auto") {
    slopes = Bias::alibi_slopes(heads);
  } else {
    for (const std::string_view part : at_commas(*believed.alibi)) {
      const std::optional<double> slope = wire::finite_number(part);
      if (!slope) {
        problems.push_back({"alibi", "found '" + wire::excerpt(*believed.alibi) +
                                         "'; auto, or one number per head is needed"});
        return;
      }
      slopes.push_back(*slope);
    }
  }
  believed.options.bias = believed.options.bias + Bias::alibi(std::move(slopes));
}

std::optional<index_t> typed_integer(Request& request, const char* key, index_t least,
                                     index_t most) {
  const std::string text = request.typed(key);
  if (text.empty()) return std::nullopt;
  const std::optional<index_t> n = whole(text);
  if (n && *n >= least && *n <= most) return n;
  request.problems().push_back({key, "found '" + wire::excerpt(text) + "'; a whole number, " +
                                         std::to_string(least) + " to " + std::to_string(most) +
                                         ", is needed"});
  return std::nullopt;
}

}  // namespace glasshead::wasm
