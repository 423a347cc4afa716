"""Makes the records of this folder again: `python make.py [--any-release] [NAME...]`.

    python -m venv env && env/bin/pip install onnxruntime==1.30.0 onnx==1.23.2 numpy==2.4.6
    env/bin/python make.py                      # what these releases gave
    python -m venv env && env/bin/pip install onnxruntime==1.23.2 onnx==1.19.0 numpy==2.2.6
    env/bin/python make.py

A record is NAME.safetensors: q, k, v as given, mask or bias if there is one, and out as the library returned it.
Records of libraries and releases that are not installed are passed over; --any-release prints what another release
gives, and writes nothing.
"""
import ctypes
import importlib.metadata
import importlib.util
import json
import pathlib
import sys

import numpy

HERE = pathlib.Path(__file__).resolve().parent
F32, F16 = numpy.float32, numpy.float16
LOWEST = numpy.finfo(F32).min
NAN = float("nan")


def g(shape, s):
    """Sixteenths from -30/16 to 30/16: exact in every type."""
    t = numpy.arange(int(numpy.prod(shape)))
    return (((37 * t + 11 * s) % 61 - 30) / 16).reshape(shape).astype(F32)


def G(*shape):
    return {name: g(shape, s) for s, name in enumerate("qkv", 1)}


def rows(values, dtype=F32):
    return numpy.array(values, dtype)[None, None]


def probe(n, m, size=1):
    """A row's out is the mean of the visible 2^j."""
    v = numpy.zeros((1, 1, m, size), F32)
    v[..., 0] = 2.0 ** numpy.arange(m)
    return {"q": numpy.zeros((1, 1, n, size), F32), "k": numpy.zeros((1, 1, m, size), F32), "v": v}


def lowest_rows(n, hidden):
    bias = numpy.zeros((n, n), F32)
    bias[hidden] = LOWEST
    return {**G(1, 1, n, 4), "bias": bias}


def poisoned(value, keys=True, values=True):
    bad = rows([[1, 2, 3, 4], [value] * 4])
    good = rows([[1, 2, 3, 4], [1, 1, 1, 1]])
    return {"q": numpy.ones((1, 1, 2, 4), F32), "k": bad if keys else good, "v": bad if values else good,
            "mask": numpy.array([[True, False]] * 2)}


def far_below():
    return {"q": rows([[-20000]]), "k": rows([[1], [0]]), "v": rows([[1], [100]]), "mask": numpy.array([[True, False]])}


def wide_scores():
    """Scores of some thousands: a hidden key's can be the largest by more than a stand-in of -10000."""
    random = numpy.random.default_rng(10)
    whole = lambda *shape: random.integers(-200, 201, shape).astype(F32)  # noqa: E731
    return {"q": whole(1, 2, 6, 4), "k": whole(1, 2, 5, 4), "v": random.standard_normal((1, 2, 5, 4), F32),
            "mask": numpy.array([[1, 1, 1, 0, 0]], bool)}


def poisoned_column():
    """NaN in one element of one hidden value."""
    a = {**G(1, 1, 4, 4), "mask": numpy.array([[True, True, False, True]] * 4)}
    a["v"][0, 0, 2, 1] = NAN
    return a


def large_query():
    """Row 0 of q is beyond f16's range; its keys are so small that the scores are ordinary."""
    a = G(1, 1, 3, 8)
    a["q"][0, 0, 0] = 70000
    a["k"] = (g((1, 1, 5, 8), 2) * F32(2.0 ** -16)).astype(F16).astype(F32)
    return {**a, "v": g((1, 1, 5, 8), 3)}


def one_row_empty():
    return {**G(1, 1, 3, 4), "mask": numpy.array([[1, 0, 0], [0, 0, 0], [1, 1, 1]], bool)}


def cache_f16(keys, size, value):
    return {"q": numpy.zeros((1, 1, 1, size), F32), "k": numpy.ones((1, 1, keys, size), F32),
            "v": numpy.full((1, 1, keys, size), value, F32)}


def cache_f16_random(keys, size):
    random = numpy.random.default_rng(35)
    normal = lambda *shape: random.standard_normal(shape).astype(F16).astype(F32)  # noqa: E731
    return {"q": normal(1, 1, 4, size), "k": normal(1, 1, keys, size), "v": normal(1, 1, keys, size) + F32(3)}


