// How the library says no. A public function validates once, at the front door, collects everything
// that is wrong, and throws one Error that carries all of it:
//
//   try { attend(q, k, v, out, options); }
//   catch (const glasshead::Error& e) {
//     for (const Problem& p : e.problems()) show(p.where, p.what);
//   }
//
// `check` and the parsers that fill a list of problems say the same without throwing. The library
// never prints, aborts or exits.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace glasshead {

// One thing that is wrong.
struct Problem {
  std::string where;  // the argument or field path: "k", "mask", "attention.W_K", "theirs.npy"
  std::string what;   // what was found, and what would be right
};

enum class ErrorKind {
  shape,   // sizes that do not fit together
  option,  // a value outside its range, or options that contradict each other
  format,  // bytes of a file that do not mean what they should
  io       // a file that cannot be opened, read or written
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string function, std::vector<Problem> problems);
  ErrorKind kind() const { return kind_; }
  const std::string& function() const { return function_; }           // "attend", "read_npy"
  const std::vector<Problem>& problems() const { return problems_; }  // at least one

 private:
  ErrorKind kind_;
  std::string function_;
  std::vector<Problem> problems_;
};

class ShapeError : public Error {
 public:
  ShapeError(std::string function, std::vector<Problem> problems)
      : Error(ErrorKind::shape, std::move(function), std::move(problems)) {}
};
class OptionError : public Error {
 public:
  OptionError(std::string function, std::vector<Problem> problems)
      : Error(ErrorKind::option, std::move(function), std::move(problems)) {}
};
class FormatError : public Error {
 public:
  FormatError(std::string function, std::vector<Problem> problems)
      : Error(ErrorKind::format, std::move(function), std::move(problems)) {}
};
class IoError : public Error {
 public:
  IoError(std::string function, std::vector<Problem> problems)
      : Error(ErrorKind::io, std::move(function), std::move(problems)) {}
};

}  // namespace glasshead
