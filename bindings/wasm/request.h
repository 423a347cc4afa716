// The fields of a request. Nothing falls back in silence: a value of another kind, a number out of
// range, a field that the call does not have and one given twice are problems.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "glasshead/error.h"
#include "glasshead/tensor.h"
#include "wire/case.h"
#include "wire/case_json.h"

namespace glasshead::wasm {

using Problems = std::vector<Problem>;

class Request {
 public:
  // `path`: of the object in the request, for problems; "" for the request itself.
  Request(wire::JsonValue json, Problems& problems, std::string path = {})
      : json_(json), problems_(problems), path_(std::move(path)) {}

  std::string text(const char* key, const char* otherwise);
  std::optional<std::string> text(const char* key);
  // What somebody typed, who may have sent a number, true or false as such: their text. "":
  // nothing.
  std::string typed(const char* key);
  index_t integer(const char* key, index_t otherwise, index_t least, index_t most);
  std::vector<index_t> integers(const char* key);
  // Nothing when absent, or of another kind, which is a problem.
  wire::JsonValue object(const char* key);
  wire::JsonValue list(const char* key);

  // To be called when all fields of the call have been asked for.
  void refuse_others();

  Problems& problems() { return problems_; }
  std::string at(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

 private:
  wire::JsonValue find(const char* key);
  void problem(const std::string& key, std::string what) {
    problems_.push_back({at(key), std::move(what)});
  }

  wire::JsonValue json_;
  Problems& problems_;
  std::string path_;
  std::vector<std::string> asked_;
};

// {"set":[{"matrix":"X","at":[1,0],"to":"0.5"}],"hide":[2],"mask":"causal","scale":"0.5",
//  "empty_row":"zero"}: rows, columns and keys by index; numbers as text, as they were typed.
wire::Edit read_edit(wire::JsonValue json, const std::string& path, Problems& problems);

}  // namespace glasshead::wasm
