"""run_onnx.py PROGRAM SOURCE_DIR onnx_attention|onnx_other|onnx_package

Runs ONNX's test data where it lies: the golden folders in $GLASSHEAD_GOLDEN, else in ../shared/golden beside the
source tree; the official package's own data in the onnx package installed for this Python (1.22 or later, as
semantics changed before). Exit code 77, which ctest reports as skipped, when it is not there."""
import importlib.metadata
import importlib.util
import os
import pathlib
import subprocess
import sys

SKIPPED = 77


def skip(what):
    print(f"not run: {what}")
    sys.exit(SKIPPED)


def golden_folder(source, name):
    named = os.environ.get("GLASSHEAD_GOLDEN")
    base = pathlib.Path(named) if named else source.parent / "shared/golden"
    if not named and not base.is_dir():
        skip(f"{name}: neither $GLASSHEAD_GOLDEN nor {base} is there (conformance.onnx_package runs the onnx "
             "package's own copy where that is installed)")
    return base / name  # a folder that was named and lacks it is an error, not a skip


def package_folder():
    spec = importlib.util.find_spec("onnx")
    if spec is None or not spec.submodule_search_locations:
        skip("onnx_package: no onnx package is installed for " + sys.executable)
    version = importlib.metadata.version("onnx")
    if tuple(int(part) for part in version.split(".")[:2]) < (1, 22):
        skip(f"onnx_package: onnx {version} is installed; 1.22 or later is needed")
    folder = pathlib.Path(spec.submodule_search_locations[0]) / "backend/test/data/node"
    if not folder.is_dir():
        skip(f"onnx_package: onnx {version} is installed without {folder}")
    return folder


def main():
    program, source, name = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    folder = package_folder() if name == "onnx_package" else golden_folder(source, name)
    return subprocess.run([program, str(folder)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
