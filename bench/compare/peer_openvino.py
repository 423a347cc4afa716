"""OpenVINO on the processor: a model whose one operation is ScaledDotProductAttention (opset 13); for decoding also with keys and
values in the model's state, as its language models keep them."""
import numpy
import openvino
import openvino.opset13 as ops
import openvino.opset6
import openvino.properties.hint as hints
from openvino import properties
from openvino.op.util import Variable, VariableInfo

import case as cases
import peer


def version():
    return openvino.__version__.partition("-")[0]


def _tensor(array):
    if array.dtype.name == "bfloat16":
        tensor = openvino.Tensor(openvino.Type.bf16, openvino.Shape(array.shape))
        tensor.data.view(numpy.uint16)[...] = array.view(numpy.uint16)
        return tensor
    return openvino.Tensor(array, shared_memory=True)


def _mask(case):
    row = case.row
    if case.bias is not None:
        return case.bias[None, None]
    if case.allowed is not None or row.window:
        return cases.visible(row, case.allowed)[None, None]
    return None


def _grouped(node, row):
    """Keys and values [batch, kv_heads, length, d] for every query head: a Broadcast in the model, which the plugin may fuse."""
    if row.heads == row.kv_heads:
        return node
    group = row.heads // row.kv_heads
    spread = ops.broadcast(ops.unsqueeze(node, ops.constant(2)), ops.constant([row.batch, row.kv_heads, group, row.kv_len, row.d]))
    return ops.reshape(spread, ops.constant([row.batch, row.heads, row.kv_len, row.d]), False)


def _compiled(model, threads, options):
    return openvino.Core().compile_model(model, "CPU", {
        properties.inference_num_threads(): threads, hints.performance_mode(): hints.PerformanceMode.LATENCY,
        hints.execution_mode(): hints.ExecutionMode.ACCURACY, hints.enable_cpu_pinning(): False, **options})


def _sdpa(case, threads):
    peer.forward_only(case)
    peer.no_eight_bits(case)
    row, mask = case.row, _mask(case)
    kind = openvino.Type.bf16 if row.dtype == "bf16" else openvino.Type.f32
    inputs = [case.q, case.k, case.v] + ([] if mask is None else [mask])
    nodes = [ops.parameter(x.shape, kind if n < 3 else openvino.Type(x.dtype)) for n, x in enumerate(inputs)]
    attention = ops.scaled_dot_product_attention(nodes[0], _grouped(nodes[1], row), _grouped(nodes[2], row), *nodes[3:],
                                                 causal=bool(row.causal and not row.is_decode and mask is None))
    compiled = _compiled(openvino.Model([attention], nodes), threads, {hints.inference_precision(): kind})
    request, tensors = compiled.create_infer_request(), [_tensor(x) for x in inputs]
    for number, tensor in enumerate(tensors):
        request.set_input_tensor(number, tensor)

    def results():
        tensor = request.get_output_tensor(0)
        if tensor.element_type == openvino.Type.bf16:
            return [(tensor.data.view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)]
        return [tensor.data]
    layout = "[batch, heads, length, d] as given"
    if row.heads != row.kv_heads:
        layout += "; keys and values reach the operation through a Broadcast to the query heads"
    if row.window:
        layout += "; the window as a boolean mask"
    return peer.Prepared(request.infer, results, layout, keeps=inputs)  # the tensors share the arrays' memory but do not own it


def _state(name, new, beam, row):
    """Every key (or value) so far, [batch, kv_heads, length, d]: the state with `new` behind it, kept for the next call."""
    info, f32 = VariableInfo(), openvino.Type.f32
    info.data_shape, info.data_type, info.variable_id = openvino.PartialShape([row.batch, row.kv_heads, -1, row.d]), f32, name
    nothing = ops.constant(numpy.zeros((row.batch, row.kv_heads, 0, row.d), numpy.float32))
    past = openvino.opset6.read_value(nothing, name, f32, openvino.PartialShape([-1, row.kv_heads, -1, row.d]))
    full = ops.concat([ops.gather(past, beam, ops.constant(0)), new], 2)
    return full, openvino.opset6.assign(full, name)


def _to_query_heads(node, row):
    """The pattern of exported language models; the plugin fuses it, and the state, into its attention."""
    integers = lambda *values: ops.constant(numpy.array(values, numpy.int64))  # noqa: E731
    part = lambda *axes: ops.gather(ops.shape_of(node), ops.constant(list(axes)), ops.constant(0))  # noqa: E731
    shape = ops.concat([part(0, 1), integers(row.heads // row.kv_heads), part(2, 3)], 0)
    spread = ops.broadcast(ops.unsqueeze(node, ops.constant(2)), shape, broadcast_spec="BIDIRECTIONAL")
    return ops.reshape(spread, integers(0, row.heads, -1, row.d), True)


def _stateful(case, threads):
    row = case.row
    if not row.is_decode:
        raise peer.CannotRun("it is the form for decoding")
    # bf16 numbers of this size are f16 numbers too; asked for bf16, a processor without such instructions would keep f32.
    cache = {"f32": openvino.Type.f32, "bf16": openvino.Type.f16, "int8": openvino.Type.u8}[row.dtype]
    q, k, v = (ops.parameter([row.batch, heads, -1, row.d], openvino.Type.f32) for heads in (row.heads, row.kv_heads, row.kv_heads))
    beam = ops.parameter([row.batch], openvino.Type.i32)
    (keys, keep_keys), (values, keep_values) = _state("k", k, beam, row), _state("v", v, beam, row)
    attention = ops.scaled_dot_product_attention(q, _to_query_heads(keys, row), _to_query_heads(values, row), causal=True)
    model = openvino.Model([ops.result(attention)], [keep_keys, keep_values], [q, k, v, beam])
    options = {hints.inference_precision(): openvino.Type.f32, hints.kv_cache_precision(): cache}
    if cache != openvino.Type.f32:  # ACCURACY keeps the cache in f32 whatever it is asked for
        options[hints.execution_mode()] = hints.ExecutionMode.PERFORMANCE
    compiled = _compiled(model, threads, options)
    request, full = compiled.create_infer_request(), {"k": case.k.astype(numpy.float32), "v": case.v.astype(numpy.float32)}
    for state in request.query_state():
        state.state = openvino.Tensor(numpy.ascontiguousarray(full[state.name][:, :, :-1]))
    new = [numpy.ascontiguousarray(full[name][:, :, -1:]) for name in ("k", "v")]
    tensors = [openvino.Tensor(x) for x in (case.q.astype(numpy.float32), *new, numpy.zeros(row.batch, numpy.int32))]
    for number, tensor in enumerate(tensors):
        request.set_input_tensor(number, tensor)
    out = []

    def run():
        request.infer()
        if not out:  # later calls have a key more
            out.append(request.get_output_tensor(0).data.copy())
    return peer.Prepared(run, lambda: out, f"keys and values in the model's state, {cache.get_type_name()}, filled before the time begins; each "
                         "call appends one key: the row's length in the first, a few dozen keys more in the last")


OPERATORS = {
    "sdpa": peer.Operator("ScaledDotProductAttention (opset 13)", _sdpa),
    "stateful": peer.Operator("ScaledDotProductAttention (opset 13) on ReadValue and Assign", _stateful),
}
OPERATORS["sdpa-rows"] = peer.rows_of_a_group(OPERATORS["sdpa"])
