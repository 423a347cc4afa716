"""Who may include what. `includes_test.py SOURCE_DIR` reads every source and header and prints each breach."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()

# The layers: a folder of src/ may include itself, these folders, and the public headers.
MAY_INCLUDE = {
    "base": set(),
    "kernels": {"base"},
    "core": {"base", "kernels"},
    "formats": {"base"},
    "text": {"base", "formats"},
    "nn": {"base", "kernels", "core"},
    "wire": {"base", "core", "nn"},
    "doctor": {"base", "core", "nn", "wire"},
    "audit": {"base", "core", "wire", "doctor"},  # files by the public header
    "model": {"base", "core", "formats", "text", "nn"},
    "port": {"base", "nn", "wire", "model"},  # files and the doctor by their public headers
}
# What programs and bindings may include beside the public headers and their own: whole layers, and of the others the
# headers made for them. What a program needs and finds in no public header belongs into one of these.
DOCTORS = {f"doctor/{name}.h" for name in ("case_subject", "fit_claims", "mistake_document", "mistakes", "worksheet")}
PROGRAMS_MAY_INCLUDE = {
    "apps/cli": {"wire", *DOCTORS, "model/head.h"},  # a head of a model as a case
    "apps/conformance": {"nn", "base/checked.h"},  # sizes in hostile files
    "apps/server": {"wire", *DOCTORS, "wasm"},  # what a page asks its engine is asked here, too
    "bindings/python": {"wire", *DOCTORS},
    # What a trap leaves behind is handed out by address; where f32 is left out; a page marks each wrong number itself.
    "bindings/wasm": {"wire", *DOCTORS, "base/fail.h", "core/fused.h", "doctor/judge.h", "doctor/subject.h"},
}
# Libraries that a folder may use beside std.
MAY_USE = {
    "base": {"sys", "asm"},  # only in cpu_features.cc: the processor is the operating system's to describe
    "kernels": set(), "core": {"fmt"}, "formats": {"fmt", "nlohmann"}, "text": set(), "nn": {"fmt"},
    "wire": {"fmt"}, "doctor": {"fmt"}, "audit": set(), "model": {"fmt"},
    "port": {"fmt", "nlohmann"},
}
# Standard headers that break a promise: another machine's bits, output, or the WebAssembly build.
FORBIDDEN_STD = {"iostream", "random", "regex", "thread", "mutex", "filesystem", "unordered_map",
                 "unordered_set", "future", "locale", "csignal", "chrono", "condition_variable", "shared_mutex",
                 "barrier", "latch", "semaphore", "stop_token", "cfenv"}
ALLOWED_STD = {
    "src/base/pool.cc": {"thread", "mutex", "condition_variable"},  # the one place that starts threads
    "src/core/rule_map.cc": {"mutex"},  # calls that share a rule build its map once
    "src/text/files.cc": {"filesystem"},
    "src/formats/files.cc": {"filesystem"},  # not in the WebAssembly module
}
INTRINSICS = re.compile(r"\b(\w+intrin|arm_\w+|wasm_simd128|cpuid)\.h\b")
# Instructions by name: a builtin of one processor, or assembly.
INSTRUCTIONS = re.compile(r"\b(__builtin_ia32_\w+|__builtin_(arm|aarch64)_\w+|_mm\d*_\w+|__asm__|asm)\b")
# What an instruction set may include: nothing with inline functions, which the linker could take for the whole program.
KERNEL_STD = {"cstddef", "cstdint"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def sources(folder):
    return sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in {".h", ".cc"})  # *.inl.h, too


def includes(path):
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


def code(path):
    """The text without comments and string literals."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"//[^\n]*", " ", text)


