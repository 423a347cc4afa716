"""program_test.py PROGRAM DATA_DIR: glasshead-conformance as a user runs it. Standard library only.

Every test here changes or makes a small folder, because a checker is only worth something if it finds a wrong
number."""
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM, DATA = sys.argv[1], pathlib.Path(sys.argv[2])
del sys.argv[1:]


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)


def npy(dtype, shape, numbers):
    """A .npy of version 1.0 with these numbers."""
    code = {"<f4": "f", "<f8": "d", "|b1": "?"}[dtype]
    dims = "(" + "".join(f"{n}, " for n in shape) + ")"
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {dims}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
            + struct.pack(f"<{len(numbers)}{code}", *numbers))


# Protocol buffers: enough to write a model of one node and its tensors.
def varint(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(name, shape, numbers):
    data = struct.pack(f"<{len(numbers)}f", *numbers)
    return b"".join(field(1, n) for n in shape) + field(2, 1) + field(8, name) + field(9, data)


def model(op, inputs, outputs, attributes=b""):
    node = b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(4, op) + attributes
    graph = field(1, node) + b"".join(field(11, field(1, i)) for i in inputs)
    return field(7, graph + b"".join(field(12, field(1, o)) for o in outputs))


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def one_case(self, y):
        """An adversarial folder with one case: one query, two keys with score 0, v = (4, 8): Y is 6, LSE ln 2."""
        arrays = {"q": ("<f4", [1, 1, 1, 1], [1.0]), "k": ("<f4", [1, 1, 2, 1], [0.0, 0.0]),
                  "v": ("<f4", [1, 1, 2, 1], [4.0, 8.0]), "y": ("<f8", [1, 1, 1, 1], [y]),
                  "lse": ("<f8", [1, 1, 1], [0.6931471805599453]), "tol": ("<f8", [1, 1, 1, 1], [6.0 * 16])}
        (self.folder / "arrays").mkdir(exist_ok=True)
        names = {"<f4": "float32", "<f8": "float64"}
        refs = {}
        for name, (dtype, shape, numbers) in arrays.items():
            (self.folder / "arrays" / f"{name}.npy").write_bytes(npy(dtype, shape, numbers))
            refs[name] = {"name": name.upper(), "dtype": names[dtype], "shape": shape, "file": f"arrays/{name}.npy"}
        case = {"name": "two_keys", "params": {"scale": 1.0}, "inputs": [refs["q"], refs["k"], refs["v"]],
                "expected": {"kind": "values", "Y": refs["y"], "LSE": refs["lse"], "tol_unit": refs["tol"]}}
        index = {"format": "golden/adversarial v1", "cases": [case], "pairs": [], "generated": []}
        (self.folder / "index.json").write_text(json.dumps(index))
        return case, index

    def softmax_package(self, y):
        test = self.folder / "test_softmax_by_hand"
        (test / "test_data_set_0").mkdir(parents=True)
        (test / "model.onnx").write_bytes(model("Softmax", ["x"], ["y"]))
        (test / "test_data_set_0/input_0.pb").write_bytes(tensor("x", [1, 2], [0.0, 0.0]))
        (test / "test_data_set_0/output_0.pb").write_bytes(tensor("y", [1, 2], y))
        return test


class Verdicts(Folder):
    def test_a_right_answer_passes(self):
        self.one_case(6.0)
        result = run(self.folder)
        self.assertEqual((result.returncode, result.stdout), (0, f"{self.folder}: 1 passed, 0 failed\n"))

    def test_a_wrong_number_is_found_at_its_entry(self):
        self.one_case(6.001)
        result = run(self.folder)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"FAIL two_keys: \w+ f\d\d: Y\[0,0,0,0\] = 6 where 6\.001\d* is right: \S+ ulp")
        self.assertIn("0 passed, 1 failed", result.stdout)

    def test_nan_does_not_pass_for_a_number(self):
        self.one_case(float("nan"))
        self.assertEqual(run(self.folder).returncode, 1)

    def test_an_unknown_demand_fails_instead_of_being_left_out(self):
        case, index = self.one_case(6.0)
        case["checks"] = ["Y is nice"]
        (self.folder / "index.json").write_text(json.dumps(index))
        result = run("--json", self.folder)
        self.assertIn("does not know the demand", result.stdout)
        self.assertEqual(result.returncode, 1)

    def test_what_must_be_refused_and_is_accepted_fails(self):
        case, index = self.one_case(6.0)
        case["expected"] = {"kind": "error"}
        (self.folder / "index.json").write_text(json.dumps(index))
        result = run(self.folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn("must be refused", result.stdout)

    def test_a_pair_that_does_not_hold_fails(self):
        _, index = self.one_case(6.0)
        index["pairs"] = [{"kind": "negative", "a": "two_keys", "b": "two_keys", "relation": "Y_b != Y_a"}]
        (self.folder / "index.json").write_text(json.dumps(index))
        result = run(self.folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn("FAIL negative:two_keys:two_keys", result.stdout)

    def test_seeds_with_a_changed_digit_fail(self):
        shutil.copytree(DATA / "seeds", self.folder / "seeds")
        path = self.folder / "seeds/seed1_unmasked.json"
        seed = json.loads(path.read_text())
        seed["values"]["weights"]["value"][1][2] += 1e-14
        path.chmod(0o644)
        path.write_text(json.dumps(seed))
        result = run("--only", "seed1_unmasked", self.folder / "seeds")
        self.assertEqual(result.returncode, 1)
        self.assertIn("weights[1,2]", result.stdout)


class Package(Folder):
    def test_a_model_of_one_node_is_run(self):
        self.softmax_package([0.5, 0.5])
        result = run(self.folder)
        self.assertEqual((result.returncode, result.stdout.splitlines()[-1]), (0, f"{self.folder}: 1 passed, 0 failed"))

    def test_its_wrong_output_is_found(self):
        self.softmax_package([0.5, 0.5000005])
        self.assertRegex(run(self.folder).stdout, r"y\[0,1\] = 0\.5 where 0\.50000\d* is right")

    def test_an_unknown_operator_is_skipped_not_passed(self):
        test = self.softmax_package([0.5, 0.5])
        (test / "model.onnx").write_bytes(model("Sinh", ["x"], ["y"]))
        self.assertIn("0 passed, 0 failed, 1 skipped", run(self.folder).stdout)

    def test_bytes_that_are_no_message_are_refused(self):
        test = self.softmax_package([0.5, 0.5])
        whole = tensor("x", [1, 2], [0.0, 0.0])
        path = test / "test_data_set_0/input_0.pb"
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            self.assertNotEqual((length, run(self.folder).stdout.count("1 passed")), (length, 1))
        for hostile in (b"\xff" * 12, field(1, 2**62) + field(1, 2**62) + field(2, 1), b"\x0a\xff\xff\xff\xff\x7f"):
            path.write_bytes(hostile)
            self.assertIn(run(self.folder).returncode, (0, 1), hostile)


class Usage(Folder):
    def test_each_path_runs_alone(self):
        self.one_case(6.001)
        for path, who in (("transparent", "transparent|steps"), ("fused", r"(?!transparent)\w+")):
            result = run("--path", path, self.folder)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stdout, rf"FAIL two_keys: ({who})( f\d\d)?: Y")
        failures = json.loads(run("--path", "fused", "--isa", "scalar", "--json", self.folder).stdout)["folders"][0]["cases"][0]["failures"]
        self.assertEqual({failure["run"] for failure in failures}, {"scalar f32", "scalar f64"})

    def test_a_kernel_set_that_is_not_there_is_refused(self):
        result = run("--path", "fused", "--isa", "avx512_bf16", DATA / "seeds")
        self.assertEqual(result.returncode, 2)
        self.assertIn("avx512_bf16", result.stderr)
        result = run("--path", "fused", "--isa", "abacus", DATA / "seeds")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn('there is no kernel set "abacus"', result.stderr)

    def test_bad_usage_is_exit_code_2(self):
        for arguments in ([], ["--path", "other", DATA / "seeds"], [self.folder], [self.folder / "none"],
                          ["--only", "no_such_case", DATA / "seeds"]):
            self.assertEqual(run(*arguments).returncode, 2, arguments)

    def test_an_array_that_is_not_as_said_is_refused(self):
        self.one_case(6.0)
        index = json.loads((self.folder / "index.json").read_text())
        index["cases"][0]["inputs"][0]["shape"] = [1, 1, 1, 2]
        (self.folder / "index.json").write_text(json.dumps(index))
        self.assertIn("not what index.json says", run(self.folder).stdout)

    def test_list_names_every_case_and_only_runs_one(self):
        names = run("--list", DATA / "seeds").stdout.split()
        index = json.loads((DATA / "seeds/index.json").read_text())
        self.assertEqual(names, [file["name"] for file in index["files"]])
        self.assertRegex(run("--only", names[0], DATA / "seeds").stdout, r": 1 passed, 0 failed\n$")

    def test_json_counts_what_the_text_counts(self):
        text = run(DATA / "seeds").stdout.splitlines()[-1]
        folder = json.loads(run("--json", DATA / "seeds").stdout)["folders"][0]
        self.assertEqual(re.findall(r"\d+(?= (?:passed|failed))", text), [str(folder["passed"]), str(folder["failed"])])
        self.assertEqual(len(folder["cases"]), folder["passed"] + folder["failed"] + folder["skipped"])


class PackedData(unittest.TestCase):
    def test_the_copies_are_what_the_packer_wrote(self):
        sys.path.insert(0, str(DATA.parent.parent / "tools"))
        import pack_golden
        for name, digests in json.loads((DATA / "PACKED.json").read_text())["folders"].items():
            self.assertEqual(pack_golden.digest_of_folder(DATA / name), digests["packed_sha256"], name)


if __name__ == "__main__":
    unittest.main()
