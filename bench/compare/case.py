"""A row's numbers and its right answer: made once by the runner, read by every peer's process.

    make(row, folder)        # in the runner
    case = load(row, folder) # in a peer's process: case.q, .k, .v, .bias, .allowed, .d_out, .expected
"""
import dataclasses

import numpy

SEED = 20240229


@dataclasses.dataclass
class Case:
    row: object
    q: numpy.ndarray                # [batch, heads, q_len, d], float32 or ml_dtypes.bfloat16; standard normal, no zero among them
    k: numpy.ndarray                # [batch, kv_heads, kv_len, d]
    v: numpy.ndarray
    bias: numpy.ndarray             # [q_len, kv_len] float32, or None
    allowed: numpy.ndarray          # [q_len, kv_len] bool, or None: the random table alone, without causal and window
    d_out: numpy.ndarray            # [batch, heads, q_len, d] float32, or None
    expected: list                  # float64: [out], or [dq, dk, dv] of a backward row

    @property
    def scale(self):
        return float(self.row.d) ** -0.5


def visible(row, allowed=None):
    """[q_len, kv_len] bool: every rule and table in one, for operators that know no rules."""
    query = numpy.arange(row.q_len)[:, None] + row.kv_len - row.q_len
    key = numpy.arange(row.kv_len)[None, :]
    seen = numpy.ones((row.q_len, row.kv_len), bool)
    if row.causal:
        seen &= key <= query
    if row.window:
        seen &= key > query - row.window
    return seen if allowed is None else seen & allowed


def group_as_rows(case):
    """A grouped decode step as one of ungrouped heads with the query heads of a group as rows: the same numbers, none copied.
    Its results, reshaped to case.q's shape, are the case's."""
    row = case.row
    assert row.is_decode
    same = dataclasses.replace(row, heads=row.kv_heads, q_len=row.heads // row.kv_heads, causal=False)
    return dataclasses.replace(case, row=same, q=case.q.reshape(row.batch, row.kv_heads, -1, row.d))


def _softmax(row, q, k, bias, seen):
    """Weights [q_len, kv_len] of one head in f64."""
    scores = (q @ k.T) * float(row.d) ** -0.5
    if bias is not None:
        scores += bias
    scores[~seen] = -numpy.inf
    weights = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def reference(row, q, k, v, bias=None, allowed=None, d_out=None):
    """[out] in f64 or, given d_out, [dq, dk, dv]: the definition, head by head."""
    q, k, v = (x.astype(numpy.float64) for x in (q, k, v))
    bias = None if bias is None else bias.astype(numpy.float64)
    seen, group, scale = visible(row, allowed), row.heads // row.kv_heads, float(row.d) ** -0.5
    out = numpy.empty(q.shape)
    dq, dk, dv = (numpy.zeros(x.shape) for x in (q, k, v)) if d_out is not None else (None, None, None)
    for b in range(row.batch):
        for h in range(row.heads):
            g = h // group
            weights = _softmax(row, q[b, h], k[b, g], bias, seen)
            if d_out is None:
                out[b, h] = weights @ v[b, g]
                continue
            given = d_out[b, h].astype(numpy.float64)
            d_weights = given @ v[b, g].T
            d_scores = weights * (d_weights - (weights * d_weights).sum(axis=1, keepdims=True)) * scale
            dq[b, h] = d_scores @ k[b, g]
            dk[b, g] += d_scores.T @ q[b, h]
            dv[b, g] += weights.T @ given
    return [out] if d_out is None else [dq, dk, dv]


def numbers(row):
    """The inputs of a row: the same for everybody, from one seed."""
    import ml_dtypes
    random = numpy.random.default_rng(SEED)
    kind = ml_dtypes.bfloat16 if row.dtype == "bf16" else numpy.float32
    q_shape, k_shape = (row.batch, row.heads, row.q_len, row.d), (row.batch, row.kv_heads, row.kv_len, row.d)
    normal = lambda shape: random.standard_normal(shape, dtype=numpy.float32)  # noqa: E731
    made = {name: normal(shape).astype(kind) for name, shape in (("q", q_shape), ("k", k_shape), ("v", k_shape))}
    if row.bias:
        made["bias"] = normal((row.q_len, row.kv_len))
    if row.boolean:
        made["allowed"] = random.random((row.q_len, row.kv_len)) < 0.5
    if row.backward:
        made["d_out"] = normal(q_shape)
    return made


def make(row, folder):
    made = numbers(row)
    for name in ("q", "k", "v"):  # zeros cost less, and find no mistake
        zeros = made[name].size - numpy.count_nonzero(made[name])
        assert zeros <= made[name].size / 100_000, f"{row.name}: {name} has {zeros} zeros"
    expected = reference(row, **made)
    for name, array in made.items():
        numpy.save(folder / f"{name}.npy", array.view(numpy.uint16) if array.dtype.name == "bfloat16" else array)
    for number, array in enumerate(expected):
        numpy.save(folder / f"expected{number}.npy", array)


def room(shape, dtype, boundary=64):
    """An array whose first element lies on a cache line; its memory is not touched yet."""
    size = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
    raw = numpy.empty(size + boundary, numpy.uint8)
    first = -raw.ctypes.data % boundary
    return raw[first:first + size].view(dtype).reshape(shape)


def aligned(array):
    copy = room(array.shape, array.dtype)
    copy[...] = array
    return copy


def load(row, folder):
    import ml_dtypes
    def read(name):
        path = folder / f"{name}.npy"
        if not path.exists():
            return None
        array = numpy.load(path)
        return aligned(array.view(ml_dtypes.bfloat16) if array.dtype == numpy.uint16 else array)
    expected = [numpy.load(path) for path in sorted(folder.glob("expected*.npy"))]
    return Case(row, *(read(name) for name in ("q", "k", "v", "bias", "allowed", "d_out")), expected)
