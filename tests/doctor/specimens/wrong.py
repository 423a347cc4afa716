"""Attention in NumPy, wrong in one place each, as it stands in tutorials, ports and kernels.

Every function is given q [b, hq, n, d], k [b, hkv, m, d] and v [b, hkv, m, e] in float32 and returns what its author
takes for attention. They share nothing with the library, and little with each other: each is written the way its
mistake is made. `F..` names the public reports of the same fault.
"""
import math

import numpy as np

from narrow import as_bf16, as_f16


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def repeat_kv(x, n_rep):
    """(b, hkv, m, d) -> (b, hkv * n_rep, m, d)"""
    b, h, m, d = x.shape
    return np.broadcast_to(x[:, :, None], (b, h, n_rep, m, d)).reshape(b, h * n_rep, m, d)


def match_heads(q, k, v):
    n_rep = q.shape[1] // k.shape[1]
    return repeat_kv(k, n_rep), repeat_kv(v, n_rep)


# --- positions and masks ---

def decode_forgets_the_cache(q, k, v):
    """F24: new tokens are written behind `past`, but the mask is built from arange(n) alone."""
    k, v = match_heads(q, k, v)
    n, m = q.shape[2], k.shape[2]
    mask = np.arange(m)[None, :] <= np.arange(n)[:, None]
    s = np.einsum("bhnd,bhmd->bhnm", q, k) / math.sqrt(q.shape[-1])
    return softmax(np.where(mask, s, -np.inf)) @ v


def position_counts_the_new_token_twice(q, k, v, past):
    """cache_len was already advanced when the positions are taken from it."""
    k, v = match_heads(q, k, v)
    position = past + 1 + np.arange(q.shape[2])
    allowed = np.arange(k.shape[2]) <= position[:, None]
    s = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    s[..., ~allowed] = -np.inf
    return softmax(s) @ v


def mask_ends_before_the_new_token(q, k, v):
    """np.tri(n, m, k=m - n - 1): the last query sees all but the last key."""
    k, v = match_heads(q, k, v)
    n, m = q.shape[2], k.shape[2]
    s = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    return softmax(np.where(np.tri(n, m, m - n - 1, dtype=bool), s, -np.inf)) @ v


def tri_with_k_one(q, k, v):
    """np.tri(n, k=1) for np.tri(n)."""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return softmax(np.where(np.tri(q.shape[2], k=1, dtype=bool), s, -np.inf)) @ v


def window_without_its_own_place(q, k, v, window):
    """F25: `sliding_window = W` counts the token itself, and i - j < W - 1 does not."""
    k, v = match_heads(q, k, v)
    i = np.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
    j = np.arange(k.shape[2])[None, :]
    s = np.matmul(q, k.transpose(0, 1, 3, 2)) / np.sqrt(np.float32(q.shape[3]))
    s = s + np.where((j <= i) & (i - j < window - 1), 0, -np.inf).astype(np.float32)
    return np.matmul(softmax(s), v)


def window_by_absolute_distance(q, k, v, left):
    """|i - j| <= left, in a model whose window looks back only."""
    i, j = np.ogrid[:q.shape[2], :k.shape[2]]
    s = np.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
    s = np.where(abs(i - j) <= left, s, -np.inf)
    return np.einsum("bhij,bhje->bhie", softmax(s), v)


def lowest_float_for_hidden(q, k, v, lengths):
    """F10: torch.finfo(dtype).min as "minus infinity"; an entry without keys averages its padding."""
    k, v = match_heads(q, k, v)
    keep = np.arange(k.shape[2]) < np.asarray(lengths)[:, None, None, None]
    s = q @ k.swapaxes(2, 3) / math.sqrt(q.shape[3])
    s = np.where(keep, s, np.finfo(np.float32).min)
    return softmax(s) @ v


def ones_and_zeros_added(q, k, v):
    """F15: torch.tril(torch.ones(n, n)) handed over as attn_mask in float."""
    attn_mask = np.tril(np.ones((q.shape[2], k.shape[2]), np.float32))
    attn = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1], dtype=np.float32)
    return softmax(attn + attn_mask) @ v


