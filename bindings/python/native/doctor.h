// What somebody's attention gave, as Python hands it over, and the verdict on it.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "glasshead/diagnose.h"
#include "python/native/array.h"
#include "wire/case.h"

namespace glasshead::python {

// The text and the JSON of a diagnosis: all that Python needs of it.
using Judged = std::pair<std::string, std::string>;

using RotaryArguments = std::tuple<bool, double, index_t>;  // is_adjacent, base, size

// Claims as (name of a member of Claims, array), and how they are to be judged. Arrays are kept
// alive; what does not fit is told by judge.
class Claimed {
 public:
  Claimed() = default;
  Claimed(const Claimed&) = delete;  // what it holds is held once
  Claimed& operator=(const Claimed&) = delete;

  void claim(const std::string& name, nb::handle array);
  void dtype(const std::string& word);

  // Needs no lock of the interpreter's. `labels` are those of query rows where none are given.
  Judged judge(const AttentionCase& attention, const std::vector<std::string>& labels = {}) const;

  DiagnoseOptions options;
  std::vector<Problem> problems;

 private:
  Claims claims_;
  std::vector<Array> held_;
};

// Numbers that somebody gives for a traced case's first attention.
Judged judge_case(const wire::Case& c, const Claimed& claimed);

}  // namespace glasshead::python
