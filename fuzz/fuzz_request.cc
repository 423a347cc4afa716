// Any bytes as a request to the server: who may ask (its head), and the doctor's answer to its
// body. What else the calls answer is fuzz_call's. A refusal has a code; an answer is JSON.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "server/answer.h"
#include "server/gate.h"
#include "server/refusal.h"
#include "small_case.h"
#include "wire/case.h"

namespace {

using Json = nlohmann::json;
using namespace glasshead;

constexpr const char* kToken = "00112233445566778899aabbccddeeff";

// "Name: value" lines up to an empty one; what follows is the body.
std::string_view read_head(std::string_view text, server::Head& head) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) break;
    const std::size_t colon = std::min(line.find(": "), line.size());
    const std::string name(line.substr(0, colon)),
        value(line.substr(std::min(colon + 2, line.size())));
    if (name == "Path") head.path = value;
    if (name == "Method") head.method = value;
    if (name == "Host") head.host.push_back(value);
    if (name == "Origin") head.origin.push_back(value);
    if (name == "Token") head.token.push_back(value);
    if (name == "Type") head.content_type.push_back(value);
    if (name == "Length") head.content_length.push_back(value);
    if (name == "Encoding") head.content_encoding.push_back(value);
    if (name == "Transfer") head.transfer_encoding.push_back(value);
  }
  return text;
}

void check_gate(const server::Head& head) {
  const server::Gate gate({.port = 80, .token = kToken, .most_body = 1000});
  const auto refusal = gate.check(head);
  if (refusal) {
    if (!Json::accept(server::refusal_json(*refusal)) || refusal->message.empty() ||
        refusal->status < 400)
      std::abort();
    return;
  }
  // What got in was ours to answer.
  const bool is_own = head.host.size() == 1 && head.host[0].ends_with(":80");
  const bool has_token = head.token == std::vector<std::string>{kToken};
  if (!is_own || (server::is_api(head.path) && !has_token)) std::abort();
}

// Whether the doctor answers in milliseconds, as far as sizes decide that.
bool is_quick(const Json& request) {
  const auto found = request.find("case");
  if (found == request.end() || !found->is_string()) return true;
  std::vector<Problem> problems;
  const auto c = wire::parse_case(found->get<std::string>(), "fuzz", problems);
  return !c || fuzz::is_small(*c);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  server::Head head;
  const std::string_view body = read_head({reinterpret_cast<const char*>(data), size}, head);
  check_gate(head);
  Json request = Json::parse(body, nullptr, false);
  if (request.is_object()) {
    if (!is_quick(request)) return 0;
    request["pairs"] = false;
  }
  const std::string text = request.is_object()
                               ? request.dump(-1, ' ', false, Json::error_handler_t::replace)
                               : std::string(body);
  const server::Answer answer = server::answer("doctor", text);
  const bool is_json = !answer.is_ok || answer.bytes.starts_with("{");
  if (is_json && !Json::accept(answer.bytes)) std::abort();
  if (!answer.is_ok && Json::parse(answer.bytes)["problems"].empty()) std::abort();
  return 0;
}
