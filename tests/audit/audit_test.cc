// What the audit says of implementations with known faults. They share no code with the library:
// plain three-pass attention in f32, each with one thing done wrong.
#include "glasshead/audit.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace glasshead {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// What one plain implementation gets wrong.
struct Plain {
  float stand_in = -kInf;         // for hidden scores
  bool multiplies_all = false;    // hidden values too, by a weight of 0
  bool tiles_heads = false;       // kv head h mod kv_heads
  bool hides_by_rows = false;     // causal from the start, whatever was asked for
  index_t tail = 1;               // keys after the last multiple are forgotten
  bool keeps_empty_rows = false;  // 0 / 0
};

float table_at(const Broadcast& table, const std::array<index_t, 4>& at) {
  index_t offset = 0;
  const auto rank = static_cast<std::size_t>(table.rank);
  for (std::size_t axis = 0; axis < rank; ++axis)
    if (table.shape[axis] > 1) offset += at[4 - rank + axis] * table.strides[axis];
  return static_cast<float>(load_element(table.data, table.dtype, offset));
}

bool sees(const AuditCall& call, const Plain& plain, const std::array<index_t, 4>& at) {
  const auto [b, h, i, j] = at;
  const bool is_end = call.causal == Align::end && !plain.hides_by_rows;
  const index_t p = is_end ? i + call.k.shape[2] - call.q.shape[2] : i;
  if (call.causal && j > p) return false;
  if (call.window && call.window->left && j < p - *call.window->left) return false;
  if (call.window && call.window->right && j > p + *call.window->right) return false;
  if (!call.key_lengths.empty()) {
    const auto n = call.key_lengths.size() == 1 ? 0 : static_cast<std::size_t>(b);
    if (j >= call.key_lengths[n]) return false;
  }
  return call.mask.data == nullptr || table_at(call.mask, at) != 0;
}

void row(const AuditCall& call, const Plain& plain, const std::array<index_t, 3>& at,
         const MutableTensor<4>& out) {
  const auto [b, h, i] = at;
  const index_t n = call.k.shape[2], kv_heads = call.k.shape[1];
  const index_t g = plain.tiles_heads ? h % kv_heads : h / (call.q.shape[1] / kv_heads);
  const index_t end = n < plain.tail ? n : n - n % plain.tail;
  std::vector<float> w(static_cast<std::size_t>(n), -kInf);
  std::vector<bool> seen(w.size());
  float max = -kInf, sum = 0;
  const float scale = call.scale ? static_cast<float>(*call.scale)
                                 : 1 / std::sqrt(static_cast<float>(call.k.shape[3]));
  for (index_t j = 0; j < end; ++j) {
    float s = 0;
    for (index_t e = 0; e < call.k.shape[3]; ++e)
      s +=
          static_cast<float>(call.q.load(b, h, i, e)) * static_cast<float>(call.k.load(b, g, j, e));
    s *= scale;
    const auto cap = static_cast<float>(call.softcap);
    if (cap > 0) s = cap * std::tanh(s / cap);
    const float added = call.bias.data == nullptr ? 0 : table_at(call.bias, {b, h, i, j});
    const auto k = static_cast<std::size_t>(j);
    seen[k] = sees(call, plain, {b, h, i, j}) && added != -kInf;
    s += added;
    w[k] = seen[k] ? s : plain.stand_in;
    max = w[k] > max ? w[k] : max;
  }
  for (index_t j = 0; j < end; ++j) {
    float& x = w[static_cast<std::size_t>(j)];
    x = x == -kInf ? 0 : std::exp(x - max);
    sum += x;
  }
  for (index_t d = 0; d < call.v.shape[3]; ++d) {
    float total = 0;
    for (index_t j = 0; j < end; ++j) {
      const auto k = static_cast<std::size_t>(j);
      if (w[k] != 0 || plain.multiplies_all)
        total += w[k] * static_cast<float>(call.v.load(b, g, j, d));
    }
    const bool is_empty = sum == 0 && !plain.keeps_empty_rows;
    out.store_at({b, h, i, d}, is_empty ? 0 : static_cast<double>(total / sum));
  }
}

