"""Attention as a few lines of float64 NumPy, sharing nothing with the package: what the tests compare with."""

import numpy as np


def positions(q_len, start):
    return start + np.arange(q_len)[:, None]


def causal(q_len, kv_len, start=0):
    return np.arange(kv_len)[None, :] <= positions(q_len, start)


def window(q_len, kv_len, left, right, start=0):
    distance = np.arange(kv_len)[None, :] - positions(q_len, start)
    allowed = np.ones((q_len, kv_len), bool)
    if left is not None:
        allowed &= distance >= -left
    if right is not None:
        allowed &= distance <= right
    return allowed


def scores(q, k, scale=None, softcap=0.0, bias=None):
    q, k = np.asarray(q, np.float64), np.asarray(k, np.float64)
    k = np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3)
    s = q @ np.swapaxes(k, -1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if softcap:
        s = softcap * np.tanh(s / softcap)
    return s if bias is None else s + bias


def weights_of(s, allowed=True, sinks=None):
    """(weights, lse): a row without a key has weights 0 and lse -inf."""
    s = np.where(np.broadcast_to(allowed, s.shape), s, -np.inf)
    columns = s
    if sinks is not None:
        columns = np.concatenate([s, np.broadcast_to(np.reshape(sinks, (-1, 1, 1)), (*s.shape[:-1], 1))], axis=-1)
    largest = columns.max(axis=-1, keepdims=True)
    exponentials = np.exp(columns - np.where(np.isfinite(largest), largest, 0))
    total = exponentials.sum(axis=-1, keepdims=True)
    weights = np.divide(exponentials, total, out=np.zeros_like(exponentials), where=total > 0)
    with np.errstate(divide="ignore"):
        lse = np.where(total > 0, largest + np.log(total), -np.inf)[..., 0]
    return weights[..., : s.shape[-1]], lse


def attend(q, k, v, allowed=True, sinks=None, **options):
    v = np.asarray(v, np.float64)
    weights, _ = weights_of(scores(q, k, **options), allowed, sinks)
    return weights @ np.repeat(v, np.shape(q)[-3] // v.shape[-3], axis=-3)
