"""A headless Chromium, driven by its DevTools protocol over a pipe: as much of it as the page's tests need."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_S, CLOSE_S = 30.0, 5.0
# Without a sandbox, which neither root nor a container has: it opens pages of ours alone.
SWITCHES = ("--no-sandbox", "--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--disable-extensions",
            "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--mute-audio", "--force-color-profile=srgb")
KEYS = {"ArrowLeft": 37, "ArrowRight": 39, "Enter": 13, "Tab": 9, "End": 35, "Home": 36}


def find_chromium() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One browser process with one tab. `with Browser(path) as browser:` ends it and removes what it wrote."""

    def __init__(self, path: str) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="tutti-report-", ignore_cleanup_errors=True)
        read_end, self.to_browser = os.pipe()
        self.from_browser, write_end = os.pipe()

        def as_3_and_4() -> None:  # where the switch says that the browser looks
            high = [fcntl.fcntl(end, fcntl.F_DUPFD, 64) for end in (read_end, write_end)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [path, *SWITCHES, f"--user-data-dir={self.folder.name}", "about:blank"], preexec_fn=as_3_and_4, pass_fds=(3, 4),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env=os.environ | {"TMPDIR": self.folder.name})
        os.close(read_end)
        os.close(write_end)
        self.buffer, self.last_id, self.session, self.events = b"", 0, None, []
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(domain + ".enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(CLOSE_S)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # its session is its own: the group is this browser and its helpers
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        self.folder.cleanup()

    def call(self, method: str, **parameters) -> dict:
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def receive(self, deadline: float) -> dict:
        while b"\0" not in self.buffer:
            if not select.select([self.from_browser], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            got = os.read(self.from_browser, 1 << 20)
            if not got:
                raise RuntimeError("the browser has gone")
            self.buffer += got
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def resize(self, width: int, height: int = 900, phone: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def prefer(self, scheme: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, path: Path) -> None:
        """Returns when the page has drawn itself."""
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        self.wait_for("document.documentElement?.dataset.ready !== undefined")

    def wait_for(self, condition: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not self.evaluate(f"Boolean({condition})"):
            if time.monotonic() > deadline or self.complaints():
                raise TimeoutError(f"never came true: {condition}; {self.complaints()}")
            time.sleep(0.05)

    def evaluate(self, expression: str):
        """The value of an expression; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def settle(self) -> None:
        """Two frames: observers have run, and what they changed is drawn."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def press(self, key: str) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key])
        self.settle()

    def mouse(self, kind: str, x: float, y: float) -> None:
        pressed = {"button": "left", "clickCount": 1} if kind != "mouseMoved" else {}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed)

    def click(self, x: float, y: float) -> None:
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, x, y)
        self.settle()

    def complaints(self) -> list[str]:
        """Exceptions, errors and warnings since the page was opened."""
        found = []
        for event in self.events:
            kind, body = event.get("method"), event.get("params", {})
            if kind == "Runtime.exceptionThrown":
                details = body["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif kind == "Runtime.consoleAPICalled" and body["type"] in ("error", "warning", "assert"):
                found.append(str([one.get("value") for one in body["args"]]))
            elif kind == "Log.entryAdded" and body["entry"]["level"] in ("error", "warning"):
                found.append(body["entry"]["text"])
            elif kind == "Page.javascriptDialogOpening":
                found.append("dialog: " + body["message"])
        return found

    def requests(self) -> list[str]:
        sent = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in sent]

    def picture(self, path: Path, whole: bool = True) -> None:
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}} if whole else {}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **clip)["data"]
        path.write_bytes(base64.b64decode(data))