def filled_where_true(q, k, v, mask):
    """scores.masked_fill(mask, -inf) with a mask whose True means "keep"."""
    s = np.einsum("bhqd,bhkd->bhqk", q, k) * (1.0 / math.sqrt(k.shape[-1]))
    s[np.broadcast_to(mask, s.shape)] = float("-inf")
    with np.errstate(invalid="ignore"):
        return np.einsum("bhqk,bhkd->bhqd", softmax(s), v)


def causal_wins_over_mask(q, k, v, attn_mask):
    """F16: `if is_causal: mask = tril` - the mask passed in beside it is gone."""
    is_causal = True
    if is_causal:
        attn_mask = np.tril(np.ones((q.shape[2], k.shape[2]), bool))
    s = q @ np.moveaxis(k, -1, -2) / q.shape[-1] ** 0.5
    return softmax(np.where(attn_mask, s, -np.inf)) @ v


def mask_or_causal(q, k, v, padding):
    """np.logical_or for np.logical_and."""
    n = q.shape[2]
    causal = ~np.triu(np.ones((n, n), bool), k=1)
    allowed = np.logical_or(causal, padding[:, None, None, :])
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return softmax(np.where(allowed, s, -np.inf)) @ v


def padding_on_the_rows(q, k, v, lengths):
    """padding[:, None, :, None] for padding[:, None, None, :]."""
    n = q.shape[2]
    keep = (np.arange(n)[None] < np.asarray(lengths)[:, None])[:, None, :, None]
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    s = np.where(keep, s, -np.inf)
    top = np.where(keep, s.max(-1, keepdims=True), 0)
    p = np.exp(s - top)
    return p @ v / np.maximum(p.sum(-1, keepdims=True), np.finfo(np.float32).tiny)


def documents_run_together(q, k, v):
    """Packed documents, and a plain causal mask."""
    n = q.shape[2]
    s = np.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
    return softmax(np.where(np.tri(n, dtype=bool), s, -np.inf)) @ v


def prefix_is_causal_too(q, k, v):
    """A prefix language model run through a decoder's mask."""
    s = q @ k.swapaxes(-1, -2) * np.float32(q.shape[-1] ** -0.5)
    upper = np.triu_indices(q.shape[2], 1, k.shape[2])
    s[:, :, upper[0], upper[1]] = -np.inf
    return softmax(s) @ v


# --- scale, cap, bias ---

def scaled_by_the_model_width(q, k, v):
    """/ embed_dim ** 0.5, where a head's width is meant."""
    embed_dim = q.shape[1] * q.shape[3]
    return softmax(q @ k.swapaxes(-1, -2) / embed_dim ** 0.5) @ v


def yarn_factor_left_in(q, k, v, factor=16.0):
    """F45: cos and sin carry mscale = 0.1 ln(factor) + 1 although mscale_all_dim takes it out again."""
    mscale = 0.1 * math.log(factor) + 1
    q, k = q * np.float32(mscale), k * np.float32(mscale)
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def exp2_without_log2e(q, k, v):
    """A kernel that uses exp2 must multiply the scores by log2(e) first."""
    s = q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(q.shape[-1]))
    p = np.exp2(s - s.max(-1, keepdims=True))
    return p @ v / p.sum(-1, keepdims=True)


def capped_then_scaled(q, k, v, cap):
    """Gemma 2's cap on the raw product."""
    k, v = match_heads(q, k, v)
    s = np.tanh(q @ k.swapaxes(-1, -2) / cap) * cap
    return softmax(s / math.sqrt(q.shape[-1])) @ v


def first_rows_of_the_bias(q, k, v, buckets):
    """F46: while decoding, rows [:n] of T5's relative bias instead of [past : past + n]; buckets is [heads, 32]."""
    n, m = q.shape[2], k.shape[2]
    back = np.maximum(np.arange(n)[:, None] - np.arange(m)[None, :], 0)  # up to 15 each distance is a bucket of its own
    s = np.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1]) + buckets[:, back]
    i = np.arange(n)[:, None] + m - n
    return softmax(np.where(np.arange(m) <= i, s, -np.inf)) @ v