class Layers(unittest.TestCase):
    def test_every_folder_of_src_has_its_row(self):
        folders = {p.name for p in (ROOT / "src").iterdir() if p.is_dir()}
        self.assertEqual(folders, set(MAY_INCLUDE))

    def test_folders_include_only_lower_layers(self):
        breaches = []
        for folder, lower in MAY_INCLUDE.items():
            for path in sources(f"src/{folder}"):
                for quote, name in includes(path):
                    top = name.split("/")[0]
                    if quote == '"' and top not in lower | {folder, "glasshead"}:
                        breaches.append(f"{path.relative_to(ROOT)} includes {name}")
                    if quote == "<" and "/" in name and top not in MAY_USE[folder]:
                        breaches.append(f"{path.relative_to(ROOT)} uses {name}")
        self.assertEqual(breaches, [])

    def test_public_headers_include_only_std_and_each_other(self):
        breaches = [f"{path.name} includes {name}" for path in sources("include/glasshead")
                    for quote, name in includes(path)
                    if (path.name, name) != ("testing.h", "gtest/gtest.h")  # for tests, and nobody else includes it
                    and ((quote == '"' and not name.startswith("glasshead/"))
                         or (quote == "<" and ("/" in name or name.endswith(".h"))))]
        self.assertEqual(breaches, [])

    def test_every_program_and_binding_has_its_row(self):
        folders = {f"{top}/{p.name}" for top in ("apps", "bindings") for p in (ROOT / top).iterdir() if p.is_dir()}
        self.assertEqual(folders, set(PROGRAMS_MAY_INCLUDE))

    def test_programs_and_bindings_include_public_headers_and_those_made_for_them(self):
        breaches = []
        for folder, more in PROGRAMS_MAY_INCLUDE.items():
            allowed = more | {"glasshead", folder.split("/")[1]}
            for path in sources(folder):
                for quote, name in includes(path):
                    if quote == '"' and not {name, name.split("/")[0]} & allowed:
                        breaches.append(f"{path.relative_to(ROOT)} includes {name}")
        self.assertEqual(breaches, [])

    def test_one_file_knows_the_http_library(self):
        users = [str(path.relative_to(ROOT)) for folder in ("src", "include", "apps", "bindings", "examples", "tests", "fuzz")
                 for path in sources(folder) if ("<", "httplib.h") in includes(path)]
        self.assertEqual(users, ["apps/server/server.cc"])

    def test_examples_include_only_public_headers(self):
        breaches = [f"{path.name} includes {name}" for path in sources("examples")
                    for quote, name in includes(path) if quote == '"' and not name.startswith("glasshead/")]
        self.assertEqual(breaches, [])

    def test_intrinsics_stay_in_their_room(self):
        allowed = {ROOT / "src/base/cpu_features.cc", *(ROOT / "src/kernels/isa").iterdir()}
        breaches = [str(p.relative_to(ROOT)) for folder in ("src", "include", "apps")
                    for p in sources(folder) if p not in allowed and INTRINSICS.search(p.read_text())]
        self.assertEqual(breaches, [])

    def test_instructions_stay_in_their_room(self):
        allowed = {ROOT / "src/base" / name for name in ("cpu_features.cc", "float_environment.cc", "pool.cc")}
        allowed |= set((ROOT / "src/kernels").rglob("*.inl.h")) | set((ROOT / "src/kernels/isa").glob("*.cc"))
        breaches = [f"{p.relative_to(ROOT)}: {found[0]}" for folder in ("src", "include", "apps")
                    for p in sources(folder) if p not in allowed and (found := INSTRUCTIONS.search(code(p)))]
        self.assertEqual(breaches, [])

    def test_an_instruction_set_includes_only_tables_and_tile_code(self):
        sets = sources("src/kernels/isa")
        self.assertGreaterEqual(len(sets), 1)
        tables = {"kernels/arithmetic.h", "kernels/kernel_set.h", "kernels/row_kernels.h", "kernels/backward_kernels.h",
                  "kernels/linear_kernels.h", "kernels/layer_kernels.h"}
        breaches = []
        for path in sets + sorted((ROOT / "src/kernels").glob("*.inl.h")):
            for quote, name in includes(path):
                if quote == "<" and name not in KERNEL_STD and not INTRINSICS.search(name):
                    breaches.append(f"{path.relative_to(ROOT)} includes <{name}>")
                if quote == '"' and name not in tables \
                        and not re.fullmatch(r"kernels/(isa/)?\w+\.inl\.h", name):
                    breaches.append(f"{path.relative_to(ROOT)} includes {name}")
        for name in sorted(tables):
            for quote, included in includes(ROOT / "src" / name):
                if included not in KERNEL_STD | tables:
                    breaches.append(f"src/{name} includes {included}")
        self.assertEqual(breaches, [])

    def test_every_instruction_set_is_on_the_list(self):
        listed = set(re.findall(r"glasshead_add_isa\((\w+) ", (ROOT / "cmake/isa.cmake").read_text()))
        self.assertEqual({p.stem for p in (ROOT / "src/kernels/isa").glob("*.cc")}, listed)

    def test_no_standard_header_that_breaks_a_promise(self):
        breaches = []
        for folder in MAY_INCLUDE:
            for path in sources(f"src/{folder}"):
                name_of = str(path.relative_to(ROOT))
                for quote, name in includes(path):
                    if quote == "<" and name in FORBIDDEN_STD - ALLOWED_STD.get(name_of, set()):
                        breaches.append(f"{name_of} includes <{name}>")
        self.assertEqual(breaches, [])

    def test_one_place_throws_and_nothing_prints_or_exits(self):
        forbidden = re.compile(r"\b(throw|try|catch|abort|exit|_Exit|printf|fprintf|puts|getenv|rand|srand)\b\s*[({;A-Za-z]")
        allowed = {("src/core/context.cc", "getenv"),  # GLASSHEAD_ISA and GLASSHEAD_THREADS
                   ("src/base/pool.cc", "try"), ("src/base/pool.cc", "catch"),  # the system has no more threads
                   ("src/audit/run.cc", "try"), ("src/audit/run.cc", "catch")}  # the function under test refuses
        breaches = []
        for folder in MAY_INCLUDE:
            for path in sources(f"src/{folder}"):
                if path == ROOT / "src/base/fail.cc":
                    continue
                for number, line in enumerate(code(path).splitlines(), 1):
                    for found in forbidden.finditer(line):
                        if (str(path.relative_to(ROOT)), found[1]) in allowed:
                            continue
                        breaches.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
        self.assertEqual(breaches, [])

    def test_files_are_short(self):
        long = {str(p.relative_to(ROOT)): n for folder in ("src", "include", "apps", "tests", "bindings")
                for p in sources(folder) if (n := len(p.read_text().splitlines())) > 800}
        self.assertEqual(long, {})


# A type at namespace scope, and where namespaces begin and end: all of these stand at the start of a line.
TYPE = re.compile(r"(?:struct|class|union|enum(?: class)?) (\w+)(?: final)?(?: :[^:;][^;]*)? \{")


def types_defined(path):
    namespaces = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"namespace ([\w:]*) ?\{", line):
            namespaces.append(found[1])
        elif line.startswith("}  // namespace"):
            namespaces.pop()
        elif (found := TYPE.match(line)) and "" not in namespaces:
            yield "::".join([*namespaces, found[1]])


class Types(unittest.TestCase):
    def test_no_two_files_define_a_type_of_one_name(self):
        # The linker takes one destructor for both, silently: the program ends in somebody else's memory.
        where = {}
        for folder in ("src", "include", "apps", "bindings"):
            for path in sources(folder):
                for name in types_defined(path):
                    where.setdefault(name, set()).add(str(path.relative_to(ROOT)))
        self.assertGreater(len(where), 100)
        self.assertEqual({name: sorted(files) for name, files in where.items() if len(files) > 1}, {})


if __name__ == "__main__":
    unittest.main()