AuditFunction plain(const Plain& what) {
  return [what](const AuditCall& call, const MutableTensor<4>& out) {
    for (index_t b = 0; b < out.shape[0]; ++b)
      for (index_t h = 0; h < out.shape[1]; ++h)
        for (index_t i = 0; i < out.shape[2]; ++i) row(call, what, {b, h, i}, out);
  };
}

AuditReport audited(const Plain& what, std::vector<std::string> groups) {
  AuditOptions options;
  options.groups = std::move(groups);
  std::erase(options.takes, Feature::f64);
  return audit(plain(what), options);
}

const AuditRow& find(const AuditReport& report, const std::string& group,
                     const std::string& input) {
  for (const AuditRow& row : report.rows)
    if (row.group == group && row.input == input) return row;
  throw std::runtime_error("no row " + group + "/" + input);
}

bool names(const AuditRow& row, const std::string& mistake) {
  for (const std::string& name : row.mistakes)
    if (name.starts_with(mistake)) return true;
  return false;
}

std::set<std::string> wrong_groups(const AuditReport& report) {
  std::set<std::string> groups;
  for (const AuditRow& row : report.rows)
    if (row.verdict == AuditVerdict::wrong) groups.insert(row.group);
  return groups;
}

TEST(Audit, PlainAttentionIsRight) {
  const AuditReport report = audited(
      {}, {"heads", "masks", "causal", "windows", "empty rows", "poison", "numbers", "layouts"});
  for (const AuditRow& row : report.rows)
    EXPECT_EQ(row.verdict, AuditVerdict::right)
        << row.group << "/" << row.input << ": " << row.text;
}

TEST(Audit, EmptyRowsDividedByZeroAreFound) {
  Plain what;
  what.keeps_empty_rows = true;
  const AuditReport report = audited(what, {"masks", "empty rows", "poison"});
  EXPECT_TRUE(names(find(report, "empty rows", "mask-first-row"), "empty-row-nan"));
  EXPECT_EQ(find(report, "poison", "nan-in-values-hidden-by-mask").verdict, AuditVerdict::right);
}

TEST(Audit, AFiniteStandInIsFoundInEmptyRowsAndBelowIt) {
  Plain what;
  what.stand_in = -1e4F;
  const AuditReport report = audited(what, {"masks", "causal", "empty rows", "poison"});
  EXPECT_TRUE(names(find(report, "poison", "scores-below-a-stand-in"), "mask-finite:-1e4"));
  EXPECT_EQ(find(report, "empty rows", "mask-all").verdict, AuditVerdict::wrong);
  EXPECT_EQ(find(report, "masks", "padding").verdict, AuditVerdict::right);
}

TEST(Audit, HiddenValuesTimesZeroAreFound) {
  Plain what;
  what.multiplies_all = true;
  const AuditReport report = audited(what, {"masks", "causal", "windows", "poison"});
  EXPECT_EQ(wrong_groups(report), std::set<std::string>{"poison"});
  EXPECT_TRUE(names(find(report, "poison", "nan-in-values-hidden-by-mask"), "hidden-read"));
  EXPECT_TRUE(names(find(report, "poison", "inf-in-values-outside-the-window"), "hidden-read"));
  EXPECT_EQ(find(report, "poison", "nan-in-keys-hidden-by-mask").verdict, AuditVerdict::right);
}

TEST(Audit, TiledHeadsAreFoundWhereHeadsAreGroupedAndMoreThanOne) {
  Plain what;
  what.tiles_heads = true;
  const AuditReport report = audited(what, {"heads", "masks"});
  EXPECT_EQ(wrong_groups(report), std::set<std::string>{"heads"});
  EXPECT_TRUE(names(find(report, "heads", "heads-4-kv-2"), "gqa-tiled"));
  EXPECT_EQ(find(report, "heads", "heads-8-kv-1").verdict, AuditVerdict::right);
}

TEST(Audit, TheOtherCornerIsFound) {
  Plain what;
  what.hides_by_rows = true;
  const AuditReport report = audited(what, {"causal"});
  EXPECT_TRUE(names(find(report, "causal", "end-7x12"), "causal-corner"));
  EXPECT_EQ(find(report, "causal", "end-5x5").verdict, AuditVerdict::right);
  EXPECT_EQ(find(report, "causal", "start-7x12").verdict, AuditVerdict::right);
}

