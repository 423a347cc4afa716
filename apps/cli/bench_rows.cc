#include "cli/bench_rows.h"

#include <algorithm>

#include "glasshead/context.h"

namespace glasshead::cli {
namespace {

std::string number(index_t n) {
  constexpr index_t kKilo = 1024;
  return n > 2 * kKilo && n % kKilo == 0 ? std::to_string(n / kKilo) + "k" : std::to_string(n);
}

const char* mask_name(BenchMask mask) {
  switch (mask) {
    case BenchMask::causal:
      return "causal";
    case BenchMask::window:
      return "window";
    case BenchMask::half:
      return "mask-half";
    default:
      return "full";
  }
}

BenchRow prefill(const char* group, BenchMask mask, index_t n, index_t d) {
  BenchRow row;
  row.group = group;
  row.mask = mask;
  row.q_len = row.kv_len = n;
  row.d = d;
  row.name = std::string(mask_name(mask)) + "-n" + number(n) + "-d" + number(d);
  return row;
}

BenchRow decode(index_t keys, BenchKind kind, KvType cache) {
  BenchRow row;
  row.group = "decode: 1 query, 32 heads over 8, d 128";
  row.kind = kind;
  row.heads = 32;
  row.kv_heads = 8;
  row.q_len = 1;
  row.kv_len = keys;
  row.d = 128;
  row.cache = cache;
  row.name = "decode-" + number(keys) +
             (kind == BenchKind::decode_cache ? std::string("-cache-") + name(cache) : "-f32");
  return row;
}

BenchRow backward(index_t n, index_t heads) {
  BenchRow row = prefill("backward", BenchMask::causal, n, 64);
  row.kind = BenchKind::backward;
  row.heads = row.kv_heads = heads;
  row.name = "backward-" + row.name;
  return row;
}

// "avx512_bf16-causal-n2048-d64": in the set that rounds.
std::vector<BenchRow> rounding(const std::vector<BenchRow>& rows) {
  std::vector<BenchRow> made;
  for (const KernelSetInfo& set : rounding_kernel_sets()) {
    if (!set.is_supported) continue;
    for (BenchRow row : rows) {
      row.group = "rounding to bf16, of that instruction's peak";
      row.isa = set.name;
      row.name = row.isa + "-" + row.name;
      made.push_back(row);
    }
  }
  return made;
}

std::vector<BenchRow> quick_rows() {
  std::vector<BenchRow> rows{prefill("prefill", BenchMask::none, 256, 64),
                             prefill("prefill", BenchMask::causal, 256, 64),
                             decode(1024, BenchKind::decode, KvType::f32),
                             decode(1024, BenchKind::decode_cache, KvType::bf16), backward(128, 1)};
  for (BenchRow& row : rows) {
    if (row.kind == BenchKind::prefill) row.heads = row.kv_heads = 2;
  }
  return rows;
}

void add_variants(std::vector<BenchRow>& rows) {
  BenchRow row = prefill("masks, bias, layouts, types", BenchMask::none, 2048, 64);
  row.has_bias = true;
  row.name = "bias-n2048-d64";
  rows.push_back(row);
  rows.push_back(prefill("masks, bias, layouts, types", BenchMask::half, 2048, 64));
  row = prefill("masks, bias, layouts, types", BenchMask::causal, 2048, 64);
  row.is_strided = true;
  row.name = "strided-" + row.name;
  rows.push_back(row);
  for (const BenchMask mask : {BenchMask::none, BenchMask::causal}) {
    row = prefill("masks, bias, layouts, types", mask, 512, 64);
    row.dtype = DType::f64;
    row.name += "-f64";
    rows.push_back(row);
  }
}

}  // namespace

double BenchRow::pairs() const {
  const auto n = static_cast<double>(q_len), keys = static_cast<double>(kv_len);
  double each = n * keys;
  if (mask == BenchMask::causal) each = n * (n + 1) / 2;
  if (mask == BenchMask::window) {
    const auto width = static_cast<double>(std::min<index_t>(kBenchWindow + 1, q_len));
    each = n * width - width * (width - 1) / 2;
  }
  return each * static_cast<double>(heads);
}

double BenchRow::flops() const {
  const double products = kind == BenchKind::backward ? 5 : 2;
  return 2 * products * pairs() * static_cast<double>(d);
}

double BenchRow::bytes() const {
  const auto numbers = 2.0 * static_cast<double>(kv_heads * kv_len * d);
  double size = static_cast<double>(size_of(dtype));
  if (kind == BenchKind::decode_cache) {
    size = 4;
    if (cache == KvType::bf16 || cache == KvType::f16) size = 2;
    if (cache == KvType::int8) size = 1;
  }
  return numbers * size;
}

std::vector<BenchRow> bench_rows(bool is_quick) {
  if (is_quick) return quick_rows();
  std::vector<BenchRow> rows;
  for (const BenchMask mask : {BenchMask::none, BenchMask::causal}) {
    for (const index_t n : {2048, 512, 256, 128, 64, 16})
      rows.push_back(prefill("prefill: 12 heads", mask, n, 64));
    for (const index_t d : {80, 128}) rows.push_back(prefill("prefill: 12 heads", mask, 2048, d));
  }
  rows.push_back(prefill("prefill: 12 heads", BenchMask::window, 2048, 64));
  BenchRow grouped = prefill("prefill: 32 heads over 8", BenchMask::causal, 2048, 128);
  grouped.heads = 32;
  grouped.kv_heads = 8;
  grouped.name = "gqa-" + grouped.name;
  rows.push_back(grouped);
  for (const index_t d : {40, 72, 96})
    rows.push_back(prefill("head sizes: 12 heads", BenchMask::none, 512, d));
  add_variants(rows);
  for (const index_t keys : {1024, 4096, 16384}) {
    rows.push_back(decode(keys, BenchKind::decode, KvType::f32));
    for (const KvType type : {KvType::f32, KvType::bf16, KvType::f16, KvType::int8})
      rows.push_back(decode(keys, BenchKind::decode_cache, type));
  }
  rows.push_back(backward(2048, 12));
  rows.push_back(backward(512, 12));
  std::vector<BenchRow> rounded{grouped};
  for (const BenchMask mask : {BenchMask::none, BenchMask::causal})
    for (const index_t n : {2048, 512}) rounded.push_back(prefill("", mask, n, 64));
  for (BenchRow& row : rounding(rounded)) rows.push_back(std::move(row));
  return rows;
}

}  // namespace glasshead::cli
