// glasshead words: a model's token table as geometry.
#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_files.h"
#include "cli/run_report.h"
#include "cli/values.h"
#include "cli/words_vocabulary.h"
#include "glasshead/embedding.h"

namespace glasshead::cli {
namespace {

using Json = nlohmann::ordered_json;

struct WordsArgs {
  std::string model, of, count = "10";
  std::optional<std::string> nearest, analogy;
  std::vector<std::string> between;
  bool is_json = false;
};

struct SignedWord {
  double factor = 1;
  std::string word;
};

// "king - man + woman".
std::vector<SignedWord> read_sum(const std::string& text, std::vector<Problem>& problems) {
  std::vector<SignedWord> terms;
  std::istringstream in(text);
  std::string part;
  bool needs_word = true;
  double factor = 1;
  bool is_good = true;
  while (in >> part) {
    const bool is_sign = part == "+" || part == "-";
    is_good = is_good && is_sign != needs_word;
    if (is_sign)
      factor = part == "+" ? 1 : -1;
    else
      terms.push_back({factor, part});
    needs_word = is_sign;
  }
  if (!is_good || needs_word || terms.size() < 2)
    problems.push_back(
        {"--analogy",
         text + ": words with + or - between them, spaces around: king - man + woman"});
  return terms;
}

// "doctor,nurse"; spaces around a word are not of it.
std::vector<std::string> read_list(const std::string& text) {
  std::vector<std::string> words;
  for (std::string_view word : split_at_commas(text)) {
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    words.emplace_back(word);
  }
  return words;
}

// What was asked for, as words.
struct WordsCall {
  index_t count = 10;
  std::vector<SignedWord> sum;  // of --nearest one word
  std::vector<std::vector<std::string>> pairs;
  std::vector<std::string> of;

  std::vector<std::string> all() const {
    std::vector<std::string> words = of;
    for (const SignedWord& term : sum) words.push_back(term.word);
    for (const std::vector<std::string>& pair : pairs)
      words.insert(words.end(), pair.begin(), pair.end());
    return words;
  }
};

WordsCall read_call(const WordsArgs& args, std::vector<Problem>& problems) {
  WordsCall call;
  const char* asked = nullptr;
  for (const auto& [flag, is_given] : {std::pair("--nearest", args.nearest.has_value()),
                                       std::pair("--analogy", args.analogy.has_value()),
                                       std::pair("--between", !args.between.empty())}) {
    if (is_given && asked != nullptr)
      problems.push_back({flag, std::string("does not go with ") + asked + "; one is answered"});
    if (is_given && asked == nullptr) asked = flag;
  }
  if (asked == nullptr)
    problems.push_back({"--nearest",
                        "missing; give --nearest WORD, --analogy SUM or --between "
                        "FROM,TO"});
  const std::optional<index_t> count = parse_integer(args.count);
  if (!count || *count < 1)
    problems.push_back({"--count", args.count + ": a whole number from 1 is needed"});
  call.count = count.value_or(1);
  if (args.nearest) call.sum = {{1, *args.nearest}};
  if (args.analogy) call.sum = read_sum(*args.analogy, problems);
  for (const std::string& text : args.between) {
    call.pairs.push_back(read_list(text));
    if (call.pairs.back().size() != 2)
      problems.push_back({"--between", text + ": two words, FROM,TO"});
  }
  if (!args.of.empty()) call.of = read_list(args.of);
  if (!call.of.empty() && args.between.empty())
    problems.push_back({"--of", "goes with --between FROM,TO"});
  return call;
}

class Words {
 public:
  Words(const WordsArgs& args, const WordsCall& call)
      : args_(args), call_(call), model_(Model::load(args.model)), known_(model_, call.all()) {
    json_["model"] = args.model;
  }

  void run() { call_.pairs.empty() ? near() : between(); }

 private:
  struct Known {
    Word word;
    std::vector<double> vector;
  };

  Known find(const char* flag, const std::string& given, std::vector<Problem>& problems) const {
    Known found{known_.find(flag, given, problems), {}};
    if (problems.empty()) found.vector = word_vector(model_, found.word.ids);
    return found;
  }
  // How each given word was found, once.
  void show(const Known& known) {
    if (std::find(shown_.begin(), shown_.end(), known.word.given) != shown_.end()) return;
    shown_.push_back(known.word.given);
    lines_ += known.word.given + "  " + known_.describe(known.word) + "\n";
    Json tokens = Json::array();
    for (const index_t id : known.word.ids)
      tokens.push_back({{"id", id}, {"token", known_.token(id)}});
    json_["words"].push_back({{"word", known.word.given}, {"tokens", tokens}});
  }
  void print_result() {
    if (args_.is_json)
      print(json_);
    else
      write_result("", lines_);
  }

  std::vector<Neighbour> nearest_to(const char* flag, const std::vector<double>& sum,
                                    const std::vector<index_t>& left_out) const {
    try {
      return nearest_tokens(model_, sum, call_.count, left_out);
    } catch (const OptionError& error) {
      std::vector<Problem> problems = error.problems();
      for (Problem& problem : problems) problem.where = flag;
      throw OptionError("words", std::move(problems));
    }
  }