TEST(Audit, AForgottenTileIsFound) {
  Plain what;
  what.tail = 32;
  AuditOptions options;
  options.groups = {"shapes"};
  const AuditReport report = audit(plain(what), options);
  EXPECT_TRUE(names(find(report, "shapes", "length-33"), "tile-tail-ignored"));
  EXPECT_EQ(find(report, "shapes", "length-64").verdict, AuditVerdict::right);
  EXPECT_EQ(find(report, "shapes", "length-65").verdict, AuditVerdict::wrong);
}

TEST(Audit, ExceptionsAreRefusals) {
  const AuditReport report = audit(
      [](const AuditCall& call, const MutableTensor<4>& out) {
        if (call.mask.data != nullptr) throw std::invalid_argument("no masks today\nsecond line");
        attend(call.q, call.k, call.v, out, call.options);
      },
      {.groups = {"masks"}});
  const AuditRow& row = find(report, "masks", "padding");
  EXPECT_EQ(row.verdict, AuditVerdict::refuses);
  EXPECT_EQ(row.text, "no masks today");
  EXPECT_EQ(find(report, "masks", "bias-qk").verdict, AuditVerdict::right);
  EXPECT_FALSE(report.has_faults());
}

TEST(Audit, WhatIsNotOfferedIsNotAsked) {
  AuditOptions options;
  options.takes = {Feature::mask};
  const AuditReport report = audit(
      [](const AuditCall& call, const MutableTensor<4>& out) {
        EXPECT_EQ(call.q.dtype, DType::f32);
        EXPECT_EQ(call.bias.data, nullptr);
        EXPECT_FALSE(call.causal || call.window || call.scale || call.softcap > 0 ||
                     call.threads > 0);
        EXPECT_EQ(call.q.shape[1], call.k.shape[1]);
        EXPECT_EQ(call.q.shape[3], call.v.shape[3]);
        attend(call.q, call.k, call.v, out, call.options);
      },
      options);
  EXPECT_EQ(find(report, "causal", "start-5x5").verdict, AuditVerdict::not_offered);
  EXPECT_EQ(find(report, "causal", "start-5x5").text, "causal");
  EXPECT_EQ(find(report, "causal", "end-1x16").text, "causal-end");
  EXPECT_GT(report.count(AuditVerdict::not_offered), 50);
  EXPECT_EQ(report.count(AuditVerdict::not_offered) + report.count(AuditVerdict::right),
            static_cast<index_t>(report.rows.size()));
}

TEST(Audit, OtherBitsInABatchVaryAndAreNotWrong) {
  AuditOptions options;
  options.groups = {"same bits"};
  const AuditReport report = audit(
      [](const AuditCall& call, const MutableTensor<4>& out) {
        attend(call.q, call.k, call.v, out, call.options);
        if (out.shape[0] > 1 || out.dtype != DType::f32) return;
        auto* data = static_cast<float*>(out.data);  // alone: one unit in the last place up
        data[0] = std::nextafter(data[0], kInf);
      },
      options);
  const AuditRow& row = find(report, "same bits", "alone-as-in-a-batch-6x9");
  EXPECT_EQ(row.verdict, AuditVerdict::varies);
  EXPECT_TRUE(
      row.text.starts_with("1 of 384 numbers of the last batch entry have other bits when it "
                           "is computed by itself, up to "))
      << row.text;
  EXPECT_EQ(find(report, "same bits", "run-again-6x9").verdict, AuditVerdict::right);
  EXPECT_EQ(report.count(AuditVerdict::varies), 2);
  EXPECT_FALSE(report.has_faults());
}

