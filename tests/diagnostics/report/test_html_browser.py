"""The report in a real browser: no errors, pictures visible, tables and curves answer."""

from __future__ import annotations

import shutil

import pytest

import diagnostics
from diagnostics.report.html import write
from tests.diagnostics.recorded import FIXTURE, copy

selenium = pytest.importorskip("selenium", reason="selenium is not installed")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.select import Select  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed"
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,1000",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    shutil.copytree(FIXTURE, folder / "runs")
    # A second task without probes: filtering has something to hide, missing cells to sort last.
    copy(folder / "runs", "sac", task="walker-run", probes=False)
    page = write(diagnostics.load(folder / "runs"), folder / "report.html", source="runs")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.get(page.as_uri())
    yield driver
    driver.quit()


@pytest.fixture(autouse=True)
def fresh(browser):
    browser.refresh()


def table(browser, place=0):
    return browser.find_elements(By.CSS_SELECTOR, "table[data-sortable]")[place]


def column(browser, heading, place=0):
    found = table(browser, place)
    headings = [
        th.text.split("\n")[0].strip() for th in found.find_elements(By.CSS_SELECTOR, "thead th")
    ]
    index = next(k for k, text in enumerate(headings) if text.startswith(heading))
    rows = found.find_elements(By.CSS_SELECTOR, "tbody tr")
    cells = [
        row.find_elements(By.CSS_SELECTOR, "td, th")[index] for row in rows if row.is_displayed()
    ]
    return [cell.get_attribute("data-value") or cell.text for cell in cells]


def click(browser, heading, place=0):
    for button in table(browser, place).find_elements(By.CSS_SELECTOR, "thead button"):
        if button.text.startswith(heading):
            browser.execute_script(
                "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", button
            )
            button.click()
            return button.find_element(By.XPATH, "..").get_attribute("aria-sort")
    raise AssertionError(heading)


