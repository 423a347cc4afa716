"""Converts a PyTorch checkpoint (.bin, .pt) to safetensors without running anything that is in it.

    python3 tools/torch_to_safetensors.py pytorch_model.bin model.safetensors [--drop NAME...]

A .bin is a pickle, which can name any function to be called: here only the few that rebuild tensors are known, and
anything else is an error. Both forms are read, the zip archive of PyTorch 1.6 and later and the stream before it.
--drop leaves out tensors that are stored copies of others; it is an error if one differs from all that stay.
Standard library only."""

from __future__ import annotations

import argparse
import collections
import io
import json
import math
import pathlib
import pickle
import struct
import sys
import zipfile
from typing import Any, NamedTuple

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_PROTOCOL = 1001
# torch's storage classes: safetensors' name and the bytes of one element.
STORAGES = {
    "DoubleStorage": ("F64", 8),
    "FloatStorage": ("F32", 4),
    "HalfStorage": ("F16", 2),
    "BFloat16Storage": ("BF16", 2),
    "LongStorage": ("I64", 8),
    "IntStorage": ("I32", 4),
    "ShortStorage": ("I16", 2),
    "CharStorage": ("I8", 1),
    "ByteStorage": ("U8", 1),
    "BoolStorage": ("BOOL", 1),
}


class Storage(NamedTuple):
    kind: str
    key: str
    count: int


class Tensor(NamedTuple):
    storage: Storage
    offset: int
    shape: tuple[int, ...]


class StorageKind(str):
    """What stands for torch.FloatStorage: never called, only compared."""


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def rebuild_tensor(storage: Storage, offset: int, shape: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> Tensor:
    if any(s != c for s, c, size in zip(stride, contiguous(shape), shape, strict=True) if size > 1):
        raise ValueError(f"a tensor {list(shape)} with strides {list(stride)}: only dense ones are converted")
    if offset < 0 or offset + math.prod(shape) > storage.count:
        raise ValueError(f"a tensor {list(shape)} from {offset} on in a storage of {storage.count}")
    return Tensor(storage, offset, tuple(shape))


def rebuild_parameter(tensor: Tensor, *_: Any) -> Tensor:
    return tensor


class Restricted(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream)
        self.seen: dict[str, Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return rebuild_tensor
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return rebuild_parameter
        if module == "torch" and name in STORAGES:
            return StorageKind(name)
        raise pickle.UnpicklingError(f"the file asks for {module}.{name}, which no checkpoint of tensors needs")

    def persistent_load(self, pid: Any) -> Storage:
        # ("storage", class, key, device, count), and in the legacy form a view of another storage or None.
        if pid[0] != "storage" or not isinstance(pid[1], StorageKind) or (len(pid) > 5 and pid[5] is not None):
            raise pickle.UnpicklingError(f"a persistent id {pid!r}")
        storage = Storage(str(pid[1]), str(pid[2]), int(pid[4]))
        self.seen[storage.key] = storage
        return storage


def read_zip(data: bytes) -> tuple[Any, dict[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (table,) = (n for n in archive.namelist() if n.endswith("/data.pkl"))
        root = table.removesuffix("data.pkl")
        order = f"{root}byteorder"
        if order in archive.namelist() and archive.read(order) != b"little":
            raise ValueError("the numbers are big-endian")
        found = Restricted(io.BytesIO(archive.read(table))).load()
        parts = {n.removeprefix(f"{root}data/"): archive.read(n) for n in archive.namelist() if f"{root}data/" in n}
    return found, parts


def take(stream: io.BytesIO, size: int) -> bytes:
    part = stream.read(size) if size >= 0 else b""
    if len(part) != size:
        raise ValueError(f"{size} bytes are wanted where the file has {len(part)}")
    return part


def read_legacy(data: bytes) -> tuple[Any, dict[str, bytes]]:
    stream = io.BytesIO(data)
    if Restricted(stream).load() != LEGACY_MAGIC or Restricted(stream).load() != LEGACY_PROTOCOL:
        raise ValueError("neither a zip archive nor PyTorch's older stream")
    if not Restricted(stream).load()["little_endian"]:
        raise ValueError("the numbers are big-endian")
    reader = Restricted(stream)
    found = reader.load()
    parts = {}
    for key in Restricted(stream).load():
        (count,) = struct.unpack("<q", take(stream, 8))
        if count != reader.seen[key].count:
            raise ValueError(f"storage {key} holds {count} elements, its tensors say {reader.seen[key].count}")
        parts[key] = take(stream, count * STORAGES[reader.seen[key].kind][1])
    return found, parts


def read(data: bytes) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """name -> (safetensors' type, shape, bytes)."""
    found, parts = read_zip(data) if data.startswith(b"PK") else read_legacy(data)
    tensors = {}
    for name, tensor in found.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"{name} is no tensor")
        kind, width = STORAGES[tensor.storage.kind]
        begin, size = tensor.offset * width, math.prod(tensor.shape) * width
        part = parts[tensor.storage.key][begin : begin + size]
        if len(part) != size:
            raise ValueError(f"{name} needs {size} bytes, there are {len(part)}")
        tensors[name] = (kind, tensor.shape, part)
    return tensors


def safetensors(tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, (kind, shape, part) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [offset, offset + len(part)]}
        offset += len(part)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(part for _, _, part in tensors.values())


def convert(data: bytes, drop: tuple[str, ...] = ()) -> bytes:
    tensors = read(data)
    kept = {name: value for name, value in tensors.items() if name not in drop}
    lost = [name for name in drop if name in tensors and tensors[name] not in kept.values()]
    if lost:
        raise ValueError(f"not copies of tensors that stay: {', '.join(lost)}")
    return safetensors(dict(sorted(kept.items())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("--drop", nargs="*", default=[])
    arguments = parser.parse_args()
    try:
        arguments.target.write_bytes(convert(arguments.source.read_bytes(), tuple(arguments.drop)))
    except (ValueError, TypeError, pickle.UnpicklingError, OSError, KeyError, EOFError, zipfile.BadZipFile) as error:
        sys.exit(f"torch_to_safetensors: {arguments.source}: {error}")


if __name__ == "__main__":
    main()
