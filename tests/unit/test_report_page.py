"""The report in a real browser: it draws, answers to pointer and keys, and passes axe-core's checks."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from colltune.core.proven import Decision, Summary, TimeShare, Verdict
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status
from colltune.report.findings import Findings
from colltune.report.html import build_page
from commands import run_to_end

sync_api = pytest.importorskip("playwright.sync_api", reason="looking at the page needs playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="the checks need axe-playwright-python")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="looking at the page needs chromium")
# Without a sandbox because tests may run as root; without anything that would reach for a network.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
RING, TREE = Choice("ring"), Choice("tree", (("k", 4),))
RATIOS = (1.4, 1.45, 1.5, 1.38, 1.42, 1.41, 1.44, 1.46)


def campaign() -> Findings:
    samples, decisions, at_s = [], [], 100.0
    for name in ("allreduce", "alltoall"):
        for nodes in (1, 2, 3):
            for size in (4, 64, 1024, 16384, 262144):
                scenario = Scenario(name, nodes, 4, size)
                for choice, factor in ((DEFAULT, 1.5), (RING, 1.0 + 40.0 / size), (TREE, 1.2)):
                    times = tuple(1e-6 * (3 + size / 100) * factor * (1 + 0.01 * (i % 7)) for i in range(20))
                    samples.append(Sample(scenario, choice, Status.OK, times, cost_s=0.1, launch=1, started_s=at_s))
                at_s += 0.3
                kept = (size.bit_length() // 4 + nodes) % 2 == 0  # no neighbours: more regions than are shown at once
                choice, verdict = (RING, Verdict.KEPT) if kept else (TREE, Verdict.REFUSED)
                decisions.append(Decision(scenario, choice, verdict, RATIOS, "for the test"))
    rules = (Rule(None, None, 1023, DEFAULT), Rule(None, None, None, RING))
    rule_sets = {name: RuleSet(name, SizeBasis.MESSAGE, rules) for name in ("allreduce", "alltoall")}
    share = TimeShare(launches=1, wall_s=9.0, inside_collectives_s=7.0)
    summary = Summary(seed=1, samples=len(samples), share=share, total_s=20.0, decisions=tuple(decisions))
    here = Environment("mpich", "5.0.2", "0" * 64, "a machine", 3, 4, "single", {})
    proofs = [replace(s, started_s=s.started_s + 20.0, times_s=tuple(t * 1.05 for t in s.times_s)) for s in samples]
    return Findings(here, rule_sets, summary, samples, proofs)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(build_page(campaign(), Path("/tuned")), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


def opened(browser: Any, path: Path, scheme: str, width: int) -> tuple[Any, list[str]]:
    page = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800}).new_page()
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: heard.append(request.url) if not request.url.startswith("file:") else None)
    page.goto(path.as_uri())
    page.wait_for_function("document.documentElement.dataset.ready")
    return page, heard


def unfold(page: Any) -> None:
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 1200), ("light", 390)])
def test_the_page_draws_without_a_word_on_the_console_and_passes_axe(
    browser: Any, page_file: Path, scheme: str, width: int
) -> None:
    page, heard = opened(browser, page_file, scheme, width)
    assert page.evaluate("document.documentElement.scrollHeight") < 5 * 800 * 1200 / width
    unfold(page)
    assert page.locator("table.rows caption", has_text="Regions in force").count() == 2
    charts = page.locator("figure svg[aria-label]").all()
    assert len(charts) == 6  # two collectives on three shapes
    for chart in charts:
        assert chart.locator("path").count() > 3
        assert chart.evaluate("one => one.getBoundingClientRect().width") > 200
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe.Axe().run(page).response["violations"] == []
    assert heard == []


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_of_a_tuning_without_rules_says_what_was_tried_and_what_to_do(
    browser: Any, width: int, tmp_path: Path
) -> None:
    found = campaign()
    decisions = [replace(one, verdict=Verdict.REFUSED) for one in found.summary.decisions]
    decisions[0] = replace(decisions[0], verdict=Verdict.NOT_TRIED, reason="no time")
    rule_sets = {name: RuleSet.always(name, SizeBasis.MESSAGE) for name in found.rule_sets}
    empty = replace(found, rule_sets=rule_sets, summary=replace(found.summary, decisions=tuple(decisions)))
    path = tmp_path / "report.html"
    path.write_text(build_page(empty, Path("/tuned")), encoding="utf-8")
    page, heard = opened(browser, path, "light", width)
    assert page.locator("#latency, #maps").count() == 0
    targets = [link.get_attribute("href") for link in page.locator("nav a").all()]
    assert all(page.locator(target).count() == 1 for target in targets)
    rows = [row.locator("td").all_inner_texts() for row in page.locator("#decisions tbody tr").all()]
    assert rows == [["allreduce", "15", "15", "14", "1", "3"], ["alltoall", "15", "15", "15", "0", "3"]]
    assert "Next: tune again with" in page.locator("header").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    unfold(page)
    assert axe.Axe().run(page).response["violations"] == []
    assert heard == []


def test_a_cell_tells_its_times_to_pointer_and_keys(browser: Any, page_file: Path) -> None:
    page, _ = opened(browser, page_file, "light", 1200)
    cells = page.locator("td[data-cell]")
    cells.nth(3).hover()
    tip = page.locator("#tip")
    assert tip.is_visible()
    assert "allreduce 1 x 4, 16 KiB" in tip.inner_text()
    assert "ring" in tip.inner_text()
    cells.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert "allreduce 2 x 4, 64 B" in tip.inner_text()
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_the_button_changes_between_light_and_dark_and_charts_follow(browser: Any, page_file: Path) -> None:
    page, _ = opened(browser, page_file, "light", 1200)
    colours = """() => [document.body, document.querySelector('figure svg text')].map(
        (one, n) => getComputedStyle(one)[n ? 'fill' : 'backgroundColor'])"""
    light = page.evaluate(colours)
    page.locator("#theme").click()
    dark = page.evaluate(colours)
    assert light[0] != dark[0]
    assert light[1] != dark[1]


def test_on_paper_everything_is_unfolded_and_folded_again_afterwards(browser: Any, page_file: Path) -> None:
    page, _ = opened(browser, page_file, "dark", 1200)
    folded = "document.querySelectorAll('details:not([open])').length"
    before = page.evaluate(folded)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert (before > 3, page.evaluate(folded)) == (True, 0)
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(folded) == before


def test_nothing_that_announces_something_ends_a_printed_page(browser: Any, page_file: Path, tmp_path: Path) -> None:
    """On paper of many heights, so that each heading comes to every place of a page."""
    if shutil.which("pdftotext") is None:
        pytest.skip("there is no pdftotext to read printed pages with")
    page, _ = opened(browser, page_file, "light", 1200)
    announcing = {" ".join(text.split()) for text in page.locator("h2, h3, summary, caption").all_text_contents()}
    assert {"Latency and speed-up", "Refused"} <= announcing
    ends = list[str]()
    for height in range(520, 1000, 40):
        paper = tmp_path / "paper.pdf"
        page.pdf(path=paper, width="720px", height=f"{height}px", margin={"top": "30px", "bottom": "30px"})
        text = run_to_end(["pdftotext", "-layout", str(paper), "-"], check=True)
        pages = text.stdout.removesuffix("\f").split("\f")
        assert len(pages) > 2
        assert all(one.strip() for one in pages)
        ends += [one.strip().splitlines()[-1].strip() for one in pages]
    assert not announcing & set(ends)
