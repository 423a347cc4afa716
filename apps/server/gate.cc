#include "server/gate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <sys/random.h>

#include <fmt/format.h>

#include "glasshead/error.h"

namespace glasshead::server {
namespace {

constexpr std::size_t kMostPath = 200;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// What was sent, short and harmless enough to be repeated in a message.
std::string quoted(const std::string& text) {
  constexpr std::size_t kMost = 60;
  return "\"" + text.substr(0, kMost) + (text.size() > kMost ? "..." : "") + "\"";
}

// "application/json" of "Application/JSON; charset=utf-8".
std::string media_type(const std::string& text) {
  std::string type = lower(text.substr(0, text.find(';')));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  return type;
}

std::optional<std::size_t> parse_length(const std::string& text) {
  constexpr std::size_t kDigits = 18;
  if (text.empty() || text.size() > kDigits ||
      text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoull(text);
}

}  // namespace

bool is_api(const std::string& path) { return path.starts_with("/api/") || path == "/api"; }

std::optional<Refusal> Gate::check(const Head& head) const {
  if (auto refusal = check_site(head)) return refusal;
  if (head.path.size() > kMostPath)
    return Refusal{414, "no-such-page", "a path longer than any here"};
  if (!is_api(head.path)) {
    if (head.method == "GET" || head.method == "HEAD") return std::nullopt;
    return Refusal{405, "wrong-method", head.method + " of a file of the page; GET is possible"};
  }
  if (head.token.size() != 1 || !equal_in_constant_time(head.token[0], options_.token))
    return Refusal{401, "wrong-token",
                   fmt::format("the header {} {}; it must hold the token of the address that "
                               "glasshead view printed",
                               kTokenHeader, head.token.empty() ? "is missing" : "is another's")};
  if (head.method == "GET") return std::nullopt;
  if (head.method != "POST")
    return Refusal{405, "wrong-method", head.method + "; GET and POST are possible"};
  return check_body(head);
}

std::optional<Refusal> Gate::check_site(const Head& head) const {
  const std::array<std::string, 2> own{fmt::format("127.0.0.1:{}", options_.port),
                                       fmt::format("localhost:{}", options_.port)};
  const auto is_own = [&](const std::string& host) {
    return std::find(own.begin(), own.end(), lower(host)) != own.end();
  };
  if (head.host.size() != 1 || !is_own(head.host[0]))
    return Refusal{403, "wrong-host",
                   fmt::format("the header Host is {}; this server answers as {} only",
                               head.host.empty() ? "missing" : quoted(head.host[0]), own[0])};
  for (const std::string& origin : head.origin) {
    constexpr std::string_view kScheme = "http://";
    if (head.origin.size() > 1 || !origin.starts_with(kScheme) ||
        !is_own(origin.substr(kScheme.size())))
      return Refusal{403, "foreign-origin",
                     fmt::format("asked by a page of {}; only this server's own page may ask",
                                 quoted(origin))};
  }
  return std::nullopt;
}

std::optional<Refusal> Gate::check_body(const Head& head) const {
  if (head.content_type.size() != 1 || media_type(head.content_type[0]) != "application/json")
    return Refusal{
        415, "wrong-type",
        fmt::format("Content-Type is {}; application/json is needed",
                    head.content_type.empty() ? "missing" : quoted(head.content_type[0]))};
  if (!head.content_encoding.empty())
    return Refusal{415, "wrong-type", "Content-Encoding is set; the body must come as it is"};
  if (head.transfer_encoding.size() == 1 && lower(head.transfer_encoding[0]) == "chunked" &&
      head.content_length.empty())
    return std::nullopt;  // its size is seen as it comes
  if (!head.transfer_encoding.empty())
    return Refusal{400, "bad-request", "Transfer-Encoding may be chunked, without Content-Length"};
  const std::optional<std::size_t> length =
      head.content_length.size() == 1 ? parse_length(head.content_length[0]) : std::nullopt;
  if (!length)
    return Refusal{411, "bad-request", "Content-Length is missing or is no number of bytes"};
  if (*length > options_.most_body)
    return Refusal{
        413, "too-large",
        fmt::format("a body of {} bytes; at most {} are read", *length, options_.most_body)};
  return std::nullopt;
}

bool equal_in_constant_time(const std::string& a, const std::string& b) {
  // Lengths are no secret.
  if (a.size() != b.size()) return false;
  unsigned char different = 0;
  for (std::size_t n = 0; n < a.size(); ++n)
    different = static_cast<unsigned char>(different | (a[n] ^ b[n]));
  return different == 0;
}

std::string make_token() {
  std::array<unsigned char, 16> bits{};
  if (::getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size()))
    throw IoError("view", {{"token", std::string("no random numbers: ") + std::strerror(errno)}});
  std::string text;
  for (const unsigned char byte : bits) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace glasshead::server
