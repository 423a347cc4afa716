"""What transformers and llama.cpp compute with real weights: small enough to keep, exact enough to compare with.

The weights themselves are fetched (tools/fetch_models.py), or lie where tests/data/models/README.md says."""

from __future__ import annotations

import itertools
import pathlib
from typing import Any

import gguf
import numpy as np
import tokenizers
import torch
import transformers

from golden import reference
from golden.files import write_expected, write_json
from golden.prompts import PROMPTS, SENTENCES

Arrays = dict[str, np.ndarray]
REACTION = "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F"
REACTION_IDS = [
    *(12, 16, 16, 17, 16, 18, 34, 24, 16, 23, 17, 16, 18, 16, 22, 19, 24, 27, 15, 20, 15, 15, 15, 25, 15, 20, 27, 24),
    *(19, 22, 16, 17, 36, 18, 36, 24, 51, 24, 51, 29, 16, 16, 17, 16, 18, 34, 15, 20, 25, 15, 15, 15, 15, 20, 27, 13),
]
# Product token: reactant token, as the package's README maps the reaction; read in layer 10, head 5.
ATOM_MAP = {40: 1, 41: 2, 43: 4, 45: 6, 46: 24, 48: 23, 49: 22, 50: 21, 51: 20, 52: 18, 54: 17}
TOP = 20


def load_wide(cls: Any, folder: pathlib.Path) -> Any:
    """The checkpoint in float64 throughout. Files are read outside wide(), where float32 is float32."""
    narrow = cls.from_pretrained(folder, dtype=torch.float32)
    with reference.wide():
        model = cls._from_config(narrow.config, attn_implementation="eager", dtype=torch.float64).eval()
    model.load_state_dict({name: value.double() for name, value in narrow.state_dict().items()})
    return model


def stories(folder: pathlib.Path, out: pathlib.Path) -> None:
    """260 thousand parameters: everything for the first 41 tokens, and 256 greedy ones from BOS alone."""
    model = load_wide(transformers.LlamaForCausalLM, folder)
    with reference.wide():
        more, found = reference.greedy(model, {"input_ids": torch.tensor([[1]])}, 256, -1)
        ids = [1, *found[:40]]
        states = reference.run(model, {"input_ids": torch.tensor([ids])})
    arrays = {f"0.{name}": reference.numbers(value) for name, value in states.items()}
    arrays |= {"0.ids": np.array(ids, np.int32), "1.ids": np.array([1], np.int32)}
    arrays |= {f"1.{name}": value for name, value in more.items()}
    write_expected(out / "stories260K.safetensors", arrays)


def reaction(folder: pathlib.Path, out: pathlib.Path) -> None:
    """The README's reaction: layer 10's weights, the logits, and the map that head 5 is."""
    model = load_wide(transformers.AlbertForMaskedLM, folder)
    with reference.wide():
        states = reference.run(model, {"input_ids": torch.tensor([REACTION_IDS])})
    kept = ("weights.10", "out", "logits", "in.0")
    arrays = {f"0.{name}": reference.numbers(states[name]) for name in kept}
    arrays["0.ids"] = np.array(REACTION_IDS, np.int32)
    head = arrays["0.weights.10"][5]
    for product, reactant in ATOM_MAP.items():
        assert head[product].argmax() == reactant, (product, head[product].argmax())
    write_expected(out / "rxnmapper-albert.safetensors", arrays)
    record = {"reaction": REACTION, "layer": 10, "head": 5, "query_to_key": [list(pair) for pair in ATOM_MAP.items()]}
    write_json(out / "rxnmapper-albert.json", record)


def minilm(folder: pathlib.Path, out: pathlib.Path) -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    arrays: Arrays = {}
    model = load_wide(transformers.BertModel, folder)
    with reference.wide():
        for text, sentence in enumerate(SENTENCES):
            ids = tokenizer.encode(sentence).ids
            inputs = {"input_ids": torch.tensor([ids]), "token_type_ids": torch.zeros(1, len(ids), dtype=torch.long)}
            states = reference.run(model, inputs)
            arrays[f"{text}.ids"] = np.array(ids, np.int32)
            arrays[f"{text}.types"] = np.zeros(len(ids), np.int32)
            arrays[f"{text}.embedding"] = reference.numbers(states["embedding"])
            if text == 0:
                arrays |= {f"0.{n}": reference.numbers(v) for n, v in states.items() if "in." in n or "weights" in n}
    write_expected(out / "minilm.safetensors", arrays)
    write_json(out / "minilm.json", {"sentences": SENTENCES})


def smollm_tokenizer(path: pathlib.Path) -> tokenizers.Tokenizer:
    """From the file's own tokens and merges: digits one by one, then byte-level BPE."""
    fields = gguf.GGUFReader(path).fields

    def strings(key: str) -> list[str]:
        field = fields[f"tokenizer.ggml.{key}"]
        return [bytes(field.parts[i]).decode() for i in field.data]

    vocab = {token: i for i, token in enumerate(strings("tokens"))}
    merges = [tuple(merge.split(" ", 1)) for merge in strings("merges")]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, merges))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.Digits(individual_digits=True), tokenizers.pre_tokenizers.ByteLevel(False)]
    )
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    return tokenizer


