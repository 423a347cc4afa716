// Typed reading of a case's fields. Every reader takes the value and its field path, and reports
// what is wrong under that path instead of stopping.
//
//   CaseReader read(problems);
//   if (read.object(value, "attention", {"heads", "W_Q"}))
//     heads = read.integer(value.find("heads"), "attention.heads", 1, kMost).value_or(1);
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/trace.h"
#include "wire/case_json.h"

namespace glasshead::wire {

// A matrix (or vector, or stack of matrices) as written.
struct GivenTensor {
  TraceTensor tensor;
  std::vector<std::string> texts;  // one per number; empty for more than kMostTexts numbers
};
inline constexpr std::size_t kMostTexts = 65536;

// Extents, counts and positions a case may state. Far above what fits the limits of a text, far
// below where products of a few of them overflow.
inline constexpr index_t kMostExtent = index_t{1} << 31;

class CaseReader {
 public:
  // Above this many problems the rest is only counted.
  static constexpr std::size_t kMostProblems = 100;

  explicit CaseReader(std::vector<Problem>& problems);

  void problem(std::string where, std::string what);
  std::size_t problem_count() const { return problems_.size() - count_before_ + more_; }
  // Whether this field, or a part of it, is among the first `count` problems.
  bool has_problem_at(const std::string& path, std::size_t count) const;
  // Problems found while one of these lives leave the shapes of the inputs as they were read, so
  // that what doesn't fit together can still be told.
  class ShapesStand {
   public:
    explicit ShapesStand(CaseReader& read) : read_(read), before_(read.problem_count()) {}
    ~ShapesStand() { read_.of_no_shape_ += read_.problem_count() - before_; }
    ShapesStand(const ShapesStand&) = delete;
    ShapesStand& operator=(const ShapesStand&) = delete;

   private:
    CaseReader& read_;
    std::size_t before_;
  };
  bool do_shapes_stand() const { return of_no_shape_ == problem_count(); }
  // Adds one line on the problems that were only counted. Call last.
  void finish();

  // True if `value` is an object; reports what isn't one of `fields` (with the nearest of them) and
  // what is there twice. False also when the value is absent.
  bool object(JsonValue value, const std::string& path,
              std::initializer_list<std::string_view> fields);
  bool list(JsonValue value, const std::string& path, std::string_view of_what);

  // nullopt when absent or wrong; only wrong is a problem.
  std::optional<std::string> string(JsonValue value, const std::string& path);
  std::optional<bool> boolean(JsonValue value, const std::string& path);
  std::optional<double> number(JsonValue value, const std::string& path);
  std::optional<index_t> integer(JsonValue value, const std::string& path, index_t least,
                                 index_t most);
  std::vector<std::string> strings(JsonValue value, const std::string& path);
  std::vector<double> numbers(JsonValue value, const std::string& path);
  std::vector<index_t> integers(JsonValue value, const std::string& path, index_t least,
                                index_t most);
  // One of `choices`; the position in it.
  std::optional<std::size_t> choice(JsonValue value, const std::string& path,
                                    std::initializer_list<std::string_view> choices);
  // Nested lists of numbers, least_rank to most_rank deep, not ragged. `may_hide`: an entry may be
  // the text "-inf". Entries that are no numbers are reported and read as 0: the shape stands.
  std::optional<GivenTensor> tensor(JsonValue value, const std::string& path, int least_rank,
                                    int most_rank, bool may_hide = false);

 private:
  struct Walk;
  void fill(JsonValue value, const std::string& path, std::size_t level, Walk& walk);

  std::vector<Problem>& problems_;
  std::size_t count_before_;
  std::size_t more_ = 0;
  std::size_t of_no_shape_ = 0;  // problems that leave every shape as it was read
};

// "attention" + "W_K" -> "attention.W_K"; "" + "X" -> "X".
std::string join(const std::string& path, std::string_view field);
std::string join(const std::string& path, index_t index);
// "3x2".
std::string shape_text(const std::vector<index_t>& shape);
// The candidate that is most like `name`, if any is like it at all.
std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates);
// A number as JSON writes it; nullopt for other text, and for what no double can hold.
std::optional<double> finite_number(std::string_view text);

}  // namespace glasshead::wire