def test_no_console_errors_and_nothing_from_the_network(browser):
    assert [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []
    loaded = browser.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    assert [name for name in loaded if not name.startswith("data:")] == []


def test_pictures_are_there(browser):
    pictures = browser.find_elements(By.CSS_SELECTOR, "img")
    assert len(pictures) == 3
    for picture in pictures:
        assert browser.execute_script("return arguments[0].naturalWidth", picture) > 300
        assert picture.is_displayed()
        assert picture.size["width"] > 300


def test_a_heading_sorts_both_ways_by_value(browser):
    assert click(browser, "final") == "ascending"
    up = [float(value) for value in column(browser, "final")]
    assert up == sorted(up)
    assert click(browser, "final") == "descending"
    down = [float(value) for value in column(browser, "final")]
    assert down == sorted(down, reverse=True)
    assert click(browser, "variant") == "ascending"
    assert column(browser, "variant") == sorted(column(browser, "variant"), key=str.lower)


def test_missing_values_sort_last_both_ways(browser):
    for _ in range(2):
        click(browser, "primacy")
        assert column(browser, "primacy")[-1] == "nan"


def test_filters_hide_rows_and_sections(browser):
    Select(browser.find_element(By.ID, "task")).select_by_visible_text("walker-run")
    assert set(column(browser, "task")) == {"walker-run"}
    sections = browser.find_elements(By.CSS_SELECTOR, "section.task")
    assert [
        section.get_attribute("data-task") for section in sections if section.is_displayed()
    ] == ["walker-run"]
    assert browser.find_element(By.ID, "shown").text == "Showing 1 of 4 variants and 1 of 7 runs."
    browser.find_element(By.CSS_SELECTOR, "button[type=reset]").click()
    browser.find_element(By.ID, "text").send_keys("sac-reset")
    assert column(browser, "variant") == ["SAC with reset"]
    assert len(column(browser, "seed", place=1)) == 2
    browser.find_element(By.ID, "text").clear()


def test_keyboard_alone_sorts(browser):
    browser.execute_script(
        "document.querySelector('table[data-sortable] th:nth-child(6) button').focus()"
    )
    browser.switch_to.active_element.send_keys("\ue007")
    up = [float(value) for value in column(browser, "final")]
    assert up == sorted(up)


@pytest.fixture(params=[1400, 390])
def width(browser, request):
    """A desktop and a phone."""
    metrics = {"width": request.param, "height": 844, "deviceScaleFactor": 1}
    metrics["mobile"] = request.param < 500
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    yield request.param
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def centre(browser, element):
    # Not smoothly, which takes time.
    script = "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})"
    browser.execute_script(script, element)
    return element


def test_the_primacy_column_is_seen_without_scrolling(browser, width):
    box = browser.find_element(By.CSS_SELECTOR, ".scroll")
    centre(browser, box)
    heading = next(
        th for th in box.find_elements(By.CSS_SELECTOR, "thead th") if "primacy" in th.text
    )
    assert heading.rect["x"] + heading.rect["width"] <= box.rect["x"] + box.rect["width"]
    # The rest is reached by scrolling inside the box.
    reach = (
        "return [arguments[0].scrollWidth >= arguments[0].clientWidth, arguments[0].clientWidth]"
    )
    wide, room = browser.execute_script(reach, box)
    assert wide and room <= width


def test_a_name_hides_its_curve(browser, width):
    chart = centre(browser, browser.find_element(By.CSS_SELECTOR, ".chart"))
    keys = chart.find_elements(By.CSS_SELECTOR, ".keys button[data-place]")
    lines = chart.find_elements(By.CSS_SELECTOR, "g.variant")
    assert len(keys) == len(lines) == 3
    keys[1].click()
    assert keys[1].get_attribute("aria-pressed") == "false"
    assert [line.value_of_css_property("display") for line in lines] == ["inline", "none", "inline"]
    keys[1].click()
    assert lines[1].value_of_css_property("display") == "inline"


def test_pointing_at_the_curves_reads_their_values(browser, width):
    chart = browser.find_element(By.CSS_SELECTOR, ".chart")
    plot = centre(browser, chart.find_element(By.CSS_SELECTOR, ".plot"))
    tip = chart.find_element(By.CSS_SELECTOR, ".tip")
    assert not tip.is_displayed()
    ActionChains(browser).move_to_element(plot).perform()
    names = [key.text for key in chart.find_elements(By.CSS_SELECTOR, ".keys button[data-place]")]
    told = tip.text.split("\n")
    assert told[0].startswith("step ")
    assert [line.split(":")[0] for line in told[1:]] == names
    assert tip.rect["x"] >= 0 and tip.rect["x"] + tip.rect["width"] <= width
    before = told[0]
    plot.send_keys("\ue014")
    assert tip.text.split("\n")[0] != before, "the arrow keys move on"


def test_no_two_labels_of_the_chart_overlap(browser, width):
    chart = centre(browser, browser.find_element(By.CSS_SELECTOR, ".chart"))
    boxes = [element.rect for element in chart.find_elements(By.CSS_SELECTOR, ".tick, .axis")]
    assert len(boxes) > 6
    for k, one in enumerate(boxes):
        for other in boxes[:k]:
            apart = (
                one["x"] + one["width"] <= other["x"]
                or other["x"] + other["width"] <= one["x"]
                or one["y"] + one["height"] <= other["y"]
                or other["y"] + other["height"] <= one["y"]
            )
            assert apart, (one, other)


def test_the_page_never_scrolls_sideways(browser, width):
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    wide = browser.execute_script(
        "return [...document.querySelectorAll('input, select, button.plain, p, .keys button')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth).length"
    )
    assert wide == 0


def test_tables_need_no_scrolling_on_a_wide_screen(browser):
    metrics = {"width": 1400, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        sizes = browser.execute_script(
            "return [...document.querySelectorAll('.scroll')]"
            ".map(e => [e.scrollWidth, e.clientWidth])"
        )
        assert sizes and all(wide <= room for wide, room in sizes)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
