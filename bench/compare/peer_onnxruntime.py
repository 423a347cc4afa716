"""ONNX Runtime on the processor: models of one node, run with inputs and outputs bound beforehand.

The ONNX operator Attention of opset 23, and the library's own MultiHeadAttention and GroupQueryAttention (com.microsoft)."""
import numpy
import onnx
import onnxruntime
from onnx import helper

import case as cases
import peer


def version():
    return onnxruntime.__version__


def _flat(array):
    """[batch, heads, length, d] as [batch, length, heads * d]."""
    batch, heads, length, d = array.shape
    return numpy.ascontiguousarray(array.transpose(0, 2, 1, 3)).reshape(batch, length, heads * d)


def _unflat(array, heads):
    batch, length, size = array.shape
    return array.reshape(batch, length, heads, size // heads).transpose(0, 2, 1, 3)


class _Model:
    """One node, its inputs by name (None: left out) and its outputs by name and shape, as a session with everything bound."""

    def __init__(self, op, domain, inputs, outputs, threads, shared=(), **attributes):
        given = {name: x for name, x in inputs.items() if x is not None}
        of = lambda x: helper.np_dtype_to_tensor_dtype(x.dtype)  # noqa: E731
        real, shared = next(iter(given.values())).dtype, dict(shared)
        type_of = lambda name: given[shared[name]].dtype if name in shared else real  # noqa: E731
        node = helper.make_node(op, [name if name in given else "" for name in inputs], list(outputs), domain=domain, **attributes)
        graph = helper.make_graph([node], "compare", [helper.make_tensor_value_info(n, of(x), x.shape) for n, x in given.items()],
                                  [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(type_of(n)), shape) for n, shape in outputs.items()])
        opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 4
        model = helper.make_model(graph, opset_imports=opsets, ir_version=11)
        onnx.checker.check_model(model)
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(x) for name, x in given.items()}
        for name, value in self.values.items():
            self.binding.bind_ortvalue_input(name, value)
        for name, shape in outputs.items():
            source = shared.get(name)
            self.values[name] = self.values[source] if source else onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros(shape, real))
            self.binding.bind_ortvalue_output(name, self.values[name])

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def output(self, name):
        return self.values[name].numpy()


def _additive(case, rules):
    """The tables, and the rules if asked for, as one f32 bias; None if there is nothing to add."""
    seen = cases.visible(case.row, case.allowed) if rules else case.allowed
    if case.bias is None and (seen is None or seen.all()):
        return None
    bias = numpy.zeros((case.row.q_len, case.row.kv_len), numpy.float32) if case.bias is None else case.bias
    return numpy.where(seen, bias, numpy.finfo(numpy.float32).min).astype(numpy.float32) if seen is not None else bias


def _inputs(case):
    """q, k, v, and what to say of them. No attention of this library takes bf16 on a processor; f16 holds these numbers too."""
    peer.no_eight_bits(case)
    if case.row.dtype == "f32":
        return case.q, case.k, case.v, ""
    return *(x.astype(numpy.float16) for x in (case.q, case.k, case.v)), "; f16 instead of bf16"


def _attention(case, threads):
    peer.forward_only(case)
    row, (q, k, v, note) = case.row, _inputs(case)
    mask = case.bias if case.bias is not None else case.allowed
    if row.window:
        mask = cases.visible(row)
    model = _Model("Attention", "", {"q": q, "k": k, "v": v, "mask": mask}, {"out": case.q.shape}, threads,
                   is_causal=int(row.causal and not row.is_decode and not row.window), scale=case.scale)
    return peer.Prepared(model.run, lambda: [model.output("out")],
                         "[batch, heads, length, d] as given" + note + ("; the window as a boolean mask" if row.window else ""))


def _mha(case, threads):
    peer.forward_only(case)
    row, (q, k, v, note) = case.row, _inputs(case)
    if row.heads != row.kv_heads:
        raise peer.CannotRun("it has as many key heads as query heads")
    bias = _additive(case, rules=bool(row.window))
    flat = (row.batch, row.q_len, row.heads * row.d)
    model = _Model("MultiHeadAttention", "com.microsoft",
                   {"q": _flat(q), "k": k, "v": v, "bias": None, "padding": None,
                    "attention_bias": None if bias is None else bias[None, None]}, {"out": flat}, threads,
                   num_heads=row.heads, unidirectional=int(row.causal and not row.window), scale=case.scale)
    return peer.Prepared(model.run, lambda: [_unflat(model.output("out"), row.heads)],
                         "queries and result as [batch, length, heads * d], keys and values as [batch, heads, length, d]" + note
                         + ("; the mask as an added finfo.min" if row.window or row.boolean else ""))


def _eight_bits(x):
    """int8 with a scale [1, kv_heads, 1, d] for each element of a head ("per channel")."""
    scale = abs(x).max(axis=(0, 2), keepdims=True) / 127
    return numpy.rint(x / scale).astype(numpy.int8), scale


def _gqa(case, threads):
    peer.forward_only(case)
    row, has_eight_bits = case.row, case.row.dtype == "int8"
    q, k, v, note = (case.q, case.k, case.v, "; the cache in int8, a scale per channel") if has_eight_bits else _inputs(case)
    bias = _additive(case, rules=False)
    # The cache holds what came before; this call's own keys are written into it, in place, by the operator.
    k_cache, v_cache = (x.copy() if row.is_decode else numpy.zeros_like(x) for x in (k, v))
    (k_cache, k_scale), (v_cache, v_scale) = map(_eight_bits, (k_cache, v_cache)) if has_eight_bits else ((k_cache, None), (v_cache, None))
    eight_bits = {"k_quant_type": "PER_CHANNEL", "v_quant_type": "PER_CHANNEL", "kv_cache_bit_width": 8} if has_eight_bits else {}
    new = slice(row.kv_len - row.q_len, None)
    model = _Model("GroupQueryAttention", "com.microsoft",
                   {"q": _flat(q), "k": _flat(k[:, :, new]), "v": _flat(v[:, :, new]), "past_k": k_cache, "past_v": v_cache,
                    "lengths": numpy.full(row.batch, row.kv_len - 1, numpy.int32), "total": numpy.array(row.kv_len, numpy.int32),
                    "cos": None, "sin": None, "positions": None, "attention_bias": None if bias is None else bias[None, None], "sink": None,
                    "k_scale": k_scale, "v_scale": v_scale},
                   {"out": (row.batch, row.q_len, row.heads * row.d), "present_k": k_cache.shape, "present_v": v_cache.shape}, threads,
                   shared=(("present_k", "past_k"), ("present_v", "past_v")), num_heads=row.heads, kv_num_heads=row.kv_heads,
                   scale=case.scale, causal=int(row.causal), local_window_size=row.window or -1, **eight_bits)
    return peer.Prepared(model.run, lambda: [_unflat(model.output("out"), row.heads)],
                         "queries, new keys and values, and result as [batch, length, heads * d]; keys and values kept in a cache "
                         "[batch, kv_heads, length, d] that past and present share, for decoding filled before the time begins; each call writes its new keys and values "
                         "into it" + note
                         + ("; the mask as an added finfo.min" if row.boolean else ""))


OPERATORS = {
    "attention": peer.Operator("Attention (ONNX opset 23)", _attention),
    "mha": peer.Operator("MultiHeadAttention (com.microsoft)", _mha),
    "gqa": peer.Operator("GroupQueryAttention (com.microsoft)", _gqa),
}
OPERATORS["attention-rows"] = peer.rows_of_a_group(OPERATORS["attention"])
OPERATORS["mha-rows"] = peer.rows_of_a_group(OPERATORS["mha"])
