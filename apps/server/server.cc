// The only file that knows the HTTP library. It parses and writes; every decision is made here or
// in what is called from here.
#include "server/server.h"

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <httplib.h>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "glasshead/error.h"
#include "server/assets.h"
#include "server/gate.h"
#include "server/refusal.h"
#include "wire/json_writer.h"

namespace glasshead::server {
namespace {

constexpr const char* kJson = "application/json";
constexpr const char* kText = "text/plain; charset=utf-8";
// Connections answered at once; a browser opens six.
constexpr std::size_t kThreads = 16;

class ConnectionStream : public httplib::Stream {
 public:
  explicit ConnectionStream(Connection& connection) : connection_(connection) {}
  bool is_readable() const override { return !connection_.is_stopped(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override { return connection_.read(to, size); }
  ssize_t write(const char* from, std::size_t size) override {
    return connection_.write(from, size);
  }
  // Only ever this machine's.
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = "127.0.0.1";
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    get_remote_ip_and_port(ip, port);
  }
  socket_t socket() const override { return connection_.socket(); }

 private:
  Connection& connection_;
};

std::vector<std::string> all_of(const httplib::Request& request, const char* name) {
  std::vector<std::string> values;
  const auto [begin, end] = request.headers.equal_range(name);
  for (auto at = begin; at != end; ++at) values.push_back(at->second);
  return values;
}

Head head_of(const httplib::Request& request) {
  return {request.method,
          request.path,
          all_of(request, "Host"),
          all_of(request, "Origin"),
          all_of(request, kTokenHeader),
          all_of(request, "Content-Type"),
          all_of(request, "Content-Length"),
          all_of(request, "Content-Encoding"),
          all_of(request, "Transfer-Encoding")};
}

void refuse(httplib::Response& response, const Refusal& refusal) {
  response.status = refusal.status;
  response.set_content(refusal_json(refusal), kJson);
}

// {"problems":[...]}, as the engine has it, with the code before it.
std::string with_code(const std::string& problems) {
  return R"({"code":"refused","message":"the request can't be answered; problems says why",)" +
         problems.substr(1) + "\n";
}

// So many jobs at once, in no particular order.
class Slots {
 public:
  explicit Slots(int count) : free_(count) {}

  // False: none became free in time, or all ends.
  bool take(double seconds) {
    std::unique_lock lock(mutex_);
    const bool is_free = changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                                           [&] { return free_ > 0 || is_closed_; });
    if (!is_free || is_closed_) return false;
    --free_;
    return true;
  }
  void give_back() {
    const std::lock_guard lock(mutex_);
    ++free_;
    changed_.notify_one();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int free_;
  bool is_closed_ = false;
};

}  // namespace

class Server::Http : public httplib::Server {
 public:
  explicit Http(ServerOptions options);

  int port() const { return port_; }
  const std::string& token() const { return token_; }
  void run();
  void stop_all() noexcept;

 private:
  bool process_and_close_socket(socket_t socket) override;
  HandlerResponse before_body(const httplib::Request& request, httplib::Response& response);
  void get(const httplib::Request& request, httplib::Response& response) const;
  void post(const httplib::Request& request, httplib::Response& response,
            const httplib::ContentReader& read);
  // False, with the response set.
  bool read_body(const httplib::ContentReader& read, std::string& body,
                 httplib::Response& response);
  void answer(const std::string& call, const std::string& body, httplib::Response& response);
  std::string info() const;
  Connection* connection();  // of the request that this thread answers