# --- the libraries; each is given a record's arrays and gives out [batch, heads, q_len, d_v] ---

def _flat(x):
    batch, heads, length, size = x.shape
    return numpy.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(batch, length, heads * size)


def _unflat(x, heads):
    batch, length, size = x.shape
    return numpy.ascontiguousarray(x.reshape(batch, length, heads, size // heads).transpose(0, 2, 1, 3))


def _onnx(op, domain, inputs, outputs=("out",), **attributes):
    import onnxruntime
    from onnx import helper
    of = lambda x: helper.np_dtype_to_tensor_dtype(x.dtype)  # noqa: E731
    given = {name: x for name, x in inputs.items() if x is not None}
    node = helper.make_node(op, [name if name in given else "" for name in inputs], list(outputs), domain=domain, **attributes)
    graph = helper.make_graph([node], "record", [helper.make_tensor_value_info(n, of(x), x.shape) for n, x in given.items()],
                              [helper.make_tensor_value_info(n, of(inputs["q"]), None) for n in outputs])
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, given)[0]


def ort_attention(a, **attributes):
    return _onnx("Attention", "", {"q": a["q"], "k": a["k"], "v": a["v"], "mask": a.get("mask", a.get("bias"))}, **attributes)


def ort_mha(a, **attributes):
    heads, mask = a["q"].shape[1], a["mask"]
    padding = numpy.ascontiguousarray(mask[:1]).astype(numpy.int32)  # [batch, kv_len]: 1 = counts
    return _unflat(_onnx("MultiHeadAttention", "com.microsoft",
                         {"q": _flat(a["q"]), "k": _flat(a["k"]), "v": _flat(a["v"]), "bias": None, "padding": padding},
                         num_heads=heads, **attributes), heads)


def ort_gqa(a, **attributes):
    heads, kv_heads, n = a["q"].shape[1], a["k"].shape[1], a["k"].shape[2]
    return _unflat(_onnx("GroupQueryAttention", "com.microsoft",
                         {"q": _flat(a["q"]), "k": _flat(a["k"]), "v": _flat(a["v"]), "past_k": None, "past_v": None,
                          "lengths": numpy.array([n - 1], numpy.int32), "total": numpy.array(n, numpy.int32)},
                         ("out", "present_k", "present_v"), num_heads=heads, kv_num_heads=kv_heads, **attributes), heads)


def torch_sdpa(a, **options):
    import torch
    t = {name: torch.from_numpy(x) for name, x in a.items()}
    torch.set_num_threads(1)
    return torch.nn.functional.scaled_dot_product_attention(t["q"], t["k"], t["v"], attn_mask=t.get("mask"), **options).numpy()


def jax_sdpa(a, **options):
    import jax
    q, k, v = (jax.numpy.asarray(a[name].transpose(0, 2, 1, 3)) for name in "qkv")
    out = jax.nn.dot_product_attention(q, k, v, mask=jax.numpy.asarray(a["mask"])[None, None], **options)
    return numpy.ascontiguousarray(numpy.asarray(out).transpose(0, 2, 1, 3))


def openvino_sdpa(a):
    import openvino
    from openvino import opset13
    arrays = [a["q"], a["k"], a["v"], a["mask"][None, None]]
    given = [opset13.parameter(x.shape, x.dtype) for x in arrays]
    model = openvino.Model([opset13.scaled_dot_product_attention(*given)], given)
    return openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(arrays)[0]


def ggml_flash(a, threads=1):
    sys.path.insert(0, str(HERE.parents[2] / "bench" / "compare"))
    from peer_ggml import F16 as HALF, F32 as FLOAT, GGML, InitParams
    arrays = [a["q"], a["k"].astype(F16), a["v"].astype(F16)]  # the cache is f16, which holds these numbers
    context = GGML.ggml_init(InitParams(sum(x.nbytes for x in arrays) + a["q"].nbytes * 4 + (1 << 22), None, False))
    tensors = []
    for x in arrays:
        kind = {"float32": FLOAT, "float16": HALF}[x.dtype.name]
        tensor = GGML.ggml_new_tensor_4d(context, kind, *reversed(x.shape))
        ctypes.memmove(GGML.ggml_get_data(tensor), x.ctypes.data, x.nbytes)
        tensors.append(tensor)
    result = GGML.ggml_flash_attn_ext(context, *tensors, None, a["q"].shape[3] ** -0.5, 0.0, 0.0)
    GGML.ggml_flash_attn_ext_set_prec(result, 10)  # GGML_PREC_F32
    graph = GGML.ggml_new_graph(context)
    GGML.ggml_build_forward_expand(graph, result)
    backend = GGML.ggml_backend_cpu_init()
    GGML.ggml_backend_cpu_set_n_threads(backend, threads)
    assert GGML.ggml_backend_graph_compute(backend, graph) == 0
    batch, heads, length, _ = a["q"].shape
    shape = (batch, length, heads, a["v"].shape[3])
    flat = (ctypes.c_float * int(numpy.prod(shape))).from_address(GGML.ggml_get_data(result))
    return numpy.ascontiguousarray(numpy.frombuffer(flat, F32).reshape(shape).transpose(0, 2, 1, 3))


def onnx_reference(a, **attributes):
    """The ONNX project's own evaluator, in NumPy."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator
    of = lambda x: helper.np_dtype_to_tensor_dtype(x.dtype)  # noqa: E731
    node = helper.make_node("Attention", list(a), ["out"], **attributes)
    graph = helper.make_graph([node], "record", [helper.make_tensor_value_info(n, of(x), x.shape) for n, x in a.items()],
                              [helper.make_tensor_value_info("out", of(a["q"]), None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    return ReferenceEvaluator(model).run(None, a)[0]


ORT, OLD_ORT, OLD_ONNX = "onnxruntime==1.30.0", "onnxruntime==1.23.2", "onnx==1.19.0"
TORCH, JAX, OPENVINO, GGML = "torch==2.15.0", "jax==0.10.2", "openvino==2026.4.1", "xllamacpp==2026.10.11549"

# name: (library and release, operator as its project calls it, the call in words, arrays, run)
RECORDS = {
    "onnx-heads-tiled": (OLD_ONNX, "Attention (opset 23), reference evaluator", "6 query heads, 3 key/value heads",
                         lambda: {"q": g((1, 6, 5, 8), 1), "k": g((1, 3, 8, 8), 2), "v": g((1, 3, 8, 8), 3)}, onnx_reference),
    "onnx-softcap-after-mask": (OLD_ONNX, "Attention (opset 23), reference evaluator", "softcap 3, is_causal", lambda: G(1, 1, 6, 8),
                                lambda a: onnx_reference(a, softcap=3.0, is_causal=1)),
    "onnx-mask-and-causal": (OLD_ONNX, "Attention (opset 23), reference evaluator", "is_causal, attn_mask bool, all true",
                             lambda: {**probe(3, 3), "mask": numpy.ones((3, 3), bool)}, lambda a: onnx_reference(a, is_causal=1)),
    "onnx-empty-row": (OLD_ONNX, "Attention (opset 23), reference evaluator", "attn_mask bool", one_row_empty, onnx_reference),
    "ort-gqa-window": (OLD_ORT, "GroupQueryAttention (com.microsoft)", "local_window_size 4", lambda: G(1, 1, 20, 8),
                       lambda a: ort_gqa(a, local_window_size=4)),
    "ort-attention-lowest-row": (ORT, "Attention (opset 23)", "attn_mask float", lambda: lowest_rows(3, [0]), ort_attention),
    "ort-attention-lowest-rows": (ORT, "Attention (opset 23)", "attn_mask float", lambda: lowest_rows(4, [1, 3]), ort_attention),
    "ort-attention-hidden-nan": (ORT, "Attention (opset 23)", "attn_mask bool", lambda: poisoned(NAN), ort_attention),
    "ort-attention-hidden-nan-value": (ORT, "Attention (opset 23)", "attn_mask bool",
                                       lambda: poisoned(NAN, keys=False), ort_attention),
    "ort-attention-hidden-nan-column": (ORT, "Attention (opset 23)", "attn_mask bool", poisoned_column, ort_attention),
    "ort-attention-hidden-inf": (ORT, "Attention (opset 23)", "attn_mask bool", lambda: poisoned(float("inf")), ort_attention),
    "ort-mha-hidden-key": (ORT, "MultiHeadAttention (com.microsoft)", "key_padding_mask, scale 1", far_below,
                           lambda a: ort_mha(a, scale=1.0)),
    "ort-mha-hidden-keys": (ORT, "MultiHeadAttention (com.microsoft)", "key_padding_mask", wide_scores, ort_mha),
    "ort-mha-empty": (ORT, "MultiHeadAttention (com.microsoft)", "key_padding_mask",
                      lambda: {**G(1, 1, 3, 4), "mask": numpy.zeros((1, 3), bool)}, ort_mha),
    "ort-gqa-window-0": (ORT, "GroupQueryAttention (com.microsoft)", "local_window_size 0, scale 1", lambda: probe(6, 6, 8),
                         lambda a: ort_gqa(a, local_window_size=0, scale=1.0)),
    "ort-gqa-window-0-mixed": (ORT, "GroupQueryAttention (com.microsoft)", "local_window_size 0", lambda: G(1, 2, 6, 8),
                               lambda a: ort_gqa(a, local_window_size=0)),
    "torch-hidden-nan": (TORCH, "scaled_dot_product_attention", "attn_mask bool, CPU", lambda: poisoned(NAN), torch_sdpa),
    "torch-corner": (TORCH, "scaled_dot_product_attention", "is_causal, CPU", lambda: probe(3, 16), lambda a: torch_sdpa(a, is_causal=True)),
    "jax-empty-row": (JAX, "jax.nn.dot_product_attention", "mask bool, CPU", one_row_empty, jax_sdpa),
    "jax-hidden-nan-value": (JAX, "jax.nn.dot_product_attention", "mask bool, CPU", lambda: poisoned(NAN, keys=False), jax_sdpa),
    "openvino-empty-row": (OPENVINO, "ScaledDotProductAttention (opset 13)", "attention_mask bool, CPU", one_row_empty, openvino_sdpa),
    "ggml-f16-sum-overflows": (GGML, "ggml_flash_attn_ext", "f16 cache, 1 thread", lambda: cache_f16(2304, 8, 30), ggml_flash),
    "ggml-f16-sum-stalls": (GGML, "ggml_flash_attn_ext", "f16 cache, 2 threads", lambda: cache_f16(2304, 8, 30),
                            lambda a: ggml_flash(a, threads=2)),
    "ggml-f16-values-300": (GGML, "ggml_flash_attn_ext", "f16 cache, 1 thread", lambda: cache_f16(400, 32, 300), ggml_flash),
    "ggml-f16-query": (GGML, "ggml_flash_attn_ext", "f16 cache, 1 thread",
                       lambda: {"q": numpy.full((1, 1, 1, 64), 70000, F32), "k": numpy.full((1, 1, 64, 64), 0.01, F16).astype(F32),
                                "v": numpy.ones((1, 1, 64, 64), F32)}, ggml_flash),
    "ggml-f16-query-row": (GGML, "ggml_flash_attn_ext", "f16 cache, 1 thread", large_query, ggml_flash),
    "ggml-f16-random": (GGML, "ggml_flash_attn_ext", "f16 cache, 1 thread", lambda: cache_f16_random(200, 16), ggml_flash),
}


def release(library, version):
    if library != "xllamacpp":
        return f"{library} {version}"
    sys.path.insert(0, str(HERE.parents[2] / "bench" / "compare"))
    from peer_ggml import GGML as functions
    return f"ggml {functions.ggml_version().decode()} (xllamacpp {version})"


def safetensors(arrays):
    names = {"float32": "F32", "float16": "F16", "bool": "BOOL"}
    header, data = {}, b""
    for name, x in arrays.items():
        raw = numpy.ascontiguousarray(x).tobytes()
        header[name] = {"dtype": names[x.dtype.name], "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def main(wanted):
    any_release = "--any-release" in wanted
    wanted = [name for name in wanted if name in RECORDS]
    path = HERE / "index.json"
    index = json.loads(path.read_text()) if path.exists() else {}
    for name, (library, operator, call, arrays_of, run) in RECORDS.items():
        library, pinned = library.split("==")
        if (wanted and name not in wanted) or importlib.util.find_spec(library) is None:
            continue
        version = importlib.metadata.version(library)
        if version != pinned and not any_release:
            continue
        arrays = arrays_of()
        arrays["out"] = run(arrays).astype(F32)
        print(name, library, version, arrays["out"].ravel()[:6])
        if not any_release:
            (HERE / f"{name}.safetensors").write_bytes(safetensors(arrays))
            index[name] = {"release": release(library, version), "operator": operator, "call": call}
    if not any_release:
        path.write_text(json.dumps({name: index[name] for name in RECORDS if name in index}, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
