// The table. Where a number is odd, it is one at which some implementation went wrong.
#include <utility>

#include "audit/inputs.h"

namespace glasshead::audits {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kHuge = 1e30;  // its square is inf in f32

using Inputs = std::vector<Input>;

std::string pair_text(const char* a, index_t x, const char* b, index_t y) {
  return a + std::to_string(x) + b + std::to_string(y);
}

// Lengths beside multiples of 32, 64 and 128, where tiles and vectors end.
void add_shapes(Inputs& all) {
  for (const index_t n :
       {1, 2, 3, 5, 17, 31, 32, 33, 61, 63, 64, 65, 113, 127, 128, 129, 255, 257, 260})
    all.push_back({.group = "shapes",
                   .name = "length-" + std::to_string(n),
                   .sizes = {1, 2, 2, n, n, 16, 16}});
  for (const auto& [n, m] : {std::pair<index_t, index_t>{1, 33},
                             {33, 1},
                             {3, 61},
                             {75, 17},
                             {1, 512},
                             {113, 203},
                             {260, 127}})
    all.push_back({.group = "shapes",
                   .name = pair_text("q-", n, "-kv-", m),
                   .sizes = {1, 2, 2, n, m, 16, 16}});
  for (const index_t d : {1, 2, 3, 5, 16, 17, 24, 40, 48, 64, 72, 80, 96, 128, 129, 192, 256})
    all.push_back(
        {.group = "shapes", .name = "size-" + std::to_string(d), .sizes = {1, 2, 2, 3, 33, d, d}});
  all.push_back({.group = "shapes", .name = "d_v-5", .sizes = {1, 2, 2, 9, 11, 8, 5}});
  all.push_back({.group = "shapes", .name = "d_v-40", .sizes = {1, 2, 2, 9, 11, 24, 40}});
}

void add_heads(Inputs& all) {
  for (const auto& [heads, kv_heads] : {std::pair<index_t, index_t>{1, 1},
                                        {3, 3},
                                        {8, 8},
                                        {4, 2},
                                        {8, 1},
                                        {6, 3},
                                        {12, 4},
                                        {16, 1}})
    all.push_back({.group = "heads",
                   .name = pair_text("heads-", heads, "-kv-", kv_heads),
                   .sizes = {2, heads, kv_heads, 5, 7, 8, 8}});
  all.push_back({.group = "heads",
                 .name = "heads-8-kv-2-causal-decode",
                 .sizes = {2, 8, 2, 1, 33, 16, 16},
                 .causal = Align::end});
  all.push_back({.group = "heads",
                 .name = "heads-4-kv-2-causal",
                 .sizes = {1, 4, 2, 17, 17, 16, 16},
                 .causal = Align::start});
}

void add_types(Inputs& all) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    const std::string of = name(type);
    all.push_back({.group = "types", .name = of, .sizes = {2, 3, 3, 7, 9, 16, 16}, .dtype = type});
    all.push_back({.group = "types",
                   .name = of + "-length-129",
                   .sizes = {1, 2, 2, 33, 129, 32, 32},
                   .dtype = type});
    all.push_back({.group = "types",
                   .name = of + "-mask",
                   .sizes = {1, 2, 2, 7, 9, 16, 16},
                   .dtype = type,
                   .hide = Hide::some});
    all.push_back({.group = "types",
                   .name = of + "-bias",
                   .sizes = {1, 2, 2, 7, 9, 16, 16},
                   .dtype = type,
                   .hide = Hide::some,
                   .form = Form::biased});
    all.push_back({.group = "types",
                   .name = of + "-causal",
                   .sizes = {1, 4, 2, 17, 17, 16, 16},
                   .dtype = type,
                   .causal = Align::start});
  }
  for (const DType type : {DType::bf16, DType::f16})
    all.push_back({.group = "types",
                   .name = std::string("f32-bias-beside-") + name(type),
                   .sizes = {1, 2, 2, 7, 9, 16, 16},
                   .dtype = type,
                   .hide = Hide::some,
                   .form = Form::biased,
                   .bias_dtype = DType::f32});
}

