// doctor_trials: how often the doctor is right. Three trials, each with its misses listed:
//
//   singles   each mistake of the catalogue on probes of random shapes: named, as itself or among
//             those that coincide with it there
//   pairs     all pairs of mistakes on one small probe, random ones on five shapes more: named, or
//             "no mistake fits"; never as something else
//   right     right attention in f32, bf16 and f16, in several orders of its sums: never wrong
//
//   doctor_trials [singles] [pairs] [right] [--shapes N] [--every N] [--json FILE]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "right_attention.h"

namespace glasshead::doctor::trials {
namespace {

struct Line {
  std::string name;
  Count count;
  double seconds = 0;
};

template <class Run>
Line timed(const std::string& name, const Run& run) {
  const auto start = std::chrono::steady_clock::now();
  Line line{name, {}, 0};
  run(line.count);
  line.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf(
      "%-28s %6lld made %6lld not visible %6lld alone %6lld in a group %5lld unexplained "
      "%4lld wrong %7.1f s\n",
      name.c_str(), static_cast<long long>(line.count.made),
      static_cast<long long>(line.count.invisible), static_cast<long long>(line.count.exact),
      static_cast<long long>(line.count.grouped), static_cast<long long>(line.count.unexplained),
      static_cast<long long>(line.count.wrong), line.seconds);
  for (const std::string& miss : line.count.misses) std::printf("    %s\n", miss.c_str());
  std::fflush(stdout);
  return line;
}

Line all_singles(std::uint64_t shapes, bool has_lse) {
  return timed(has_lse ? "singles, out and lse" : "singles, out alone", [&](Count& count) {
    for (std::uint64_t n = 0; n < shapes; ++n)
      count +=
          try_singles(random_inputs(n), n + 1, has_lse, [](const std::string&) { return true; });
  });
}

Inputs small_inputs() {
  Inputs in{"small", {1, 2, 1, 12, 20, 8, 8}, {}};
  in.options.mask = Mask::causal();
  in.options.query_start = Align::end;
  return in;
}

Line all_pairs(std::size_t every) {
  return timed("pairs of one probe", [&](Count& count) {
    const Pairing pairing(small_inputs(), 1);
    for (std::size_t n = 0; n < pairing.size(); n += every) pairing.try_pair(n, count);
  });
}

Line random_pairs(std::size_t of_each) {
  return timed("random pairs of five", [&](Count& count) {
    for (const std::uint64_t shape : {3U, 5U, 6U, 7U, 8U}) {
      const Pairing pairing(random_inputs(shape), 1);
      Draw draw(shape);
      const index_t before = count.made;
      while (count.made < before + static_cast<index_t>(of_each))
        pairing.try_pair(slot(draw.from(0, static_cast<index_t>(pairing.size()) - 1)), count);
    }
  });
}

template <class T>
Tensor<T, 4> stored(const Tensor<float, 4>& from) {
  Tensor<T, 4> to(from.shape());
  for (index_t n = 0; n < from.size(); ++n) {
    const auto x = static_cast<double>(from.data()[n]);
    if constexpr (std::is_same_v<T, float>) to.data()[n] = from.data()[n];
    if constexpr (std::is_same_v<T, bf16>) to.data()[n] = narrow_to_bf16(x);
    if constexpr (std::is_same_v<T, f16>) to.data()[n] = narrow_to_f16(x);
  }
  return to;
}

void judge_right(const std::string& name, const AttentionCase& attention, const Claims& claims,
                 const DiagnoseOptions& options, Count& count) {
  ++count.made;
  const Diagnosis d = diagnose(attention, claims, options);
  if (d.is_right()) {
    ++count.exact;
    return;
  }
  ++count.wrong;
  count.miss(name + ": " + names(d) + "\n" + diagnosis_text(d));
}

// The library's two paths, whose tensors are of the type.
template <class T>
void judge_library(const Inputs& in, const HeldInputs& held, Count& count) {
  if (in.rotary) return;  // they take q and k as they are
  const Tensor<T, 4> q = stored<T>(held.q), k = stored<T>(held.k), v = stored<T>(held.v);
  const AttentionCase attention{q, k, v, in.options, in.rotary, {}};
  const ProbeShape& s = in.shape;
  for (const bool is_fused : {true, false}) {
    Tensor<T, 4> out({s.batch, s.heads, s.q_len, s.d_v});
    Tensor<float, 3> lse({s.batch, s.heads, s.q_len});
    RowState rows;
    rows.lse = lse;
    if (is_fused)
      attend(q, k, v, out, in.options, rows);
    else
      attend_transparent(q, k, v, out, in.options, rows);
    Claims claims;
    claims.out = out;
    claims.lse = lse;
    judge_right(in.name + (is_fused ? ", fused" : ", transparent"), attention, claims, {}, count);
  }
}

// `inputs` of each type, each in two of the ways in turn and by the library.
Line right_ones(DType type, std::uint64_t inputs) {
  return timed(std::string("right, ") + name(type), [&](Count& count) {
    const Store store = type == DType::f32 ? as_f32 : type == DType::bf16 ? as_bf16 : as_f16;
    for (std::uint64_t n = 0; n < inputs; ++n) {
      const Inputs in = random_inputs(n);
      const HeldInputs held(in, 500 + n, store);
      for (const std::uint64_t turn : {n, n + 1 + n / 6 % 5}) {
        const Way way = kWays[turn % 6];
        for (const bool keeps : {false, true}) {
          if (type == DType::f32 && keeps) continue;
          const Written theirs = RightAttention(held.attention, in.shape, way, store, keeps).run();
          judge_right(in.name + ", way " + std::to_string(turn % 6) + (keeps ? " held" : ""),
                      held.attention, theirs.claims(n % 2 == 0), {.arithmetic = type}, count);
        }
      }
      if (type == DType::f32) judge_library<float>(in, held, count);
      if (type == DType::bf16) judge_library<bf16>(in, held, count);
      if (type == DType::f16) judge_library<f16>(in, held, count);
    }
  });
}

void write_json(const char* path, const std::string& command, const std::vector<Line>& lines) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) {
    std::fprintf(stderr, "doctor_trials: can't write %s\n", path);
    std::exit(2);
  }
  std::fprintf(file, "{\"schema\": \"glasshead.doctor-trials/1\",\n \"command\": \"%s\",\n",
               command.c_str());
  std::fprintf(file, " \"catalogue\": %zu,\n \"trials\": [\n", catalogue().size());
  for (std::size_t n = 0; n < lines.size(); ++n) {
    const Count& c = lines[n].count;
    std::fprintf(
        file,
        "  {\"name\": \"%s\", \"made\": %lld, \"not_visible\": %lld, \"alone\": %lld, "
        "\"in_a_group\": %lld, \"unexplained\": %lld, \"wrong\": %lld, \"seconds\": %.0f}%s\n",
        lines[n].name.c_str(), static_cast<long long>(c.made), static_cast<long long>(c.invisible),
        static_cast<long long>(c.exact), static_cast<long long>(c.grouped),
        static_cast<long long>(c.unexplained), static_cast<long long>(c.wrong), lines[n].seconds,
        n + 1 < lines.size() ? "," : "");
  }
  std::fprintf(file, " ]}\n");
  std::fclose(file);
}