TEST(Audit, WhatVariesIsSaidWithWhatItWasComparedWith) {
  AuditOptions options;
  options.groups = {"same bits"};
  index_t calls = 0;
  const AuditReport report = audit(
      [&](const AuditCall& call, const MutableTensor<4>& out) {
        attend(call.q, call.k, call.v, out, call.options);
        if (out.dtype != DType::f32) return;
        auto* data = static_cast<float*>(out.data);  // each second call differs from its first
        if (++calls % 2 == 0)
          for (index_t n = 0; n < out.shape[0] * out.shape[1] * out.shape[2] * out.shape[3]; ++n)
            data[n] = std::nextafter(data[n], kInf);
      },
      options);
  for (const auto& [input, said] :
       {std::pair{"run-again-6x9",
                  "768 of 768 numbers have other bits when the same call is made "
                  "again, up to "},
        {"other-batch-entries-6x9",
         "384 of 384 numbers of the last batch entry have other bits "
         "when the entries before it hold other numbers, up to "},
        {"other-query-rows-6x9",
         "128 of 128 numbers of the middle query row have other bits when "
         "the other rows hold other numbers, up to "},
        {"some-rows-by-themselves-6x9",
         "256 of 256 numbers of the middle query rows have other "
         "bits when these are computed by themselves, up to "},
        {"threads-1-and-4-6x9",
         "768 of 768 numbers have other bits on 4 threads than on 1, up "
         "to "}}) {
    const AuditRow& row = find(report, "same bits", input);
    EXPECT_EQ(row.verdict, AuditVerdict::varies);
    EXPECT_TRUE(row.text.starts_with(said)) << row.text;
  }
}

TEST(Audit, ProgressIsToldForEachInputOnce) {
  std::vector<std::string> told;
  AuditOptions options;
  options.groups = {"heads", "layouts", "same bits"};
  options.takes = {Feature::grouped_heads};
  options.progress = [&](index_t done, index_t inputs, const std::string& input) {
    EXPECT_EQ(inputs, 44);
    EXPECT_LT(done, inputs);
    told.push_back(input);
  };
  audit(plain({}), options);
  EXPECT_EQ(told.front(), "heads/heads-1-kv-1");
  EXPECT_EQ(told.back(), "same bits/some-rows-by-themselves-40x300");
  EXPECT_EQ(std::set<std::string>(told.begin(), told.end()).size(), told.size());
  EXPECT_EQ(std::count_if(told.begin(), told.end(),
                          [](const std::string& x) { return x.starts_with("layouts"); }),
            0);  // not offered
}

TEST(Audit, WhatIsNotOfferedIsShownByWhatItWouldTake) {
  AuditOptions options;
  options.groups = {"heads", "layouts"};
  options.takes = {};
  const AuditReport some = audit(plain({}), options);
  EXPECT_EQ(some.why_nothing(), "");
  EXPECT_NE(audit_text(some).find("\nnot offered\n    10  strides\n"
                                  "     5  grouped-heads\n     1  grouped-heads, causal\n"),
            std::string::npos)
      << audit_text(some);
  options.groups = {"layouts"};
  EXPECT_EQ(audit(plain({}), options).why_nothing(), "none of 10 inputs is offered: strides (10)");
}

TEST(Audit, TheSmallestInputOfEachFaultIsWrittenWithTheDoctorsCommand) {
  const std::string folder = ::testing::TempDir();
  AuditOptions options;
  options.groups = {"causal"};
  options.folder = folder;
  Plain what;
  what.hides_by_rows = true;
  const AuditReport report = audit(plain(what), options);
  index_t written = 0;
  for (const AuditRow& row : report.rows) {
    if (row.file.empty()) continue;
    ++written;
    EXPECT_EQ(row.verdict, AuditVerdict::wrong);
    const NamedTensors tensors = read_safetensors(row.file);
    ASSERT_EQ(tensors.size(), 4U);
    EXPECT_EQ(tensors[3].first, "out");
    EXPECT_NE(row.command.find("glasshead doctor --qkv " + row.file + " --causal=end --out " +
                               row.file + ":out"),
              std::string::npos)
        << row.command;
  }
  EXPECT_GE(written, 1);
  EXPECT_LT(written, report.count(AuditVerdict::wrong));
}

TEST(Audit, ThePathInTheDoctorsCommandIsOneWord) {
  AuditOptions options;
  options.groups = {"causal"};
  options.folder = ::testing::TempDir() + "ann's files";
  std::filesystem::create_directories(options.folder);
  Plain what;
  what.hides_by_rows = true;
  const AuditReport report = audit(plain(what), options);
  const auto found = std::find_if(report.rows.begin(), report.rows.end(),
                                  [](const AuditRow& row) { return !row.file.empty(); });
  ASSERT_NE(found, report.rows.end());
  EXPECT_NE(found->command.find("--qkv '" + ::testing::TempDir() + "ann'\\''s files/causal-"),
            std::string::npos)
      << found->command;
}