void add_masks(Inputs& all) {
  const Sizes sizes{2, 4, 4, 7, 9, 8, 8};
  for (const char* axes : {"k", "1k", "qk", "q1", "11qk", "hqk", "1hqk", "b11k", "b1qk", "bhqk"}) {
    // One boolean for all keys of a row makes it empty or does nothing.
    const bool is_row = std::string(axes) == "q1";
    all.push_back({.group = "masks",
                   .name = std::string("mask-") + axes,
                   .sizes = sizes,
                   .hide = is_row ? Hide::half_rows : Hide::some,
                   .axes = axes});
    if (is_row) continue;
    all.push_back({.group = "masks",
                   .name = std::string("bias-") + axes,
                   .sizes = sizes,
                   .hide = Hide::some,
                   .form = Form::biased,
                   .axes = axes});
  }
  all.push_back({.group = "masks",
                 .name = "bias-of-0-and-inf",
                 .sizes = sizes,
                 .hide = Hide::some,
                 .form = Form::additive});
  all.push_back({.group = "masks",
                 .name = "bias-of-0-and-1",
                 .sizes = sizes,
                 .hide = Hide::upper,
                 .form = Form::zeros_ones});
  all.push_back({.group = "masks",
                 .name = "padding-of-0-and-1",
                 .sizes = sizes,
                 .hide = Hide::padding,
                 .form = Form::zeros_ones,
                 .axes = "b11k"});
  all.push_back(
      {.group = "masks", .name = "padding", .sizes = sizes, .hide = Hide::padding, .axes = "b11k"});
  all.push_back({.group = "masks",
                 .name = "padding-left",
                 .sizes = sizes,
                 .hide = Hide::left,
                 .axes = "b11k"});
  all.push_back({.group = "masks",
                 .name = "length-33-129",
                 .sizes = {1, 2, 2, 33, 129, 16, 16},
                 .hide = Hide::some});
  all.push_back({.group = "masks",
                 .name = "per-head-100",
                 .sizes = {1, 8, 8, 100, 100, 64, 64},
                 .hide = Hide::some,
                 .axes = "hqk"});
  all.push_back({.group = "masks",
                 .name = "lower-triangle",
                 .sizes = {1, 2, 2, 17, 17, 8, 8},
                 .hide = Hide::upper});
}

// With causal, with the lowest number, by lengths.
void add_mask_corners(Inputs& all) {
  const Sizes sizes{3, 2, 2, 7, 9, 8, 8};
  all.push_back({.group = "masks",
                 .name = "causal-and-mask",
                 .sizes = {1, 2, 2, 9, 9, 8, 8},
                 .hide = Hide::padding,
                 .causal = Align::start});
  all.push_back({.group = "masks",
                 .name = "causal-and-bias",
                 .sizes = {1, 2, 2, 9, 9, 8, 8},
                 .form = Form::biased,
                 .causal = Align::start});
  // Where the most negative number is added, all the sums of a row are that number: the mean of v.
  all.push_back({.group = "masks",
                 .name = "row-of-lowest-numbers",
                 .sizes = {1, 1, 1, 3, 3, 4, 4},
                 .hide = Hide::first_row,
                 .form = Form::lowest});
  all.push_back({.group = "masks",
                 .name = "rows-of-lowest-numbers",
                 .sizes = {1, 2, 2, 4, 17, 8, 8},
                 .hide = Hide::half_rows,
                 .form = Form::lowest});
  for (const index_t n : {2, 5, 9})
    all.push_back({.group = "masks",
                   .name = "key-lengths-" + std::to_string(n),
                   .sizes = sizes,
                   .key_lengths = {n, 9, 1}});
}

void add_causal(Inputs& all) {
  for (const Align corner : {Align::start, Align::end})
    for (const auto& [n, m] : {std::pair<index_t, index_t>{5, 5},
                               {1, 16},
                               {2, 8},
                               {7, 12},
                               {12, 7},
                               {33, 127},
                               {127, 33},
                               {64, 65},
                               {129, 129}})
      all.push_back(
          {.group = "causal",
           .name = (corner == Align::start ? "start-" : "end-") + pair_text("", n, "x", m),
           .sizes = {1, 2, 2, n, m, 8, 8},
           .causal = corner});
}

