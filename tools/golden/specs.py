"""Which tiny checkpoints are made, and what each is there to catch.

Sizes are chosen so that no two that could be confused are equal: head_dim is not d/heads where the family has its own
field, three key heads serve six query heads, feed-forward and vocabulary are odd, epsilon and theta are far from
every family's default, windows and rope scalings are passed by the texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

Config = dict[str, Any]


@dataclasses.dataclass
class Spec:
    name: str
    model: str  # the class of transformers
    config: Config
    exercises: str
    kind: str = "decoder"  # encoder, encoder-decoder, embedding
    lengths: tuple[int, ...] = (12, 7)
    targets: tuple[int, ...] = ()  # lengths of the decoder's texts
    stored: str = "BF16"
    seed: int = 1
    # What a published file has and save_pretrained does not write, or the other way round.
    edit: Callable[[Config], None] | None = None  # of config.json
    prefix: str = ""  # dropped from every tensor's name
    extra: dict[str, str] = dataclasses.field(default_factory=dict)  # tensors a loader must ignore, or find equal
    rename: tuple[tuple[str, str], ...] = ()
    shards: int = 1
    context: int = 0  # tokens to be made room for, where rope depends on it
    short: tuple[int, tuple[int, ...]] | None = None  # a second context and its texts' lengths
    greedy: int = 8
    gguf: str = ""  # llama.cpp's architecture: an F32 twin is written
    untie: str = ""  # a tensor that transformers ties, untied here
    ids: Callable[[int, int], list[int]] | None = None  # (text, length), instead of random ids


def decoder(**more: Any) -> Config:
    return {
        "vocab_size": 67,
        "hidden_size": 24,
        "intermediate_size": 35,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 3,
        "head_dim": 8,
        "rms_norm_eps": 1e-2,
        "max_position_embeddings": 64,
        "rope_parameters": {"rope_type": "default", "rope_theta": 100.0},
        "tie_word_embeddings": False,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **more,
    }


def encoder(**more: Any) -> Config:
    return {
        "vocab_size": 67,
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "intermediate_size": 37,
        "max_position_embeddings": 20,
        "type_vocab_size": 2,
        "layer_norm_eps": 1e-2,
        "pad_token_id": 0,
        **more,
    }


def t5(**more: Any) -> Config:
    return {
        "vocab_size": 67,
        "d_model": 24,
        "d_kv": 5,
        "d_ff": 37,
        "num_layers": 2,
        "num_decoder_layers": 3,
        "num_heads": 4,
        "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 20,
        "layer_norm_epsilon": 1e-2,
        "decoder_start_token_id": 0,
        "pad_token_id": 0,
        "eos_token_id": 1,
        **more,
    }


def rope(kind: str, **more: Any) -> Config:
    return {"rope_type": kind, "rope_theta": 100.0, **more}


def published_rope(spelling: str) -> Callable[[Config], None]:
    """rope_theta and rope_scaling side by side, as files from before rope_parameters have them."""

    def edit(config: Config) -> None:
        parameters = config.pop("rope_parameters")
        config["rope_theta"] = parameters.pop("rope_theta")
        kind = parameters.pop("rope_type")
        config["rope_scaling"] = None if kind == "default" else {spelling: kind, **parameters}
        config["torch_dtype"] = config.pop("dtype")

    return edit


def published_qwen2(config: Config) -> None:
    published_rope("rope_type")(config)
    config.pop("layer_types")


def published_gemma(config: Config) -> None:
    published_rope("rope_type")(config)
    config["hidden_act"] = "gelu"


def published_gemma2(config: Config) -> None:
    published_rope("rope_type")(config)
    config.pop("layer_types")


def published_gemma3(config: Config) -> None:
    parameters = config.pop("rope_parameters")
    config["rope_theta"] = parameters["full_attention"]["rope_theta"]
    config["rope_local_base_freq"] = parameters["sliding_attention"]["rope_theta"]
    config["rope_scaling"] = {"rope_type": "linear", "factor": parameters["full_attention"]["factor"]}
    config.pop("layer_types")
    config["sliding_window_pattern"] = 3


def published_phi3(config: Config) -> None:
    published_rope("type")(config)
    config["partial_rotary_factor"] = 0.75


def published_longrope(config: Config) -> None:
    parameters = config.pop("rope_parameters")
    config["rope_theta"] = parameters["rope_theta"]
    config["original_max_position_embeddings"] = parameters["original_max_position_embeddings"]
    config["rope_scaling"] = {
        "type": "longrope",
        "long_factor": parameters["long_factor"],
        "short_factor": parameters["short_factor"],
    }


def untied_t5(config: Config) -> None:
    config["tie_word_embeddings"] = False


def pads_inside(text: int, length: int) -> list[int]:
    """The id of padding (1) as a token like any other: its position stays at the padding's own."""
    ids = [(7 * i * i + 11 * i + 5 * text) % 60 + 5 for i in range(length)]
    ids[3] = ids[5] = 1
    return ids


