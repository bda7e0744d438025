"""What tests of the page share: a browser, made-up runs, and a case that opens them and sees that the page keeps quiet."""

import importlib.machinery
import importlib.util
import sys
import tempfile
import unittest
from pathlib import Path

from browser import Browser, find_chromium
from queries import Queries
from sample import Shape, make_run

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from skips import main  # noqa: E402, F401
loader = importlib.machinery.SourceFileLoader("assemble", str(HERE / "assemble"))
assemble = importlib.util.module_from_spec(importlib.util.spec_from_loader("assemble", loader))
loader.exec_module(assemble)

CHROMIUM = find_chromium()
ONE = make_run()
TWO = make_run(Shape(name="gpt-nano dp=2", ranks=2, backward_ms=18.0, gbps=1.7, straggler=1, late_steps=(40, 44), seed=11))
CHARTS = ("loss", "gradient_norm", "learning_rate", "time", "throughput", "hidden")
ATTACK = "</script><script>window.hacked = 1; alert(1)</script><img src=x onerror='window.hacked = 2'>"
WIDTHS = ((1280, False), (400, True))


def setUpModule():
    """A module of tests imports this, and has one browser for all of them."""
    folder = tempfile.TemporaryDirectory(prefix="tutti-report-test-")
    unittest.addModuleCleanup(folder.cleanup)
    PageTest.folder = Path(folder.name)
    if CHROMIUM:
        PageTest.browser = unittest.enterModuleContext(Browser(CHROMIUM))


@unittest.skipUnless(CHROMIUM, "there is no Chromium; tools/setup browser installs it")
class PageTest(Queries, unittest.TestCase):
    """Opens pages; whatever a test does, the page must not have complained or asked for anything at its end."""

    folder = None

    def open(self, *runs, width=1280, phone=False, scheme="light"):
        path = self.folder / f"{self.id()}.html"
        path.write_text(assemble.page_of(list(runs)))
        self.open_file(path, width, phone, scheme)

    def open_file(self, path, width=1280, phone=False, scheme="light"):
        self.browser.resize(width, 900, phone)
        self.browser.prefer(scheme)
        self.browser.open(path)
        self.browser.settle()
        self.url = path.as_uri()
        self.addCleanup(self.check_quiet)

    def check_quiet(self):
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual(self.browser.requests(), [self.url])
        self.assertIsNone(self.browser.evaluate("window.hacked ?? null"))