void add_windows(Inputs& all) {
  const auto add = [&](const std::string& name, Mask::Window window, std::optional<Align> causal,
                       index_t n, index_t m) {
    all.push_back({.group = "windows",
                   .name = name,
                   .sizes = {1, 2, 2, n, m, 8, 8},
                   .causal = causal,
                   .window = window});
  };
  for (const index_t left : {0, 1, 2, 5, 16})
    add("causal-left-" + std::to_string(left), {left, 0}, Align::start, 24, 24);
  add("both-1", {1, 1}, std::nullopt, 24, 24);
  add("both-3-2", {3, 2}, std::nullopt, 24, 24);
  add("left-only-4", {4, std::nullopt}, std::nullopt, 24, 24);
  add("causal-left-16-129", {16, 0}, Align::start, 129, 129);
  add("causal-left-8-end-7x40", {8, 0}, Align::end, 7, 40);
  add("wider-than-all", {100, 0}, Align::start, 24, 24);
}

void add_empty(Inputs& all) {
  const Sizes sizes{1, 3, 3, 6, 7, 8, 8};
  for (const Form form : {Form::boolean, Form::additive}) {
    const std::string of = form == Form::boolean ? "mask-" : "bias-";
    all.push_back({.group = "empty rows",
                   .name = of + "first-row",
                   .sizes = sizes,
                   .hide = Hide::first_row,
                   .form = form});
    all.push_back({.group = "empty rows",
                   .name = of + "half-the-rows",
                   .sizes = sizes,
                   .hide = Hide::half_rows,
                   .form = form});
    all.push_back({.group = "empty rows",
                   .name = of + "last-head",
                   .sizes = sizes,
                   .hide = Hide::last_head,
                   .form = form,
                   .axes = "hqk"});
    all.push_back({.group = "empty rows",
                   .name = of + "all",
                   .sizes = sizes,
                   .hide = Hide::all,
                   .form = form});
    all.push_back({.group = "empty rows",
                   .name = of + "half-of-129",
                   .sizes = {1, 2, 2, 40, 129, 16, 16},
                   .hide = Hide::half_rows,
                   .form = form});
  }
  all.push_back({.group = "empty rows",
                 .name = "causal-end-4x2",
                 .sizes = {1, 1, 1, 4, 2, 4, 4},
                 .causal = Align::end});
  all.push_back({.group = "empty rows",
                 .name = "key-length-0",
                 .sizes = {4, 1, 1, 1, 3, 4, 4},
                 .key_lengths = {0, 1, 0, 3}});
  all.push_back({.group = "empty rows", .name = "batch-0", .sizes = {0, 2, 2, 3, 4, 8, 8}});
  all.push_back({.group = "empty rows", .name = "q-0", .sizes = {1, 2, 2, 0, 4, 8, 8}});
  all.push_back({.group = "empty rows", .name = "kv-0", .sizes = {1, 2, 2, 3, 0, 8, 8}});
}

// What hidden keys and values hold must not matter.
void add_poison(Inputs& all) {
  const auto add = [&](const std::string& where, const auto& with) {
    for (const auto& [value, of] :
         {std::pair{kNaN, "nan"}, std::pair{kInf, "inf"}, std::pair{kHuge, "huge"}})
      for (const bool is_key : {true, false}) {
        Input input{.group = "poison",
                    .name = std::string(of) + (is_key ? "-in-keys-" : "-in-values-") + where,
                    .sizes = {1, 2, 2, 7, 9, 8, 8}};
        (is_key ? input.hidden_k : input.hidden_v) = value;
        with(input);
        all.push_back(std::move(input));
      }
  };
  add("hidden-by-mask", [](Input& x) { x.hide = Hide::padding; });
  add("hidden-by-padding", [](Input& x) {
    x.hide = Hide::padding;
    x.axes = "b11k";
  });
  add("hidden-by-bias", [](Input& x) {
    x.hide = Hide::padding;
    x.form = Form::additive;
  });
  add("after-the-last-query", [](Input& x) { x.causal = Align::start; });
  add("past-the-key-length", [](Input& x) { x.key_lengths = {5}; });
  add("outside-the-window", [](Input& x) {
    x.sizes = {1, 2, 2, 5, 12, 8, 8};
    x.causal = Align::end;
    x.window = Mask::Window{3, 0};
  });
  // Every visible score is far below 0, what a finite stand-in for -inf would beat.
  for (const bool is_padding : {false, true})
    all.push_back(
        {.group = "poison",
         .name = is_padding ? "scores-below-a-stand-in-padding" : "scores-below-a-stand-in",
         .sizes = {1, 1, 1, 2, 4, 1, 1},
         .q = {-200, 0, 0},
         .k = {100, 0, 0},
         .hide = Hide::padding,
         .axes = is_padding ? "b11k" : "qk",
         .hidden_k = 0,
         .hidden_v = 100});
  all.push_back({.group = "poison",
                 .name = "hidden-under-softcap",
                 .sizes = {1, 2, 2, 5, 6, 8, 8},
                 .hide = Hide::padding,
                 .hidden_v = 1e6,
                 .softcap = 1});
}

