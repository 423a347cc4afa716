// The local server: the page's files, the cases named on the command line, and the engine for what
// a page's own has no room for.
//
//   Server server({.web = "build/web", .version = "0.1.0"});
//   puts(server.address("three-tokens").c_str());  // http://127.0.0.1:41379/#/learn/...&token=...
//   server.run();                                  // until another thread calls stop()
//
// It listens on 127.0.0.1 only; gate.h says who is answered. Paths under /api/v1/, all with the
// token in the header Glasshead-Token:
//
//   GET info          {"schema":"glasshead.info/1",...}: the version, the cases, the limits
//   GET cases/NAME    the text of a case named on the command line
//   POST trace, doctor, ...   answer.h's calls; the body holds the fields
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "server/connection.h"
#include "server/job.h"

namespace glasshead::server {

struct ServedCase {
  std::string name, text;
};

struct ServerOptions {
  std::string web;                // the folder of the built page
  std::vector<ServedCase> cases;  // no two of one name
  int port = 0;                   // 0: any that is free
  std::string version;
  std::size_t most_body = std::size_t{64} << 20;  // bytes
  JobLimits job;                                  // of one computation
  int jobs = 2;                                   // at once; more wait, as long as a job may take
  ConnectionLimits connection;
};

class Server {
 public:
  explicit Server(ServerOptions options);  // throws IoError: no page, or the port is taken
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // Where the page opens, with the token; `name`: the case it opens with, "" for its own first.
  std::string address(const std::string& name) const;

  void run();            // answers until stop(); what then still computes is ended
  void stop() noexcept;  // from any thread, once run() was or will be called

 private:
  class Http;
  std::unique_ptr<Http> http_;
};

}  // namespace glasshead::server
