"""Right attention in NumPy, in the ways in which it is right elsewhere: other orders of summation, other types.

    for text, call in outputs(seed, count): ...     # call: q, k, v, claims, flags, files, dtype of the doctor

`python right.py GLASSHEAD SEED COUNT` asks the doctor about COUNT of them and prints how many it called wrong.
"""
import math
import sys

import numpy as np

from narrow import ROUND, as_f32

HIDDEN = -np.inf


def _safe(x):
    """A row without a key subtracts 0."""
    return np.where(np.isfinite(x), x, 0)


def _divided(sums, total):
    return np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)


def by_einsum(q, k, v, edit, scale, cast):
    s = cast(edit(cast(np.einsum("bhnd,bhmd->bhnm", q, k) * as_f32(scale))))
    p = np.exp(s - _safe(s.max(-1, keepdims=True)))
    w = cast(_divided(p, p.sum(-1, keepdims=True)))
    return cast(np.einsum("bhnm,bhme->bhne", w, v))


def query_scaled_first(q, k, v, edit, scale, cast):
    s = edit(cast(q * as_f32(scale)) @ k.swapaxes(-1, -2))
    p = np.exp(s - _safe(s.max(-1, keepdims=True)))
    return cast(_divided(p @ v, p.sum(-1, keepdims=True)))


def both_scaled_by_the_root(q, k, v, edit, scale, cast):
    root = as_f32(math.sqrt(scale))
    s = cast(edit((q * root) @ (k * root).swapaxes(-1, -2)))
    p = np.exp(s - _safe(s.max(-1, keepdims=True)))
    return cast(_divided(p @ v, p.sum(-1, keepdims=True)))


def in_float64(q, k, v, edit, scale, cast):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s = edit(q @ k.swapaxes(-1, -2) * scale)
    p = np.exp(s - _safe(s.max(-1, keepdims=True)))
    return cast(_divided(p @ v, p.sum(-1, keepdims=True)))


def one_running_sum(q, k, v, edit, scale, cast):
    """Strictly one after the other, in float32, as a scalar loop sums: the last of a cumulative sum."""
    s = edit(np.cumsum(q[:, :, :, None, :] * k[:, :, None, :, :], -1, dtype=np.float32)[..., -1] * as_f32(scale))
    p = np.exp(s - _safe(s.max(-1, keepdims=True)))
    total = np.cumsum(p, -1, dtype=np.float32)[..., -1:]
    sums = np.cumsum(p[..., None] * v[:, :, None], 3, dtype=np.float32)[..., -1, :]
    return cast(_divided(sums, total))


def backwards(q, k, v, edit, scale, cast):
    """Keys and coordinates summed from the last to the first."""
    s = edit(np.cumsum(q[:, :, :, None, ::-1] * k[:, :, None, :, ::-1], -1, dtype=np.float32)[..., -1] / as_f32(1 / scale))
    p = np.exp(s - _safe(s.max(-1, keepdims=True)))
    w = _divided(p, np.cumsum(p[..., ::-1], -1, dtype=np.float32)[..., -1:])
    return cast(np.cumsum((w[..., None] * v[:, :, None])[:, :, :, ::-1], 3, dtype=np.float32)[..., -1, :])


def online(q, k, v, edit, scale, cast, tile=16):
    """A tiled kernel; the weights are stored in the narrow type before they meet v."""
    whole = edit(q @ k.swapaxes(-1, -2) * as_f32(scale))
    m = np.full(q.shape[:3], HIDDEN, np.float32)
    l, acc = np.zeros(q.shape[:3], np.float32), np.zeros((*q.shape[:3], v.shape[-1]), np.float32)
    for j0 in range(0, k.shape[2], tile):
        s = whole[..., j0:j0 + tile]
        m_new = np.maximum(m, s.max(-1))
        alpha = np.exp(m - _safe(m_new))
        p = np.exp(s - _safe(m_new)[..., None])
        l = l * alpha + p.sum(-1)
        acc = acc * alpha[..., None] + cast(p) @ v[:, :, j0:j0 + tile]
        m = m_new
    return cast(_divided(acc, l[..., None]))


def base_two(q, k, v, edit, scale, cast):
    s = edit(q @ k.swapaxes(-1, -2) * as_f32(scale)) * as_f32(math.log2(math.e))
    p = np.exp2(s - _safe(s.max(-1, keepdims=True)))
    return cast(_divided(p @ v, p.sum(-1, keepdims=True)))


