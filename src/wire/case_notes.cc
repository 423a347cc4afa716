// What a case says about its numbers: printed digits, claims, drills.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "wire/case_builder.h"
#include "wire/case_values.h"

namespace glasshead::wire {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class NoteReader {
 public:
  explicit NoteReader(CaseBuilder& build) : read_(build.read), c_(build.c) {
    for (const auto& input : c_.inputs) taps_.insert(input.first);
    for (const Step& step : case_steps(c_)) taps_.insert(step.tap);
    if (c_.feed > 0 || c_.generate > 0) {
      for (const std::string& tap : std::set<std::string>(taps_)) {
        const std::size_t at = tap.rfind("scores");
        if (at == std::string::npos || at + 6 != tap.size()) continue;
        for (const char* name : {"k_cache", "v_cache"}) taps_.insert(tap.substr(0, at) + name);
      }
    }
    for (const std::string_view name : derived_values()) taps_.insert(std::string(name));
  }

  void printed(JsonValue value) {
    for_each(value, "printed", "printed numbers", [&](JsonValue element, const std::string& path) {
      if (!read_.object(element, path, {"tap", "index", "text", "kind", "note", "factor"})) return;
      PrintedNumber number;
      number.tap = tap(element, path);
      number.index = index(element.find("index"), join(path, "index"), number.tap);
      const JsonValue kind = element.find("kind");
      const auto chosen = read_.choice(kind, join(path, "kind"), {"rounding", "adjusted", "slip"});
      if (chosen) number.kind = kind.text();
      number.note = read_.string(element.find("note"), join(path, "note")).value_or("");
      if (kind && number.note.empty())
        read_.problem(join(path, "note"), "is missing: why the number differs");
      number.factor = read_.number(element.find("factor"), join(path, "factor")).value_or(1);
      if (number.factor == 0) read_.problem(join(path, "factor"), "is 0");
      if (!element.find("text")) read_.problem(join(path, "text"), "is missing");
      spread(element.find("text"), join(path, "text"), number.index,
             [&](const std::vector<index_t>& at, std::string_view text) {
               PrintedNumber one = number;
               one.index = at;
               one.text = text;
               c_.printed.push_back(std::move(one));
             });
    });
  }

  void claims(JsonValue value) {
    for_each(value, "claims", "claims", [&](JsonValue element, const std::string& path) {
      if (!read_.object(element, path,
                        {"says", "with", "tap", "index", "is", "unchanged", "between", "refused"}))
        return;
      c_.claims.push_back(claim(element, path));
    });
  }

  void drills(JsonValue value) {
    for_each(value, "drills", "drills", [&](JsonValue element, const std::string& path) {
      if (!read_.object(element, path, {"question", "edit", "answer"})) return;
      Drill drill;
      for (const char* name : {"question", "answer"})
        if (!element.find(name)) read_.problem(join(path, name), "is missing");
      drill.question = read_.string(element.find("question"), join(path, "question")).value_or("");
      drill.answer = read_.string(element.find("answer"), join(path, "answer")).value_or("");
      drill.edit = edit(element.find("edit"), join(path, "edit"));
      c_.drills.push_back(std::move(drill));
    });
  }

 private:
  template <class Read>
  void for_each(JsonValue value, const std::string& path, const char* of_what, const Read& one) {
    if (!read_.list(value, path, of_what)) return;
    index_t n = 0;
    for (JsonValue element = value.first(); element; element = element.next(), ++n)
      one(element, join(path, n));
  }

  // Calls `one` with every text or number of a nested list and its index behind `at`. null stands
  // for a number that isn't printed.
  template <class One>
  void spread(JsonValue value, const std::string& path, std::vector<index_t> at, const One& one) {
    if (!value) return;
    if (value.is(JsonKind::null)) return;
    if (value.is(JsonKind::array)) {
      constexpr std::size_t kMostAxes = 6;
      if (at.size() >= kMostAxes) {
        read_.problem(path, "is nested too deep");
        return;
      }
      index_t n = 0;
      for (JsonValue element = value.first(); element; element = element.next(), ++n) {
        at.push_back(n);
        spread(element, join(path, n), at, one);
        at.pop_back();
      }
      return;
    }
    const bool is_number = (value.is(JsonKind::number) || value.is(JsonKind::string)) &&
                           finite_number(value.text()).has_value();
    if (!is_number)
      read_.problem(path, describe(value) + " where printed digits belong, as 0.50 or \"0.50\"");
    else
      one(at, value.text());
  }