LLAMA = [
    Spec(
        "llama",
        "LlamaForCausalLM",
        decoder(),
        "RoPE half-split, GQA, gated silu, untied head, head_dim of its own",
        stored="F32",
        gguf="llama",
    ),
    Spec(
        "llama-biased",
        "LlamaForCausalLM",
        decoder(attention_bias=True, mlp_bias=True, tie_word_embeddings=True, num_key_value_heads=2),
        "biases on q, k, v, o and the feed-forward, tied head, rope_theta as published",
        stored="F16",
        edit=published_rope("rope_type"),
        gguf="llama",
    ),
    Spec(
        "llama-linear",
        "LlamaForCausalLM",
        decoder(rope_parameters=rope("linear", factor=2.5)),
        "linear rope scaling in the older spelling",
        edit=published_rope("type"),
    ),
    Spec(
        "llama-llama3",
        "LlamaForCausalLM",
        decoder(
            head_dim=10,
            rope_parameters=rope(
                "llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=40
            ),
        ),
        "llama3 rope scaling: frequencies in all three ranges",
        edit=published_rope("rope_type"),
        gguf="llama",
    ),
    Spec(
        "llama-yarn",
        "LlamaForCausalLM",
        decoder(
            head_dim=10,
            rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=8, beta_fast=2.0, beta_slow=0.1),
        ),
        "yarn rope scaling and its attention factor, past the original length",
    ),
    Spec(
        "llama-dynamic",
        "LlamaForCausalLM",
        decoder(rope_parameters=rope("dynamic", factor=2.0)),
        "dynamic rope scaling within the limit: as without",
        edit=published_rope("type"),
    ),
    Spec(
        "mistral",
        "MistralForCausalLM",
        decoder(sliding_window=3),
        "window of 3 keys on every layer",
        edit=published_rope("rope_type"),
        gguf="llama",
    ),
    Spec(
        "smollm3",
        "SmolLM3ForCausalLM",
        decoder(num_hidden_layers=3, head_dim=4, no_rope_layers=[1, 0, 1], tie_word_embeddings=True),
        "a layer without rope in the middle",
    ),
    Spec(
        "smollm3-plain",
        "SmolLM3ForCausalLM",
        decoder(num_hidden_layers=4, head_dim=4, tie_word_embeddings=True),
        "every fourth layer without rope, which neither file says",
        gguf="smollm3",
    ),
]

