// A text's vector by its first token, where the folder asks for that.
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "model/parity.h"

namespace glasshead {
namespace {

namespace fs = std::filesystem;

// The tiny encoder's folder, with what a sentence model has beside it.
class FirstToken : public testing::Test {
 protected:
  FirstToken() {
    std::string name = testing::TempDir() + "glasshead-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    fs::copy(kFrom, folder_, fs::copy_options::recursive);
    fs::create_directory(folder_ / "1_Pooling");
    std::ofstream(folder_ / "modules.json")
        << R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
               {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])";
    std::ofstream(folder_ / "1_Pooling/config.json") << R"({"pooling_mode_cls_token": true})";
  }
  ~FirstToken() override { fs::remove_all(folder_); }

  const std::string kFrom = GLASSHEAD_SOURCE_DIR "/tests/data/models/minilm";
  fs::path folder_;
};

TEST_F(FirstToken, is_the_vector_of_a_text) {
  const NamedTensors expected = read_safetensors(kFrom + "/expected.safetensors");
  Session session(Model::load(folder_.string()));
  std::vector<Session::Text> texts(2);
  for (std::size_t t = 0; t < texts.size(); ++t) {
    const std::string prefix = std::to_string(t) + ".";
    texts[t].ids = parity::ids_of(parity::get(expected, prefix + "ids"));
    texts[t].segments = parity::ids_of(parity::get(expected, prefix + "types"));
  }
  const Tensor<float, 2> plain = session.embed(texts, false), unit = session.embed(texts, true);
  for (index_t t = 0; t < 2; ++t) {
    // transformers' last layer, of which the first row counts; the fixtures' tolerance of states.
    const FileTensor& out = parity::get(expected, std::to_string(t) + ".out");
    double squares = 0;
    for (index_t e = 0; e < out.shape[1]; ++e) squares += out.load(e) * out.load(e);
    for (index_t e = 0; e < out.shape[1]; ++e) {
      EXPECT_NEAR(plain(t, e), out.load(e), 2e-4) << t << ", " << e;
      EXPECT_NEAR(unit(t, e), out.load(e) / std::sqrt(squares), 2e-4) << t << ", " << e;
    }
  }
}

}  // namespace
}  // namespace glasshead
