// What `check` finds, and the words it says it in.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/tensor.h"

namespace glasshead {

// Problems in the order found, and whether any is about sizes: then the error is a ShapeError.
struct Findings {
  std::vector<Problem> problems;
  bool has_shape = false;

  void shape(std::string where, std::string what) {
    has_shape = true;
    problems.push_back({std::move(where), std::move(what)});
  }
  void option(std::string where, std::string what) {
    problems.push_back({std::move(where), std::move(what)});
  }
  bool is_empty() const { return problems.empty(); }
};

// Fails as `function` with everything found; returns if nothing was.
void refuse(const char* function, const Findings& findings);

std::string shape_text(std::span<const index_t> shape);  // "[1,8,16,64]"
std::string index_text(std::span<const index_t> at);     // "(0, 3)"; "()" for a scalar
std::string number_text(double x);                       // "-1", "nan", "0.25": about six digits

}  // namespace glasshead
