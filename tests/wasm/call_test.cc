// A page's request, natively: what it does not say right is refused, never replaced.
#include "wasm/call.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace glasshead::wasm {
namespace {

// Each with nothing kept from calls before.
Answer call(const std::string& request) {
  Session session;
  return wasm::call(request, session);
}

void expect_refused(const std::string& request, const std::string& where) {
  const Answer answer = call(request);
  EXPECT_FALSE(answer.is_ok) << request;
  EXPECT_NE(answer.bytes.find("\"where\":\"" + where + "\""), std::string::npos) << request << "\n"
                                                                                 << answer.bytes;
}

std::string trace_with(const std::string& field) {
  return R"({"call":"trace","case":"{\"X\":[[1,0],[0,1]]}",)" + field + "}";
}

TEST(Call, a_worksheet_is_made) {
  EXPECT_TRUE(call(R"({"call":"worksheet","seed":1,"level":1})").is_ok);
}

TEST(Call, a_value_of_another_kind_is_refused) {
  for (const std::string field : {"decimals", "by_hand"}) {
    expect_refused(trace_with("\"" + field + "\":\"2\""), field);
    expect_refused(trace_with("\"" + field + "\":2.5"), field);
  }
  for (const std::string field : {"format", "name", "mistake"})
    expect_refused(trace_with("\"" + field + "\":2"), field);
  expect_refused(R"({"call":2})", "call");
  expect_refused(R"({"call":"trace","case":{}})", "case");
  expect_refused(R"({"call":"sweep","sweep":1})", "sweep");
}

TEST(Call, a_number_out_of_range_is_refused) {
  expect_refused(R"({"call":"worksheet","level":4294967297})", "level");
  expect_refused(R"({"call":"worksheet","seed":-1})", "seed");
  expect_refused(R"({"call":"worksheet","seed":18446744073709551615})", "seed");
  expect_refused(trace_with(R"("by_hand":-5)"), "by_hand");
  expect_refused(trace_with(R"("by_hand":13)"), "by_hand");
  expect_refused(trace_with(R"("decimals":-1)"), "decimals");
}

TEST(Call, a_field_that_the_call_does_not_have_is_refused) {
  expect_refused(trace_with(R"("decimal":2)"), "decimal");
  expect_refused(R"({"call":"sweep","sweep":"d_k=1..4","seed":1})", "seed");
  expect_refused(R"({"call":"worksheet","by_hand":2})", "by_hand");
  expect_refused(R"({"call":"worksheet","level":1,"level":2})", "level");  // or gives twice
}

// A page's calls, on two tokens with no weights: q = k = v = X.
std::string two_tokens(const std::string& name, const std::string& more) {
  return R"({"call":")" + name +
         R"(","name":"two","case":"{\"schema\":\"glasshead.case/1\",\"tokens\":[\"1\",\"0\"],\"X\":[[1,0],[0,1]],\"attention\":{}}")" +
         more + "}";
}
std::string ask(const std::string& name, const std::string& more) {
  return call(two_tokens(name, more)).bytes;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Call, rows_are_addressed_by_index_even_where_their_labels_are_numbers) {
  const std::string edit = R"(,"edit":{"set":[{"matrix":"X","at":[1,0],"to":"2.50"}]})";
  EXPECT_TRUE(has(ask("trace", edit), R"("X":[[1,0],[2.5,1]])"));
  EXPECT_TRUE(has(ask("trace", edit), R"("2.50")"));  // digits as they were typed
  EXPECT_TRUE(
      has(ask("trace", R"(,"edit":{"hide":[1]})"), R"("allowed":[[true,false],[true,false]])"));
  EXPECT_TRUE(has(ask("trace", R"(,"edit":{"hide":[2]})"), "there is no key 2"));
}

TEST(Call, masks_are_named_joined_or_written_out_pair_by_pair) {
  EXPECT_TRUE(has(ask("trace", R"(,"edit":{"mask":"rows:10/11"})"),
                  R"("allowed":[[true,false],[true,true]])"));
  EXPECT_TRUE(has(ask("trace", R"(,"edit":{"mask":"causal+padding:1"})"),
                  R"("reason":[[null,"causal+padding"],[null,"padding"]])"));
  for (const std::string wrong : {"rows:10/1", "rows:12/11", "rows:", "padding:x", "causal+", "x"})
    EXPECT_TRUE(has(ask("trace", R"(,"edit":{"mask":")" + wrong + "\"}"), R"("where":"mask")"))
        << wrong;
}

TEST(Call, a_number_that_is_none_is_refused_by_its_place) {
  expect_refused(trace_with(R"("edit":{"set":[{"matrix":"X","at":[1,0],"to":"one"}]})"), "X.1.0");
  expect_refused(trace_with(R"("edit":{"set":[{"matrix":"X","at":[-1],"to":"1"}]})"),
                 "edit.set.at");
  expect_refused(trace_with(R"("edit":{"scale":"big"})"), "scale");
  expect_refused(trace_with(R"("edit":{"colour":"red"})"), "edit.colour");
  expect_refused(trace_with(R"("edit":[])"), "edit");
}

TEST(Call, a_view_marks_what_moved) {
  const std::string answer =
      ask("view", R"(,"edit":{"set":[{"matrix":"X","at":[1,1],"to":"2"}]},"before":{})");
  // The one score of row 1 with itself: 1 becomes 4, and with it its scaled score, its weights and
  // what they average; row 0 keeps its scores, its weights, and gets another value.
  EXPECT_TRUE(has(answer, R"("id":"cell-scores-1-1","exact":"4","was":"1","direction":1)"))
      << answer;
  EXPECT_TRUE(has(answer, R"("text":"0","id":"cell-scores-0-1","exact":"0"})"));
  EXPECT_TRUE(has(answer, R"("moved":{"moved":7,"of":16,)")) << answer;
}

