// The fields of a request. Nothing falls back in silence: a value of another kind, a number out of
// range and a field that the call does not have are problems.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "glasshead/error.h"
#include "glasshead/tensor.h"
#include "wire/case.h"

namespace glasshead::wasm {

using Json = nlohmann::json;
using Problems = std::vector<Problem>;

class Request {
 public:
  // `path`: of the object in the request, for problems; "" for the request itself.
  Request(const Json& json, Problems& problems, std::string path = {})
      : json_(json), problems_(problems), path_(std::move(path)) {}

  std::string text(const char* key, const char* otherwise);
  std::optional<std::string> text(const char* key);
  index_t integer(const char* key, index_t otherwise, index_t least, index_t most);
  std::vector<index_t> integers(const char* key);
  // Null when absent, or of another kind, which is a problem.
  const Json* object(const char* key);
  const Json* list(const char* key);

  // To be called when all fields of the call have been asked for.
  void refuse_others();

  Problems& problems() { return problems_; }
  std::string at(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

 private:
  const Json* find(const char* key);
  void problem(const char* key, std::string what) {
    problems_.push_back({at(key), std::move(what)});
  }

  const Json& json_;
  Problems& problems_;
  std::string path_;
  std::vector<std::string> asked_;
};

// {"set":[{"matrix":"X","at":[1,0],"to":"0.5"}],"hide":[2],"mask":"causal","scale":"0.5",
//  "empty_row":"zero"}: rows, columns and keys by index; numbers as text, as they were typed.
wire::Edit read_edit(const Json* json, const std::string& path, Problems& problems);

// The case of a request: "case", "name", and "edit" applied. nullopt with problems. Asks for the
// last fields of a call: what else the request holds is refused.
struct ReadCase {
  wire::Case original, edited;
};
std::optional<ReadCase> read_case(Request& request);

}  // namespace glasshead::wasm
