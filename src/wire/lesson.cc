#include "wire/lesson.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "wire/decimal.h"
#include "wire/json_writer.h"

namespace glasshead::wire {
namespace {

// The template's own words for it: tools/one_file.mjs writes them.
constexpr std::string_view kPlace =
    R"(<script type="application/json" id="glasshead-case">{}</script>)";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// What may stand in a fragment as it is stays readable.
std::string encoded(std::string_view text) {
  constexpr std::string_view kPlain = "-_.!~*'(),/:+";
  std::string out;
  for (const char c : text) {
    if (is_word(c) || kPlain.find(c) != std::string_view::npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return out;
}

// As JSON writes a number, which is how the page reads one.
bool is_json_number(std::string_view text) {
  const auto digits = [&] {
    const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(end);
    return end;
  };
  if (text.starts_with('-')) text.remove_prefix(1);
  const bool has_zero = text.starts_with('0');
  const std::size_t whole = digits();
  if (whole == 0 || (has_zero && whole > 1)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (digits() == 0) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (digits() == 0) return false;
  }
  return text.empty();
}

bool is_same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// "X.1.0:0.5", once for each number that differs, or is written otherwise.
std::string changed_numbers(const Case& original, const Case& edited) {
  std::string list;
  for (std::size_t n = 0; n < original.inputs.size(); ++n) {
    const auto& [tap, before] = original.inputs[n];
    const TraceTensor& after = edited.inputs[n].second;
    for (std::size_t at = 0; at < before.values.size(); ++at) {
      const std::string text(given_text(edited, tap, at));
      if (is_same(before.values[at], after.values[at]) && text == given_text(original, tap, at))
        continue;
      std::string place;
      auto rest = static_cast<index_t>(at);
      for (std::size_t axis = before.shape.size(); axis-- > 0;) {
        place = fmt::format(".{}{}", rest % before.shape[axis], place);
        rest /= before.shape[axis];
      }
      list += (list.empty() ? "" : ",") + tap + place + ":" +
              (is_json_number(text) ? text : shortest(after.values[at]));
    }
  }
  return list;
}

std::string hidden_keys(const Case& c, const Edit& edit, std::vector<Problem>& problems) {
  std::set<index_t> keys;
  for (const std::string& name : edit.hide) {
    std::string why_not;
    const bool has_own = !c.key_labels.empty();
    const std::optional<index_t> key =
        find_row(has_own ? c.key_labels : c.context_labels, name, why_not);
    if (key)
      keys.insert(*key);
    else
      problems.push_back({"hide", "the page hides keys of the sequence alone: " + why_not});
  }
  std::string list;
  for (const index_t key : keys) list += (list.empty() ? "" : ",") + std::to_string(key);
  return list;
}

}  // namespace

std::optional<std::string> fill_lesson(std::string_view page, const Lesson& lesson) {
  const std::size_t at = page.find(kPlace);
  if (at == std::string_view::npos || page.find(kPlace, at + 1) != std::string_view::npos)
    return std::nullopt;
  std::string json;
  JsonWriter writer([&](std::string_view piece) { json += piece; });
  writer.begin_object();
  writer.key("name").value(lesson.name).key("text").value(lesson.text);
  writer.key("start").value(lesson.start);
  writer.end_object();
  writer.flush();
  // The element would end at "</script", and nothing but strings holds the sign.
  std::string safe;
  for (const char c : json) safe += c == '<' ? std::string("\\u003c") : std::string(1, c);

  const std::size_t braces = at + kPlace.find("{}");
  std::string filled(page.substr(0, braces));
  filled += safe;
  filled += page.substr(braces + 2);
  return filled;
}

std::string address_name(std::string_view name) {
  std::string out;
  for (const char c : name) out += is_word(c) || c == '-' || c == '_' ? c : '-';
  return out.empty() || !is_word(out[0]) ? "case" + out : out;
}

std::string page_address(const Case& original, const Case& edited, const Edit& edit,
                         const AddressOptions& options, std::vector<Problem>& problems) {
  std::string address = "#/learn/" + address_name(original.name) + "?v=1";
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) address += fmt::format("&{}={}", key, encoded(value));
  };
  if (!edit.set.empty()) add("e", changed_numbers(original, edited));
  add("mask", edit.mask.value_or(""));
  add("hide", hidden_keys(original, edit, problems));
  if (edit.scale) add("scale", shortest(*edit.scale));
  if (edit.empty_row) add("empty", *edit.empty_row == EmptyRow::zero ? "zero" : "error");
  if (options.by_hand) add("mode", fmt::format("hand{}", *options.by_hand));
  add("mistake", options.mistake);
  return address;
}

}  // namespace glasshead::wire
