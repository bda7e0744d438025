"""What tests ask an opened page: texts, pixels, places, contrasts."""

import json

PAINTED = """((chart, paint) => {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${paint})`;
  const wanted = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
  probe.remove();
  const drawn = document.querySelector(`[data-chart="${chart}"] canvas`);
  const copy = new OffscreenCanvas(drawn.width, drawn.height).getContext("2d", {willReadFrequently: true});
  copy.drawImage(drawn, 0, 0);
  const {data} = copy.getImageData(0, 0, drawn.width, drawn.height);
  const near = (at) => data[at + 3] > 200 && wanted.every((value, channel) => Math.abs(value - data[at + channel]) < 3);
  let count = 0;
  for (let at = 0; at < data.length; at += 4) count += near(at);
  return count;
})"""

OVERFLOW = """((width) => {
  const outside = ({left, right}) => right > width + 0.5 || left < -0.5;
  const found = [...document.querySelectorAll("body *")]
    .filter((one) => one.matches(".scroll") || !one.closest(".scroll, .unseen, .tip"))
    .filter((one) => outside(one.getBoundingClientRect()))
    .map((one) => one.tagName + "." + (one.getAttribute("class") ?? ""));
  const page = document.documentElement.scrollWidth;
  return innerWidth !== width || page > width ? [...found, "page: " + page] : found;
})"""

CONTRASTS = """(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const rgba = (css) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = css;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const under = (one) => {
    for (; one; one = one.parentElement) {
      const paint = rgba(getComputedStyle(one).backgroundColor);
      if (paint[3] === 255) return paint;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.getElementById("page"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || one.getClientRects().length === 0) continue;
    if (one.closest(".unseen, [hidden], :disabled")) continue;
    const style = getComputedStyle(one);
    const behind = one.matches(".phase-label") ? rgba(getComputedStyle(one.previousElementSibling).fill) : under(one);
    const [high, low] = [light(rgba(one.ownerSVGElement ? style.fill : style.color)), light(behind)].sort((a, b) => b - a);
    const name = one.tagName + "." + one.getAttribute("class") + ": " + one.textContent.slice(0, 30);
    found.push([(high + 0.05) / (low + 0.05), name]);
  }
  return {paper: light(rgba(getComputedStyle(document.body).backgroundColor)), found: found.sort((a, b) => a[0] - b[0])};
})()"""

TIMELINE = """(() => {
  const number = (name) => (one) => Number(one.getAttribute(name));
  const all = (row, selector, value) => [...row.querySelectorAll(selector)].map(value);
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  return [...document.querySelectorAll("svg.timeline [data-rank]")].map((row) => ({
    phases: all(row, ".phase", (one) => [one.dataset.phase, number("x")(one), number("width")(one)]),
    ready: all(row, ".ready", number("cx")),
    reduced: all(row, ".reduced", number("x1")),
    hidden: all(row, ".bucket", (one) => sum(all(one, ".hidden-part", number("width")))),
  }));
})()"""


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


class Queries:
    """For a test case whose `browser` is one with a page opened."""

    browser = None

    def evaluate(self, expression: str):
        return self.browser.evaluate(expression)

    def each(self, selector: str, value: str) -> list:
        """`value`, an expression of `one`, for every element."""
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => {value})")

    def text(self, selector: str) -> str:
        return plain(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def texts(self, selector: str) -> list[str]:
        return [plain(one) for one in self.each(selector, "one.innerText")]

    def cells(self, selector: str) -> list[list[str]]:
        """The rows of a table."""
        rows = self.each(selector, "[...one.children].map((cell) => cell.innerText.trim())")
        return [[plain(cell) for cell in row] for row in rows]

    def charts(self) -> list[str]:
        return self.each("[data-chart]", "one.dataset.chart")

    def drawing(self, chart: str) -> str:
        return self.evaluate(f"document.querySelector('[data-chart=\"{chart}\"] canvas').toDataURL()")

    def painted(self, chart: str, paint: str) -> int:
        """Pixels of a chart's canvas that have the colour of a custom property."""
        return self.evaluate(f"{PAINTED}({json.dumps(chart)}, {json.dumps(paint)})")

    def overflow(self, width: int) -> list[str]:
        """Elements that reach past the window, and do not scroll in a frame of their own."""
        return self.evaluate(f"{OVERFLOW}({width})")

    def shown_step(self) -> int:
        return self.evaluate("Number(document.querySelector('svg.timeline').dataset.step)")

    def choose(self, index: int) -> None:
        self.evaluate("((slider, index) => { slider.value = index; slider.dispatchEvent(new Event('input')); })"
                      f"(document.querySelector('#step'), {index})")
        self.browser.settle()

    def focus(self, selector: str) -> None:
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")

    def click(self, selector: str) -> None:
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")
        self.browser.settle()

    def unfold(self, selector: str = "details") -> None:
        self.each(selector, "{ one.open = true; }")
        self.browser.settle()

    def place_of_step(self, chart: str, step: int) -> tuple[float, float]:
        """Where a step is in the window; a chart's steps go from 1 to 200 over its width."""
        self.evaluate(f"document.querySelector('[data-chart=\"{chart}\"]').scrollIntoView({{block: 'center'}})")
        self.browser.settle()
        left, top, width, height = self.box(f"[data-chart=\"{chart}\"] .u-over")
        return left + width * (step - 1) / 199, top + height / 2

    def box(self, selector: str, index: int = 0) -> list[float]:
        take = "(({left, top, width, height}) => [left, top, width, height])"
        return self.each(selector, f"{take}(one.getBoundingClientRect())")[index]