  ServerOptions options_;
  std::map<std::string, Asset> assets_;
  std::map<std::string, std::string> cases_;
  std::string token_ = make_token();
  int port_ = 0;
  std::optional<Gate> gate_;
  Stop stop_;
  Slots slots_;
  std::atomic<bool> has_ended_ = false;
  std::mutex mutex_;  // of connections_
  std::map<std::thread::id, Connection*> connections_;
};

Server::Http::Http(ServerOptions options)
    : options_(std::move(options)), assets_(read_assets(options_.web)), slots_(options_.jobs) {
  for (const ServedCase& served : options_.cases) cases_[served.name] = served.text;
  // The library's own options would let another program listen at the same port, beside us.
  set_socket_options([](socket_t socket) {
    const int is_on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &is_on, sizeof is_on);
  });
  const char* const kHere = "127.0.0.1";
  if (options_.port == 0)
    port_ = bind_to_any_port(kHere);
  else
    port_ = bind_to_port(kHere, options_.port) ? options_.port : -1;
  if (port_ < 0)
    throw IoError("view", {{"--port", fmt::format("{} can't be listened on: {}", options_.port,
                                                  std::strerror(errno))}});
  gate_.emplace(GateOptions{port_, token_, options_.most_body});

  new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  set_default_headers({{"Cache-Control", "no-store"},
                       {"Content-Security-Policy", "frame-ancestors 'none'"},
                       {"Cross-Origin-Opener-Policy", "same-origin"},
                       {"Cross-Origin-Resource-Policy", "same-origin"},
                       {"Referrer-Policy", "no-referrer"},
                       {"X-Content-Type-Options", "nosniff"}});
  set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    return before_body(request, response);
  });
  Post(".*", [this](const httplib::Request& request, httplib::Response& response,
                    const httplib::ContentReader& read) { post(request, response, read); });
  // What the library refuses by itself, a head that is no HTTP, gets its JSON, too.
  set_error_handler(
      httplib::Server::Handler([](const httplib::Request&, httplib::Response& response) {
        if (response.body.empty())
          refuse(response, {response.status, "bad-request", "the request's head can't be read"});
      }));
  set_exception_handler(
      [](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
        refuse(response, {500, "internal", "an internal error; nothing was computed"});
      });
}

// Our own, as the library's has no limit on how long a request may take to come.
bool Server::Http::process_and_close_socket(socket_t socket) {
  Connection connection(socket, stop_.wait_fd(), options_.connection);
  {
    const std::lock_guard lock(mutex_);
    connections_[std::this_thread::get_id()] = &connection;
  }
  ConnectionStream stream(connection);
  bool is_closed = false;
  const bool is_answered =
      process_request(stream, /*close_connection=*/true, is_closed, [&](httplib::Request& request) {
        connection.begin_body();
        // Answers go as they are and whole: nothing here is far away.
        request.headers.erase("Accept-Encoding");
        request.ranges.clear();
      });
  {
    const std::lock_guard lock(mutex_);
    connections_.erase(std::this_thread::get_id());
  }
  if (is_answered) connection.finish();
  ::close(socket);
  return is_answered;
}

Connection* Server::Http::connection() {
  const std::lock_guard lock(mutex_);
  return connections_.at(std::this_thread::get_id());
}

httplib::Server::HandlerResponse Server::Http::before_body(const httplib::Request& request,
                                                           httplib::Response& response) {
  if (const auto refusal = gate_->check(head_of(request)))
    refuse(response, *refusal);
  else if (request.method == "POST")
    return HandlerResponse::Unhandled;
  else
    get(request, response);
  connection()->begin_answer();
  return HandlerResponse::Handled;
}

void Server::Http::get(const httplib::Request& request, httplib::Response& response) const {
  const std::string api = kApi, cases = api + "cases/";
  response.status = 200;
  if (request.path == api + "info") {
    response.set_content(info(), kJson);
    return;
  }
  if (request.path.starts_with(cases)) {
    if (const auto found = cases_.find(request.path.substr(cases.size())); found != cases_.end()) {
      response.set_content(found->second, kText);
      return;
    }
  } else if (const auto found = assets_.find(request.path); found != assets_.end()) {
    response.set_content(found->second.bytes, found->second.type);
    return;
  }
  refuse(response, {404, "no-such-page", "there is nothing of this name"});
}

void Server::Http::post(const httplib::Request& request, httplib::Response& response,
                        const httplib::ContentReader& read) {
  const std::string api = kApi;
  const std::string call = request.path.starts_with(api) ? request.path.substr(api.size()) : "";
  std::string body;
  if (call.empty() || call.find_first_not_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos)
    refuse(response, {404, "no-such-page", "there is no call of this name"});
  else if (read_body(read, body, response))
    answer(call, body, response);
  connection()->begin_answer();
}