def bias_as_keep(q, k, v, bias):
    """F14: attn_mask.astype(bool), for a mask of numbers to add."""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return softmax(np.where(bias.astype(bool), s, -np.inf)) @ v


def slopes_for_any_head_count(q, k, v):
    """ALiBi's slopes as 2 ** (-8 (h + 1) / H) also for 6 heads, where the paper interleaves two sequences."""
    h, n = q.shape[1], q.shape[2]
    slopes = 2.0 ** (-8.0 / h * np.arange(1, h + 1))
    distance = np.arange(n)[None, :] - np.arange(n)[:, None]
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]) + (slopes[:, None, None] * distance).astype(np.float32)
    return softmax(np.where(distance <= 0, s, -np.inf)) @ v


def sink_left_out(q, k, v):
    """A model with attention sinks, run by code that has none."""
    k, v = match_heads(q, k, v)
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


# --- rotary positions ---

def rotate_half(x):
    half = x.shape[-1] // 2
    return np.concatenate([-x[..., half:], x[..., :half]], -1)


def rotary(x, position, base=10000.0):
    inv_freq = base ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1])
    angle = np.outer(position, inv_freq)
    angle = np.concatenate([angle, angle], -1)
    return (x * np.cos(angle) + rotate_half(x) * np.sin(angle)).astype(np.float32)


def rotary_restarts(q, k, v):
    """New queries are turned as if they stood at 0, 1, ...; the cached keys were turned where they stood."""
    n, m = q.shape[2], k.shape[2]
    q, k = rotary(q, np.arange(n)), rotary(k, np.arange(m))
    mask = np.arange(m) <= np.arange(m - n, m)[:, None]
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return softmax(np.where(mask, s, -np.inf)) @ v


def cached_keys_turned_again(q, k, v, past):
    """The cache holds rotated keys; the concatenation with the new ones is rotated as a whole."""
    n, m = q.shape[2], k.shape[2]
    cache, new = rotary(k[:, :, :past], np.arange(past)), k[:, :, past:]
    k = rotary(np.concatenate([cache, new], 2), np.arange(m))
    q = rotary(q, np.arange(past, past + n))
    mask = np.arange(m) <= np.arange(past, past + n)[:, None]
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return softmax(np.where(mask, s, -np.inf)) @ v


def rotary_of_another_base(q, k, v):
    """rope_theta of the config is not read."""
    n = q.shape[2]
    q, k = rotary(q, np.arange(n), 10000.0), rotary(k, np.arange(n), 10000.0)
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return softmax(np.where(np.tri(n, dtype=bool), s, -np.inf)) @ v


# --- heads and memory ---

def repeated_along_the_keys(q, k, v):
    """F30: np.repeat over axis 2, the keys', then a reshape that makes the shapes fit."""
    b, hq, _, d = q.shape
    n_rep, m = hq // k.shape[1], k.shape[2]
    k = np.repeat(k, n_rep, axis=2).reshape(b, hq, m, d)
    v = np.repeat(v, n_rep, axis=2).reshape(b, hq, m, v.shape[-1])
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(d)) @ v


def concatenated_without_transpose(q, k, v):
    """out.reshape(b, n, heads * e) without out.transpose(1, 2) before it; split into heads again for comparison."""
    b, h, n, _ = q.shape
    out = softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v
    merged = out.reshape(b, n, h * v.shape[-1])
    return merged.reshape(b, n, h, v.shape[-1]).transpose(0, 2, 1, 3)


def value_pointer_of_a_transpose(q, k, v):
    """F31: v comes as a view of [e, m] memory, and the kernel reads the pointer row by row."""
    memory = np.ascontiguousarray(v.swapaxes(-1, -2))
    misread = memory.reshape(v.shape)
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ misread


def cache_index_off_by_one(q, k, v, past):
    """k_cache[:, :, cache_len - 1 : ...] = k_new, the caches being allocated as zeros."""
    n, m = q.shape[2], k.shape[2]
    k, v = match_heads(q, k, v)
    k_cache, v_cache = np.zeros_like(k), np.zeros_like(v)
    k_cache[:, :, :past], v_cache[:, :, :past] = k[:, :, :past], v[:, :, :past]
    k_cache[:, :, past - 1:past - 1 + n], v_cache[:, :, past - 1:past - 1 + n] = k[:, :, past:], v[:, :, past:]
    mask = np.arange(m) <= past + np.arange(n)[:, None]
    s = q @ k_cache.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return softmax(np.where(mask, s, -np.inf)) @ v_cache


