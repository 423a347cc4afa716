// A parser's problems, each with its file in front.
#pragma once

#include <string>
#include <vector>

#include "glasshead/error.h"

namespace glasshead::formats {

inline std::vector<Problem> in_file(const std::string& path, std::vector<Problem> problems) {
  for (Problem& problem : problems) {
    problem.what = problem.where + ": " + problem.what;
    problem.where = path;
  }
  return problems;
}

}  // namespace glasshead::formats
