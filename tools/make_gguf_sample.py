#!/usr/bin/python3
"""Writes tests/formats/data/written.gguf: a small file by another implementation's writer, for the tests of ours.

    pip install gguf==0.19.0 && python3 tools/make_gguf_sample.py tests/formats/data/written.gguf

Keys of a Llama, lists of each kind, an alignment of its own, and a [3, 64] tensor of each type that the package can
quantise to. Their elements are -8 ... 7 again and again, which every one of these types says exactly.
"""

import sys

import numpy
from gguf import GGMLQuantizationType, GGUFWriter, quants

TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"]


def exact(kind):
    """-8 ... 7 as blocks of the given type, with the scale set where the package's choice would round them."""
    values = numpy.tile(numpy.arange(-8, 8, dtype=numpy.float32), 12).reshape(3, 64)
    if kind == GGMLQuantizationType.F32:
        return values
    raw = quants.quantize(values, kind)
    if kind == GGMLQuantizationType.F16:
        return values.astype(numpy.float16)
    if not numpy.array_equal(quants.dequantize(raw, kind), values):
        raw = with_scale_one(values, kind)
    assert numpy.array_equal(quants.dequantize(raw, kind), values), kind
    return raw


def with_scale_one(values, kind):
    one = numpy.frombuffer(numpy.float16(1).tobytes(), dtype=numpy.uint8)
    least = numpy.frombuffer(numpy.float16(-8).tobytes(), dtype=numpy.uint8)
    blocks = values.reshape(-1, 32).astype(int)
    out = []
    for block in blocks:
        if kind == GGMLQuantizationType.Q8_0:
            out.append(numpy.concatenate([one, block.astype(numpy.int8).view(numpy.uint8)]))
        elif kind == GGMLQuantizationType.Q5_0:
            shifted = block + 16
            high = sum(int(q >> 4) << n for n, q in enumerate(shifted))
            low = ((shifted[:16] & 15) | (shifted[16:] & 15) << 4).astype(numpy.uint8)
            out.append(numpy.concatenate([one, numpy.array([high], dtype="<u4").view(numpy.uint8), low]))
        elif kind == GGMLQuantizationType.Q5_1:
            shifted = block + 8
            low = (shifted[:16] | shifted[16:] << 4).astype(numpy.uint8)
            out.append(numpy.concatenate([one, least, numpy.zeros(4, dtype=numpy.uint8), low]))
    return numpy.concatenate(out).reshape(3, -1)


def main():
    writer = GGUFWriter(sys.argv[1], "llama")
    writer.add_custom_alignment(64)
    writer.add_block_count(2)
    writer.add_head_count_kv([4, 2])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_token_list(["<unk>", "▁café", ""])
    writer.add_token_scores([0.0, -1.5, 2.0])
    writer.add_add_bos_token(True)
    for name in TYPES:
        kind = GGMLQuantizationType[name]
        raw_type = None if name in ("F32", "F16") else kind
        writer.add_tensor(f"{name.lower()}.weight", exact(kind), raw_dtype=raw_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