def value_slots_one_late(q, k, v):
    """Keys are written at slot, values at slot + 1; the prompt's first value went into both."""
    cache = np.empty_like(v)
    cache[:, :, 0] = v[:, :, 0]
    cache[:, :, 1:] = v[:, :, :-1]
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ cache


# --- numbers ---

def exponentials_of_the_scores(q, k, v):
    """F38: "softmax(x) = exp(x) / sum(exp(x))", as the formula stands."""
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.exp((q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])).astype(np.float32))
        return (e / e.sum(-1, keepdims=True)) @ v


def exponentials_in_half(q, k, v, sum_type):
    """exp(scores) stored as float16, no maximum subtracted: inf above 11.09, and the sum may be float16 too."""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    s = np.where(np.tri(q.shape[2], dtype=bool), s, -np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.exp(s).astype(np.float16)
        w = e.astype(sum_type) / e.sum(-1, keepdims=True, dtype=sum_type)
        return as_f16(w.astype(np.float32) @ v)


def half_accumulator(q, k, v):
    """F35: a decode kernel whose accumulator is half, key after key, rescaled when the maximum rises."""
    b, h, n, d = q.shape
    out = np.zeros((b, h, n, v.shape[-1]), np.float32)
    for at in np.ndindex(b, h, n):
        row, best, total = np.zeros(v.shape[-1], np.float16), -np.inf, 0.0
        for j in range(k.shape[2]):
            s = float(q[at] @ k[at[0], at[1], j]) / math.sqrt(d)
            if s > best:
                scale = math.exp(best - s)
                row, total, best = (row * np.float16(scale)).astype(np.float16), total * scale, s
            p = math.exp(s - best)
            row = (row + np.float16(p) * v[at[0], at[1], j].astype(np.float16)).astype(np.float16)
            total += p
        out[at] = row.astype(np.float32) / np.float32(total)
    return out


def bf16_everywhere(q, k, v):
    """Announced as f32; scores, weights and sums were cast to bfloat16 by autocast."""
    s = as_bf16(as_bf16(q) @ as_bf16(k).swapaxes(-1, -2))
    p = as_bf16(softmax(as_bf16(s / math.sqrt(q.shape[-1]))))
    return as_bf16(p @ as_bf16(v))


# --- tiles: an online softmax over blocks of keys ---

def flash(q, k, v, tile, rescale=True, keep=None):
    """A right one, in the loops of a kernel. keep(j0, j1, s) edits the scores of a tile."""
    d = q.shape[-1]
    acc = np.zeros((*q.shape[:3], v.shape[-1]), np.float32)
    l = np.zeros(q.shape[:3], np.float32)
    m = np.full(q.shape[:3], -np.inf, np.float32)
    for j0 in range(0, k.shape[2], tile):
        kj, vj = k[:, :, j0:j0 + tile], v[:, :, j0:j0 + tile]
        s = q @ kj.swapaxes(-1, -2) / np.sqrt(np.float32(d))
        if keep is not None:
            s = keep(j0, j0 + kj.shape[2], s)
        m_new = np.maximum(m, s.max(-1))
        alpha = np.exp(m - m_new)
        p = np.exp(s - m_new[..., None])
        l = l * (alpha if rescale else 1) + p.sum(-1)
        acc = acc * (alpha[..., None] if rescale else 1) + p @ vj
        m = m_new
    return acc / l[..., None]


def never_rescaled(q, k, v):
    return flash(q, k, v, tile=32, rescale=False)


def bf16_tiles_summed_unscaled(q, k, v):
    """The weights go through bf16 for the matrix product, and acc alone is not rescaled."""
    acc, l, m = 0.0, 0.0, np.full(q.shape[:3], -np.inf, np.float32)
    for j0 in range(0, k.shape[2], 64):
        s = q @ k[:, :, j0:j0 + 64].swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        m_new = np.maximum(m, s.max(-1))
        p = np.exp(s - m_new[..., None])
        acc = acc + as_bf16(p) @ v[:, :, j0:j0 + 64]
        l = l * np.exp(m - m_new) + p.sum(-1)
        m = m_new
    return as_bf16(acc / l[..., None])


def whole_diagonal_tiles(q, k, v):
    """Blocks above the diagonal are skipped, the block on it is not masked."""
    n, tile = q.shape[2], 32
    out = np.zeros((*q.shape[:3], v.shape[-1]), np.float32)
    for i0 in range(0, n, tile):
        end = min(n, i0 + tile)
        s = q[:, :, i0:end] @ k[:, :, :end].swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        out[:, :, i0:end] = softmax(s) @ v[:, :, :end]
    return out


def tail_of_zero_keys_f16(q, k, v):
    """F28: the last tile of 64 is filled up with zero keys, which score 0 and join the sum; f16 in and out."""
    m = k.shape[2]
    pad = -m % 64
    k = np.pad(k, ((0, 0), (0, 0), (0, pad), (0, 0)))
    v = np.pad(v, ((0, 0), (0, 0), (0, pad), (0, 0)))
    return as_f16(softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v)


def splits_averaged(q, k, v):
    """Split keys: each part's output counts alike in the reduction."""
    parts = [softmax(q @ kp.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ vp
             for kp, vp in zip(np.split(k, range(32, k.shape[2], 32), 2), np.split(v, range(32, v.shape[2], 32), 2))]
    return sum(parts) / len(parts)


# --- faults that are in nobody's catalogue: they must be located, not named ---

def last_key_of_each_tile_lost(q, k, v):
    """for j in range(j0, j0 + 16 - 1): keys 15, 31, ... are never read."""
    lost = np.arange(k.shape[2]) % 16 == 15
    s = np.where(lost, -np.inf, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]))
    return softmax(s) @ v


