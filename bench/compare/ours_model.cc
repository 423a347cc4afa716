// Models behind a C interface for bench/compare/models_worker.py: opened once, then each function
// is a few calls of the library. Threads are those of GLASSHEAD_THREADS.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <vector>

#include "glasshead/model.h"

namespace glasshead {
namespace {

struct Opened {
  explicit Opened(const char* path) : model(Model::load(path)), session(model) {}
  Model model;
  Session session;
};

std::vector<index_t> tokens_of(const std::int64_t* ids, std::int64_t count) {
  return {ids, ids + count};
}

// No exception crosses the C interface: the text goes to `error` instead.
template <class Call>
int guarded(char* error, std::size_t size, Call call) noexcept {
  try {
    call();
    return 1;
  } catch (const std::exception& problem) {
    std::strncpy(error, problem.what(), size - 1);
    error[size - 1] = '\0';
    return 0;
  }
}

Opened& opened(void* handle) { return *static_cast<Opened*>(handle); }

}  // namespace
}  // namespace glasshead

extern "C" {

// Each but the first gives 1, or 0 with the reason in `error` [size].

void* glasshead_model_open(const char* path, char* error, std::size_t size) {
  void* handle = nullptr;
  glasshead::guarded(error, size, [&] { handle = new glasshead::Opened(path); });
  return handle;
}

// The logits [vocab] after these tokens, which are read in one go.
int glasshead_model_read(void* handle, const std::int64_t* ids, std::int64_t count, float* logits,
                         char* error, std::size_t size) {
  return glasshead::guarded(error, size, [&] {
    glasshead::Session& session = glasshead::opened(handle).session;
    session.truncate(0, 0);
    const auto row = session.forward({{0, glasshead::tokens_of(ids, count)}});
    std::copy_n(row.data, row.shape[1], logits);
  });
}

// The `count` tokens that follow `first`, each the most probable.
int glasshead_model_write(void* handle, std::int64_t first, std::int64_t count, std::int64_t* ids,
                          char* error, std::size_t size) {
  return glasshead::guarded(error, size, [&] {
    std::int64_t next = first;
    for (std::int64_t n = 0; n < count; ++n) {
      const auto row = glasshead::opened(handle).session.forward({{0, {next}}});
      next = std::max_element(row.data, row.data + row.shape[1]) - row.data;
      ids[n] = next;
    }
  });
}

// vectors [texts, d_model] of texts [texts, tokens].
int glasshead_model_embed(void* handle, const std::int64_t* ids, std::int64_t texts,
                          std::int64_t tokens, float* vectors, char* error, std::size_t size) {
  return glasshead::guarded(error, size, [&] {
    std::vector<glasshead::Session::Text> all;
    for (std::int64_t n = 0; n < texts; ++n)
      all.push_back({.ids = glasshead::tokens_of(ids + n * tokens, tokens), .segments = {}});
    const auto made = glasshead::opened(handle).session.embed(all);
    std::copy_n(made.data(), made.size(), vectors);
  });
}

}  // extern "C"