def split_and_merged(q, k, v, edit, scale, cast):
    """Two halves of the keys, merged by their lse."""
    s = edit(q @ k.swapaxes(-1, -2) * as_f32(scale))
    half, outs, lses = max(1, k.shape[2] // 2), [], []
    for part in (slice(None, half), slice(half, None)):
        if s[..., part].shape[-1] == 0:
            continue
        top = s[..., part].max(-1, keepdims=True)
        p = np.exp(s[..., part] - _safe(top))
        l = p.sum(-1, keepdims=True)
        outs.append(_divided(p @ v[:, :, part], l))
        with np.errstate(divide="ignore"):
            lses.append(_safe(top) + np.log(l))
    top = np.max(lses, axis=0)
    shares = [np.exp(lse - _safe(top)) for lse in lses]
    return cast(_divided(sum(o * w for o, w in zip(outs, shares)), sum(shares)))


STYLES = [by_einsum, query_scaled_first, both_scaled_by_the_root, in_float64, one_running_sum, backwards, online, base_two,
          split_and_merged]


def options(random, b, h, n, m, cast):
    """flags and files: what the doctor is told; the same as allowed [b, h, n, m], bias and cap (None: none)."""
    flags, files = [], {}
    allowed, bias, cap, start = np.ones((b, h, n, m), bool), None, None, 0
    i, j = np.arange(n)[:, None], np.arange(m)[None, :]
    rule = random.choice(["none", "causal", "causal-end", "window", "mask", "segments"])
    if rule == "causal" or (rule in ("causal-end", "window") and n == m):
        flags += ["--causal=start"]
    elif rule in ("causal-end", "window"):
        flags += ["--causal=end"]
        start = m - n
    if rule in ("causal", "causal-end", "window"):
        allowed &= j <= i + start
    if rule == "window":
        left = int(random.integers(0, m))
        flags += ["--window", f"{left},"]
        allowed &= i + start - j <= left
    if rule == "mask":
        given = random.random((h, n, m)) < 0.7
        files["mask"] = given
        allowed &= given
    if rule == "segments":
        of_queries, of_keys = (np.sort(random.integers(0, 3, (b, x))) for x in (n, m))
        files |= {"query-segments": of_queries, "key-segments": of_keys}
        allowed &= of_queries[:, None, :, None] == of_keys[:, None, None, :]
    if random.random() < 0.3:
        lengths = random.integers(0, m + 1, b)
        flags += ["--key-lengths", ",".join(map(str, lengths))]
        allowed &= j < lengths[:, None, None, None]
    if random.random() < 0.25:
        cap = float(random.choice([2, 20, 50]))
        flags += ["--softcap", str(cap)]
    if random.random() < 0.3:
        bias = files["bias"] = cast(random.standard_normal((h, n, m)))
    return flags, files, {"allowed": allowed, "bias": bias, "cap": cap, "rule": rule}


def editor(rules):
    """What is done to scores between scale and softmax."""
    def edit(s):
        if rules["cap"] is not None:
            cap = s.dtype.type(rules["cap"])
            s = cap * np.tanh(s / cap)
        if rules["bias"] is not None:
            s = s + rules["bias"]
        return np.where(rules["allowed"], s, s.dtype.type(HIDDEN))
    return edit


def cases(seed, count):
    """(random, dtype, q, k, v, scale, flags, files, rules)"""
    random = np.random.default_rng(seed)
    for number in range(count):
        b, hkv, group = (int(random.integers(1, 3)) for _ in range(3))
        n, m, d, e = (int(random.integers(1, most + 1)) for most in (24, 70, 40, 24))
        dtype = ["f32", "f16", "bf16"][number % 3]
        cast, spread = ROUND[dtype], float(random.choice([0.01, 0.3, 1, 1, 3, 10, 30]))
        normal = lambda *shape: cast(random.standard_normal(shape) * spread)  # noqa: E731
        q, k, v = normal(b, hkv * group, n, d), normal(b, hkv, m, d), normal(b, hkv, m, e)
        flags, files, rules = options(random, b, hkv * group, n, m, cast)
        scale = 1 / math.sqrt(d)
        if random.random() < 0.2:
            scale = float(random.choice([0.5, 0.125]))
            flags += ["--scale", str(scale)]
        yield random, dtype, q, k, v, scale, flags, files, rules


def outputs(seed, count):
    for random, dtype, q, k, v, scale, flags, files, rules in cases(seed, count):
        style = STYLES[int(random.integers(len(STYLES)))]
        group = q.shape[1] // k.shape[1]
        wide_k, wide_v = (np.repeat(x, group, axis=1) for x in (k, v))
        out = style(q, wide_k, wide_v, editor(rules), scale, ROUND[dtype])
        yield (f"{style.__name__} {dtype} {rules['rule']} {flags} q {q.shape} k {k.shape} v {v.shape}",
               dict(q=q, k=k, v=v, claims={"out": out}, flags=flags, files=files, dtype=dtype))


if __name__ == "__main__":
    import pathlib
    import tempfile
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    import numpy_test
    numpy_test.PROGRAM, given_seed, given_count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    count_wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for text, call in outputs(given_seed, given_count):
            said = numpy_test.say(pathlib.Path(folder), **call)
            if said["verdict"] != "right":
                count_wrong += 1
                print(text, said["worst"], [c["name"] for c in said["causes"]])
    print(f"{count_wrong} of {given_count} right outputs called wrong")