def top(logits: torch.Tensor) -> tuple[list[int], list[float]]:
    """The likeliest tokens and their log-probabilities."""
    best = torch.topk(torch.log_softmax(logits.double(), -1), TOP)
    return best.indices.tolist(), best.values.tolist()


def continue_greedily(model: Any, ids: list[int], steps: int) -> tuple[list[int], list[Any]]:
    cache, given, found, tops = None, torch.tensor([ids]), [], []
    for _ in range(steps):
        with torch.no_grad():
            out = model(input_ids=given, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        tops.append(top(out.logits[0, -1]))
        found.append(tops[-1][0][0])
        given = torch.tensor([[found[-1]]])
    return found, tops


def dequantised(path: pathlib.Path) -> pathlib.Path:
    """The same file with its numbers as f32, so that llama.cpp does not round activations to 8 bits to multiply."""
    copy = path.with_suffix(".f32.gguf")
    reader, writer = gguf.GGUFReader(path), gguf.GGUFWriter(copy, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        kind, items = field.types[0], field.types[-1]
        writer.add_key_value(
            field.name, field.contents(), kind, sub_type=items if kind == gguf.GGUFValueType.ARRAY else None
        )
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return copy


def llama_cpp(path: pathlib.Path, prompts: list[list[int]], steps: int) -> list[tuple[list[int], list[Any]]]:
    """In f32 throughout: weights, cache, and attention without its fused kernel, which rounds keys to f16. A
    continuation stops at the token that ends a turn."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = 256
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.cache_type_k = parameters.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    server = xllamacpp.Server(parameters)
    results = []
    for ids in prompts:
        request = {"prompt": ids, "max_tokens": steps, "temperature": 0.0, "logprobs": TOP, "cache_prompt": False}
        (choice,) = server.handle_completions({**request, "samplers": ["temperature"]})["choices"]
        seen = choice["logprobs"]["content"]
        tops = [([t["id"] for t in s["top_logprobs"]], [t["logprob"] for t in s["top_logprobs"]]) for s in seen]
        results.append(([s["id"] for s in seen], tops))
    return results


def smollm2(folder: pathlib.Path, out: pathlib.Path, steps: int = 64) -> None:
    """64 tokens each of ten texts, and the 64 that follow: by transformers and by llama.cpp, both in float32 with the
    file's numbers dequantised. (From the quantised file llama.cpp multiplies with activations of 8 bits: that moves the
    log-probabilities of likely tokens by 0.2 to 0.8, and eight of the ten texts part from both of these.)"""
    path = folder / "SmolLM2-135M-Instruct.Q4_1.gguf"
    tokenizer = smollm_tokenizer(path)
    prompts = [tokenizer.encode(text).ids[:64] for text in PROMPTS]
    assert all(len(ids) == 64 for ids in prompts), [len(ids) for ids in prompts]
    copy = dequantised(path)
    runs = {"llama.cpp": llama_cpp(copy, prompts, steps)}
    copy.unlink()
    model = transformers.LlamaForCausalLM.from_pretrained(
        folder, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    runs["transformers"] = [continue_greedily(model, ids, steps) for ids in prompts]
    arrays: Arrays = {}
    for text, ids in enumerate(prompts):
        arrays[f"{text}.ids"] = np.array(ids, np.int32)
        for engine, results in runs.items():
            found, tops = results[text]
            arrays[f"{text}.{engine}.greedy"] = np.array(found, np.int32)
            arrays[f"{text}.{engine}.top_ids"] = np.array([t[0] for t in tops], np.int32)
            arrays[f"{text}.{engine}.top_logprobs"] = np.array([t[1] for t in tops], np.float32)
    with torch.no_grad():
        states = reference.run(model, {"input_ids": torch.tensor([prompts[0]])})
    rows = torch.stack([states[f"weights.{n}"][0, :, -1] for n in range(30)])
    arrays["0.last_rows"] = rows.to(torch.float32).numpy()  # [layers, heads, keys] of the last query
    arrays["0.logits_last"] = states["logits"][0, -1].to(torch.float32).numpy()
    write_expected(out / "smollm2.safetensors", arrays)
    pairs = [zip(*(run[t][0] for run in runs.values()), strict=False) for t in range(len(prompts))]
    same = [sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pair)) for pair in pairs]
    record = {
        "texts": [tokenizer.decode(ids) for ids in prompts],
        "agree_for": same,
        "continuations": {engine: [tokenizer.decode(r[0]) for r in results] for engine, results in runs.items()},
    }
    write_json(out / "smollm2.json", record)
    print("smollm2: transformers and llama.cpp agree for", same, "tokens", flush=True)


def weights_of(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted([*folder.glob("*.safetensors"), *folder.glob("*.gguf")])


MAKERS = {"stories260K": stories, "rxnmapper-albert": reaction, "minilm": minilm, "smollm2": smollm2}
