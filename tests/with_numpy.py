"""`with_numpy()`: starts a test over with an interpreter that has NumPy, or skips it (exit code 77) and says so."""
import importlib.util
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def with_numpy():
    if importlib.util.find_spec("numpy") is not None:
        return
    for python in (ROOT / "build/python-env/bin/python", pathlib.Path("/usr/bin/python3")):
        if python.exists() and subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode == 0:
            os.execv(python, [str(python), *sys.argv])
    print("NumPy is not installed: make python, or apt-get install python3-numpy")
    sys.exit(77)