void add_layouts(Inputs& all) {
  for (const auto& [layout, of] :
       {std::pair{Layout::heads_inside, "batch-length-heads-size"},
        std::pair{Layout::columns, "by-columns"},
        std::pair{Layout::every_other, "every-other-number"},
        std::pair{Layout::repeated, "repeated-batch"}, std::pair{Layout::backwards, "backwards"}})
    for (const index_t n : {6, 62})
      all.push_back({.group = "layouts",
                     .name = std::string(of) + "-" + std::to_string(n),
                     .sizes = {2, 4, 4, n, n + 1, 16, 16},
                     .layout = layout});
}

void add_numbers(Inputs& all) {
  const Sizes one{1, 1, 1, 3, 64, 1, 1};
  const auto add = [&](const char* name, const Sizes& sizes, Filling q, Filling k, Filling v,
                       DType type = DType::f32) {
    all.push_back(
        {.group = "numbers", .name = name, .sizes = sizes, .dtype = type, .q = q, .k = k, .v = v});
  };
  const Filling ones{1, 0, 0}, zeros{0, 0, 0}, normal;
  add("scores-of-150", one, ones, {150, 0, 1}, normal);
  add("scores-of-minus-150", one, ones, {-150, 0, 1}, normal);
  add("scores-of-minus-100-no-tile", {1, 1, 1, 1, 192, 1, 1}, ones, {-100, 0, 0}, {0, 1, 0});
  add("scores-of-thousands", {1, 2, 2, 5, 40, 16, 16}, {0, 0, 40}, {0, 0, 40}, normal);
  add("rising-scores", {1, 1, 1, 2, 300, 1, 1}, ones, {0, 0.125, 0}, normal);
  add("falling-scores", {1, 1, 1, 2, 300, 1, 1}, ones, {0, -0.125, 0}, normal);
  add("query-of-70000", {1, 1, 1, 1, 64, 64, 64}, {70000, 0, 0}, {0.01, 0, 0}, ones);
  add("one-bf16-key-of-133120", {1, 1, 1, 1, 1, 64, 64}, {133120, 0, 0}, {133120, 0, 0},
      {133120, 0, 0}, DType::bf16);
  add("f16-products-beyond-65504", {1, 1, 1, 2, 20, 64, 64}, {40, 0, 0}, {40, 0, 0}, normal,
      DType::f16);
  add("f16-sums-of-400-values-of-300", {1, 1, 1, 1, 400, 64, 64}, zeros, ones, {300, 0, 0},
      DType::f16);
  add("equal-rows-of-64", {1, 1, 1, 1, 64, 4, 4}, zeros, zeros, {0, 1, 0});
  add("equal-rows-of-192", {1, 1, 1, 1, 192, 4, 4}, zeros, zeros, {0, 1, 0});
  add("equal-rows-of-1025", {1, 1, 1, 1, 1025, 4, 4}, zeros, zeros, {0, 1, 0});
  add("equal-f16-rows-of-4096", {1, 1, 1, 1, 4096, 64, 64}, zeros, ones, {30, 0, 0}, DType::f16);
  add("equal-bf16-rows-of-4096", {1, 1, 1, 1, 4096, 8, 8}, zeros, zeros, {1, 0, 0.25}, DType::bf16);
  add("values-that-cancel", {1, 2, 2, 9, 127, 16, 16}, {0, 0, 1.4142}, {0, 0, 1.4142},
      {0, 0, 1000});
  add("values-about-1000", {1, 2, 2, 9, 127, 16, 16}, {0, 0, 1.4142}, {0, 0, 1.4142}, {1000, 0, 1});
  const auto scaled = [&](const std::string& name, double scale) {
    all.push_back({.group = "numbers",
                   .name = name,
                   .sizes = {1, 2, 2, 7, 7, 8, 8},
                   .causal = Align::start,
                   .scale = scale});
  };
  scaled("scale-0.1", 0.1);
  scaled("scale-1", 1);
  scaled("scale-0", 0);
  scaled("scale-minus-1", -1);
  for (const double cap : {1.0, 30.0})
    all.push_back({.group = "numbers",
                   .name = cap == 1 ? "softcap-1" : "softcap-30",
                   .sizes = {1, 2, 2, 5, 9, 8, 8},
                   .softcap = cap});
  all.push_back({.group = "numbers",
                 .name = "softcap-50-scores-of-10000",
                 .sizes = {1, 1, 1, 2, 6, 1, 1},
                 .q = {10000, 0, 0},
                 .k = {0, 0, 1},
                 .softcap = 50});
}

