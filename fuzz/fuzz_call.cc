// Any bytes as a page's request: the entry of the WebAssembly module, run natively. Every answer is
// JSON or a page; every refusal says where and what.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "glasshead/error.h"
#include "small_case.h"
#include "wasm/call.h"
#include "wire/case.h"

namespace {

using Json = nlohmann::json;

std::string text_of(const Json& request, const char* key) {
  const auto found = request.is_object() ? request.find(key) : request.end();
  return found != request.end() && found->is_string() ? found->get<std::string>() : "";
}

// Whether the request is answered in milliseconds, as far as its size decides that.
bool is_quick(const Json& request) {
  const std::string call = text_of(request, "call");
  if (call == "worksheet") return false;  // a search: seconds under sanitizers
  if (call == "sweep") {
    constexpr std::size_t kTwoDigits = sizeof "d_k=1..99" - 1;
    return text_of(request, "sweep").size() <= kTwoDigits;
  }
  std::vector<glasshead::Problem> problems;
  const auto c = glasshead::wire::parse_case(text_of(request, "case"), "fuzz", problems);
  return !c || glasshead::fuzz::is_small(*c);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Json request = Json::parse(bytes, nullptr, false, /*ignore_comments=*/true);
  if (request.is_object() && !is_quick(request)) return 0;
  try {
    glasshead::wasm::Session session;
    const glasshead::wasm::Answer answer = glasshead::wasm::call(bytes, session);
    const std::string format = text_of(request, "format");
    const bool is_json = !answer.is_ok || format.empty() || format == "json";
    if (is_json && !Json::accept(answer.bytes)) std::abort();
    if (!answer.is_ok && Json::parse(answer.bytes)["problems"].empty()) std::abort();
  } catch (const glasshead::Error&) {
    // Found while computing, such as a row with scores of -inf alone; the module traps and says so.
  }
  return 0;
}
