"""Copies golden data into tests/data, in a form made for a repository.

    python3 tools/pack_golden.py GOLDEN_DIR tests/data

GOLDEN_DIR holds seeds/ and adversarial/ (not the ONNX folders, which are ONNX's own and are read where they lie).
seeds/*.json are copied as they are. adversarial/ becomes index.json, byte for byte, and one arrays.safetensors
that holds every arrays/<hash>.npy under its hash: 811 small files less, and read by the library's own reader. The
numbers are not touched. PACKED.json records how the copy was made: the script and its SHA-256, the command, the
Python version, and the SHA-256 of what went in and of what came out. Standard library only."""
import ast
import hashlib
import json
import pathlib
import shutil
import struct
import sys

DTYPES = {"<f8": "F64", "<f4": "F32", "<f2": "F16", "|b1": "BOOL", "<i8": "I64"}
MAGIC = b"\x93NUMPY\x01\x00"  # version 1.0: the only one golden data uses


def read_npy(path):
    """(dtype, shape, bytes) of a C-ordered .npy of version 1.0."""
    data = path.read_bytes()
    if not data.startswith(MAGIC):
        raise ValueError(f"{path}: not a .npy of version 1.0")
    (length,) = struct.unpack_from("<H", data, len(MAGIC))
    start = len(MAGIC) + 2 + length
    header = ast.literal_eval(data[len(MAGIC) + 2:start].decode("latin1"))
    if header["fortran_order"]:
        raise ValueError(f"{path}: Fortran order")
    return DTYPES[header["descr"]], list(header["shape"]), data[start:]


def safetensors(arrays):
    """The bytes of a .safetensors file with these (name, dtype, shape, bytes), header padded to 8."""
    header, offset = {}, 0
    for name, dtype, shape, data in arrays:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for *_, data in arrays)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def digest_of_folder(folder):
    """One digest of all files below a folder: of the lines "name digest", sorted."""
    lines = [f"{p.relative_to(folder)} {digest(p.read_bytes())}\n" for p in sorted(folder.rglob("*")) if p.is_file()]
    return digest("".join(lines).encode())


def pack_seeds(source, target):
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.glob("*.json")):
        shutil.copyfile(path, target / path.name)


def pack_adversarial(source, target):
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / "index.json", target / "index.json")
    # Widest elements first, so that every array starts at a multiple of its element's size.
    width = {"F64": 8, "I64": 8, "F32": 4, "F16": 2, "BOOL": 1}
    arrays = [(p.stem, *read_npy(p)) for p in sorted((source / "arrays").glob("*.npy"))]
    arrays.sort(key=lambda array: (-width[array[1]], array[0]))
    (target / "arrays.safetensors").write_bytes(safetensors(arrays))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    record = {"script": "tools/pack_golden.py", "script_sha256": digest(pathlib.Path(__file__).read_bytes()),
              "command": "python3 tools/pack_golden.py GOLDEN_DIR tests/data",
              "python": ".".join(map(str, sys.version_info[:3])), "folders": {}}
    for name, pack in (("seeds", pack_seeds), ("adversarial", pack_adversarial)):
        pack(source / name, target / name)
        record["folders"][name] = {"source_sha256": digest_of_folder(source / name),
                                   "packed_sha256": digest_of_folder(target / name)}
    (target / "PACKED.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
