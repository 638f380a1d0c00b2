"""Draw what an example found: its learning curve, and images with captions."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from example import Result

COLUMNS = 8


def draw(result: Result, path: Path, dpi: int = 110) -> None:
    """Writes a PNG; captions that say "not" are red."""
    mpl.rcParams["font.family"] = "DejaVu Sans"
    if result.images is None:
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        _curve(figure.subplots(), result.losses)
    else:
        figure = Figure(figsize=(12, 4.6), layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=(1, 1.25), squeeze=False)[0]
        _curve(left.subplots(), result.losses)
        name, reached = next(iter(result.figures.items()))
        right.suptitle(f"{name}: {reached:.4g}")
        captions = result.captions or ("",) * len(result.images)
        cells = right.subplots(-(-len(result.images) // COLUMNS), COLUMNS, squeeze=False).ravel()
        for cell in cells:
            cell.axis("off")
        for cell, image, caption in zip(cells[: len(captions)], result.images, captions, strict=True):
            cell.imshow(image, cmap="gray_r", vmin=0, vmax=1)
            cell.set_title(caption, color="#c0202a" if "not" in caption else "#333333", fontsize=10, pad=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=dpi)
    Image.open(drawn).convert("RGB").quantize(64, Image.Quantize.FASTOCTREE).save(
        path, optimize=True
    )  # a palette: a third of the bytes


def _curve(axes: Axes, losses: list[float]) -> None:
    axes.plot(losses, color="#b9c6de", linewidth=0.8, label="each step")
    smooth = np.convolve(losses, np.ones(50) / 50, mode="valid")
    axes.plot(np.arange(len(smooth)) + 49, smooth, color="#1f4e9c", linewidth=2, label="mean of 50")
    axes.set(xlabel="step", ylabel="loss", title="Training in the browser")
    if min(losses) > 0:
        axes.set_yscale("log")
    axes.legend(frameon=False)
