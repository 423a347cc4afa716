"""The converter of PyTorch checkpoints: both forms it reads, and that nothing in a file is run. Files are built here,
opcode by opcode where PyTorch would write them, since PyTorch is not needed to test this."""

import collections
import io
import json
import pathlib
import pickle
import struct
import sys
import types
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
import torch_to_safetensors as converter  # noqa: E402

# Stand-ins under PyTorch's names, so that pickle writes what PyTorch's save would.
torch = types.ModuleType("torch")
utils = types.ModuleType("torch._utils")
sys.modules |= {"torch": torch, "torch._utils": utils}


class FloatStorage:
    __module__ = "torch"


def _rebuild_tensor_v2(*arguments):
    raise AssertionError("the file's function was called")


_rebuild_tensor_v2.__module__ = "torch._utils"
torch.FloatStorage = FloatStorage
utils._rebuild_tensor_v2 = _rebuild_tensor_v2


class Stored:
    def __init__(self, key, count):
        self.key, self.count = key, count


class Tensor:
    def __init__(self, storage, offset, shape, stride):
        self.arguments = (storage, offset, shape, stride, False, collections.OrderedDict())

    def __reduce__(self):
        return _rebuild_tensor_v2, self.arguments


class Pickler(pickle.Pickler):
    view = (None,)  # what the older form adds to a storage's id

    def persistent_id(self, value):
        if isinstance(value, Stored):
            return ("storage", FloatStorage, value.key, "cpu", value.count, *self.view)
        return None


def pickled(value, view=(None,)):
    stream = io.BytesIO()
    pickler = Pickler(stream, protocol=2)
    pickler.view = view
    pickler.dump(value)
    return stream.getvalue()


def legacy(tensors, storages, little_endian=True):
    parts = [
        pickled(converter.LEGACY_MAGIC),
        pickled(converter.LEGACY_PROTOCOL),
        pickled({"little_endian": little_endian}),
        pickled(tensors),
        pickled(list(storages)),
    ]
    return b"".join(parts) + b"".join(struct.pack(f"<q{len(v)}f", len(v), *v) for v in storages.values())


def archive(tensors, storages):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("model/data.pkl", pickled(tensors, view=()))
        for key, values in storages.items():
            file.writestr(f"model/data/{key}", struct.pack(f"<{len(values)}f", *values))
    return stream.getvalue()


def read_back(data):
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__")
    found = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        part = data[8 + length + begin : 8 + length + end]
        found[name] = (entry["shape"], list(struct.unpack(f"<{len(part) // 4}f", part)))
    return found


STORAGES = {"7": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "8": [0.5]}
TENSORS = {
    "b.weight": Tensor(Stored("7", 6), 0, (2, 3), (3, 1)),
    "a.bias": Tensor(Stored("7", 6), 3, (3,), (1,)),
    "scalar": Tensor(Stored("8", 1), 0, (), ()),
}
NUMBERS = {"a.bias": ([3], [4, 5, 6]), "b.weight": ([2, 3], [1, 2, 3, 4, 5, 6]), "scalar": ([], [0.5])}


class TorchToSafetensors(unittest.TestCase):
    def test_the_older_stream_is_read(self):
        self.assertEqual(read_back(converter.convert(legacy(TENSORS, STORAGES))), NUMBERS)

    def test_the_archive_is_read(self):
        self.assertEqual(read_back(converter.convert(archive(TENSORS, STORAGES))), NUMBERS)

    def test_a_copy_is_dropped_and_nothing_else(self):
        twice = {**TENSORS, "copy": Tensor(Stored("7", 6), 3, (3,), (1,))}
        self.assertEqual(read_back(converter.convert(legacy(twice, STORAGES), ("copy",))), NUMBERS)
        with self.assertRaisesRegex(ValueError, "b.weight"):
            converter.convert(legacy(TENSORS, STORAGES), ("b.weight",))

    def test_no_other_function_is_known(self):
        class Harmful:
            def __reduce__(self):
                return print, ("this is run",)

        with self.assertRaisesRegex(pickle.UnpicklingError, "print"):
            converter.convert(legacy({"a": Harmful()}, {}))

    def test_a_transposed_view_is_refused(self):
        with self.assertRaisesRegex(ValueError, "strides"):
            converter.convert(legacy({"t": Tensor(Stored("7", 6), 0, (3, 2), (1, 3))}, STORAGES))

    def test_a_tensor_beyond_its_storage_is_refused(self):
        for offset, shape in ((4, (3,)), (-1, (2,)), (0, (1 << 62,))):
            with self.assertRaisesRegex(ValueError, "storage of 6"):
                converter.convert(legacy({"t": Tensor(Stored("7", 6), offset, shape, (1,) * len(shape))}, STORAGES))

    def test_short_and_foreign_files_are_refused(self):
        for short in (1, 10, 20):
            with self.assertRaisesRegex(ValueError, "bytes are wanted"):
                converter.convert(legacy(TENSORS, STORAGES)[:-short])
        with self.assertRaisesRegex(ValueError, "big-endian"):
            converter.convert(legacy(TENSORS, STORAGES, little_endian=False))
        with self.assertRaisesRegex(ValueError, "neither"):
            converter.convert(pickled(5) * 2)


if __name__ == "__main__":
    unittest.main()