void add_same_bits(Inputs& all) {
  for (const auto& [relation, of] :
       {std::pair{Relation::again, "run-again"}, std::pair{Relation::alone, "alone-as-in-a-batch"},
        std::pair{Relation::neighbours, "other-batch-entries"},
        std::pair{Relation::other_rows, "other-query-rows"},
        std::pair{Relation::few_rows, "some-rows-by-themselves"},
        std::pair{Relation::threads, "threads-1-and-4"}})
    for (const auto& [n, m] : {std::pair<index_t, index_t>{6, 9}, {40, 300}})
      for (const DType type : {DType::f32, DType::bf16})
        all.push_back({.group = "same bits",
                       .name = std::string(of) + pair_text("-", n, "x", m) +
                               (type == DType::f32 ? "" : "-bf16"),
                       .sizes = {2, 2, 2, n, m, 32, 32},
                       .dtype = type,
                       .relation = relation});
}

// Enough numbers that the largest error means something.
void add_accuracy(Inputs& all) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    const std::string of = name(type);
    all.push_back(
        {.group = "accuracy", .name = of, .sizes = {1, 2, 2, 64, 256, 64, 64}, .dtype = type});
    all.push_back({.group = "accuracy",
                   .name = of + "-flat",
                   .sizes = {1, 2, 2, 64, 256, 64, 64},
                   .dtype = type,
                   .q = {0, 0, 0.1}});
    all.push_back({.group = "accuracy",
                   .name = of + "-sharp",
                   .sizes = {1, 2, 2, 64, 256, 64, 64},
                   .dtype = type,
                   .q = {0, 0, 6}});
  }
}

}  // namespace

std::vector<Input> all_inputs() {
  Inputs all;
  add_shapes(all);
  add_heads(all);
  add_types(all);
  add_masks(all);
  add_mask_corners(all);
  add_causal(all);
  add_windows(all);
  add_empty(all);
  add_poison(all);
  add_layouts(all);
  add_numbers(all);
  add_same_bits(all);
  add_accuracy(all);
  return all;
}

std::vector<Feature> needs(const Input& input) {
  std::vector<Feature> needed;
  const auto need = [&](Feature feature, bool is_needed) {
    if (is_needed) needed.push_back(feature);
  };
  const Sizes& s = input.sizes;
  const bool is_square = s.q_len == s.kv_len;
  need(Feature::grouped_heads, s.heads != s.kv_heads);
  need(Feature::other_d_v, s.d_v != s.d_k);
  need(Feature::f64, input.dtype == DType::f64);
  need(Feature::bf16, input.dtype == DType::bf16);
  need(Feature::f16, input.dtype == DType::f16);
  need(Feature::causal_start, input.causal == Align::start && !is_square);
  need(Feature::causal_end, input.causal == Align::end && !is_square);
  need(Feature::window, input.window.has_value());
  need(Feature::key_lengths, !input.key_lengths.empty());
  const bool has_table = input.hide != Hide::none || input.form != Form::boolean;
  need(Feature::mask, has_table && input.form == Form::boolean);
  need(Feature::bias, has_table && input.form != Form::boolean);
  need(Feature::scale, input.scale.has_value());
  need(Feature::softcap, input.softcap > 0);
  need(Feature::strides, input.layout != Layout::dense);
  need(Feature::threads, input.relation == Relation::threads);
  return needed;
}

}  // namespace glasshead::audits
