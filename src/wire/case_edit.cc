#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "wire/case_builder.h"
#include "wire/case_random.h"

namespace glasshead::wire {

const std::vector<std::string>* axis_labels(const Case& c, const std::string& tap,
                                            std::size_t axes_from_last) {
  if (axes_from_last == 1) {
    if (tap == "X" || tap == "q" || tap == "ids") return &c.query_labels;
    if (tap == "context") return &c.context_labels;
    if (tap == "k" || tap == "v") return &c.key_labels;
    if (tap == "E") return &c.vocabulary;
  }
  if (axes_from_last == 0) {
    if (tap == "W_U" || tap == "b_U") return &c.vocabulary;
    if (tap == "X" || tap == "E") return &c.axis_names;
  }
  return nullptr;
}

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find_first_of(separators);
    parts.push_back(trimmed(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<index_t> parse_extent(std::string_view text) {
  const std::optional<double> number = finite_number(text);
  if (!number || *number < 0 || *number > static_cast<double>(kMostExtent) ||
      *number != std::floor(*number))
    return std::nullopt;
  return static_cast<index_t>(*number);
}

std::string set_name(const Edit::Set& set) {
  std::string name = "set " + excerpt(set.matrix);
  for (std::size_t n = 0; n < set.at.size(); ++n) name += (n == 0 ? "[" : ",") + excerpt(set.at[n]);
  return set.at.empty() ? name : name + "]";
}

class Editor {
 public:
  // `is_trial`: random inputs get their new sizes, not their numbers.
  Editor(Case& c, bool is_trial, std::vector<Problem>& problems)
      : c_(c), is_trial_(is_trial), problems_(problems) {}

  void apply(const Edit& edit) {
    if (edit.untie) untie();
    if (edit.d_k || edit.correlation) change_random(edit);
    for (const Edit::Set& set : edit.set) change_numbers(set);
    if (edit.mask) change_mask(*edit.mask);
    if (!edit.hide.empty() || !edit.hide_keys.empty()) hide(edit);
    if (edit.scale) change_scale(*edit.scale);
    if (edit.softmax) {
      if (*edit.softmax != "none" && *edit.softmax != "row")
        problem("softmax", "\"" + excerpt(*edit.softmax) + "\" is neither none nor row");
      c_.has_softmax = *edit.softmax != "none";
    }
    if (edit.empty_row)
      for (nn::Attention* attention : attentions()) attention->options.empty_row = *edit.empty_row;
  }

 private:
  void problem(std::string where, std::string what) {
    problems_.push_back({std::move(where), std::move(what)});
  }

  std::vector<nn::Attention*> attentions() {
    std::vector<nn::Attention*> out;
    for (nn::Block& block : c_.network.blocks) {
      out.push_back(&block.attention);
      if (block.cross_attention) out.push_back(&*block.cross_attention);
    }
    return out;
  }

  std::pair<std::string, TraceTensor>* find_input(std::string_view name) {
    for (auto& input : c_.inputs) {
      const auto path = c_.paths.find(input.first);
      if (input.first == name || (path != c_.paths.end() && path->second == name)) return &input;
    }
    return nullptr;
  }

  void untie() {
    nn::Network& network = c_.network;
    const auto* table = find_input("E");
    if (!network.unembedding || !network.unembedding->is_tied || table == nullptr) {
      problem("untie", "the case has no tied unembedding");
      return;
    }
    TraceTensor copy;
    const TraceTensor& e = table->second;
    copy.shape = {e.shape[1], e.shape[0]};
    for (index_t d = 0; d < e.shape[1]; ++d)
      for (index_t word = 0; word < e.shape[0]; ++word)
        copy.values.push_back(e.values[static_cast<std::size_t>(word * e.shape[1] + d)]);
    network.unembedding->is_tied = false;
    network.unembedding->weight = "W_U";
    c_.inputs.emplace_back("W_U", std::move(copy));
    c_.paths["W_U"] = "unembed.W";
  }

  void change_random(const Edit& edit) {
    if (!c_.random) {
      problem(edit.d_k ? "d_k" : "correlation", "belongs to a case with random q, k, v");
      return;
    }
    const index_t most = std::min(kMostRandomExtent, kMostRandom / c_.random->rows);
    if (edit.d_k && (*edit.d_k < 1 || *edit.d_k > most))
      problem("d_k", fmt::format("{}; it must be from 1 to {}", *edit.d_k, most));
    else if (edit.correlation && !(*edit.correlation >= 0 && *edit.correlation <= 1))
      problem("correlation", "must be from 0 to 1");
    else {
      c_.random->d_k = edit.d_k.value_or(c_.random->d_k);
      c_.random->correlation = edit.correlation.value_or(c_.random->correlation);
      if (is_trial_)
        size_random(c_);
      else
        fill_random(c_);
    }
  }

  std::string names_of_inputs() {
    std::string names;
    for (const auto& input : c_.inputs)
      if (input.first != "ids") names += (names.empty() ? "" : ", ") + input.first;
    return names;
  }

  // Adjacent numbers of a tensor.
  struct Range {
    std::size_t first, count;
  };

  // The numbers that set.at names, with indices for all axes, or all but the last, or none.
  std::optional<Range> numbers_at(const Edit::Set& set,
                                  const std::pair<std::string, TraceTensor>& input,
                                  const std::string& where) {
    const TraceTensor& tensor = input.second;
    const std::size_t rank = tensor.shape.size();
    if (set.at.size() > rank || (!set.at.empty() && set.at.size() + 1 < rank)) {
      problem(where, fmt::format("{} indices where {} is {}", set.at.size(), set.matrix,
                                 shape_text(tensor.shape)));
      return std::nullopt;
    }
    Range range{0, tensor.values.size()};
    for (std::size_t axis = 0; axis < set.at.size(); ++axis) {
      const index_t extent = tensor.shape[axis];
      const auto* labels = axis_labels(c_, input.first, rank - 1 - axis);
      std::string why_not;
      std::optional<index_t> at;
      if (labels != nullptr && !labels->empty() && !set.is_by_index) {
        at = find_row(*labels, set.at[axis], why_not);
      } else {
        at = parse_extent(set.at[axis]);
        if (!at) why_not = "\"" + excerpt(set.at[axis]) + "\" is not an index";
      }
      if (at && *at >= extent) {
        why_not = fmt::format("index {} where {} is {}", *at, set.matrix, shape_text(tensor.shape));
        at.reset();
      }
      if (!at) {
        problem(where, why_not);
        return std::nullopt;
      }
      range.count /= static_cast<std::size_t>(extent);
      range.first += static_cast<std::size_t>(*at) * range.count;
    }
    return range;
  }

  void change_numbers(Edit::Set set) {
    const std::string where = set_name(set);
    auto* input = find_input(set.matrix);
    if (input == nullptr || input->first == "ids") {
      if (set.matrix == "X" && !c_.network.ids.empty())
        problem(where, "X is looked up in E by the tokens: set a row of E");
      else
        problem(where, fmt::format("no input is called {}; there are {}", excerpt(set.matrix),
                                   names_of_inputs()));
      return;
    }
    // W_vocab is kept as E, its transpose: an entry's row and column trade places. A single label
    // is a word, and so names a column of W_vocab as it names a row of E.
    const bool is_transposed = set.matrix == "W_vocab" && input->first == "E";
    if (is_transposed && set.at.size() == 2) std::swap(set.at[0], set.at[1]);
    if (is_transposed && set.at.empty()) {
      problem(where, "as a whole isn't set: set columns, W_vocab[word]=…");
      return;
    }
    TraceTensor& tensor = input->second;
    const std::optional<Range> range = numbers_at(set, *input, where);
    if (!range) return;
    if (set.values.size() != range->count) {
      problem(where, fmt::format("{} numbers where {} belong", set.values.size(), range->count));
      return;
    }
    const bool has_texts = tensor.values.size() <= kMostTexts;
    std::vector<std::string>& texts = c_.given_texts[input->first];
    if (has_texts) texts.resize(tensor.values.size());
    for (std::size_t n = 0; n < range->count; ++n) {
      if (!std::isfinite(set.values[n])) {
        problem(where, "a number that isn't finite");
        return;
      }
      tensor.values[range->first + n] = set.values[n];
      if (has_texts)
        texts[range->first + n] = set.texts.size() == range->count ? set.texts[n] : std::string();
    }
  }

  bool has_attention(const char* what) {
    if (c_.network.blocks.empty()) problem(what, "the case has no attention");
    return !c_.network.blocks.empty();
  }

  void change_mask(const std::string& name) {
    std::string why_not;
    const std::optional<Mask> mask = parse_mask_name(name, why_not);
    if (!mask)
      problem("mask", why_not);
    else if (has_attention("mask"))
      for (nn::Block& block : c_.network.blocks) block.attention.options.mask = *mask;
  }

  // A name that the sequence and its context both have is the sequence's own.
  void hide(const Edit& edit) {
    if (!has_attention("hide")) return;
    if (c_.feed > 0 || c_.generate > 0) {
      problem("hide",
              fmt::format("the case runs row by row ({}), each run with more keys than the one "
                          "before, and a hidden key belongs to one number of keys; take \"{}\" out "
                          "of the case to hide keys",
                          c_.feed > 0 ? "feed" : "generate", c_.feed > 0 ? "feed" : "generate"));
      return;
    }
    bool has_own = false, has_context = false;
    for (const nn::Block& block : c_.network.blocks) {
      (block.is_cross ? has_context : has_own) = true;
      has_context = has_context || block.cross_attention;
    }
    std::vector<index_t> own, context;
    const auto remember = [&](const std::vector<std::string>& labels, index_t key) {
      c_.hidden_keys.push_back(labels[static_cast<std::size_t>(key)]);
    };
    for (const index_t key : edit.hide_keys) {
      const std::vector<std::string>& labels = has_own ? c_.key_labels : c_.context_labels;
      if (key < 0 || key >= static_cast<index_t>(labels.size())) {
        problem("hide", fmt::format("there is no key {}; there are {}, counted from 0", key,
                                    labels.size()));
        continue;
      }
      (has_own ? own : context).push_back(key);
      remember(labels, key);
    }
    for (const std::string& name : edit.hide) {
      std::string why_not, why_not_there;
      std::optional<index_t> key;
      if (has_own) key = find_row(c_.key_labels, name, why_not);
      if (key) {
        own.push_back(*key);
        remember(c_.key_labels, *key);
        continue;
      }
      if (has_context) key = find_row(c_.context_labels, name, why_not_there);
      if (key) {
        context.push_back(*key);
        remember(c_.context_labels, *key);
      } else {
        problem("hide", has_own ? why_not : why_not_there);
      }
    }
    for (nn::Block& block : c_.network.blocks) {
      hide_in(block.attention, block.is_cross ? context : own,
              block.is_cross ? c_.context_labels : c_.key_labels);
      if (block.cross_attention) hide_in(*block.cross_attention, context, c_.context_labels);
    }
  }

  static void hide_in(nn::Attention& attention, const std::vector<index_t>& keys,
                      const std::vector<std::string>& labels) {
    if (keys.empty()) return;
    attention.options.mask =
        attention.options.mask & hide_keys(keys, static_cast<index_t>(labels.size()));
  }

  void change_scale(double scale) {
    if (!std::isfinite(scale))
      problem("scale", "isn't a finite number");
    else if (has_attention("scale"))
      for (nn::Attention* attention : attentions()) attention->options.scale = scale;
  }

  Case& c_;
  bool is_trial_;
  std::vector<Problem>& problems_;
};

std::optional<Case> edited(const Case& original, const Edit& edit, bool is_trial,
                           std::vector<Problem>& problems) {
  Case out = original;
  const std::size_t before = problems.size();
  Editor(out, is_trial, problems).apply(edit);
  if (problems.size() == before) {
    CaseReader read(problems);
    check_case(out, read);
    read.finish();
  }
  if (problems.size() != before) return std::nullopt;
  return out;
}

}  // namespace

namespace {

// "100/110/111": a row of pairs per query, 1 where it may attend.
std::optional<Mask> parse_mask_rows(std::string_view text, std::string& why_not) {
  std::vector<std::uint8_t> allowed;
  const std::vector<std::string_view> rows = split(text, "/");
  for (const std::string_view row : rows) {
    const bool is_right = !row.empty() && row.size() == rows[0].size() &&
                          row.find_first_not_of("01") == std::string_view::npos;
    if (!is_right) {
      why_not = "\"rows:" + excerpt(text) +
                "\": rows of 1 (may attend) and 0, equally long, as in rows:100/110/111";
      return std::nullopt;
    }
    for (const char pair : row) allowed.push_back(pair == '1' ? 1 : 0);
  }
  const auto queries = static_cast<index_t>(rows.size());
  const auto keys = static_cast<index_t>(rows[0].size());
  return allowed_pairs(queries, keys, std::move(allowed));
}

std::optional<Mask> parse_one_mask(std::string_view text, std::string& why_not) {
  if (text == "none") return Mask();
  if (text == "causal") return Mask::causal();
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const std::string_view rest =
      colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (kind == "window") {
    const std::vector<std::string_view> sides = split(rest, ",");
    if (colon != std::string_view::npos && sides.size() == 2) {
      const std::optional<index_t> left = parse_extent(sides[0]);
      const std::optional<index_t> right = parse_extent(sides[1]);
      if ((left || sides[0].empty()) && (right || sides[1].empty()))
        return Mask::window(left, right);
    }
    why_not = "\"" + excerpt(text) + "\": a window is window:LEFT,RIGHT, as in window:2,0";
    return std::nullopt;
  }
  if (kind == "prefix") {
    if (const std::optional<index_t> length = parse_extent(rest)) return Mask::prefix({*length});
    why_not = "\"" + excerpt(text) + "\": a prefix is prefix:LENGTH, as in prefix:3";
    return std::nullopt;
  }
  if (kind == "padding") {
    if (const std::optional<index_t> length = parse_extent(rest))
      return Mask::key_lengths({*length});
    why_not = "\"" + excerpt(text) +
              "\": padding is padding:LENGTH, the keys that are not, as in padding:2";
    return std::nullopt;
  }
  if (kind == "rows") return parse_mask_rows(rest, why_not);
  why_not =
      "\"" + excerpt(text) +
      "\" is none of none, causal, window:LEFT,RIGHT, prefix:LENGTH, padding:LENGTH, rows:10/11";
  return std::nullopt;
}

}  // namespace

std::optional<Mask> parse_mask_name(std::string_view text, std::string& why_not) {
  Mask mask;
  for (const std::string_view part : split(text, "+")) {
    const std::optional<Mask> one = parse_one_mask(part, why_not);
    if (!one) return std::nullopt;
    mask = mask & *one;
  }
  return mask;
}

std::optional<Edit::Set> parse_set(std::string_view text, std::vector<Problem>& problems) {
  const std::string where = "set " + excerpt(text);
  const auto refuse = [&](std::string what) {
    problems.push_back({where, std::move(what)});
    return std::nullopt;
  };
  Edit::Set set;
  // The last "=": a label may hold one, a number can't.
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos)
    return refuse("no \"=\": write MATRIX[ROW]=NUMBERS, as in X[B]=1,1 or W_Q[0,1]=2");
  std::string_view left = trimmed(text.substr(0, equals));
  const std::size_t bracket = left.find('[');
  if (bracket != std::string_view::npos) {
    if (left.back() != ']') return refuse("\"[\" without \"]\" before \"=\"");
    const std::string_view inside = left.substr(bracket + 1, left.size() - bracket - 2);
    for (const std::string_view part : split(inside, ",")) {
      if (part.empty()) return refuse("an empty label or index between [ and ]");
      set.at.emplace_back(part);
    }
    left = trimmed(left.substr(0, bracket));
  }
  if (left.empty()) return refuse("no name of a matrix before \"[\" or \"=\"");
  set.matrix = left;
  for (const std::string_view part : split(text.substr(equals + 1), ",;")) {
    const std::optional<double> value = finite_number(part);
    if (!value) return refuse("\"" + excerpt(part) + "\" is not a finite number");
    set.values.push_back(*value);
    set.texts.emplace_back(part);
  }
  return set;
}

std::optional<Case> edit_case(const Case& original, const Edit& edit,
                              std::vector<Problem>& problems) {
  return edited(original, edit, /*is_trial=*/false, problems);
}

bool check_edit(const Case& original, const Edit& edit, std::vector<Problem>& problems) {
  return edited(original, edit, /*is_trial=*/true, problems).has_value();
}

}  // namespace glasshead::wire
