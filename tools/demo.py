"""Train `examples/mnist.py` in headless Chromium; show its progress, and draw what came out of it."""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from paths import OUT, ROOT, SITE, fail
from tensorgrad.testing.browser import CHROMIUM_FLAGS, SOFTWARE_ADAPTER, BrowserThread, find_chromium
from tensorgrad.testing.server import StaticServer

PATIENCE = 300.0
"""Seconds without a sign of life after which the demo gives up."""

PAGE = ROOT / "tools" / "demo_page"


def main() -> None:
    """Run the demo."""
    print("starting headless Chromium and loading Python into it", flush=True)
    began = time.monotonic()
    losses: list[float] = []
    for message in run_in_browser():
        if message["kind"] == "ready":
            print(f"Pyodide {message['version']} with tensorgrad after {time.monotonic() - began:.1f} s", flush=True)
            began = time.monotonic()
        elif message["kind"] == "step":
            losses.append(message["loss"])
            show_progress(message["step"], message["steps"], losses, time.monotonic() - began)
        elif message["kind"] == "result":
            print(f"test accuracy: {message['accuracy']:.3f}")
            picture = draw(losses, np.array(message["predictions"]))
            print(f"picture: {picture}")
        else:
            fail(message["message"])


def run_in_browser() -> Iterator[dict[str, Any]]:
    """What the page says, until its result."""
    messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    mounts = {"/demo/": PAGE, "/demo/mnist.py": (ROOT / "examples" / "mnist.py").read_bytes(), "/": SITE}
    browser = BrowserThread(find_chromium(), (*CHROMIUM_FLAGS, SOFTWARE_ADAPTER))
    try:
        with StaticServer(mounts) as server:
            browser.open(
                server.url + "/demo/index.html",
                lambda message: messages.put(message),
                lambda: messages.put({"kind": "error", "message": "the page crashed"}),
            )
            kind = ""
            while kind not in ("result", "error"):
                try:
                    message = messages.get(timeout=PATIENCE)
                except queue.Empty:
                    message = {"kind": "error", "message": f"no sign of life from the page for {PATIENCE:.0f} s"}
                kind = message["kind"]
                yield message
    finally:
        browser.close()


def show_progress(step: int, steps: int, losses: list[float], seconds: float) -> None:
    """A bar that is drawn over itself in a terminal; elsewhere a line for each tenth."""
    if not sys.stdout.isatty() and step * 10 // steps == (step - 1) * 10 // steps:
        return
    width = 32
    filled = width * step // steps
    loss = float(np.mean(losses[-50:]))
    text = f"[{'#' * filled}{'.' * (width - filled)}] step {step}/{steps}  loss {loss:.4f}  {seconds:5.1f} s"
    if sys.stdout.isatty():
        print(f"\r{text}", end="\n" if step == steps else "", flush=True)
    else:
        print(text, flush=True)


def draw(losses: list[float], predictions: np.ndarray) -> str:
    """The learning curve, and held-out digits with what the model takes them for, the wrong ones first."""
    with np.load(SITE / "data" / "mnist.npz") as data:
        images, labels = data["test_images"], data["test_labels"]
    wrong = np.flatnonzero(predictions != labels)
    right = np.flatnonzero(predictions == labels)
    shown = np.concatenate([wrong[:8], right[: 32 - len(wrong[:8])]])

    mpl.rcParams["font.family"] = "DejaVu Sans"
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    left, right_half = figure.subfigures(1, 2, width_ratios=(1, 1.25), squeeze=False)[0]
    axes = left.subplots()
    axes.plot(losses, color="#b9c6de", linewidth=0.8, label="each step")
    smooth = np.convolve(losses, np.ones(50) / 50, mode="valid")
    axes.plot(np.arange(len(smooth)) + 49, smooth, color="#1f4e9c", linewidth=2, label="mean of 50")
    axes.set(xlabel="step", ylabel="cross entropy", yscale="log", title="Training in the browser")
    axes.legend(frameon=False)
    of_these = f" (in red: {len(wrong[:8])} of them, with what it is)" if len(wrong) else ""
    accuracy = float((predictions == labels).mean())
    right_half.suptitle(f"Held-out digits: {accuracy:.1%} right, {len(wrong)} of {len(labels)} wrong{of_these}")
    for cell, index in zip(right_half.subplots(4, 8).flat, shown, strict=True):
        cell.imshow(images[index].reshape(28, 28), cmap="gray_r")
        guess, label = predictions[index], labels[index]
        title, color = (f"{guess}, not {label}", "#c0202a") if guess != label else (str(guess), "#333333")
        cell.set_title(title, color=color, fontsize=10, pad=2)
        cell.axis("off")
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "mnist.png", dpi=110)
    return str((OUT / "mnist.png").relative_to(ROOT))


if __name__ == "__main__":
    main()
