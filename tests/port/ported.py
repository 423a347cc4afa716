"""A port of Llama-like models and of GPT-2 to NumPy that can be made wrong: `llama(folder, ids, *mistakes)`.

Written from the models' papers alone and sharing nothing with the library. What it keeps has the library's names of
places. A mistake is one of the words below, each the way ports get it wrong.
"""
import json
import math
import struct

import numpy as np

DTYPES = {"F32": np.float32, "F16": np.float16, "I32": np.int32, "I64": np.int64}


def read(path):
    """A .safetensors file as arrays in f64."""
    with open(path, "rb") as file:
        blob = file.read()
    (size,) = struct.unpack("<Q", blob[:8])
    arrays = {}
    for name, entry in json.loads(blob[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            bits = np.frombuffer(blob[begin:end], np.uint16).astype(np.uint32) << 16
            array = bits.view(np.float32)
        else:
            array = np.frombuffer(blob[begin:end], DTYPES[entry["dtype"]])
        arrays[name] = array.reshape(entry["shape"]).astype(np.float64)
    return arrays


def write(path, arrays):
    """Arrays as a .safetensors file of F32, integers as I64."""
    header, data, offset = {}, [], 0
    for name, array in arrays.items():
        whole = np.issubdtype(array.dtype, np.integer)
        stored = np.ascontiguousarray(array).astype(np.int64 if whole else np.float32)
        header[name] = {"dtype": "I64" if whole else "F32", "shape": list(stored.shape),
                        "data_offsets": [offset, offset + stored.nbytes]}
        offset += stored.nbytes
        data.append(stored.tobytes())
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def erf(x):
    return np.vectorize(math.erf)(x)


def gelu(x):
    return x / 2 * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + np.exp(-x))


ACTIVATIONS = {"silu": silu, "gelu": gelu, "gelu_pytorch_tanh": gelu_tanh, "gelu_new": gelu_tanh}


def softmax(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rms(x, weight, eps, mistakes):
    if "mean subtracted" in mistakes:
        x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def layer_norm(x, weight, bias, eps, mistakes):
    if "mean kept" not in mistakes:
        x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight + bias


def rotate(x, theta, mistakes, first=0):
    """x [heads, tokens, d]"""
    d = x.shape[-1]
    angles = np.outer(np.arange(x.shape[1]) + first, theta ** (-np.arange(0, d, 2) / d))
    cos, sin = np.cos(angles), np.sin(angles)
    if "backwards" in mistakes:
        sin = -sin
    y = np.empty_like(x)
    if "neighbours" in mistakes:
        a, b = x[..., 0::2], x[..., 1::2]
        y[..., 0::2], y[..., 1::2] = a * cos - b * sin, a * sin + b * cos
        return y
    a, b = x[..., :d // 2], x[..., d // 2:]
    if "angles mixed" in mistakes:
        cos, sin = np.repeat(cos, 2, -1), np.repeat(sin, 2, -1)
        return x * cos + np.concatenate((-b, a), -1) * sin
    y[..., :d // 2], y[..., d // 2:] = a * cos - b * sin, a * sin + b * cos
    return y


def split(x, heads, mistakes=()):
    n = x.shape[0]
    if "split reshaped" in mistakes:
        return x.reshape(heads, n, -1)
    return x.reshape(n, heads, -1).transpose(1, 0, 2)


def merge(x, mistakes):
    n = x.shape[1]
    return x.reshape(n, -1) if "merge reshaped" in mistakes else x.transpose(1, 0, 2).reshape(n, -1)


def attend(q, k, v, scale, mistakes, window=0, softcap=0.0, causal=True):
    n, heads = q.shape[1], q.shape[0]
    group = heads // k.shape[0]
    if "tiled" in mistakes:
        k, v = np.tile(k, (group, 1, 1)), np.tile(v, (group, 1, 1))
    else:
        k, v = np.repeat(k, group, 0), np.repeat(v, group, 0)
    scores = q @ k.transpose(0, 2, 1)
    scores = scores * (1 if "unscaled" in mistakes else 1 / q.shape[-1] if "scale by d_k" in mistakes else scale)
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    distance = np.arange(n)[:, None] - np.arange(n)[None, :]
    seen = np.ones((n, n), bool)
    if causal and "not causal" not in mistakes:
        seen = distance >= 0
        if window:
            seen &= distance <= window if "window one more" in mistakes else distance < window
    if "strict" in mistakes:
        seen = distance > 0
        seen[0, 0] = True  # else a row of nothing
    weights = softmax(np.where(seen, scores, -np.inf))
    if "strict" in mistakes:
        weights[:, 0] = 0
    return weights, weights @ v


def llama(folder, ids, *mistakes):
    """Llama, and Gemma 2 by its configuration."""
    with open(folder / "config.json", encoding="utf-8") as file:
        config = json.load(file)
    w = read(folder / "model.safetensors")
    is_gemma = config["model_type"] == "gemma2"
    heads, kv_heads, d = (config[key] for key in ("num_attention_heads", "num_key_value_heads", "head_dim"))
    theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
    eps = config["rms_norm_eps"]
    act = ACTIVATIONS[config.get("hidden_activation") or config["hidden_act"]]
    scale = config.get("query_pre_attn_scalar", d) ** -0.5
    one = 1 if is_gemma else 0
    seen = {}

    def norm(x, name):
        return rms(x, one + w[name + ".weight"], eps, mistakes)

    x = w["model.embed_tokens.weight"][ids]
    if is_gemma and "embedding unscaled" not in mistakes:
        x = x * (4.90625 if "embedding scale in bf16" in mistakes else config["hidden_size"] ** 0.5)
    seen["embedding"] = x
    for n in range(config["num_hidden_layers"]):
        p, here = f"model.layers.{n}.", f"decoder.{n}."
        seen[here + "in"] = x
        before = x
        h = norm(x, p + "input_layernorm")
        seen[here + "self.norm"] = h
        q, k, v = (split(h @ w[f"{p}self_attn.{part}_proj.weight"].T, count, mistakes)
                   for part, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)))
        first = 1 if "positions from 1" in mistakes else 0
        if not {"no rope", "rope on k alone"} & set(mistakes):
            q = rotate(q, theta, mistakes, first)
        if not {"no rope", "rope on q alone"} & set(mistakes):
            k = rotate(k, theta, mistakes, first)
        if "k turned twice" in mistakes:
            k = rotate(k, theta, mistakes)
        window = config.get("sliding_window") if is_gemma and n % 2 == 0 else 0
        weights, out = attend(q, k, v, scale, mistakes, window or 0, config.get("attn_logit_softcapping") or 0)
        seen[here + "self.q"], seen[here + "self.k"], seen[here + "self.v"] = q, k, v
        seen[here + "self.weights"], seen[here + "self.out"] = weights, out
        added = merge(out, mistakes) @ w[p + "self_attn.o_proj.weight"].T
        seen[here + "self.projected"] = added
        if is_gemma and "no norm behind" not in mistakes:
            added = norm(added, p + "post_attention_layernorm")
        x = added if "no residual" in mistakes else (h if "residual normed" in mistakes else x) + added
        h = norm(before if "parallel" in mistakes else x,
                 p + ("pre_feedforward_layernorm" if is_gemma else "post_attention_layernorm"))
        seen[here + "ffn.norm"] = h
        gate, up = (h @ w[f"{p}mlp.{part}_proj.weight"].T for part in ("gate", "up"))
        inner = act(gate) if "gate alone" in mistakes else act(gate) * up
        seen[here + "ffn.inner"] = inner
        added = inner @ w[p + "mlp.down_proj.weight"].T
        seen[here + "ffn.out"] = added
        if is_gemma and "no norm behind" not in mistakes:
            added = norm(added, p + "post_feedforward_layernorm")
        x = added if "no residual of ffn" in mistakes else x + added
        seen[here + "out"] = x
    if "no final norm" not in mistakes:
        x = norm(x, "model.norm")
    seen["final_norm"] = x
    logits = x @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T
    cap = config.get("final_logit_softcapping")
    seen["logits"] = cap * np.tanh(logits / cap) if cap else logits
    return seen


def gpt2(folder, ids, *mistakes):
    with open(folder / "config.json", encoding="utf-8") as file:
        config = json.load(file)
    w = read(folder / "model.safetensors")
    heads, eps = config["n_head"], config["layer_norm_epsilon"]
    d = config["n_embd"] // heads
    seen = {}

    def norm(x, name):
        return layer_norm(x, w[name + ".weight"], w[name + ".bias"], eps, mistakes)

    def linear(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    x = w["wte.weight"][ids] + w["wpe.weight"][:len(ids)]
    seen["embedding"] = x
    for n in range(config["n_layer"]):
        p, here = f"h.{n}.", f"decoder.{n}."
        seen[here + "in"] = x
        h = norm(x, p + "ln_1")
        seen[here + "self.norm"] = h
        qkv = linear(h, p + "attn.c_attn")
        if "qkv head by head" in mistakes:
            q, k, v = qkv.reshape(len(ids), heads, 3, d).transpose(2, 1, 0, 3)
        else:
            q, k, v = (split(part, heads) for part in np.split(qkv, 3, -1))
        weights, out = attend(q, k, v, d**-0.5, mistakes)
        seen[here + "self.q"], seen[here + "self.k"], seen[here + "self.v"] = q, k, v
        seen[here + "self.weights"], seen[here + "self.out"] = weights, out
        added = linear(merge(out, mistakes), p + "attn.c_proj")
        seen[here + "self.projected"] = added
        x = x + added
        h = norm(x, p + "ln_2")
        seen[here + "ffn.norm"] = h
        seen[here + "ffn.inner"] = gelu_tanh(linear(h, p + "mlp.c_fc"))
        seen[here + "ffn.out"] = linear(seen[here + "ffn.inner"], p + "mlp.c_proj")
        x = x + seen[here + "ffn.out"]
        seen[here + "out"] = x
    seen["final_norm"] = norm(x, "ln_f")
    seen["logits"] = seen["final_norm"] @ w["wte.weight"].T
    return seen