  // The nearest tokens to a word, or to a sum of words; the words themselves stand apart.
  void near() {
    const char* flag = args_.nearest ? "--nearest" : "--analogy";
    std::vector<Problem> problems;
    std::vector<Known> words;
    for (const SignedWord& term : call_.sum) words.push_back(find(flag, term.word, problems));
    if (!problems.empty()) throw OptionError("words", std::move(problems));
    std::vector<Term> terms;
    std::vector<index_t> left_out;
    for (std::size_t n = 0; n < words.size(); ++n) {
      show(words[n]);
      terms.push_back({call_.sum[n].factor, words[n].vector});
      if (words[n].word.ids.size() == 1) left_out.push_back(words[n].word.ids[0]);
      left_out.insert(left_out.end(), words[n].word.twins.begin(), words[n].word.twins.end());
    }
    const std::vector<double> sum = sum_of(terms);
    if (words.size() > 1) {
      lines_ += "left out  ";
      for (std::size_t n = 0; n < words.size(); ++n) {
        const double near = cosine(sum, words[n].vector);
        lines_ += (n > 0 ? ", " : "") + words[n].word.given + " " + decimals(near, 4);
        json_["left_out"].push_back({{"word", words[n].word.given}, {"cosine", near}});
      }
      lines_ += "\n";
    }
    json_["nearest"] = Json::array();
    for (const Neighbour& one : nearest_to(flag, sum, left_out)) {
      lines_ += decimals(one.cosine, 4) + "  " + known_.token(one.id) + "\n";
      json_["nearest"].push_back(
          {{"id", one.id}, {"token", known_.token(one.id)}, {"cosine", one.cosine}});
    }
    print_result();
  }

  struct Way {
    std::string name;
    std::vector<double> direction;
  };

  // Two words' cosine and the way from one to the other; where other words stand on it, and how
  // nearly other ways go the same way.
  void between() {
    std::vector<Problem> problems;
    std::vector<std::pair<Known, Known>> pairs;
    for (const std::vector<std::string>& pair : call_.pairs) {
      Known a = find("--between", pair[0], problems);
      pairs.emplace_back(std::move(a), find("--between", pair[1], problems));
    }
    std::vector<Known> others;
    for (const std::string& word : call_.of) others.push_back(find("--of", word, problems));
    for (const auto& [a, b] : pairs)
      if (problems.empty() && a.vector == b.vector)
        problems.push_back(
            {"--between", a.word.given + "," + b.word.given + ": the same, so there is no way"});
    if (!problems.empty()) throw OptionError("words", std::move(problems));
    for (const auto& [a, b] : pairs) {
      show(a);
      show(b);
    }
    for (const Known& other : others) show(other);
    std::vector<Way> ways;
    for (const auto& [a, b] : pairs) ways.push_back(way(a, b));
    for (std::size_t m = 0; m < ways.size(); ++m)
      for (std::size_t n = m + 1; n < ways.size(); ++n) {
        const double same = cosine(ways[m].direction, ways[n].direction);
        lines_ +=
            fmt::format("{} and {}: cosine {}\n", ways[m].name, ways[n].name, decimals(same, 4));
        json_["ways"].push_back({{"one", ways[m].name}, {"other", ways[n].name}, {"cosine", same}});
      }
    for (const auto& [a, b] : pairs) {
      if (others.empty()) break;
      lines_ += fmt::format("on the way from {} (0) to {} (1); 0.5 is as far from both\n",
                            a.word.given, b.word.given);
      for (const Known& other : others) {
        const double at = place_between(a.vector, b.vector, other.vector);
        lines_ += fmt::format("{:>8}  {}\n", decimals(at, 4), other.word.given);
        json_["places"].push_back({{"from", a.word.given},
                                   {"to", b.word.given},
                                   {"word", other.word.given},
                                   {"place", at}});
      }
    }
    print_result();
  }

  Way way(const Known& a, const Known& b) {
    const std::string name = a.word.given + " → " + b.word.given;
    const double near = cosine(a.vector, b.vector);
    lines_ += fmt::format("{}: cosine of the two words {}\n", name, decimals(near, 4));
    json_["pairs"].push_back({{"from", a.word.given}, {"to", b.word.given}, {"cosine", near}});
    return {name, sum_of({{1, b.vector}, {-1, a.vector}})};
  }

  const WordsArgs& args_;
  const WordsCall& call_;
  Model model_;
  Vocabulary known_;
  std::vector<std::string> shown_;
  std::string lines_;
  Json json_;
};

void run(const WordsArgs& args) {
  std::vector<Problem> problems;
  const WordsCall call = read_call(args, problems);
  if (!problems.empty()) throw OptionError("words", std::move(problems));
  Words(args, call).run();
}

void add(CLI::App& command, int&) {
  auto args = std::make_shared<WordsArgs>();
  add_model(command, args->model);
  command
      .add_option("--nearest", args->nearest,
                  "The tokens whose vectors lie nearest to a word's; #123 is a token id")
      ->type_name("WORD");
  command
      .add_option("--analogy", args->analogy,
                  "The tokens nearest to a sum of words, but for these: \"king - man + woman\"")
      ->type_name("SUM");
  command
      .add_option("--between", args->between,
                  "The way from one word to another; more than once: how nearly these ways agree")
      ->type_name("FROM,TO");
  command.add_option("--of", args->of, "Where these words stand on the way --between two")
      ->type_name("WORD,...");
  command.add_option("--count", args->count, "How many tokens are shown (10)")->type_name("N");
  command.add_flag("--json", args->is_json, "Print JSON");
  command.callback([args] { run(*args); });
}

}  // namespace

const Command kWords{
    "words", "Show what lies near a word in a model's token table, and which way words differ",
    "# the nearest words\n"
    "glasshead words SmolLM2.gguf --nearest king\n"
    "# an analogy\n"
    "glasshead words SmolLM2.gguf --analogy \"king - man + woman\"\n"
    "# do two pairs differ in the same way?\n"
    "glasshead words SmolLM2.gguf --between king,queen --between uncle,aunt\n"
    "# where words stand on the way from one to another\n"
    "glasshead words SmolLM2.gguf --between man,woman --of doctor,nurse\n",
    add};

}  // namespace glasshead::cli
