"""An operator under audit: `audit_worker.py LIBRARY:OPERATOR` answers `glasshead audit --serve`, line by line (docs/audit.md).

`audit_worker.py --list` names the operators with what each takes. Their libraries are those of the comparison."""
import json
import os
import struct
import sys

ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what a library prints stays out of the answers

import ml_dtypes  # noqa: E402
import numpy  # noqa: E402

TYPES = {"F64": numpy.float64, "F32": numpy.float32, "F16": numpy.float16, "BF16": ml_dtypes.bfloat16, "BOOL": numpy.bool_}


class NotOffered(Exception):
    """The operator has no way to say this; the text says why."""


class Call:
    """One input: arrays q, k, v, mask, bias (None: none), and causal, window, key_lengths, scale, softcap, threads."""

    def __init__(self, path):
        data = open(path, "rb").read()
        begin = 8 + struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:begin])
        words = header.pop("__metadata__", {})
        self.mask = self.bias = None
        for name, entry in header.items():
            first, last = entry["data_offsets"]
            array = numpy.frombuffer(bytearray(data[begin + first:begin + last]), TYPES[entry["dtype"]])
            setattr(self, name, array.reshape(entry["shape"]))
        self.causal = words.get("causal")
        self.window = [int(n) if n else None for n in words["window"].split(",")] if "window" in words else None
        self.key_lengths = [int(n) for n in words["key_lengths"].split(",")] if "key_lengths" in words else None
        self.scale = float(words["scale"]) if "scale" in words else None
        self.softcap = float(words.get("softcap", 0))
        self.threads = int(words.get("threads", 0))

    @property
    def is_square(self):
        return self.q.shape[2] == self.k.shape[2]

    @property
    def group(self):
        return self.q.shape[1] // self.k.shape[1]

    def rank4(self, table):
        """Mask or bias with axes of size 1 in front."""
        return table.reshape((1,) * (4 - table.ndim) + table.shape)


