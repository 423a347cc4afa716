// A page's request, natively: what it does not say right is refused, never replaced.
#include "wasm/call.h"

#include <string>

#include <gtest/gtest.h>

namespace glasshead::wasm {
namespace {

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
}

}  // namespace
}  // namespace glasshead::wasm
