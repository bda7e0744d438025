#!/usr/bin/env python3
"""Every rule of check_layers, broken once."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parent / "check_layers"
MAP = """# Map
### tutti/base (level 0)
### tutti/memory (level 1)
### tutti/plan (level 1)
### tutti/comm (level 3)
### cli, examples (level 7)
"""
CLEAN = {
    "tutti/README.md": MAP,
    "tutti/tutti.h": '#include "tutti/comm/world.h"\n',
    "tutti/base/CMakeLists.txt": "tutti_room(base SOURCES error.cpp)\n",
    "tutti/base/error.h": "#include <string>\n",
    "tutti/base/error.cpp": '#include "tutti/base/error.h"\n#include "tutti/version.h"\n',
    "tutti/memory/CMakeLists.txt": "tutti_room(memory SOURCES arena.cpp TESTS arena_test.cpp)\n",
    "tutti/memory/arena.h": '#include "tutti/base/error.h"\n',
    "tutti/memory/arena.cpp": '#include "tutti/memory/arena.h"\n',
    "tutti/memory/arena_test.cpp": '#include "tutti/memory/arena.h"\n',
    "tutti/plan/CMakeLists.txt": "tutti_room(plan SOURCES ring.cpp)\n",
    "tutti/plan/ring.h": "",
    "tutti/plan/ring.cpp": '#include "tutti/plan/ring.h"\n',
    "tutti/comm/CMakeLists.txt": "tutti_room(comm TORCH SOURCES world.cpp)\n",
    "tutti/comm/world.h": "#include <ATen/core/Tensor.h>\n",
    "tutti/comm/world.cpp": '#include "tutti/comm/world.h"\n#include "tutti/memory/arena.h"\n',
    "examples/CMakeLists.txt": "foreach(name hello)\n  add_executable(${name} ${name}.cpp)\nendforeach()\n",
    "examples/hello.cpp": "#include <tutti/tutti.h>\n",
    "tests/CMakeLists.txt": "tutti_test(all SOURCES all_test.cpp)\n",
    "tests/all_test.cpp": '#include "tutti/memory/arena.h"\n#include "tutti/comm/world.h"\n#include <torch/torch.h>\n',
}


def check(changes: dict[str, str]) -> tuple[int, str]:
    """The tool's verdict on the clean tree with some files changed or added."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**CLEAN, **changes}.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr


class CheckLayers(unittest.TestCase):
    def rejects(self, sentence: str, changes: dict[str, str]) -> None:
        code, output = check(changes)
        self.assertEqual(code, 1, output)
        self.assertIn(sentence, output)
        self.assertEqual(output.count("\n"), 1, f"one fault, one line: {output}")

    def test_clean_tree(self):
        self.assertEqual(check({}), (0, ""))

    def test_higher_level(self):
        self.rejects(
            "tutti/base/error.h:1: tutti/base (level 0) must not include tutti/memory (level 1)",
            {"tutti/base/error.h": '#include "tutti/memory/arena.h"\n'},
        )

    def test_other_room_of_the_same_level(self):
        self.rejects("must not include tutti/plan (level 1)", {"tutti/memory/arena.h": '#include "tutti/plan/ring.h"\n'})

    def test_torch_below_comm(self):
        for header in ("torch/torch.h", "ATen/ATen.h", "c10/util/intrusive_ptr.h"):
            self.rejects("must not include LibTorch", {"tutti/plan/ring.h": f"#include <{header}>\n"})
        self.rejects("must not include LibTorch", {"tutti/plan/ring.h": '#  include "torch/torch.h"\n'})

    def test_relative_include(self):
        self.rejects('"arena.h" is not a path from the root', {"tutti/memory/arena.cpp": '#include "arena.h"\n'})

    def test_include_of_nothing(self):
        self.rejects("is not a path from the root", {"tutti/plan/ring.cpp": '#include "tutti/plan/rong.h"\n#include "tutti/plan/ring.h"\n'})

    def test_angle_brackets(self):
        self.rejects("in quotes", {"tutti/memory/arena_test.cpp": "#include <tutti/memory/arena.h>\n"})
        self.rejects("write <tutti/tutti.h>", {"examples/hello.cpp": '#include "tutti/tutti.h"\n'})

    def test_umbrella_inside_a_room(self):
        self.rejects("is for users", {"tutti/comm/world.cpp": "#include <tutti/tutti.h>\n"})

    def test_source_not_listed(self):
        self.rejects("tutti/plan/CMakeLists.txt does not list it", {"tutti/plan/tree.cpp": ""})
        self.rejects("does not list it", {"tutti/plan/CMakeLists.txt": "tutti_room(plan SOURCES) # ring.cpp\n"})
        self.rejects("tutti/memory/arena_test.cpp", {"tutti/memory/CMakeLists.txt": "tutti_room(memory SOURCES arena.cpp)\n"})

    def test_a_longer_name_is_no_listing(self):
        self.rejects("tutti/plan/ing.cpp", {"tutti/plan/ing.cpp": ""})

    def test_header_nobody_knows(self):
        self.rejects("tutti/plan/tree.h", {"tutti/plan/tree.h": ""})

    def test_file_outside_the_rooms(self):
        self.rejects("lies in no room", {"tutti/stray/CMakeLists.txt": "a.cpp", "tutti/stray/a.cpp": ""})

    def test_empty_map(self):
        self.rejects("no heading", {"tutti/README.md": "# Map\n"})


if __name__ == "__main__":
    unittest.main()
