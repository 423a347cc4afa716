"""Runs the built `glasshead` and reads and writes its files, with the standard library only.

    from glasshead import Case, main, npy
    class Attend(Case):
        def test_something(self):
            result = self.run_command("attend", "--q", self.npy("q", [[1, 0]]), ...)
    if __name__ == "__main__":
        main()
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None  # set by main() from the command line

# struct's letter of an element and the type's name in a .safetensors file
TYPES = {"<f8": ("d", "F64"), "<f4": ("f", "F32"), "<f2": ("e", "F16"), "|b1": ("?", "BOOL"),
         "<i8": ("q", "I64")}


def shape_of(values):
    shape = []
    while isinstance(values, (list, tuple)):
        shape.append(len(values))
        if not values:
            break
        values = values[0]
    return shape


def flatten(values):
    if not isinstance(values, (list, tuple)):
        return [values]
    return [x for part in values for x in flatten(part)]


def nest(flat, shape):
    if not shape:
        return flat[0]
    step = len(flat) // shape[0] if shape[0] else 0
    return [nest(flat[n * step:(n + 1) * step], shape[1:]) for n in range(shape[0])]


def pack(values, descr):
    return b"".join(struct.pack("<" + TYPES[descr][0], x) for x in flatten(values))


def npy(values, descr="<f8", shape=None):
    shape = tuple(shape_of(values) if shape is None else shape)
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + pack(values, descr)


def read_npy(path):
    """(descr, shape, nested values)"""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    end = 10 + struct.unpack("<H", data[8:10])[0]
    assert end % 64 == 0, "data must be aligned to 64 bytes"
    header = eval(data[10:end].decode(), {"__builtins__": {}})  # our own output
    letter = TYPES[header["descr"]][0]
    count = (len(data) - end) // struct.calcsize(letter)
    flat = list(struct.unpack(f"<{count}{letter}", data[end:]))
    return header["descr"], list(header["shape"]), nest(flat, header["shape"])


def safetensors(tensors):
    """{name: (type name such as "F32", shape, bytes)} -> a file's bytes"""
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(path):
    """{name: (type name, shape, bytes)}"""
    with open(path, "rb") as file:
        data = file.read()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    return {name: (entry["dtype"], entry["shape"],
                   data[end + entry["data_offsets"][0]:end + entry["data_offsets"][1]])
            for name, entry in json.loads(data[8:end]).items() if name != "__metadata__"}


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit code {self.code}\nstdout:\n{self.out}\nstderr:\n{self.err}"


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name
        self.addCleanup(self._folder.cleanup)
        self.env = dict(os.environ)  # what run_command's program finds

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def npy(self, name, values, descr="<f8", shape=None):
        return self.file(name + ".npy", npy(values, descr, shape))

    def run_command(self, *args, code=0):
        """Runs `glasshead args...`; the exit code must be `code` (None: any)."""
        done = subprocess.run([PROGRAM, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, cwd=self.folder, env=self.env,
                              timeout=60)
        result = Result(done.returncode, done.stdout, done.stderr)
        if code is not None:
            self.assertEqual(result.code, code, result)
        return result

    def refused(self, *args):
        """The lines on stderr of a command that must refuse its input: exit code 2, no output."""
        result = self.run_command(*args, code=2)
        self.assertEqual(result.out, "")
        return result.err

    def close(self, found, expected, tolerance=5e-11):
        """Nested lists of numbers, equal to the digits that `expected` is given with."""
        self.assertEqual(shape_of(found), shape_of(expected))
        for x, y in zip(flatten(found), flatten(expected)):
            if x != y:  # equal infinities have no difference
                self.assertLessEqual(abs(x - y), tolerance, (found, expected))


def main():
    global PROGRAM
    sys.modules["glasshead"].PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
