"""A training as it looks: on the terminal, and on its report page, which must open without complaint.

usage: tests/train/pictures.py --tool build/tutti [--out docs/pictures] [--steps 800] [unittest's options]
"""

import argparse
import html
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "report"), str(ROOT / "tests")]

from browser import Browser, find_chromium  # noqa: E402
from skips import main  # noqa: E402
from terminal import Terminal  # noqa: E402

ARGUMENTS = None
COLUMNS = 100


def rows(seen):
    """What stands on the terminal when so much was written: of each line what came after the last return."""
    text = seen.decode(errors="replace").replace("\r\n", "\n")
    return [line.split("\r\x1b[K")[-1].split("\r")[-1].replace("\x1b[K", "").rstrip() for line in text.split("\n")]


def draw(lines):
    """Lines of a terminal as an SVG, cut where it would break them."""
    lines = [line[at:at + COLUMNS] for line in lines for at in range(0, max(1, len(line)), COLUMNS)]
    high, wide, line_height = 24, COLUMNS * 7.85 + 36, 19
    texts = "\n".join(f'<text x="18" y="{high + 14 + i * line_height}" xml:space="preserve">{html.escape(line)}</text>' for i, line in enumerate(lines))
    height = high + 24 + len(lines) * line_height
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{height}" viewBox="0 0 {wide:.0f} {height}">\n'
            f'<rect width="100%" height="100%" rx="8" fill="#14181c"/>\n'
            f'<g font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="13" fill="#d9dee3">\n{texts}\n</g>\n</svg>\n')


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """One training, of the repository's own text, with the defaults but for the number of steps."""
        folder = tempfile.TemporaryDirectory(prefix="tutti-pictures-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        ARGUMENTS.out.mkdir(parents=True, exist_ok=True)
        terminal = Terminal([ARGUMENTS.tool, "train", "--steps", str(ARGUMENTS.steps)], folder.name, COLUMNS)
        later = "|".join(str(step) for step in range(ARGUMENTS.steps * 6 // 10, ARGUMENTS.steps))  # not every step is drawn
        terminal.read_until(rf" ({later})/{ARGUMENTS.steps}  ".encode(), 300)
        cls.midway = rows(terminal.seen)
        cls.code = terminal.wait()
        cls.end = rows(terminal.seen)

    def test_terminal(self):
        self.assertEqual(self.code, 0, self.end)
        self.assertTrue(all(len(line) <= COLUMNS for line in self.midway), self.midway)
        self.assertRegex(self.midway[-1], rf"\d+/{ARGUMENTS.steps}  loss \d\.\d+ .*ETA")
        self.assertTrue(any(line.startswith("loss ") for line in self.end), self.end)
        command = "$ tutti train" if ARGUMENTS.steps == 800 else f"$ tutti train --steps {ARGUMENTS.steps}"
        picture = draw([command, *self.midway, "", "...", *[line for line in self.end[len(self.midway) - 1:]]])
        (ARGUMENTS.out / "terminal.svg").write_text(picture)

    @unittest.skipUnless(find_chromium(), "there is no Chromium; tools/setup browser installs it")
    def test_page(self):
        page = self.folder / "runs/train/report.html"
        with Browser(find_chromium()) as browser:
            for width, phone, scheme, name in ((1280, False, "light", "report"), (400, True, "dark", "report_phone")):
                browser.resize(width, 900, phone)
                browser.prefer(scheme)
                browser.open(page)
                browser.settle()
                self.assertEqual(browser.complaints(), [])
                self.assertEqual(set(browser.requests()), {page.as_uri()})
                self.assertGreaterEqual(browser.evaluate("document.querySelectorAll('canvas').length"), 5)
                before = browser.evaluate("document.querySelector('svg.timeline').outerHTML")
                browser.evaluate("(() => { const s = document.querySelector('input[type=range]'); s.value = s.min; "
                                 "s.dispatchEvent(new Event('input', {bubbles: true})); })()")
                browser.settle()
                self.assertNotEqual(browser.evaluate("document.querySelector('svg.timeline').outerHTML"), before)
                browser.open(page)
                browser.settle()
                browser.evaluate("document.getElementById('configuration').remove()")  # whose folders, and which machine
                browser.picture(ARGUMENTS.out / f"{name}.png")
                self.assertGreater((ARGUMENTS.out / f"{name}.png").stat().st_size, 30_000)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True, type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--out", type=Path, default=Path("build/pictures"))
    parser.add_argument("--steps", type=int, default=120)
    ARGUMENTS, rest = parser.parse_known_args()
    main(argv=[sys.argv[0], *rest], verbosity=2)