bool Server::Http::read_body(const httplib::ContentReader& read, std::string& body,
                             httplib::Response& response) {
  bool is_too_large = false;
  const bool is_whole = read([&](const char* piece, std::size_t size) {
    is_too_large = size > options_.most_body - body.size();
    if (!is_too_large) body.append(piece, size);
    return !is_too_large;
  });
  if (is_whole) return true;
  const Connection& now = *connection();
  if (is_too_large)
    refuse(response, {413, "too-large",
                      fmt::format("the body is larger than {} bytes, the most "
                                  "that are read",
                                  options_.most_body)});
  else if (now.is_stopped())
    refuse(response, {503, "shutting-down", "the server ends"});
  else if (now.is_too_late())
    refuse(response, {408, "too-slow", "the body did not come in time"});
  else
    refuse(response, {400, "bad-request", "the body ended before its length"});
  return false;
}

void Server::Http::answer(const std::string& call, const std::string& body,
                          httplib::Response& response) {
  const double seconds = options_.job.seconds;
  if (!slots_.take(seconds)) {
    refuse(response, stop_.is_said()
                         ? Refusal{503, "shutting-down", "the server ends"}
                         : Refusal{503, "busy", "other computations took all the time there was"});
    return;
  }
  JobResult result = run_job(call, body, options_.job, {stop_.wait_fd(), connection()->socket()});
  slots_.give_back();
  switch (result.end) {
    case JobEnd::answered:
      response.status = 200;
      // What is no JSON, another format of a trace, is text.
      response.set_header("Content-Type", result.bytes.starts_with("{") ? kJson : kText);
      response.body = std::move(result.bytes);
      return;
    case JobEnd::refused:
      response.status = 422;
      response.set_content(with_code(result.bytes), kJson);
      return;
    case JobEnd::out_of_memory:
      refuse(response, {503, "memory-limit",
                        fmt::format("this needs more than {} MiB, the limit "
                                    "(--memory-limit)",
                                    options_.job.memory >> 20)});
      return;
    case JobEnd::out_of_time:
      refuse(response, {503, "time-limit",
                        fmt::format("this takes more than {} seconds, the limit "
                                    "(--time-limit)",
                                    static_cast<long>(seconds))});
      return;
    case JobEnd::stopped:
      refuse(response, {503, "shutting-down", "the server ends"});
      return;
    case JobEnd::client_left:
      refuse(response, {503, "client-left", "nobody waits for this"});
      return;
    case JobEnd::failed:
      refuse(response, {500, "internal", "the computation failed: " + result.bytes});
  }
}

std::string Server::Http::info() const {
  std::string text;
  wire::JsonWriter json([&](std::string_view piece) { text += piece; });
  json.begin_object();
  json.key("schema").value("glasshead.info/1").key("version").value(options_.version);
  json.key("cases").begin_array();
  for (const ServedCase& served : options_.cases) json.value(served.name);
  json.end_array();
  json.key("limits").begin_object();
  json.key("body_bytes").value(options_.most_body);
  json.key("seconds").value(options_.job.seconds);
  json.key("memory_bytes").value(options_.job.memory);
  json.end_object().end_object();
  json.flush();
  return text + "\n";
}

void Server::Http::run() {
  if (!stop_.is_said()) listen_after_bind();
  has_ended_ = true;
}

void Server::Http::stop_all() noexcept {
  stop_.say();
  slots_.close();
  // The library's stop is for a server that listens already.
  while (!has_ended_) {
    if (is_running()) {
      stop();
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Server::Server(ServerOptions options) : http_(std::make_unique<Http>(std::move(options))) {}
Server::~Server() = default;

int Server::port() const { return http_->port(); }

std::string Server::address(const std::string& name) const {
  return fmt::format("http://127.0.0.1:{}/#/{}{}?v=1&token={}", http_->port(),
                     name.empty() ? "" : "learn/", name, http_->token());
}

void Server::run() { http_->run(); }
void Server::stop() noexcept { http_->stop_all(); }

}  // namespace glasshead::server