int run(int argc, char** argv) {
  std::uint64_t shapes = 30;
  std::size_t every = 1;
  const char* json = nullptr;
  std::vector<std::string> wanted;
  std::string command = "doctor_trials";
  for (int n = 1; n < argc; ++n) {
    const std::string word = argv[n];
    const bool has_value = n + 1 < argc;
    if (word == "--shapes" && has_value)
      shapes = static_cast<std::uint64_t>(std::atoll(argv[++n]));
    else if (word == "--every" && has_value)
      every = static_cast<std::size_t>(std::max(1LL, std::atoll(argv[++n])));
    else if (word == "--json" && has_value)
      json = argv[++n];
    else if (word == "singles" || word == "pairs" || word == "right")
      wanted.push_back(word);
    else {
      std::fprintf(
          stderr,
          "doctor_trials [singles] [pairs] [right] [--shapes N] [--every N] [--json FILE]\n");
      return 2;
    }
    if (word != "--json") command += " " + word;
  }
  const auto is_wanted = [&](const char* name) { return wanted.empty() || has(wanted, name); };
  std::vector<Line> lines;
  if (is_wanted("singles"))
    for (const bool has_lse : {true, false}) lines.push_back(all_singles(shapes, has_lse));
  if (is_wanted("pairs")) {
    lines.push_back(all_pairs(every));
    lines.push_back(random_pairs(std::max<std::size_t>(1, 100 / every)));
  }
  if (is_wanted("right"))
    for (const DType type : {DType::f32, DType::bf16, DType::f16})
      lines.push_back(right_ones(type, shapes * 8 / 3));
  if (json != nullptr) write_json(json, command, lines);
  index_t wrong = 0;
  for (const Line& line : lines) wrong += line.count.wrong;
  return wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace glasshead::doctor::trials

int main(int argc, char** argv) { return glasshead::doctor::trials::run(argc, argv); }