def write(path, out):
    out = numpy.ascontiguousarray(out)
    kind = next(name for name, dtype in TYPES.items() if out.dtype == dtype)
    header = json.dumps({"out": {"dtype": kind, "shape": out.shape, "data_offsets": [0, out.nbytes]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + out.tobytes())


# ---- the operators: each a function of a Call


def numpy_one_liner(call):
    """What is written in a notebook."""
    scale = call.q.dtype.type(call.k.shape[3] ** -0.5 if call.scale is None else call.scale)
    scores = call.q @ numpy.swapaxes(call.k, -1, -2) * scale
    if call.bias is not None:
        scores = scores + call.bias
    if call.causal:
        scores = numpy.where(numpy.tril(numpy.ones(scores.shape[-2:], bool)), scores, -numpy.inf)
    if call.mask is not None:
        scores = numpy.where(call.mask, scores, -numpy.inf)
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    return ((weights / weights.sum(-1, keepdims=True)) @ call.v).astype(call.q.dtype)


def _torch(array):
    import torch
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def torch_sdpa(call):
    import torch
    if call.threads:
        torch.set_num_threads(call.threads)
    table = call.mask if call.mask is not None else call.bias
    with torch.inference_mode():
        out = torch.nn.functional.scaled_dot_product_attention(
            *map(_torch, (call.q, call.k, call.v)), attn_mask=None if table is None else _torch(table), is_causal=call.causal is not None,
            scale=call.scale, enable_gqa=call.group > 1)
    if out.dtype == torch.bfloat16:
        return out.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return out.numpy()


def _onnx(call, operator, domain, inputs, outputs, shared=(), **attributes):
    import peer_onnxruntime
    if call.scale is not None:
        attributes["scale"] = call.scale
    if call.softcap:
        attributes["softcap"] = call.softcap
    model = peer_onnxruntime._Model(operator, domain, inputs, outputs, call.threads or 2, shared, **attributes)
    model.run()
    return model.output("out").copy()  # its memory ends with the model


def _out_shape(call):
    return (*call.q.shape[:3], call.v.shape[3])


def onnx_attention(call):
    mask = call.mask if call.mask is not None else call.bias
    return _onnx(call, "Attention", "", {"q": call.q, "k": call.k, "v": call.v, "mask": mask}, {"out": _out_shape(call)},
                 is_causal=int(call.causal is not None))


def _flat(array):
    batch, heads, length, size = array.shape
    return numpy.ascontiguousarray(array.transpose(0, 2, 1, 3)).reshape(batch, length, heads * size)


def _heads(flat, call):
    batch, heads, length, size = _out_shape(call)
    return flat.reshape(batch, length, heads, size).transpose(0, 2, 1, 3)


def onnx_multi_head(call):
    if call.causal and not call.is_square:
        raise NotOffered("its corner is not documented where the lengths differ")
    padding = None
    if call.mask is not None:
        mask = call.rank4(call.mask)
        if mask.shape[1] != 1 or mask.shape[2] != 1:
            raise NotOffered("its mask is one of keys, [batch, kv_len]")
        padding = numpy.ascontiguousarray(numpy.broadcast_to(mask[:, 0, 0], (call.q.shape[0], call.k.shape[2]))).astype(numpy.int32)
    if call.key_lengths:
        padding = numpy.broadcast_to(numpy.array(call.key_lengths, numpy.int32), call.q.shape[:1]).copy()
    bias = None
    if call.bias is not None:
        bias = call.rank4(call.bias)
        bias = numpy.ascontiguousarray(numpy.broadcast_to(bias, (*bias.shape[:2], call.q.shape[2], call.k.shape[2])))
    flat = (call.q.shape[0], call.q.shape[2], call.q.shape[1] * call.v.shape[3])
    inputs = {"q": _flat(call.q), "k": _flat(call.k), "v": _flat(call.v), "qkv_bias": None, "padding": padding, "bias": bias}
    return _heads(_onnx(call, "MultiHeadAttention", "com.microsoft", inputs, {"out": flat}, num_heads=call.q.shape[1],
                        unidirectional=int(call.causal is not None)), call)


def onnx_group_query(call):
    if call.window and (not call.causal or call.window[1] != 0):
        raise NotOffered("its window looks back only, under a causal mask")
    new = call.q.shape[2]
    past = call.k.shape[2] - new
    if past < 0:
        raise NotOffered("it has no more queries than keys")
    if not call.causal and past:
        raise NotOffered("its queries stand at the end of its keys")
    batch, kv_heads, kv_len, size = call.k.shape
    caches = [numpy.concatenate([x[:, :, :past], numpy.zeros_like(x[:, :, past:])], 2) for x in (call.k, call.v)]
    bias = None
    if call.bias is not None:
        bias = call.rank4(call.bias)
        bias = numpy.ascontiguousarray(numpy.broadcast_to(bias, (*bias.shape[:2], new, kv_len)))
    inputs = {"q": _flat(call.q), "k": _flat(call.k[:, :, past:]), "v": _flat(call.v[:, :, past:]), "past_k": caches[0], "past_v": caches[1],
              "lengths": numpy.full(batch, kv_len - 1, numpy.int32), "total": numpy.array(kv_len, numpy.int32), "cos": None, "sin": None,
              "positions": None, "bias": bias}
    outputs = {"out": (batch, new, call.q.shape[1] * size), "present_k": caches[0].shape, "present_v": caches[1].shape}
    return _heads(_onnx(call, "GroupQueryAttention", "com.microsoft", inputs, outputs, (("present_k", "past_k"), ("present_v", "past_v")),
                        num_heads=call.q.shape[1], kv_num_heads=kv_heads,
                        causal=int(call.causal is not None), local_window_size=call.window[0] + 1 if call.window else -1), call)


def _openvino_type(dtype):
    import openvino
    return {"float64": openvino.Type.f64, "float32": openvino.Type.f32, "float16": openvino.Type.f16, "bfloat16": openvino.Type.bf16,
            "bool": openvino.Type.boolean}[dtype.name]


def openvino_sdpa(call):
    import openvino
    import openvino.opset13 as ops
    import peer_openvino
    table = call.mask if call.mask is not None else call.bias
    arrays = [call.q, call.k, call.v] + ([] if table is None else [table])
    nodes = [ops.parameter(x.shape, _openvino_type(x.dtype)) for x in arrays]
    keys, values = nodes[1], nodes[2]
    if call.group > 1:
        spread = lambda node, size: ops.reshape(  # noqa: E731
            ops.broadcast(ops.unsqueeze(node, ops.constant(2)),
                          ops.constant([*call.k.shape[:2], call.group, call.k.shape[2], size])),
            ops.constant([call.k.shape[0], call.q.shape[1], call.k.shape[2], size]), False)
        keys, values = spread(keys, call.k.shape[3]), spread(values, call.v.shape[3])
    mask = nodes[3:]
    scale = []
    if call.scale is not None:
        mask = mask or [ops.constant(numpy.zeros((), call.q.dtype))]
        scale = [ops.constant(numpy.array(call.scale, call.q.dtype))]
    attention = ops.scaled_dot_product_attention(nodes[0], keys, values, *mask, *scale, causal=call.causal is not None)
    kind = _openvino_type(call.q.dtype)
    options = {openvino.properties.hint.inference_precision(): kind if call.q.dtype.itemsize < 4 else openvino.Type.f32}
    compiled = peer_openvino._compiled(openvino.Model([attention], nodes), call.threads or 2, options)
    request = compiled.create_infer_request()
    for number, x in enumerate(arrays):
        request.set_input_tensor(number, peer_openvino._tensor(x))
    request.infer()
    tensor = request.get_output_tensor(0)
    if tensor.element_type == openvino.Type.bf16:
        return tensor.data.view(numpy.uint16).view(ml_dtypes.bfloat16).copy()
    return tensor.data.copy()


def ggml_flash(call):
    import ctypes

    import peer_ggml
    ggml = peer_ggml.GGML
    table = None
    if call.mask is not None:
        table = numpy.where(call.rank4(call.mask), 0, -numpy.inf).astype(numpy.float16)
    if call.bias is not None:
        bias = call.rank4(call.bias)
        table = bias.astype(numpy.float16)
        if not numpy.array_equal(table.astype(numpy.float64), bias.astype(numpy.float64)):
            raise NotOffered("its mask is f16, which does not hold these numbers")
    arrays = [call.q.astype(numpy.float32), call.k, call.v]
    if table is not None:
        arrays.append(numpy.ascontiguousarray(numpy.broadcast_to(table, (*table.shape[:2], call.q.shape[2], call.k.shape[2]))))
    kinds = {"float32": peer_ggml.F32, "float16": peer_ggml.F16, "bfloat16": peer_ggml.BF16}
    shape = _out_shape(call)
    room = sum(x.nbytes for x in arrays) + 4 * int(numpy.prod(shape)) + (1 << 22)
    context = ggml.ggml_init(peer_ggml.InitParams(room, None, False))
    tensors = []
    for x in arrays:
        tensor = ggml.ggml_new_tensor_4d(context, kinds[x.dtype.name], *reversed(x.shape))
        ctypes.memmove(ggml.ggml_get_data(tensor), x.ctypes.data, x.nbytes)
        tensors.append(tensor)
    scale = call.k.shape[3] ** -0.5 if call.scale is None else call.scale
    result = ggml.ggml_flash_attn_ext(context, *tensors[:3], tensors[3] if table is not None else None, scale, 0.0, call.softcap)
    ggml.ggml_flash_attn_ext_set_prec(result, 10)  # GGML_PREC_F32
    graph = ggml.ggml_new_graph(context)
    ggml.ggml_build_forward_expand(graph, result)
    backend = ggml.ggml_backend_cpu_init()
    ggml.ggml_backend_cpu_set_n_threads(backend, call.threads or 2)
    if ggml.ggml_backend_graph_compute(backend, graph) != 0:
        raise RuntimeError("ggml_backend_graph_compute failed")
    batch, heads, length, size = shape
    if not numpy.prod(shape):
        return numpy.zeros(shape, numpy.float32)  # it has run, and there is nothing to read
    flat = (ctypes.c_float * int(numpy.prod(shape))).from_address(ggml.ggml_get_data(result))
    return numpy.frombuffer(flat, numpy.float32).reshape(batch, length, heads, size).transpose(0, 2, 1, 3).copy()


def jax_attention(call):
    import jax.numpy
    if call.window and None in call.window:
        raise NotOffered("its window has two sides")
    if call.window and not call.is_square:
        raise NotOffered("its window counts from the start")
    rows = lambda x: jax.numpy.asarray(numpy.ascontiguousarray(x.transpose(0, 2, 1, 3)))  # noqa: E731
    table = lambda x: None if x is None else jax.numpy.asarray(call.rank4(x))  # noqa: E731
    lengths = None
    if call.key_lengths:
        lengths = jax.numpy.asarray(numpy.broadcast_to(numpy.array(call.key_lengths, numpy.int32), call.q.shape[:1]))
    out = jax.nn.dot_product_attention(
        rows(call.q), rows(call.k), rows(call.v), bias=table(call.bias), mask=table(call.mask), scale=call.scale, is_causal=call.causal is not None,
        key_value_seq_lengths=lengths, local_window_size=tuple(call.window) if call.window else None, implementation="xla")
    return numpy.asarray(out).transpose(0, 2, 1, 3)


SHAPES = "grouped-heads other-d-v bf16 f16"
# by name: the operator's own name, the call, what it takes; the library's version is peer_LIBRARY's.
OPERATORS = {
    "numpy:one-liner": ("a one-liner in NumPy, -inf where hidden", numpy_one_liner, "mask bias causal-start scale other-d-v f64 f16"),
    "torch:sdpa": ("torch.nn.functional.scaled_dot_product_attention", torch_sdpa, f"mask bias causal-start scale {SHAPES} f64 threads"),
    "onnxruntime:attention": ("Attention (ONNX opset 23)", onnx_attention, f"mask bias causal-start scale softcap {SHAPES} f64 threads"),
    "onnxruntime:mha": ("MultiHeadAttention (com.microsoft)", onnx_multi_head, "mask bias causal-start key-lengths scale other-d-v f16 threads"),
    "onnxruntime:gqa": ("GroupQueryAttention (com.microsoft)", onnx_group_query, "bias causal-end window scale softcap grouped-heads f16 threads"),
    "openvino:sdpa": ("ScaledDotProductAttention (opset 13)", openvino_sdpa, f"mask bias causal-start scale {SHAPES} f64 threads"),
    "ggml:flash": ("ggml_flash_attn_ext", ggml_flash, f"mask bias scale softcap {SHAPES} threads"),
    "jax:dpa": ("jax.nn.dot_product_attention (implementation=\"xla\")", jax_attention,
                f"mask bias causal-start window key-lengths scale {SHAPES}"),
}


def version(library):
    if library == "numpy":
        return numpy.__version__
    import importlib
    return importlib.import_module(f"peer_{library}").version()


def say(*words):
    print(*words, file=ANSWERS, flush=True)


def reason_of(problem):
    """The library's own words in one line, without what they all begin with."""
    text = " ".join(str(problem).split()) or "no text"
    for opening in ("Status Message: ", "[ShapeInferenceError] ", " : FAIL : ", " : NOT_IMPLEMENTED : ", " : INVALID_ARGUMENT : ", " was false. "):
        text = text.rpartition(opening)[2]
    return text


def main():
    if sys.argv[1] == "--version":
        return say(version(sys.argv[2]))
    operator = OPERATORS[sys.argv[1]][1]
    for line in sys.stdin:
        source, target = line.rstrip("\n").split("\t")
        try:
            write(target, operator(Call(source)))
            say("ok")
        except NotOffered as reason:
            say("not offered", reason)
        except Exception as problem:  # the library refuses: its own words are the reason
            say("refused", f"{type(problem).__name__}: {reason_of(problem)}")


if __name__ == "__main__":
    numpy.seterr(all="ignore")
    main()
