"""Glasshead itself, through ours.cc. The library is the one that GLASSHEAD_COMPARE_LIBRARY names."""
import ctypes
import os
import pathlib

import numpy

import case as cases
import peer

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHIM = pathlib.Path(os.environ.get("GLASSHEAD_COMPARE_LIBRARY", ROOT / "build/bench/lib/libglasshead_compare.so"))


def version():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return f"{text.split('project(glasshead VERSION ')[1].split()[0]} ({_library().glasshead_compare_isa().decode()})"


class Call(ctypes.Structure):  # CompareCall of ours.cc
    _fields_ = [*((name, ctypes.c_void_p) for name in ("q", "k", "v", "out", "bias", "allowed", "d_out", "dq", "dk", "dv")),
                *((name, ctypes.c_int64) for name in ("batch", "heads", "kv_heads", "q_len", "kv_len", "d", "window")),
                ("is_causal", ctypes.c_int32), ("is_bf16", ctypes.c_int32), ("cache", ctypes.c_int32)]


KV_TYPES = {"f32": 1, "bf16": 2, "int8": 4}  # KvType of glasshead/kv_cache.h; a cache of this type for keys of this type
TENSORS = -1


def _library():
    library = ctypes.CDLL(str(SHIM))
    library.glasshead_compare_open.restype = ctypes.c_void_p
    library.glasshead_compare_isa.restype = ctypes.c_char_p
    library.glasshead_compare_run.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    return library


def _prepared(case, cache, layout):
    library, row = _library(), case.row
    outputs = [cases.room(x.shape, numpy.float32) for x in ((case.q, case.k, case.v) if row.backward else (case.q,))]
    at = lambda array: None if array is None else array.ctypes.data  # noqa: E731
    call = Call(q=at(case.q), k=at(case.k), v=at(case.v), bias=at(case.bias), allowed=at(case.allowed), d_out=at(case.d_out),
                **dict(zip(("dq", "dk", "dv") if row.backward else ("out",), map(at, outputs))),
                **{name: getattr(row, name) for name in ("batch", "heads", "kv_heads", "q_len", "kv_len", "d", "window")},
                is_causal=row.causal, is_bf16=row.dtype == "bf16", cache=cache)
    error = ctypes.create_string_buffer(2000)
    handle = library.glasshead_compare_open(ctypes.byref(call), error, len(error))
    if not handle:
        raise peer.CannotRun(error.value.decode())

    def run():
        if not library.glasshead_compare_run(handle, error, len(error)):
            raise RuntimeError(error.value.decode())
    return peer.Prepared(run, lambda: outputs, layout, keeps=case)


def _attend(case, threads):
    del threads  # GLASSHEAD_THREADS, which the library reads when it is first called
    peer.no_eight_bits(case)
    layout = "[batch, heads, length, d] as given, nothing copied; results are f32"
    if case.row.backward:
        layout += "; the forward pass, whose result and row maxima and sums this one is given, is not in the time"
    return _prepared(case, TENSORS, layout)


def _cache(case, threads):
    del threads
    peer.forward_only(case)
    return _prepared(case, KV_TYPES[case.row.dtype], "keys and values in a KvCache (contiguous, of the row's type), filled before the time begins; "
                     "queries as given, the result is f32")


OPERATORS = {
    "attend": peer.Operator("glasshead::attend; glasshead::attend_backward", _attend),
    "cache": peer.Operator("glasshead::attend over a KvCache", _cache),
}
