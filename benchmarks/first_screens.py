"""Pictures of what a new user sees first: terminals of 80 x 24 as SVG, and the page at 390 and 1,280 pixels as PNG.

``python benchmarks/first_screens.py TUNED [--here HERE] [--without-rules NONE]`` writes first-*.svg and first-*.png of
the tuning in TUNED into docs/design/pictures; of HERE, a tuning of this machine, what verify says; and of NONE, a
tuning in which nothing was proven faster, the page. The pages need chromium.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from rich.console import Console
from rich.text import Text

from harness import ROOT, options_of
from record_terminal import COLUMNS, ROWS, on_terminal

PICTURES = ROOT / "docs" / "design" / "pictures"
WIDTHS, HEIGHT = (390, 1280), 900
OWN_PLACES = {sys.prefix: "/home/me/venv"}
SCREENS = {
    "help": ["--help"],
    "doctor": ["doctor"],
    "report": ["report", "TUNED", "--text"],
    "verify": ["verify", "HERE"],
}


def draw_terminal(name: str, words: list[str], title: str) -> None:
    console = Console(record=True, width=COLUMNS, height=ROWS, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    _, parts = on_terminal([sys.executable, "-m", "colltune", *words])
    text = b"".join(parts).decode().replace("\r\n", "\n")
    for place, shown in OWN_PLACES.items():  # pictures are of no machine in particular
        text = text.replace(place, shown)
    for line in text.split("\n")[:ROWS]:
        console.print(Text.from_ansi(line), overflow="fold")
    console.save_svg(str(PICTURES / f"first-{name}.svg"), title=title)


def draw_page(tuned: Path, name: str) -> None:
    """The first screen of the page of ``tuned`` at each width."""
    subprocess.run([sys.executable, "-m", "colltune", "report", str(tuned)], check=True, stdout=subprocess.DEVNULL)
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is not here: the pages are left out", file=sys.stderr)
        return
    page = (tuned / "report.html").as_uri()
    for width in WIDTHS:
        with tempfile.TemporaryDirectory() as profile:
            picture = PICTURES / f"{name}-{width}.png"
            flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
            size = [f"--window-size={width},{HEIGHT}", f"--screenshot={picture}"]
            subprocess.run([chromium, *flags, *size, page], check=True, capture_output=True, timeout=120)
            Image.open(picture).convert("RGB").quantize(32).save(picture, optimize=True)


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("tuned", type=Path)
    parser.add_argument("--here", type=Path, help="a tuning of this machine")
    parser.add_argument("--without-rules", type=Path, help="a tuning in which nothing was proven faster")
    asked = parser.parse_args()
    tuned = asked.tuned.resolve()
    places = {"TUNED": tuned, "HERE": asked.here.resolve() if asked.here else None}
    for name, words in SCREENS.items():
        if any(word in places and places[word] is None for word in words):
            continue
        OWN_PLACES.update({str(place): "tuned" for place in places.values() if place is not None})
        shown = [str(places.get(word, word)) for word in words]
        title = " ".join("tuned" if word in places else word for word in words)
        draw_terminal(name, shown, f"colltune {title}")
    draw_page(tuned, "first-page")
    if asked.without_rules:
        draw_page(asked.without_rules.resolve(), "first-page-without-rules")


if __name__ == "__main__":
    main()
