"""A rank is killed, throws, or calls something else in the middle of a backward: every other rank's backward ends with an error
that names it, parameters are as before the step, and nobody hangs."""

import os
import socket
import subprocess
import sys
import time
import unittest

PROGRAM = None
RANKS = 3


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class BackwardFaults(unittest.TestCase):
    def run_ranks(self, kind, victim):
        """What each rank said, and what it ended with; started by hand, so that no launcher ends the survivors."""
        port = str(free_port())
        ranks = []
        for rank in range(RANKS):
            environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS), "LOCAL_RANK": str(rank),
                           "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TUTTI_TIMEOUT": "60"}
            ranks.append(subprocess.Popen([PROGRAM, kind, str(victim)], env=environment, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, text=True))
        begin = time.monotonic()
        try:
            said = [rank.communicate(timeout=100)[0] for rank in ranks]
        except subprocess.TimeoutExpired:
            for rank in ranks:
                rank.kill()
            self.fail("hangs")
        # The deadline is a minute: they must not have waited for it.
        self.assertLess(time.monotonic() - begin, 55)
        return said, [rank.returncode for rank in ranks]

    def check_survivors(self, kind, victim, names_victim):
        said, codes = self.run_ranks(kind, victim)
        for rank in range(RANKS):
            if rank == victim and kind == "kill":
                self.assertEqual(codes[rank], -9, said[rank])
                continue
            self.assertEqual(codes[rank], 0, said[rank])
            self.assertNotIn("nothing happened", said[rank])
            self.assertIn("parameters as before, gradients not set", said[rank])
            if rank != victim and names_victim:
                self.assertIn(f"rank {victim}", said[rank].split(":", 1)[1])

    def test_killed(self):
        for victim in range(RANKS):
            with self.subTest(victim=victim):
                self.check_survivors("kill", victim, True)

    def test_calls_something_else(self):
        for victim in range(RANKS):
            with self.subTest(victim=victim):
                self.check_survivors("mismatch", victim, False)

    def test_throws(self):
        for victim in range(RANKS):
            with self.subTest(victim=victim):
                self.check_survivors("throw", victim, False)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
