"""The package as installed: what is in it, what it needs, its types."""

import importlib.metadata
import pathlib
import re
import subprocess
import sys

import pytest

import glasshead
from glasshead import _native

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_the_wheel_holds_the_package_and_nothing_else():
    try:
        files = importlib.metadata.files("glasshead")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("imported from a build tree")
    names = [str(file) for file in files if "__pycache__" not in str(file) and "dist-info" not in str(file)]
    kinds = [r"glasshead/\w+\.py", r"glasshead/_native\.pyi", r"glasshead/py\.typed"]
    kinds += [r"glasshead/web/lesson\.html"]  # where the page was built
    kinds += [r"glasshead/cases/[\w-]+\.json", r"glasshead/_native\.[\w.-]+\.so"]
    assert [name for name in names if not any(re.fullmatch(kind, name) for kind in kinds)] == []
    assert sum(name.endswith(".so") for name in names) == 1
    sources = ROOT / "bindings" / "python" / "glasshead"
    assert {pathlib.Path(name).name for name in names if name.endswith(".py")} == {p.name for p in sources.glob("*.py")}
    assert {"glasshead/py.typed", "glasshead/_native.pyi"} <= set(names)
    version = re.search(r"project\(glasshead VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert glasshead.__version__ == version


def test_the_module_needs_only_what_every_system_has():
    done = subprocess.run(["readelf", "-dW", _native.__file__], capture_output=True, text=True, check=True)
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", done.stdout))
    loader = {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    assert needed <= {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "libpthread.so.0", *loader}
    assert "RPATH" not in done.stdout and "RUNPATH" not in done.stdout


def test_the_module_shows_its_entry_point_alone():
    done = subprocess.run(["nm", "-D", "--defined-only", _native.__file__], capture_output=True, text=True, check=True)
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["PyInit__native"]


def test_cases_come_with_it():
    assert glasshead.cases() == sorted(path.stem for path in (ROOT / "cases").glob("*.json"))


def test_tokenizers_are_in_where_a_new_enough_cargo_is():
    try:
        said = subprocess.run(["cargo", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no cargo")
    version = tuple(int(part) for part in re.search(r"([0-9]+)\.([0-9]+)", said).groups())
    assert glasshead.Tokenizer.is_available() or version < (1, 85)


def test_importing_it_imports_no_framework():
    frameworks = ("torch", "jax", "ml_dtypes", "transformers")
    program = f"import sys, glasshead; print([name for name in {frameworks} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_public_name_has_its_words_and_its_stub():
    for name in glasshead.__all__:
        assert getattr(glasshead, name).__doc__, name
    stub = pathlib.Path(_native.__file__).with_name("_native.pyi").read_text()
    for name in (name for name in dir(_native) if not name.startswith("_")):
        assert re.search(rf"^(class|def) {name}\b", stub, re.M), name


def test_options_are_those_of_the_functions():
    import inspect

    from glasshead import _options

    built = set(inspect.signature(_options.build).parameters) - {"heads", "pairs"}
    assert built == set(glasshead.Options.__annotations__)
    assert built <= set(inspect.signature(glasshead.scaled_dot_product_attention).parameters)
