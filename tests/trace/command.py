"""Runs the program under test: its path is the first argument, the folder of cases the second."""

import pathlib
import subprocess
import sys

PROGRAM = sys.argv[1]
CASES = pathlib.Path(sys.argv[2])
HERE = pathlib.Path(__file__).parent


def run(*arguments, code=0):
    done = subprocess.run([PROGRAM, "trace", *map(str, arguments)], capture_output=True, check=False)
    if done.returncode != code:
        sys.exit(f"trace {' '.join(map(str, arguments))}: exit {done.returncode}, not {code}\n"
                 f"{done.stderr.decode()}")
    return (done.stdout if code == 0 or done.stdout else done.stderr).decode()


def case_names():
    return sorted(path.stem for path in CASES.glob("*.json"))


class Failures:
    """Collects what is wrong, so that one run shows all of it."""

    def __init__(self):
        self.count = 0

    def expect(self, holds, message):
        if not holds:
            self.count += 1
            if self.count <= 20:
                print(message)

    def finish(self):
        sys.exit(f"{self.count} failures" if self.count else 0)
