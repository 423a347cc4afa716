"""Writes a model as llama.cpp's converter does, with the gguf package: its names, its keys, and its changes to the
numbers (q and k rows permuted for adjacent rope pairs, Gemma's norms stored as 1 + w, GPT-2's matrices transposed,
rope factors as tensors). Matrices keep the type of the checkpoint, all else is F32; both hold the same numbers."""

from __future__ import annotations

import math
import pathlib
import re
from typing import Any

import gguf
import numpy as np
import torch

from golden.specs import Spec

KIND = gguf.GGMLQuantizationType
ARCHITECTURES = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}


def permute(rows: np.ndarray, heads: int) -> np.ndarray:
    """Half-split pairs (i, i + hd/2) of every head to adjacent ones (2i, 2i + 1)."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(rows.shape)


def head_dim(config: Any) -> int:
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def gguf_name(names: gguf.TensorNameMap, name: str) -> str:
    found = names.get_name(name, try_suffixes=(".weight", ".bias"))
    if found is None:
        raise ValueError(f"gguf has no name for {name}")
    return found


def converted(spec: Spec, config: Any, name: str, value: np.ndarray) -> np.ndarray:
    if spec.gguf in ("llama", "smollm3") and (part := re.search(r"self_attn\.([qk])_proj", name)):
        return permute(value, config.num_attention_heads if part[1] == "q" else config.num_key_value_heads)
    if spec.gguf.startswith("gemma") and name.endswith("norm.weight"):
        return value + 1
    if spec.gguf == "gpt2" and re.search(r"\.(c_attn|c_proj|c_fc)\.weight$", name):
        return value.T
    return value


def common_keys(writer: gguf.GGUFWriter, spec: Spec, config: Any) -> None:
    writer.add_name(f"glasshead test {spec.name}")
    writer.add_vocab_size(config.vocab_size)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)


def decoder_keys(writer: gguf.GGUFWriter, spec: Spec, config: Any) -> None:
    common_keys(writer, spec, config)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rope = config.rope_parameters.get("full_attention", config.rope_parameters)
    writer.add_rope_freq_base(rope["rope_theta"])
    width = head_dim(config)
    if spec.gguf == "phi3":
        writer.add_rope_dimension_count(int(width * rope.get("partial_rotary_factor", 1.0)))
        writer.add_rope_scaling_orig_ctx_len(config.original_max_position_embeddings)
        writer.add_sliding_window(config.sliding_window or 0)
        scale = config.max_position_embeddings / config.original_max_position_embeddings
        writer.add_rope_scaling_attn_factors(
            math.sqrt(1 + math.log(scale) / math.log(config.original_max_position_embeddings))
        )
    else:
        writer.add_key_length(width)
        writer.add_value_length(width)
    if spec.gguf in ("llama", "smollm3"):
        writer.add_rope_dimension_count(width)
    if spec.gguf.startswith("gemma") or config.model_type == "mistral":
        writer.add_sliding_window(config.sliding_window)
    if spec.gguf == "gemma3":
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config.layer_types])
        writer.add_rope_freq_base_swa(config.rope_parameters["sliding_attention"]["rope_theta"])
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if spec.gguf == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)


def gpt2_keys(writer: gguf.GGUFWriter, spec: Spec, config: Any) -> None:
    common_keys(writer, spec, config)
    writer.add_context_length(config.n_positions)
    writer.add_feed_forward_length(config.n_inner)
    writer.add_layer_norm_eps(config.layer_norm_epsilon)


def bert_keys(writer: gguf.GGUFWriter, spec: Spec, config: Any) -> None:
    common_keys(writer, spec, config)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_layer_norm_eps(config.layer_norm_eps)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_token_type_count(config.type_vocab_size)


def t5_keys(writer: gguf.GGUFWriter, spec: Spec, config: Any) -> None:
    common_keys(writer, spec, config)
    writer.add_context_length(512)
    writer.add_decoder_block_count(config.num_decoder_layers)
    writer.add_feed_forward_length(config.d_ff)
    writer.add_key_length(config.d_kv)
    writer.add_value_length(config.d_kv)
    writer.add_layer_norm_eps(config.layer_norm_epsilon)
    writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)
    writer.add_relative_attn_buckets_count(config.relative_attention_num_buckets)
    writer.add_decoder_start_token_id(config.decoder_start_token_id)


KEYS = {"gpt2": gpt2_keys, "bert": bert_keys, "t5": t5_keys}


def rope_tensors(spec: Spec, config: Any) -> dict[str, np.ndarray]:
    """rope_freqs divides the frequencies (llama3); Phi-3 has a pair to choose from."""
    rope = getattr(config, "rope_parameters", None) or {}
    kind = rope.get("rope_type")
    if kind == "longrope":
        return {
            f"rope_factors_{which}.weight": np.array(rope[f"{which}_factor"], np.float32) for which in ("long", "short")
        }
    if kind != "llama3":
        return {}
    factors = []
    for i in range(head_dim(config) // 2):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (2 * i / head_dim(config))
        turns = rope["original_max_position_embeddings"] / wavelength
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        smooth = min(max((turns - low) / (high - low), 0.0), 1.0)
        factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return {"rope_freqs.weight": np.array(factors, np.float32)}


def names_of(spec: Spec, config: Any) -> gguf.TensorNameMap:
    layers = max(config.num_hidden_layers, getattr(config, "num_decoder_layers", 0) or 0)
    return gguf.get_tensor_name_map(ARCHITECTURES[spec.gguf], layers)


def write(
    path: pathlib.Path, spec: Spec, model: Any, quantised: dict[str, tuple[KIND, np.ndarray]] | None = None
) -> None:
    """`quantised`: blocks to be written for a parameter instead of its numbers, rows already permuted."""
    config = model.config
    writer = gguf.GGUFWriter(path, spec.gguf)
    KEYS.get(spec.gguf, decoder_keys)(writer, spec, config)
    names = names_of(spec, config)
    for name, parameter in model.named_parameters():
        if name.startswith("pooler."):
            continue
        target = gguf_name(names, name)
        if quantised and name in quantised:
            kind, blocks = quantised[name]
            writer.add_tensor(target, blocks, raw_dtype=kind)
            continue
        value = np.ascontiguousarray(converted(spec, config, name, parameter.detach().numpy()), np.float32)
        if value.ndim == 1 or spec.stored == "F32":
            writer.add_tensor(target, value)
        elif spec.stored == "F16":
            writer.add_tensor(target, value.astype(np.float16))
        else:
            bits = torch.from_numpy(value).to(torch.bfloat16).view(torch.uint8).numpy()
            writer.add_tensor(target, bits, raw_dtype=KIND.BF16)
    for name, value in rope_tensors(spec, config).items():
        writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
