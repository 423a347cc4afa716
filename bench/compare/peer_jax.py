"""JAX: jax.nn.dot_product_attention under jit, on the processor. Threads are bounded by the process's affinity alone."""
import functools

import jax
import jax.numpy
import numpy

import peer


def version():
    return jax.__version__


def _rows(array):
    return jax.numpy.asarray(numpy.ascontiguousarray(array.transpose(0, 2, 1, 3)))  # [batch, length, heads, d]


def _function(case):
    row, mask, bias = case.row, None, None
    if case.allowed is not None:
        mask = jax.numpy.asarray(case.allowed)[None, None]
    if case.bias is not None:
        bias = jax.numpy.asarray(case.bias)[None, None]
    rules = {"is_causal": row.causal and not row.is_decode}
    if row.window:
        rules["local_window_size"] = (row.window - 1, 0)
    return functools.partial(jax.nn.dot_product_attention, implementation="xla", bias=bias, mask=mask, **rules)


def _prepare(case, threads):
    del threads
    peer.no_eight_bits(case)
    call, inputs = _function(case), [_rows(x) for x in (case.q, case.k, case.v)]
    if case.row.backward:
        _, pull = jax.jit(functools.partial(jax.vjp, call))(*inputs)
        inputs = [pull, _rows(case.d_out)]
        call = lambda pulled, d_out: pulled(d_out)  # noqa: E731
    compiled, held = jax.jit(call).lower(*inputs).compile(), [None]

    def run():
        held[0] = jax.block_until_ready(compiled(*inputs))

    def results():
        outputs = held[0] if case.row.backward else [held[0]]
        return [numpy.asarray(x.astype(jax.numpy.float32)).transpose(0, 2, 1, 3) for x in outputs]
    layout = "laid out as [batch, length, heads, d] beforehand; compiled beforehand; the result is allocated by each call"
    if case.row.backward:
        layout += "; the forward pass and what it keeps for this one are not in the time"
    return peer.Prepared(run, results, layout)


OPERATORS = {"dpa": peer.Operator("jax.nn.dot_product_attention (jit, implementation=\"xla\")", _prepare)}
