"""Train `examples/mnist.py` in headless Chromium; show its progress, and draw what came out of it."""

from __future__ import annotations

import in_browser
from paths import OUT, ROOT
from picture import draw


def main() -> None:
    """Run the demo."""
    print("starting headless Chromium and loading Python into it", flush=True)
    result = in_browser.train("mnist").result
    for name, figure in result.figures.items():
        print(f"{name}: {figure:.3f}")
    picture = OUT / "mnist.png"
    draw(result, picture)
    print(f"picture: {picture.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
