// What the values of tokenizer.ggml.pre mean (llama.cpp, src/llama-vocab.cpp).
#include <array>

#include "text/sources.h"

namespace glasshead::text {
namespace {

struct Names {
  PreRule rule;
  std::string_view names;  // with a space around each
};

constexpr std::array kRules = {
    Names{{.pre = Pre::gpt2},
          " gpt-2 phi-2 mpt olmo jais exaone4 modern-bert gigachat mellum a.x-4.0 jina-es jina-de "
          "jina-v2-es jina-v2-de trillion granite-docling "},
    Names{{.pre = Pre::gpt2, .adds_bos = true, .adds_eos = true},
          " roberta-bpe jina-v1-en jina-v2-code "},
    Names{{.pre = Pre::digits_gpt2},
          " smollm starcoder refact command-r codeshell exaone minerva-7b mellum2 "},
    Names{{.pre = Pre::words_3, .ignores_merges = true, .adds_bos = true},
          " llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano "},
    Names{{.pre = Pre::words_3}, " dbrx smaug-bpe glm4 chatglm-bpe "},
    // Qwen's own tokenizer composes first (NFC), which the file does not say.
    Names{{.pre = Pre::words_1, .composes = true}, " qwen2 "},
    Names{{.pre = Pre::words_1},
          " deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2 "},
    Names{{.pre = Pre::words_1_marks, .composes = true}, " qwen35 "},
    Names{{.pre = Pre::cased_1, .ignores_merges = true, .adds_bos = true}, " tekken "},
    Names{{.pre = Pre::cased_3}, " gpt-4o llama4 kanana2 talkie minimax-m2 "},
    Names{{.pre = Pre::falcon}, " falcon "},
};

}  // namespace

std::optional<PreRule> find_pre_rule(std::string_view name) {
  if (name.empty() || name.find(' ') != std::string_view::npos) return std::nullopt;
  const std::string wanted = " " + std::string(name) + " ";
  for (const Names& row : kRules)
    if (row.names.find(wanted) != std::string_view::npos) return row.rule;
  return std::nullopt;
}

}  // namespace glasshead::text
