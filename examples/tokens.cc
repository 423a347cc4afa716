// A text to token ids and back: example_tokens FOLDER TEXT. Beside each id stands the part of the
// text that it covers.
#include <cstdio>
#include <exception>
#include <string>

#include "glasshead/tokenizer.h"

using namespace glasshead;

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "tests/data/tokenizers/llama";
  const std::string text = argc > 2 ? argv[2] : "Attention, naïve café";
  if (!Tokenizer::is_available()) {
    std::puts("configured without tokenizers");
    return 0;
  }
  const Tokenizer words = Tokenizer::load(folder);
  const Encoding encoding = words.encode(text);
  for (std::size_t n = 0; n < encoding.ids.size(); ++n) {
    const auto [begin, end] = encoding.bytes[n];
    const std::string part =
        text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    std::printf("%4lld  %s\n", static_cast<long long>(encoding.ids[n]), part.c_str());
  }
  Utf8Stream stream(words);
  for (const index_t id : encoding.ids) std::fputs(stream.push(id).c_str(), stdout);
  std::puts(stream.finish().c_str());
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