def one_head_overwritten(q, k, v):
    """Scratch memory shared by two threads: head 2 of the last batch entry holds the sum of two heads."""
    out = softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v
    out[-1, 2] += out[-1, 1]
    return out


def merged_by_sums_alone(q, k, v):
    """Split keys merged by l, without exp(m - max m): right only where the maxima agree."""
    parts = []
    for j0 in range(0, k.shape[2], 16):
        s = q @ k[:, :, j0:j0 + 16].swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        p = np.exp(s - s.max(-1, keepdims=True))
        parts.append((p @ v[:, :, j0:j0 + 16], p.sum(-1, keepdims=True)))
    return sum(o for o, _ in parts) / sum(l for _, l in parts)


def rows_past_64_stale(q, k, v):
    """A grid of one block of 64 queries too few: the rest holds what was in memory."""
    out = softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v
    out[:, :, 64:] = np.float32(0.125)
    return out


# --- backward ---

def backward(q, k, v, d_out, has_mean=True, has_scale=True, sums_heads=True):
    hkv = k.shape[1]
    kk, vv = match_heads(q, k, v)
    scale = 1 / math.sqrt(q.shape[-1])
    p = softmax(q @ kk.swapaxes(-1, -2) * scale)
    dv = p.swapaxes(-1, -2) @ d_out
    dp = d_out @ vv.swapaxes(-1, -2)
    delta = (p * dp).sum(-1, keepdims=True) if has_mean else 0
    ds = p * (dp - delta) * (scale if has_scale else 1)
    dq, dk = ds @ kk, ds.swapaxes(-1, -2) @ q
    if sums_heads:
        shared = lambda x: x.reshape(x.shape[0], hkv, -1, *x.shape[2:]).sum(2)  # noqa: E731
        return {"dq": dq, "dk": shared(dk), "dv": shared(dv)}
    dk_out, dv_out = np.empty_like(k), np.empty_like(v)
    for h in range(q.shape[1]):  # = for +=: each query head overwrites what the one before it wrote
        dk_out[:, h * hkv // q.shape[1]], dv_out[:, h * hkv // q.shape[1]] = dk[:, h], dv[:, h]
    return {"dq": dq, "dk": dk_out, "dv": dv_out}