  std::string tap(JsonValue element, const std::string& path) {
    const std::string at = join(path, "tap");
    if (!element.find("tap")) {
      read_.problem(at, "is missing: which numbers, as in \"weights\"");
      return {};
    }
    const std::string name = read_.string(element.find("tap"), at).value_or("");
    if (name.empty() || is_known(name)) return name;
    const std::optional<std::string> meant =
        nearest(name, std::vector<std::string>(taps_.begin(), taps_.end()));
    read_.problem(at, fmt::format("the case has no numbers called \"{}\"{}", excerpt(name),
                                  meant ? "; did you mean " + *meant + "?" : ""));
    return name;
  }

  bool is_known(const std::string& name) const {
    if (taps_.count(name) != 0) return true;
    if (name.rfind("step.", 0) == 0 && (c_.feed > 0 || c_.generate > 0)) {
      const std::size_t dot = name.find('.', 5);
      return dot != std::string::npos && taps_.count(name.substr(dot + 1)) != 0;
    }
    const std::size_t dot = name.rfind('.');
    if (dot == std::string::npos) return false;
    const std::vector<std::string_view> derived = derived_values();
    return std::find(derived.begin(), derived.end(), name.substr(dot + 1)) != derived.end() &&
           taps_.count(name.substr(0, dot + 1) + "weights") != 0;
  }

  // Of the second attention of a block, or of a block over the context: "block.1.cross.scores".
  bool is_over_context(const std::string& tap_name) const {
    const std::vector<nn::Block>& blocks = c_.network.blocks;
    const std::string prefix = tap_name.substr(0, tap_name.rfind('.') + 1);
    constexpr std::string_view kCross = "cross.";
    if (prefix.size() >= kCross.size() &&
        prefix.compare(prefix.size() - kCross.size(), kCross.size(), kCross) == 0)
      return true;
    for (std::size_t n = 0; n < blocks.size(); ++n)
      if (blocks[n].is_cross && prefix == (blocks.size() == 1 ? "" : fmt::format("block.{}.", n)))
        return true;
    return false;
  }

  // The labels of the n-th label in an index of this tap; null when labels say nothing there.
  const std::vector<std::string>* labels_of(const std::string& tap_name, std::size_t n) const {
    if (tap_name.rfind("step.", 0) == 0) return nullptr;  // its rows are one piece's
    const std::string leaf = tap_name.substr(tap_name.rfind('.') + 1);
    if (leaf == "E") return n == 0 ? &c_.vocabulary : nullptr;
    if (leaf == "context") return n == 0 ? &c_.context_labels : nullptr;
    const std::vector<std::string>& keys =
        is_over_context(tap_name) ? c_.context_labels : c_.key_labels;
    if (n == 0)
      return is_one_of(leaf, {"k", "v", "k_rotated", "k_heads", "v_heads"}) ? &keys
                                                                            : &c_.query_labels;
    if (n == 1 && is_one_of(leaf, {"logits", "probabilities"})) return &c_.vocabulary;
    if (n == 1 && is_one_of(leaf, {"scores", "scaled", "capped", "biased", "masked", "exp",
                                   "weights", "dropped", "exp_unshifted", "mask_additive"}))
      return &keys;
    return nullptr;
  }

  std::vector<index_t> index(JsonValue value, const std::string& path,
                             const std::string& tap_name) {
    std::vector<index_t> out;
    if (!value) return out;
    std::size_t label_count = 0;
    const auto one = [&](JsonValue element, const std::string& at) {
      if (element.is(JsonKind::number)) {
        out.push_back(read_.integer(element, at, 0, kMostExtent).value_or(0));
        return;
      }
      if (!element.is(JsonKind::string)) {
        read_.problem(at, describe(element) + " where a label or an index belongs");
        return;
      }
      const auto* labels = labels_of(tap_name, label_count++);
      std::string why_not = "\"" + excerpt(element.text()) + "\": an index belongs here";
      const std::optional<index_t> row =
          labels == nullptr ? std::nullopt : find_row(*labels, element.text(), why_not);
      if (!row) read_.problem(at, why_not);
      out.push_back(row.value_or(0));
    };
    if (!value.is(JsonKind::array)) {
      one(value, path);
      return out;
    }
    index_t n = 0;
    for (JsonValue element = value.first(); element; element = element.next(), ++n)
      one(element, join(path, n));
    return out;
  }