TEST(Audit, CrashesAndHangsAndWrongShapesAreRows) {
  AuditRun run({.subject = "theirs", .groups = {"heads"}});
  index_t n = 0;
  while (const AuditCall* call = run.next()) {
    AuditAnswer answer;
    switch (n++) {
      case 0:
        answer.kind = Answered::crashed;
        answer.text = "signal 11";
        break;
      case 1:
        answer.kind = Answered::hung;
        answer.text = "10 s";
        break;
      case 2:
        answer.out = make_tensor(DType::f32, {1, 2});
        break;
      default:
        answer.out = make_tensor(
            DType::f64, {call->q.shape[0], call->q.shape[1], call->q.shape[2], call->v.shape[3]});
        attend(call->q, call->k, call->v,
               MutableTensor<4>(answer.out.bytes.data(), DType::f64, call->out_shape(),
                                row_major(call->out_shape())),
               call->options);
    }
    run.answer(std::move(answer));
  }
  const AuditReport report = run.report();
  EXPECT_EQ(run.inputs_done(), run.inputs());
  EXPECT_EQ(report.rows[0].verdict, AuditVerdict::crashes);
  EXPECT_EQ(report.rows[0].text, "signal 11");
  EXPECT_EQ(report.rows[1].verdict, AuditVerdict::hangs);
  EXPECT_EQ(report.rows[2].verdict, AuditVerdict::wrong);
  EXPECT_EQ(report.rows[2].text, "out has shape [1,2], should have [2,8,5,8]");
  EXPECT_EQ(report.count(AuditVerdict::right), 7);
  EXPECT_TRUE(report.has_faults());
  const std::string text = audit_text(report);
  EXPECT_NE(text.find("audit of theirs: 10 inputs"), std::string::npos);
  EXPECT_NE(text.find("heads/heads-1-kv-1"), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(audit_json(report));
  EXPECT_EQ(json["schema"], "glasshead.audit/1");
  EXPECT_EQ(json["counts"]["crashes"], 1);
  EXPECT_EQ(json["rows"][1]["verdict"], "hangs");
}

TEST(Audit, AnAnswerWithTooFewBytesIsWrongAndNotRead) {
  AuditOptions options;
  options.groups = {"heads"};
  options.folder = ::testing::TempDir();
  AuditRun run(options);
  while (const AuditCall* call = run.next()) {
    const auto shape = call->out_shape();
    AuditAnswer answer;
    answer.out = make_tensor(DType::f32, {shape.begin(), shape.end()});
    answer.out.bytes.resize(answer.out.bytes.size() - 1);
    run.answer(std::move(answer));
  }
  const AuditReport report = run.report();
  EXPECT_EQ(report.count(AuditVerdict::wrong), run.inputs());
  EXPECT_EQ(report.rows[2].text, "out has 2559 bytes, should have 2560");
}

TEST(Audit, TheSeedDecidesTheNumbers) {
  const auto first = [](std::uint64_t seed) {
    AuditOptions options;
    options.seed = seed;
    AuditRun run(options);
    return run.next()->q.load(0, 0, 0, 0);
  };
  EXPECT_EQ(first(1), first(1));
  EXPECT_NE(first(1), first(2));
  AuditReport report;
  report.seed = std::numeric_limits<std::uint64_t>::max();
  EXPECT_NE(audit_json(report).find("\"seed\":18446744073709551615"), std::string::npos);
}

TEST(Audit, AnUnknownGroupIsRefusedWithThoseThereAre) {
  AuditOptions options;
  options.groups = {"shape"};
  try {
    AuditRun run(options);
    FAIL();
  } catch (const OptionError& error) {
    EXPECT_NE(
        error.problems().front().what.find("there is no group 'shape'; there are shapes, heads"),
        std::string::npos);
  }
}

}  // namespace
}  // namespace glasshead
