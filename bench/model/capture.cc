// What it costs to look at everything while a text is read: metrics and pictures of every head, q,
// k and each row's state kept; and how long a block of exact weights takes afterwards.
//
//   cmake --preset bench && ninja -C build/bench model_capture
//   build/bench/bin/model_capture MODEL [--tokens 4096] [--threads 1] [--rounds 5]
//
// Medians of interleaved rounds, and the ratio of the rounds' pairs. The bar is a ratio of 1.3.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "glasshead/head_study.h"
#include "glasshead/model.h"

namespace glasshead {
namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// Ids with repetitions, so that induction has something to add up.
std::vector<index_t> some_text(index_t length, index_t vocab) {
  std::vector<index_t> ids;
  std::uint32_t state = 1;
  for (index_t i = 0; i < length; ++i) {
    state = state * 1664525U + 1013904223U;
    ids.push_back(static_cast<index_t>(state >> 8) % std::min<index_t>(vocab, 1000));
  }
  return ids;
}

struct Options {
  const char* model = nullptr;
  index_t tokens = 4096, rounds = 5;
  int threads = 1;
};

double read_text(Session& session, const std::vector<index_t>& ids, HeadStudy* heads) {
  session.truncate(0, 0);
  const double start = seconds();
  session.forward({{.ids = ids}}, LogitRows::last, nullptr, heads);
  return seconds() - start;
}

int measure(const Options& options) {
  const Context context({.isa = {}, .threads = options.threads, .parallel_for = nullptr});
  const Model model = Model::load(options.model);
  Session session(model, {}, context);
  const std::vector<index_t> ids = some_text(options.tokens, model.vocab());
  std::vector<double> plain, seen, kept, ratio_seen, ratio_kept, block;
  index_t bytes = 0;
  for (index_t round = 0; round <= options.rounds; ++round) {
    const double without = read_text(session, ids, nullptr);
    HeadStudy metrics;
    const double with = read_text(session, ids, &metrics);
    HeadStudy all({.keeps_rows = true});
    const double with_all = read_text(session, ids, &all);
    if (round == 0) continue;  // warms up
    plain.push_back(without);
    seen.push_back(with);
    kept.push_back(with_all);
    ratio_seen.push_back(with / without);
    ratio_kept.push_back(with_all / without);
    bytes = all.bytes();
    const index_t side = std::min<index_t>(256, options.tokens), last = options.tokens - side;
    for (index_t layer = 0; layer < model.layers(); ++layer) {
      const double start = seconds();
      all.weights("decoder." + std::to_string(layer) + ".self", 0,
                  {last, options.tokens, last / 2, last / 2 + side}, context);
      block.push_back(seconds() - start);
    }
  }
  std::printf("%s, %lld tokens, %s, threads %d\n", options.model,
              static_cast<long long>(options.tokens), context.isa(), context.threads());
  std::printf("plain                          %8.3f s\n", median(plain));
  std::printf("metrics and pictures           %8.3f s  %.3f times\n", median(seen),
              median(ratio_seen));
  std::printf("and q, k, row states (%4lld MB) %8.3f s  %.3f times\n",
              static_cast<long long>(bytes / 1000000), median(kept), median(ratio_kept));
  std::printf("a block of 256 x 256 weights   %8.3f ms\n", 1e3 * median(block));
  return 0;
}

}  // namespace
}  // namespace glasshead

int main(int argc, char** argv) {
  glasshead::Options options;
  for (int n = 1; n < argc; ++n) {
    const std::string_view word = argv[n];
    const long value = n + 1 < argc ? std::atol(argv[n + 1]) : 0;
    if (word == "--tokens" || word == "--threads" || word == "--rounds") {
      if (word == "--tokens") options.tokens = value;
      if (word == "--rounds") options.rounds = value;
      if (word == "--threads") options.threads = static_cast<int>(value);
      ++n;
    } else {
      options.model = argv[n];
    }
  }
  if (options.model == nullptr || options.tokens < 1 || options.rounds < 1) {
    std::fprintf(stderr, "model_capture MODEL [--tokens N] [--threads N] [--rounds N]\n");
    return 2;
  }
  return glasshead::measure(options);
}
