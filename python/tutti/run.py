"""`tutti run` from Python: python -m tutti.run -n 2 -- python train.py"""

import os
import sys

_TOOL = os.path.join(os.path.dirname(__file__), "bin", "tutti")


def main():
    """The tool itself, as the console script `tutti`."""
    os.execv(_TOOL, ["tutti", *sys.argv[1:]])


if __name__ == "__main__":
    os.execv(_TOOL, ["tutti", "run", *sys.argv[1:]])
