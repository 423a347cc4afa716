// The calls of the doctor's page and the sheet's, natively.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "glasshead/tensor_file.h"
#include "wasm/base64.h"
#include "wasm/call.h"
#include "wasm/roles.h"

namespace glasshead::wasm {
namespace {

using Json = nlohmann::json;

Json ask(const Json& request, bool is_ok = true) {
  Session session;
  const Answer answer = call(request.dump(), session);
  EXPECT_EQ(answer.is_ok, is_ok) << request << "\n" << answer.bytes;
  return Json::parse(answer.bytes);
}

std::string why(const Json& request) {
  const Json answer = ask(request, false);
  return answer["problems"].empty() ? std::string() : answer["problems"][0].dump();
}

// Without comparing its bytes: any array of float64.
std::string npy_of(const std::vector<index_t>& shape, const std::vector<double>& values) {
  FileTensor tensor = make_tensor(DType::f64, shape);
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return to_base64(npy_bytes(tensor));
}

TEST(Base64, is_that_of_the_standard) {  // RFC 4648, section 10
  const std::pair<const char*, const char*> known[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, text] : known) {
    const std::span bytes(reinterpret_cast<const std::byte*>(plain), std::strlen(plain));
    EXPECT_EQ(to_base64(bytes), text);
    const auto back = from_base64(text);
    ASSERT_TRUE(back.has_value());
    EXPECT_TRUE(std::equal(back->begin(), back->end(), bytes.begin(), bytes.end()));
  }
  for (const char* wrong : {"Zg=", "Z*==", "====", "Zg==Zg=="})
    EXPECT_FALSE(from_base64(wrong)) << wrong;
}

TEST(Roles, are_read_from_names) {
  const std::pair<const char*, const char*> known[] = {{"q.npy", "q"},
                                                       {"my_Keys.npy", "k"},
                                                       {"attn_output", "out"},
                                                       {"softmax_lse.npy", "lse"},
                                                       {"attention_weights", "weights"},
                                                       {"grad_q", "dq"},
                                                       {"d_out.npy", "d_out"},
                                                       {"theirs.npy", "out"},
                                                       {"x.npy", ""},
                                                       {"pasted", ""}};
  for (const auto& [name, role] : known) EXPECT_EQ(role_of_name(name), role) << name;
}

const char* const kCase =
    R"({"schema":"glasshead.case/1","tokens":["A","B","C"],"X":[[1,0],[0,1],[1,1]],"attention":{"mask":"causal"}})";

TEST(Sources, shapes_tell_weights_from_outputs_and_lse) {
  const Json answer = ask({{"call", "sources"},
                           {"case", kCase},
                           {"sources",
                            {{{"name", "a"}, {"text", "1 0 0; .5 .5 0; .2 .2 .6"}},
                             {{"name", "b"}, {"text", "1 0; 0 1; 1 1"}},
                             {{"name", "c"}, {"text", "0.5\n1\n2"}}}}});
  ASSERT_EQ(answer["tensors"].size(), 3U);
  EXPECT_EQ(answer["tensors"][0]["role"], "weights");
  EXPECT_EQ(answer["tensors"][1]["role"], "out");
  EXPECT_EQ(answer["tensors"][2]["role"], "lse");
}

TEST(Sources, a_shape_with_its_axes_swapped_or_of_nothing_is_said_to_be) {
  const auto hint_of = [](const char* name, const std::vector<index_t>& shape) {
    const std::vector<double> numbers(12, 0.5);
    return ask({{"call", "sources"},
                {"sources",
                 {{{"name", "q.npy"}, {"base64", npy_of({3, 2}, {1, 0, 0, 1, 1, 1})}},
                  {{"name", "k.npy"}, {"base64", npy_of({4, 2}, {1, 0, 0, 1, 1, 1, 0, 0})}},
                  {{"name", "v.npy"}, {"base64", npy_of({4, 2}, {1, 0, 0, 1, 1, 1, 0, 0})}},
                  {{"name", name}, {"base64", npy_of(shape, numbers)}}}}})["tensors"][3]["hint"]
        .get<std::string>();
  };
  const char* swapped = "has the sizes of out, 3\u00d72, in another order: two axes are swapped";
  EXPECT_EQ(hint_of("x.npy", {2, 3}), swapped);
  EXPECT_EQ(hint_of("out.npy", {2, 3}), swapped);
  EXPECT_EQ(hint_of("out.npy", {3, 2}), "");
  EXPECT_EQ(hint_of("x.npy", {3, 2}), "");
  EXPECT_EQ(hint_of("x.npy", {4, 3}),
            "has the sizes of weights, 3\u00d74, in another order: two axes are swapped");
  EXPECT_EQ(hint_of("x.npy", {5}),
            "has the shape of nothing that these inputs give: out is 3\u00d72, weights 3\u00d74");
}

TEST(Sources, a_broken_file_spoils_no_other) {
  const Json answer = ask({{"call", "sources"},
                           {"sources",
                            {{{"name", "q.npy"}, {"base64", npy_of({1, 2}, {1, 2})}},
                             {{"name", "k.npy"}, {"base64", "k05VTVBZ"}},
                             {{"name", "v.npz"}, {"base64", "UEsDBA=="}},
                             {{"name", "w.npy"}, {"base64", "*"}},
                             {{"name", "x.json"}, {"text", "{\"schema\":1}"}},
                             {{"name", "y.csv"}, {"text", "0,5\t1"}}}}});
  ASSERT_EQ(answer["tensors"].size(), 1U);
  EXPECT_EQ(answer["tensors"][0]["shape"], "1\u00d72");
  std::vector<std::string> codes;
  std::vector<int> from;
  for (const Json& trouble : answer["troubles"])
    if (from.empty() || from.back() != trouble["source"]) {
      from.push_back(trouble["source"]);
      codes.push_back(trouble["code"]);
    }
  EXPECT_EQ(from, (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_EQ(codes, (std::vector<std::string>{"file-broken", "file-broken", "file-broken",
                                             "case-broken", "numbers-unclear"}));
}

Json of_case(const std::string& weights) {
  return {{"call", "doctor"},
          {"case", kCase},
          {"name", "mine"},
          {"sources", {{{"name", "pasted"}, {"text", weights}}}},
          {"roles", {{"weights", 0}}}};
}

TEST(Diagnose, says_what_the_tutorial_printed_wrong) {
  Json request = of_case("1 0 0; .5 .5 0; .25 .25 .5");
  const Json diagnosis = ask(request);
  EXPECT_EQ(diagnosis["schema"], "glasshead.diagnosis/1");
  EXPECT_EQ(diagnosis["verdict"], "unexplained");
  request["format"] = "page";
  const Json page = ask(request);
  EXPECT_EQ(page["diagnosis"], diagnosis);
  EXPECT_NE(diagnosis["probe"].get<std::string>().find("--probe"), std::string::npos);
  for (const Json& line : page["lines"])
    EXPECT_EQ(line["text"].get<std::string>().find("--"), std::string::npos) << line;
  EXPECT_EQ(page["command"], "glasshead doctor mine --weights '1 0 0; .5 .5 0; .25 .25 .5'");
  const Json& row = page["tables"][0]["rows"][1];
  EXPECT_EQ(row["label"], "B");
  EXPECT_EQ(row["right"], false);
  EXPECT_EQ(row["cells"][0]["wrong"], true);
  EXPECT_EQ(row["cells"][0]["right"], "0.3302");
  EXPECT_EQ(row["cells"][2]["wrong"], false);
}

TEST(Diagnose, heads_side_by_side_are_put_apart) {
  // One query and one key: every head's output is its value.
  Json request{{"call", "doctor"},
               {"sources",
                {{{"name", "q"}, {"text", "1 2 3 4"}},
                 {{"name", "k"}, {"text", "1 1 1 1"}},
                 {{"name", "v"}, {"text", "5 6 7 8"}},
                 {{"name", "out"}, {"text", "5 6 7 8"}}}},
               {"roles", {{"q", 0}, {"k", 1}, {"v", 2}, {"out", 3}}},
               {"options", {{"heads", "2"}}},
               {"format", "page"}};
  const Json page = ask(request);
  EXPECT_EQ(page["diagnosis"]["verdict"], "right");
  EXPECT_EQ(page["shape"]["heads"], "2");
  EXPECT_EQ(page["shape"]["d_k"], "2");
  request["options"]["heads"] = "3";
  EXPECT_NE(why(request).find("no multiple of 3"), std::string::npos);
}

TEST(Diagnose, numbers_with_other_axes_are_read_where_their_shape_tells) {
  const auto file = [](const char* name, const std::vector<index_t>& shape,
                       const std::vector<double>& values) {
    return Json{{"name", name}, {"base64", npy_of(shape, values)}};
  };
  const std::vector<double> v{1, 2, 3, 4, 5, 6, 7, 8};  // [head, key, d]
  const std::vector<double> by_length{1, 2, 5, 6, 3, 4, 7, 8};
  // Each query sees its own position alone, so out is v.
  Json request{{"call", "sources"},
               {"sources",
                {file("q.npy", {1, 2, 2, 2}, {1, 0, 0, 1, 1, 1, 0, 1}),
                 file("k.npy", {1, 2, 2, 2}, {1, 1, 0, 1, 1, 0, 1, 1}),
                 file("v.npy", {1, 2, 2, 2}, v), file("x.npy", {1, 2, 2, 2}, by_length)}}};
  request["sources"][3] = file("x.npy", {1, 2, 4}, by_length);
  const Json read = ask(request)["tensors"][3];
  EXPECT_EQ(read["role"], "out");
  EXPECT_EQ(read["hint"], "");
  request["call"] = "doctor";
  request["roles"] = {{"q", 0}, {"k", 1}, {"v", 2}, {"out", 3}};
  request["options"] = {{"window", "0,0"}};
  Json diagnosis = ask(request);
  EXPECT_EQ(diagnosis["verdict"], "right");
  EXPECT_EQ(diagnosis["read"][0],
            "out as [batch, length, heads*size], since that is how its shape [1,2,4] fits");
  // Two tokens and two heads: of four axes the shape does not tell, so they are as they should be.
  request["sources"][3] = file("x.npy", {1, 2, 2, 2}, v);
  diagnosis = ask(request);
  EXPECT_EQ(diagnosis["verdict"], "right");
  EXPECT_FALSE(diagnosis.contains("read"));
  request["sources"][3] = file("x.npy", {1, 2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_NE(why(request).find("has shape [1,2,3]; these inputs give [2,2,2]"), std::string::npos);
}

TEST(Diagnose, numbers_by_their_name_are_as_a_files) {
  Json request = of_case("1 0 0; .5 .5 0; .25 .25 .5");
  const Json as_source = ask(request);
  request.erase("sources");
  request.erase("roles");
  request["claims"] = {{"weights", "1 0 0; .5 .5 0; .25 .25 .5"}};
  EXPECT_EQ(ask(request), as_source);
  request["claims"] = {{"weights", {{1, 0, 0}, {0.5, 0.5, 0}, {0.25, 0.25, 0.5}}}};
  EXPECT_NE(ask(request), as_source);  // exact, not rounded to two places
  request["decimals"] = 2;
  EXPECT_EQ(ask(request), as_source);
  request["roles"] = Json::object();
  request["claims"]["heads"] = "1";
  EXPECT_NE(why(request).find("claims.heads"), std::string::npos);
}

TEST(Diagnose, what_is_missing_or_wrong_is_said_by_its_name) {
  Json request = of_case("1 0 0; .5 .5 0; .25 .25 .5");
  request["options"] = {{"scale", "2"}};
  EXPECT_NE(why(request).find("given beside a case"), std::string::npos);
  request = of_case("1 0; 0 1");
  EXPECT_NE(why(request).find("weights"), std::string::npos);
  request = of_case("1 0 0; .5 .5 0; .25 .25 .5");
  request["roles"] = {{"weights", 1}};
  EXPECT_NE(why(request).find("roles.weights"), std::string::npos);
  request["roles"] = {{"weights", 0}, {"out", 0}};
  EXPECT_NE(why(request).find("the same numbers as"), std::string::npos);
  request["roles"] = Json::object();
  EXPECT_NE(why(request).find("their numbers"), std::string::npos);
  request.erase("case");
  EXPECT_NE(why(request).find("\"where\":\"q\""), std::string::npos);
  for (const auto& [key, text] :
       {std::pair("scale", "half"), std::pair("window", "1"), std::pair("causal", "middle"),
        std::pair("key_lengths", "2,x"), std::pair("rope", "all"), std::pair("heads", "0")}) {
    request["options"] = {{key, text}};
    EXPECT_NE(why(request).find(std::string("\"where\":\"") + key + "\""), std::string::npos)
        << key;
  }
}

TEST(Probe, is_a_file_that_reads_back) {
  const Json answer =
      ask({{"call", "probe"},
           {"shape", {{"q_len", "4"}, {"kv_len", "6"}, {"heads", "2"}, {"d_k", "4"}}},
           {"options", {{"causal", "end"}}},
           {"seed", "7"}});
  const auto bytes = from_base64(answer["file"].get<std::string>());
  ASSERT_TRUE(bytes.has_value());
  NamedTensors tensors;
  std::vector<Problem> problems;
  ASSERT_TRUE(parse_safetensors(*bytes, tensors, problems));
  ASSERT_EQ(tensors.size(), 4U);
  EXPECT_EQ(tensors[0].first, "q");
  EXPECT_EQ(tensors[0].second.shape, (std::vector<index_t>{1, 2, 4, 4}));
  EXPECT_EQ(tensors[1].second.shape, (std::vector<index_t>{1, 2, 6, 4}));
  EXPECT_EQ(answer["command"],
            "glasshead doctor --qkv probe.safetensors --out theirs.npy --causal=end");
  EXPECT_NE(why({{"call", "probe"}, {"shape", {{"q_len", "0"}}}}).find("q_len"), std::string::npos);
}

TEST(Sheet, a_blank_one_can_be_traced_and_grown) {
  const Json blank = ask({{"call", "sheet"}});
  EXPECT_TRUE(Json::parse(blank["case"].get<std::string>())["X"].size() == 3);
  const Json grown = ask({{"call", "sheet"},
                          {"case", blank["case"]},
                          {"edit", {{"set", {{{"matrix", "X"}, {"at", {0, 1}}, {"to", "0.50"}}}}}},
                          {"sizes", {{"rows", "4"}, {"d_model", "3"}}}});
  const std::string text = grown["case"];
  EXPECT_NE(text.find("\"X\":[[0,0.50,0],[0,0,0],[0,0,0],[0,0,0]]"), std::string::npos) << text;
  EXPECT_NE(text.find("\"W_Q\":[[1,0],[0,1],[0,0]]"), std::string::npos) << text;
  EXPECT_EQ(grown["tokens"], "A, B, C, D");
}

TEST(Sheet, q_k_v_are_those_that_x_gave) {
  const Json sheet = ask({{"call", "sheet"}, {"case", kCase}, {"kind", "qkv"}});
  const std::string text = sheet["case"];
  EXPECT_NE(text.find("\"q\":[[1,0],[0,1],[1,1]]"), std::string::npos) << text;
  EXPECT_NE(text.find("\"mask\":\"causal\""), std::string::npos) << text;
  EXPECT_EQ(sheet["keys"], "A, B, C");
}

TEST(Sheet, what_it_cannot_hold_is_refused) {
  EXPECT_NE(why({{"call", "sheet"}, {"sizes", {{"rows", "17"}}}}).find("rows"), std::string::npos);
  const Json paste{
      {"matrix", "X"}, {"at", {0, 0}}, {"sources", {{{"name", "p"}, {"text", "nan"}}}}};
  EXPECT_NE(why({{"call", "sheet"}, {"paste", paste}}).find("not finite"), std::string::npos);
  EXPECT_NE(
      why({{"call", "sheet"}, {"case", R"({"schema":"glasshead.case/1","X":[[1]],"blocks":[]})"}})
          .find("blocks"),
      std::string::npos);
  EXPECT_FALSE(why({{"call", "sheet"}, {"case", "{"}}).empty());
  EXPECT_FALSE(why({{"call", "sheet"}, {"case", R"({"X":[1,[2],"a"],"attention":[]})"}}).empty());
}

}  // namespace
}  // namespace glasshead::wasm
