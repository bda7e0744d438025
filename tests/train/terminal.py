"""A program on a terminal of its own, as a user sees it."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time


class Terminal:
    """The tool on a terminal of its own."""

    def __init__(self, command, folder, columns=100):
        self.seen = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ.update(TERM="xterm", LC_ALL="C.UTF-8")
            os.execv(command[0], command)
        self.resize(columns)

    def resize(self, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read_until(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            if time.monotonic() > end or not self.read():
                raise AssertionError(f"no {pattern} in {self.seen!r}")

    def read(self):
        if select.select([self.master], [], [], 1)[0]:
            try:
                self.seen += os.read(self.master, 65536) or b""
            except OSError:
                return False
        return True

    def press(self, keys):
        os.write(self.master, keys)

    def wait(self):
        while self.read():
            pass
        os.close(self.master)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