OTHER_DECODERS = [
    Spec(
        "gpt2",
        "GPT2LMHeadModel",
        {
            "vocab_size": 67,
            "n_embd": 30,
            "n_layer": 2,
            "n_head": 6,
            "n_inner": 37,
            "n_positions": 24,
            "layer_norm_epsilon": 1e-2,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        "packed c_attn [in, out], learned positions, names without a prefix, causal masks stored as weights",
        stored="F32",
        prefix="transformer.",
        extra={"h.0.attn.bias": "mask", "h.1.attn.bias": "mask"},
        gguf="gpt2",
    ),
    Spec(
        "gpt2-scaled",
        "GPT2LMHeadModel",
        {
            "vocab_size": 67,
            "n_embd": 24,
            "n_layer": 3,
            "n_head": 6,
            "n_positions": 24,
            "layer_norm_epsilon": 1e-2,
            "scale_attn_by_inverse_layer_idx": True,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        "scores divided by the layer's number, n_inner absent",
    ),
    Spec(
        "qwen2",
        "Qwen2ForCausalLM",
        decoder(
            use_sliding_window=True,
            sliding_window=3,
            max_window_layers=1,
            num_hidden_layers=3,
            head_dim=4,
            tie_word_embeddings=True,
        ),
        "bias on q, k, v alone; a window from max_window_layers on; two shards",
        edit=published_qwen2,
        shards=2,
    ),
    Spec(
        "qwen2-full",
        "Qwen2ForCausalLM",
        decoder(use_sliding_window=False, sliding_window=3, max_window_layers=1, head_dim=4),
        "a window in the configuration that use_sliding_window switches off",
        gguf="qwen2",
    ),
    Spec("qwen3", "Qwen3ForCausalLM", decoder(), "RMS norm of q and k per head before rope", gguf="qwen3"),
    Spec(
        "gemma",
        "GemmaForCausalLM",
        decoder(num_key_value_heads=1, tie_word_embeddings=True),
        "norms times 1 + w, embeddings times sqrt(d), one key head, hidden_act gelu that means tanh, a stored copy "
        "of the tied head",
        edit=published_gemma,
        extra={"lm_head.weight": "model.embed_tokens.weight"},
    ),
    Spec(
        "gemma2",
        "Gemma2ForCausalLM",
        decoder(
            attn_logit_softcapping=2.0,
            final_logit_softcapping=3.0,
            sliding_window=3,
            query_pre_attn_scalar=5,
            tie_word_embeddings=True,
        ),
        "four norms, both softcaps, a window on the even layers, a scale of its own",
        edit=published_gemma2,
    ),
    Spec(
        "gemma2-plain",
        "Gemma2ForCausalLM",
        decoder(
            attn_logit_softcapping=2.0,
            final_logit_softcapping=3.0,
            sliding_window=3,
            query_pre_attn_scalar=8,
            num_hidden_layers=3,
            tie_word_embeddings=True,
        ),
        "scale 1/sqrt(head_dim), which a GGUF does not say",
        gguf="gemma2",
    ),
    Spec(
        "gemma3",
        "Gemma3ForCausalLM",
        decoder(
            num_hidden_layers=4,
            sliding_window=3,
            query_pre_attn_scalar=3,
            tie_word_embeddings=True,
            layer_types=["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
            rope_parameters={
                "full_attention": rope("linear", factor=4.0),
                "sliding_attention": {"rope_type": "default", "rope_theta": 30.0},
            },
        ),
        "q and k norms times 1 + w, every third layer full with a theta and scaling of its own",
        edit=published_gemma3,
    ),
    Spec(
        "gemma3-plain",
        "Gemma3ForCausalLM",
        decoder(
            num_hidden_layers=3,
            sliding_window=3,
            query_pre_attn_scalar=8,
            tie_word_embeddings=True,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            rope_parameters={
                "full_attention": rope("linear", factor=4.0),
                "sliding_attention": {"rope_type": "default", "rope_theta": 30.0},
            },
        ),
        "scores scaled by the head's size, the one scale that a GGUF knows; which layers are full, named one by one",
        gguf="gemma3",
    ),
    Spec(
        "phi3",
        "Phi3ForCausalLM",
        decoder(
            hidden_size=48, head_dim=None, sliding_window=5, rope_parameters=rope("default", partial_rotary_factor=0.75)
        ),
        "packed qkv and gate_up, rope on three quarters of a head, window",
        edit=published_phi3,
    ),
    Spec(
        "phi3-longrope",
        "Phi3ForCausalLM",
        decoder(
            hidden_size=48,
            head_dim=None,
            max_position_embeddings=64,
            original_max_position_embeddings=16,
            rope_parameters=rope(
                "longrope",
                original_max_position_embeddings=16,
                long_factor=[1.5, 2.25, 3.5, 5.0],
                short_factor=[1.0, 1.25, 1.125, 1.5],
            ),
        ),
        "long and short factors by the context asked for, the attention factor of both",
        edit=published_longrope,
        lengths=(19, 18),
        context=64,
        short=(16, (12, 7)),
        gguf="phi3",
        seed=2,
    ),
]

ENCODERS = [
    Spec(
        "bert",
        "BertForMaskedLM",
        encoder(),
        "post-norm, token types, tied decoder with its transform",
        kind="encoder",
        stored="F32",
    ),
    Spec(
        "bert-legacy",
        "BertForMaskedLM",
        encoder(hidden_act="gelu_new"),
        "norms named gamma and beta, as the oldest files have them; stored copies of the tied decoder",
        kind="encoder",
        rename=(("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")),
        extra={
            "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
            "cls.predictions.decoder.bias": "cls.predictions.bias",
        },
    ),
    Spec(
        "minilm",
        "BertModel",
        encoder(),
        "names without a prefix, an unused pooler, stored position ids; the mean over the tokens, normalised",
        kind="embedding",
        extra={"embeddings.position_ids": "positions"},
        gguf="bert",
    ),
    Spec(
        "roberta",
        "RobertaForMaskedLM",
        encoder(type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2),
        "positions from pad_id + 1, the padding's id inside a text",
        kind="encoder",
        ids=pads_inside,
    ),
    Spec(
        "distilbert",
        "DistilBertForMaskedLM",
        {"vocab_size": 67, "dim": 24, "n_layers": 2, "n_heads": 6, "hidden_dim": 37, "max_position_embeddings": 20},
        "no token types; the vocabulary's head of three parts",
        kind="encoder",
    ),
    Spec(
        "albert",
        "AlbertForMaskedLM",
        encoder(embedding_size=13, num_hidden_layers=3, inner_group_num=1),
        "one layer run three times, factorised embeddings, gelu_new",
        kind="encoder",
    ),
]

T5 = [
    Spec(
        "t5",
        "T5ForConditionalGeneration",
        t5(),
        "relative buckets past their last distance, tied head scaled by 1/sqrt(d), relu, d_kv of its own",
        kind="encoder-decoder",
        lengths=(40, 23),
        targets=(9, 6),
        stored="F32",
        seed=6,
    ),
    Spec(
        "t5-plain",
        "T5ForConditionalGeneration",
        t5(relative_attention_max_distance=128),
        "version 1.0 as a GGUF has it: no head of its own, so scaled; the distance of 128",
        kind="encoder-decoder",
        lengths=(30, 23),
        targets=(9, 6),
        gguf="t5",
        seed=3,
    ),
    Spec(
        "t5-v1_1",
        "T5ForConditionalGeneration",
        t5(feed_forward_proj="gated-gelu"),
        "gated gelu_new, a head of its own, unscaled",
        kind="encoder-decoder",
        lengths=(40, 23),
        targets=(9, 6),
        edit=untied_t5,
        untie="lm_head.weight",
        seed=6,
    ),
    Spec(
        "t5-flan",
        "T5ForConditionalGeneration",
        # untied from the start, so that the decoder's output is not scaled either: a GGUF could not say that it is
        t5(feed_forward_proj="gated-gelu", relative_attention_max_distance=128, tie_word_embeddings=False),
        "the distance of 128 that a GGUF does not say; an output that is not scaled",
        kind="encoder-decoder",
        lengths=(30, 23),
        targets=(9, 6),
        edit=untied_t5,
        untie="lm_head.weight",
        gguf="t5",
        seed=2,
    ),
]

SPECS = [*LLAMA, *OTHER_DECODERS, *ENCODERS, *T5]
