// Who may ask what. Decided from a request's head alone, before a byte of its body is read.
//
//   Gate gate({.port = 4321, .token = "0f1e..."});
//   if (const auto refusal = gate.check(head)) answer(refusal->status, refusal_json(*refusal));
//
// A page of another site can make a browser send requests here, so: Host must name this server (a
// foreign name that resolves to 127.0.0.1 does not), Origin must be absent or this server, and what
// is not part of the page itself needs the token, which only the opened address holds. A body is
// application/json, which no site may send across origins unasked.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "server/refusal.h"

namespace glasshead::server {

inline constexpr const char* kTokenHeader = "Glasshead-Token";
inline constexpr const char* kApi = "/api/v1/";

// A request without its body. A header that may come several times is a list, as it came.
struct Head {
  std::string method, path;  // the path percent-decoded, without the query
  std::vector<std::string> host, origin, token, content_type, content_length, content_encoding,
      transfer_encoding;
};

struct GateOptions {
  int port = 0;
  std::string token;
  std::size_t most_body = 0;  // bytes
};

class Gate {
 public:
  explicit Gate(GateOptions options) : options_(std::move(options)) {}

  // nullopt: go on. Whether there is something at the path is not asked here.
  std::optional<Refusal> check(const Head& head) const;

 private:
  std::optional<Refusal> check_site(const Head& head) const;
  std::optional<Refusal> check_body(const Head& head) const;

  GateOptions options_;
};

// Whether the path is one of the server's answers, not a file of the page.
bool is_api(const std::string& path);

// 32 hexadecimal digits: 128 random bits of the system's. Throws IoError where it has none.
std::string make_token();

// Without telling by its time where they differ.
bool equal_in_constant_time(const std::string& a, const std::string& b);

}  // namespace glasshead::server
