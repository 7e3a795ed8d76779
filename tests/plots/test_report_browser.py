"""The report in a real browser: it loads without a word, sorts, filters, and hostile names rest."""

import shutil

import pytest

from atomcast import Lasso, LocalCluster

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium and chromedriver here"),
]


@pytest.fixture
def browser(tmp_path):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--no-first-run", "--window-size=1200,1600",
        f"--user-data-dir={tmp_path / 'profile'}",
    ):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


def column(browser, section, k):
    script = (
        "const rows = [...arguments[0].querySelectorAll('tbody tr')].filter(r => !r.hidden);"
        "return rows.map(r => r.cells[arguments[1]].textContent)"
    )
    return browser.execute_script(script, section, k)


def test_a_report_in_a_browser(browser, tmp_path):
    pandas = pytest.importorskip("pandas")
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    hostile = "<img src=x onerror=\"document.title='stolen'\">"
    X = pandas.DataFrame(X.to_numpy(), columns=[hostile, *X.columns[1:-1], "long_" * 60])
    model = Lasso(2500.0, cluster=LocalCluster(3)).fit(X, y)
    browser.get(model.result_.report(tmp_path / "run.html", model).as_uri())
    assert browser.title == "Lasso: optimal"
    assert browser.get_log("browser") == []
    assert len(browser.find_elements("css selector", "figure svg")) == 2
    assert all(svg.size["height"] > 100 for svg in browser.find_elements("css selector", "svg"))
    atoms = browser.find_element("css selector", "section.table")
    wide = atoms.find_element("css selector", ".wide")
    assert int(wide.get_property("scrollWidth")) <= int(wide.get_property("clientWidth"))
    head = atoms.find_elements("css selector", "thead button")[3]
    head.click()
    weights = [float(text.replace(",", "")) for text in column(browser, atoms, 3)]
    assert weights == sorted(weights)
    head.send_keys("\n")  # by keyboard, and the other way round
    assert column(browser, atoms, 3)[0] == atoms.find_elements("css selector", "td.number")[1].text
    assert [float(t.replace(",", "")) for t in column(browser, atoms, 3)] == weights[::-1]
    atoms.find_element("css selector", "input").send_keys("s5")
    assert column(browser, atoms, 1) == ["s5"]
    assert atoms.find_element("css selector", "output").text.startswith("1 of ")
    assert browser.title == "Lasso: optimal"
    assert browser.save_screenshot(str(tmp_path / "run.png"))
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    body = browser.find_element("css selector", "body")
    for media, text in (("screen", "228, 231, 235"), ("print", "28, 30, 33")):  # paper is white
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": dark})
        assert text in body.value_of_css_property("color")
