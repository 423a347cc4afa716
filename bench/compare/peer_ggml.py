"""llama.cpp's ggml: ggml_flash_attn_ext on the processor, called with ctypes in the library that xllamacpp carries and exports."""
import ctypes
import importlib.util
import pathlib

import numpy

import case as cases
import peer

F32, F16, Q8_0, BF16 = 0, 1, 8, 30  # enum ggml_type
Q8_0_BLOCK = numpy.dtype([("scale", numpy.float16), ("numbers", numpy.int8, 32)])  # block_q8_0


class InitParams(ctypes.Structure):  # struct ggml_init_params
    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]


def _load():
    folder = pathlib.Path(importlib.util.find_spec("xllamacpp").origin).parent
    library = ctypes.CDLL(str(next(folder.glob("xllamacpp*.so"))))
    pointer, i64, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
    for name, result, arguments in (
            ("ggml_version", ctypes.c_char_p, []),
            ("ggml_init", pointer, [InitParams]),
            ("ggml_new_tensor_4d", pointer, [pointer, ctypes.c_int, i64, i64, i64, i64]),
            ("ggml_get_data", pointer, [pointer]),
            ("ggml_nbytes", ctypes.c_size_t, [pointer]),
            ("ggml_flash_attn_ext", pointer, [pointer, pointer, pointer, pointer, pointer, real, real, real]),
            ("ggml_flash_attn_ext_set_prec", None, [pointer, ctypes.c_int]),
            ("ggml_new_graph", pointer, [pointer]),
            ("ggml_build_forward_expand", None, [pointer, pointer]),
            ("ggml_backend_cpu_init", pointer, []),
            ("ggml_backend_cpu_set_n_threads", None, [pointer, ctypes.c_int]),
            ("ggml_backend_graph_compute", ctypes.c_int, [pointer, pointer])):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


GGML = _load()


def version():
    return f"{GGML.ggml_version().decode()} (xllamacpp {importlib.import_module('importlib.metadata').version('xllamacpp')})"


def _mask(case):
    """[q_len, kv_len] in f16, which is the only type it takes; None if every pair is visible."""
    row = case.row
    seen = cases.visible(row, case.allowed)
    if case.bias is None and seen.all():
        return None
    return numpy.where(seen, 0 if case.bias is None else case.bias, -numpy.inf).astype(numpy.float16)


def _eight_bits(x):
    """q8_0: of each 32 numbers the scale max|x| / 127, and the nearest multiples of it."""
    blocks = numpy.empty(x.size // 32, Q8_0_BLOCK)
    flat = x.reshape(-1, 32)
    scale = abs(flat).max(axis=1, keepdims=True) / 127
    blocks["scale"] = scale[:, 0]
    blocks["numbers"] = numpy.rint(flat / scale)
    return blocks


def _flash(case, threads):
    peer.forward_only(case)
    row, mask = case.row, _mask(case)
    keys = _eight_bits if row.dtype == "int8" else lambda x: x
    arrays = [case.q.astype(numpy.float32), keys(case.k), keys(case.v)] + ([] if mask is None else [mask[None, None]])
    shapes = [case.q.shape, case.k.shape, case.v.shape] + ([] if mask is None else [arrays[3].shape])
    room = sum(x.nbytes for x in arrays) + row.batch * row.heads * row.q_len * row.d * 4 + (1 << 22)
    context = GGML.ggml_init(InitParams(room, None, False))
    kinds = {"float32": F32, "float16": F16, "bfloat16": BF16, Q8_0_BLOCK.name: Q8_0}
    tensors = []
    for array, shape in zip(arrays, shapes, strict=True):
        tensor = GGML.ggml_new_tensor_4d(context, kinds[array.dtype.name], *reversed(shape))
        assert GGML.ggml_nbytes(tensor) == array.nbytes
        ctypes.memmove(GGML.ggml_get_data(tensor), array.ctypes.data, array.nbytes)
        tensors.append(tensor)
    result = GGML.ggml_flash_attn_ext(context, *tensors[:3], tensors[3] if mask is not None else None, case.scale, 0.0, 0.0)
    GGML.ggml_flash_attn_ext_set_prec(result, 10)  # GGML_PREC_F32
    graph = GGML.ggml_new_graph(context)
    GGML.ggml_build_forward_expand(graph, result)
    backend = GGML.ggml_backend_cpu_init()
    GGML.ggml_backend_cpu_set_n_threads(backend, threads)

    def run():
        if GGML.ggml_backend_graph_compute(backend, graph) != 0:
            raise RuntimeError("ggml_backend_graph_compute failed")

    def results():
        shape = (row.batch, row.q_len, row.heads, row.d)
        flat = (ctypes.c_float * int(numpy.prod(shape))).from_address(GGML.ggml_get_data(result))
        return [numpy.frombuffer(flat, numpy.float32).reshape(shape).transpose(0, 2, 1, 3)]
    layout = "[batch, heads, length, d] as given, the result as [batch, length, heads, d]; queries and result f32"
    if row.dtype == "int8":
        layout += "; keys and values as q8_0"
    if mask is not None:
        layout += "; every rule and table in one f16 mask, [q_len, kv_len]"
    return peer.Prepared(run, results, layout)


OPERATORS = {"flash": peer.Operator("ggml_flash_attn_ext", _flash)}
OPERATORS["flash-rows"] = peer.rows_of_a_group(OPERATORS["flash"])