std::string without_serial(std::string answer) {
  const std::size_t at = answer.find("\"serial\":");
  return at == std::string::npos ? answer : answer.erase(at, answer.find(',', at) + 1 - at);
}

TEST(Call, what_a_session_keeps_changes_no_answer) {
  const std::string one = R"(,"edit":{"set":[{"matrix":"X","at":[1,1],"to":"2"}]})",
                    other = R"(,"edit":{"mask":"causal"})", none = R"(,"edit":{})",
                    refused = R"(,"edit":{"mask":"rows:00/11"})";
  std::vector<std::string> requests;
  for (const std::string& edit : {one, none, other, one, refused, other, none})
    for (const std::string& request :
         {two_tokens("view", edit + R"(,"before":{})"), two_tokens("why", edit + R"(,"query":1)"),
          two_tokens("origin", edit + R"(,"tap":"q","row":1,"column":0)"),
          two_tokens("trace", edit), two_tokens("view", edit + R"(,"by_hand":2)"),
          two_tokens("view", edit + R"(,"decimals":2,"before":{"mask":"causal"})")})
      requests.push_back(request);
  Session session;
  for (const std::string& request : requests) {
    const Answer kept = wasm::call(request, session), fresh = call(request);
    EXPECT_EQ(kept.is_ok, fresh.is_ok) << request;
    EXPECT_EQ(without_serial(kept.bytes), without_serial(fresh.bytes)) << request;
  }
}

TEST(Call, a_view_since_the_last_one_holds_what_changed_alone) {
  Session session;
  const auto view = [&](const std::string& more) {
    return wasm::call(two_tokens("view", more), session).bytes;
  };
  EXPECT_TRUE(has(view(""), R"("serial":1)"));
  const std::string changed =
      view(R"(,"since":1,"edit":{"set":[{"matrix":"X","at":[1,1],"to":"2"}]})");
  EXPECT_TRUE(has(changed, R"("since":1,"serial":2)")) << changed;
  // X, q, k, v and scores have one number that is another, at row 1 and column 1.
  EXPECT_TRUE(has(changed, R"({"cells":[[1,1,{"text":"2","exact":"2"}]],)"));
  EXPECT_TRUE(has(changed, R"({"cells":[[1,1,{"text":"4","exact":"4"}]],)"));
  EXPECT_FALSE(has(changed, R"("mask")"));
  EXPECT_FALSE(has(view(R"(,"since":1)"), R"("since")"));  // not the last
  EXPECT_FALSE(has(view(R"(,"since":3,"edit":{"mask":"rows:00/11"})"), R"("since")"));
}

TEST(Call, a_view_of_a_row_without_keys_ends_at_the_mask_and_names_the_row) {
  const std::string answer = ask("view", R"(,"edit":{"mask":"rows:00/11"})");
  EXPECT_TRUE(has(answer, R"("refused":[{"where":"row 1")")) << answer;
  EXPECT_TRUE(has(answer, "cell-masked-0-0"));
  EXPECT_FALSE(has(answer, "cell-weights-0-0"));
  EXPECT_TRUE(
      has(ask("view", R"(,"edit":{"mask":"rows:00/11","empty_row":"zero"})"), "cell-weights-0-0"));
}

TEST(Call, a_cells_origin_is_a_row_of_q_and_a_row_of_k) {
  EXPECT_EQ(
      ask("origin", R"(,"tap":"scores","row":1,"column":0)"),
      R"({"from":["cell-q-1-0","cell-q-1-1","cell-k-0-0","cell-k-0-1"],"feeds":["cell-scaled-1-0"]})");
}

TEST(Call, a_projection_without_weights_passes_its_input_on) {
  EXPECT_EQ(ask("origin", R"(,"tap":"q","row":1,"column":0)"),
            R"({"from":["cell-X-1-0"],"feeds":["cell-scores-1-0","cell-scores-1-1"]})");
}

TEST(Call, a_step_of_a_typed_number_keeps_its_digits) {
  EXPECT_EQ(call(R"({"call":"step","text":"0.2","by":"0.1"})").bytes, R"({"text":"0.3"})");
  EXPECT_EQ(call(R"({"call":"step","text":"-0.1","by":"0.1"})").bytes, R"({"text":"0"})");
  EXPECT_FALSE(call(R"({"call":"step","text":"x","by":"0.1"})").is_ok);
}

// Two heads: softmax of (0, -1000) and of (0, 0).
TEST(Call, a_sum_of_any_head_is_made_again_from_that_head) {
  const std::string start =
      R"({"call":"derive","row":0,"column":0,"case":"{\"schema\":\"glasshead.case/1\",\"attention\":{\"heads\":2,)"
      R"(\"q\":[[[1]],[[1]]],\"k\":[[[0],[-1000]],[[0],[0]]],\"v\":[[[1],[1]],[[1],[1]]]}}",)";
  const auto derived = [&](const std::string& tap, int head) {
    return call(start + "\"tap\":\"" + tap + "\",\"head\":" + std::to_string(head) + "}").bytes;
  };
  EXPECT_NE(derived("row_sum", 0).find("\"1 = 1\""), std::string::npos) << derived("row_sum", 0);
  EXPECT_NE(derived("row_sum", 1).find("\"1 + 1 = 2\""), std::string::npos)
      << derived("row_sum", 1);
  EXPECT_NE(derived("row_max", 1).find("\"the largest of 0, 0\""), std::string::npos)
      << derived("row_max", 1);
  EXPECT_NE(derived("row_max", 0).find("\"the largest of 0, -1000\""), std::string::npos)
      << derived("row_max", 0);
}

}  // namespace
}  // namespace glasshead::wasm
