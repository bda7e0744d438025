"""`tutti generate` as a user calls it."""

import os
import signal
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from terminal import Terminal  # noqa: E402
from trained import TOOL, Trained  # noqa: E402


class Generating(Trained):
    def test_writes_on(self):
        self.train("--steps", "5")
        words = ("generate", "--prompt", "line 1", "--length", "50")
        first, _ = self.tutti(*words)
        self.assertTrue(first.startswith("line 1"))
        self.assertEqual(self.tutti(*words, "--seed", "1")[0], first)
        self.assertNotEqual(self.tutti(*words, "--seed", "2")[0], first)
        likeliest = self.tutti(*words, "runs/train", "--temperature", "0")[0]
        self.assertEqual(self.tutti(*words, "runs/train", "--top-k", "1", "--seed", "3")[0], likeliest)
        self.assertEqual(self.tutti("generate", "--length", "0", "--prompt", "")[0], "")

    def test_text_comes_byte_by_byte_also_into_a_pipe(self):
        self.train("--steps", "2")
        command = [TOOL, "generate", "--prompt", "line 1", "--length", "1000000", "--temperature", "5"]  # hardly a space or line's end in it
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tool:
            self.addCleanup(tool.kill)
            pieces = [os.read(tool.stdout.fileno(), 65536) for _ in range(150)]
            self.assertIsNone(tool.poll(), "it is not done when the first text is there")
            tool.stdout.close()
            self.assertEqual(tool.stderr.read(), b"", "whose reader has left says nothing")
            self.assertEqual(tool.wait(20), -signal.SIGPIPE)
        self.assertTrue(pieces[0].startswith(b"line 1"), pieces[0])
        self.assertLess(sorted(map(len, pieces))[len(pieces) // 2], 5)

    def test_letters_of_several_bytes_are_whole_on_a_terminal(self):
        self.train("--steps", "2")
        terminal = Terminal([TOOL, "generate", "--prompt", "\u00e4\u20ac\U0001f600", "--length", "300", "--temperature", "5"], self.folder)
        self.assertEqual(terminal.wait(), 0)
        said = terminal.seen.decode()  # every byte of it is UTF-8
        self.assertTrue(said.startswith("\u00e4\u20ac\U0001f600"), said)
        self.assertIn("\ufffd", said)
        self.assertTrue(all(letter.isprintable() or letter in "\r\n\t" for letter in said), said)

    def test_limits(self):
        self.train("--steps", "2")
        same = ("generate", "--seed", "3")
        self.assertEqual(self.tutti(*same, "--length", "0", "--prompt", "as it is")[0], "as it is")
        long = "x" * 100_000  # the model sees the last 32
        self.assertEqual(self.tutti(*same, "--length", "20", "--prompt", long)[0],
                         long[32:] + self.tutti(*same, "--length", "20", "--prompt", long[:32])[0])
        for option, values in (("--length", ("-1", "nan", "1e3", "2.5", "1000000001", "many", "")),
                               ("--temperature", ("-0.1", "nan", "inf", "1e-9", "101", "hot", "")),
                               ("--top-k", ("-1", "257", "nan")),
                               ("--seed", ("-1", "nan", "18446744073709551617"))):
            for value in values:
                out, err = self.tutti(*same[:1], f"{option}={value}", code=2)
                self.assertEqual(out, "")
                self.assertRegex(err, rf"\Atutti generate: {option}.*\n\Z")
                self.assertLess(len(err), 160, err)

    def test_without_weights(self):
        _, err = self.tutti("generate", code=2)
        self.assertIn("there is no run in runs/", err)
        _, err = self.tutti("generate", "nowhere", code=1)
        self.assertEqual(err, "tutti generate: nowhere/config.json: cannot read: No such file or directory\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
