#include "server/answer.h"

#include <vector>

#include <nlohmann/json.hpp>

#include "glasshead/error.h"
#include "wasm/call.h"

namespace glasshead::server {
namespace {

using Json = nlohmann::json;

Answer refused(const std::vector<Problem>& problems) {
  Json list = Json::array();
  for (const Problem& problem : problems)
    list.push_back({{"where", problem.where}, {"what", problem.what}});
  // A name that was sent may be no UTF-8.
  return {false, Json{{"problems", list}}.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

// How deep the lists and objects of a text stand in each other, up to `most`. Brackets inside
// strings don't count; of what isn't JSON any number will do, as parsing finds that out.
int depth_of(std::string_view text, int most) {
  int depth = 0, deepest = 0;
  bool is_string = false;
  for (std::size_t n = 0; n < text.size() && deepest < most; ++n) {
    const char c = text[n];
    if (is_string) {
      if (c == '\\')
        ++n;
      else if (c == '"')
        is_string = false;
    } else if (c == '"') {
      is_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

Answer answer_or_throw(const std::string& call, std::string_view body) {
  if (depth_of(body, kMostDepth + 1) > kMostDepth)
    return refused({{"request", "lists and objects stand more than " + std::to_string(kMostDepth) +
                                    " deep in each other"}});
  Json request = Json::parse(body, nullptr, false);
  if (!request.is_object()) return refused({{"request", "not a JSON object"}});
  request["call"] = call;
  const std::string text = request.dump(-1, ' ', false, Json::error_handler_t::replace);
  request = Json();  // a large case needs its memory
  wasm::Session session;
  wasm::Answer engine = wasm::call(text, session);
  return {engine.is_ok, std::move(engine.bytes)};
}

}  // namespace

Answer answer(const std::string& call, std::string_view body) {
  try {
    return answer_or_throw(call, body);
  } catch (const Error& error) {  // found while computing
    return refused(error.problems());
  }
}

}  // namespace glasshead::server