  Claim claim(JsonValue element, const std::string& path) {
    Claim out;
    if (!element.find("says")) read_.problem(join(path, "says"), "is missing: the sentence");
    out.says = read_.string(element.find("says"), join(path, "says")).value_or("");
    out.with = edit(element.find("with"), join(path, "with"));
    int checks = 0;
    for (const char* name : {"is", "unchanged", "between", "refused"})
      if (element.find(name)) ++checks;
    if (checks != 1)
      read_.problem(path, "must have exactly one check: is, unchanged, between or refused");
    if (element.find("refused")) {
      out.is_refused = read_.string(element.find("refused"), join(path, "refused")).value_or("");
      return out;
    }
    out.tap = tap(element, path);
    out.index = index(element.find("index"), join(path, "index"), out.tap);
    spread(element.find("is"), join(path, "is"), out.index,
           [&](const std::vector<index_t>&, std::string_view text) { out.is.emplace_back(text); });
    out.is_unchanged =
        read_.boolean(element.find("unchanged"), join(path, "unchanged")).value_or(false);
    if (const JsonValue between = element.find("between")) {
      const std::vector<double> range = read_.numbers(between, join(path, "between"));
      if (range.size() == 2 && range[0] <= range[1])
        out.between = {range[0], range[1]};
      else if (between.is(JsonKind::array))
        read_.problem(join(path, "between"), "must be two numbers, [least, most]");
    }
    return out;
  }

  Edit edit(JsonValue value, const std::string& path) {
    Edit out;
    const std::size_t before = read_.problem_count();
    if (!read_.object(value, path,
                      {"set", "hide", "mask", "scale", "softmax", "empty_row", "d_k", "correlation",
                       "untie"}))
      return out;
    const auto at = [&](const char* name) { return join(path, name); };
    const JsonValue set = value.find("set");
    if (set.is(JsonKind::string)) {
      add_set(set, at("set"), out);
    } else {
      for_each(set, at("set"), "changes, as in \"X[B]=1,1\"",
               [&](JsonValue one, const std::string& where) { add_set(one, where, out); });
    }
    for_each(value.find("hide"), at("hide"), "keys", [&](JsonValue key, const std::string& where) {
      if (key.is(JsonKind::string) || key.is(JsonKind::number))
        out.hide.emplace_back(key.text());
      else
        read_.problem(where, describe(key) + " where a label or an index belongs");
    });
    out.mask = read_.string(value.find("mask"), at("mask"));
    out.scale = read_.number(value.find("scale"), at("scale"));
    out.softmax = read_.string(value.find("softmax"), at("softmax"));
    if (const auto kind = read_.choice(value.find("empty_row"), at("empty_row"), {"error", "zero"}))
      out.empty_row = *kind == 0 ? EmptyRow::error : EmptyRow::zero;
    out.d_k = read_.integer(value.find("d_k"), at("d_k"), 1, kMostExtent);
    out.correlation = read_.number(value.find("correlation"), at("correlation"));
    out.untie = read_.boolean(value.find("untie"), at("untie")).value_or(false);
    if (read_.problem_count() != before) return out;
    std::vector<Problem> problems;
    if (!check_edit(c_, out, problems))
      for (const Problem& problem : problems) {
        // "set X[B]" belongs to the field set; what only shows in the edited case, to the edit.
        const std::string field = problem.where.substr(0, problem.where.find(' '));
        if (value.find(field))
          read_.problem(join(path, field), problem.where + ": " + problem.what);
        else
          read_.problem(path, problem.where + ": " + problem.what);
      }
    return out;
  }

  void add_set(JsonValue value, const std::string& path, Edit& out) {
    const std::optional<std::string> text = read_.string(value, path);
    if (!text) return;
    std::vector<Problem> problems;
    if (std::optional<Edit::Set> set = parse_set(*text, problems))
      out.set.push_back(std::move(*set));
    for (const Problem& problem : problems) read_.problem(path, problem.what);
  }

  CaseReader& read_;
  Case& c_;
  std::set<std::string> taps_;
};

}  // namespace

void read_notes(CaseBuilder& build, JsonValue root) {
  NoteReader notes(build);
  notes.printed(root.find("printed"));
  notes.claims(root.find("claims"));
  notes.drills(root.find("drills"));
}

}  // namespace glasshead::wire
