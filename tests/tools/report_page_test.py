"""The page of --report, as a browser shows it: drawn whole, without an error or a request, and with names as text.

Chromium opens pages of the runs of tests/tools/report_data.py that the tool's own report_page() made.
"""

import base64
import json
import re
import shutil
import subprocess
import unittest

import report_data
import tool_case

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    webdriver = None

PAGE_BYTES_MAX = 500_000
# How many points of a canvas have the colour of what it draws: what a chart without its line cannot reach.
INK_POINTS_MIN = 150
# Of each canvas: the points that are close to one of the colours named, in the theme that is on.
INK = """
const style = getComputedStyle(document.documentElement);
const probe = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
const wanted = arguments[0].map((name) => {
  probe.fillStyle = style.getPropertyValue("--" + name).trim();
  probe.fillRect(0, 0, 1, 1);
  return [...probe.getImageData(0, 0, 1, 1).data];
});
return [...document.querySelectorAll("canvas")].map((canvas) => {
  if (!canvas.width || !canvas.height) return 0;
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let ink = 0;
  const close = (at) => (colour) => [0, 1, 2].every((part) => Math.abs(colour[part] - data[at + part]) < 24);
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] > 200 && wanted.some(close(at))) ++ink;
  return ink;
});
"""
SERIES = ["memory", "misses", "read", "write", "running", "waiting"]


def page_of(case, run, variant=""):
    """The page's text, made from a run or from a text that stands in for its JSON."""
    text = run if isinstance(run, str) else json.dumps(run, ensure_ascii=False)
    done = subprocess.run(
        [case.programs / f"report_page_of{variant}"], input=text.encode(), capture_output=True, timeout=30, check=True
    )
    return done.stdout.decode()


class Text(tool_case.ToolCase):
    """What needs no browser."""

    def test_the_data_in_the_page_is_what_went_in(self):
        for name, run in report_data.RUNS.items():
            page = page_of(self, run())
            found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
            self.assertEqual(len(found), 1, name)
            self.assertEqual(json.loads(found[0]), run(), name)
            self.assertNotRegex(found[0], "[<>&\u2028\u2029]", name)

    def test_names_open_and_close_no_element(self):
        def tags(page):
            return re.findall(r"<[/!a-z][\w-]*", page)

        self.assertEqual(tags(page_of(self, report_data.hostile())), tags(page_of(self, report_data.usual())))

    def test_the_page_is_small_and_asks_for_nothing(self):
        page = page_of(self, "null")
        self.assertLess(len(page.encode()), PAGE_BYTES_MAX)
        self.assertIn("default-src 'none'", page)
        self.assertNotRegex(
            page, r"""<(?:script|img|iframe|object|embed)[^>]*\ssrc=|<link[^>]*href="(?!data:)|@import|url\("""
        )

    def test_the_charts_come_with_their_licence(self):
        page = page_of(self, "null")
        if "Chart.js v" not in page:
            self.skipTest("this build has no plotting library (Debian: libjs-chart.js)")
        for part in ("2021, Chart.js Contributors", "Permission is hereby granted", 'THE SOFTWARE IS PROVIDED "AS IS"'):
            self.assertIn(part, page)
        self.assertNotIn("Permission is hereby granted", page_of(self, "null", "_without_charts"))


class Browser(tool_case.ToolCase):
    driver = None  # one for all cases: starting it takes longer than they do

    def setUp(self):
        super().setUp()
        if self.driver is None:
            self.start()

    @classmethod
    def start(cls):
        if webdriver is None:
            raise unittest.SkipTest("no selenium for this Python (Debian: python3-selenium)")
        found = [
            path for path in map(shutil.which, ("chromium", "google-chrome")) if path and not path.startswith("/snap/")
        ]
        driver = shutil.which("chromedriver")
        if not found or not driver:
            raise unittest.SkipTest(
                "no Chromium with its driver (Debian: chromium, chromium-driver; a snap cannot read the test's files)"
            )
        options = webdriver.ChromeOptions()
        options.binary_location = found[0]
        for word in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1280,900",
        ):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        cls.driver = webdriver.Chrome(service=Service(driver), options=options)
        unittest.addModuleCleanup(cls.driver.quit)

    def open(self, run, variant="", theme="light", width=1280):
        """Shows the page; the console has to stay silent, and nothing may be asked for but the page."""
        file = self.folder / "page.html"
        file.write_text(page_of(self, run, variant))
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        )
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
        )
        for log in ("performance", "browser"):  # what an earlier page left
            self.driver.get_log(log)
        self.driver.get(file.as_uri())
        self.expect_silence()
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [
            event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"
        ]
        self.assertEqual([url for url in asked if not url.startswith("data:")], [file.as_uri()])

    def expect_silence(self):
        self.assertEqual([entry["message"] for entry in self.driver.get_log("browser")], [])

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector).text

    def run_script(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def expect_drawn(self, canvases):
        ink = self.run_script(INK, SERIES)
        self.assertEqual(len(ink), canvases)
        self.assertTrue(all(points >= INK_POINTS_MIN for points in ink), ink)

    def need_charts(self):
        if not self.run_script("return typeof Chart !== 'undefined'"):
            self.skipTest("this build has no plotting library (Debian: libjs-chart.js)")

    def test_every_chart_is_drawn_in_light_and_dark(self):
        self.open(report_data.usual())
        self.need_charts()
        for theme in ("light", "dark"):
            for name, canvases in (("usual", 6), ("small", 6), ("long", 6), ("holes", 5), ("fits", 4)):
                with self.subTest(theme=theme, run=name):
                    self.open(report_data.RUNS[name](), theme=theme)
                    self.expect_drawn(canvases)

    def test_an_empty_chart_has_no_ink(self):
        self.open(report_data.usual())
        self.need_charts()
        self.run_script("""for (const {chart} of charts) {
              for (const one of chart.data.datasets) one.data = [];
              chart.update("none");
            }""")
        ink = self.run_script(INK, ["misses", "read"])
        self.assertTrue(all(points < INK_POINTS_MIN for points in ink), ink)

    def test_what_is_missing_is_said(self):
        self.open(report_data.nothing())
        self.assertEqual(self.all("canvas"), [])
        for section, words in (
            ("timeline", "over before the first sample"),
            ("latency", "not recorded"),
            ("curve", "No curve"),
            ("allocations", "not recorded"),
            ("functions", "not recorded"),
            ("chosen", "no choices"),
            ("figures", "no totals"),
            ("advice", "is not known"),
        ):
            self.assertIn(words, self.text(f"#{section}"))
        self.assertFalse(self.driver.find_element(By.ID, "processes").is_displayed())
        for word in ("null", "undefined", "NaN"):
            self.assertNotIn(word, self.text("body"))

    def test_what_to_do_follows_the_curve(self):
        for name, title, words, command in (
            ("usual", "Give it 6.0 GiB.", "about 33.2 s instead of 1 min 23 s: 60 % less", "--memory 6G"),
            ("long", "Enough would be 11.0 GiB.", "This machine has 8.0 GiB", "--memory 7G"),
            (
                "small",
                "Nothing to do about memory.",
                "A signal ended the run, so this is about the part that ran.\nEven 70.0 MiB would save less than 5 %",
                None,
            ),
            ("fits", "Nothing to do.", "stayed in memory", None),
        ):
            self.open(report_data.RUNS[name]())
            self.assertEqual(self.text("#advice .verdict"), title)
            self.assertIn(words, self.text("#advice"))
            self.assertEqual([command in code.text for code in self.all("#advice .command")], [True] if command else [])
        run = report_data.usual()
        run["curve"]["here_bytes"] = 8 << 30
        self.open(run)
        self.assertEqual(self.text("#advice .verdict"), "Nothing to do. 6.0 GiB would be enough.")

    def test_the_head_says_how_it_ended(self):
        for run, words in (
            (report_data.usual(), "✓ finished"),
            (report_data.small(), "✕ ended by signal 9 (SIGKILL)"),
            (report_data.usual() | {"ended": {"code": 3, "signal": 0}}, "✕ ended with exit code 3"),
        ):
            self.open(run)
            self.assertEqual(self.text("#facts .badge"), words)
        self.assertIn("1 min 23 s", self.text("#facts"))
        self.assertEqual(self.text("h1"), "python3 knn.py --k 10 --vectors '/data/my vectors.f32'")
        self.assertEqual(self.text(".closing"), report_data.usual()["summary"]["closing_line"])

    def test_hostile_names_are_text(self):
        self.open(report_data.hostile())
        self.assertEqual(self.all("img, main script, main a, iframe, [onerror], [onmouseover]"), [])
        shown = [cell.get_attribute("title") for cell in self.all("#functions tbody tr td:first-child .name")]
        self.assertEqual(len(shown), len(report_data.HOSTILE))
        for name in report_data.HOSTILE:
            if name.isprintable():
                self.assertIn(name, shown)
        self.assertIn("␛[31mred␇␊line", shown)
        self.assertIn("⟨U+2028⟩⟨U+2029⟩⟨U+202E⟩txt.exe", shown)
        widths = self.run_script("return [document.documentElement.scrollWidth, innerWidth]")
        self.assertLessEqual(widths[0], widths[1])

    def test_the_copied_command_is_one_that_a_shell_takes_back(self):
        self.open(report_data.hostile())
        line = self.run_script(
            "return run_again(JSON.parse(document.getElementById('data').textContent), null).map(shell_word).join(' ')"
        )
        words = (
            subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True, timeout=30)
            .stdout.decode()
            .split("\0")[:-1]
        )
        self.assertEqual(words, ["spillway", "run", "--report", "report.html", "--", *report_data.HOSTILE])

    def test_the_page_may_not_ask_for_anything(self):
        self.open(report_data.usual())
        refused = self.driver.execute_async_script("""
            const done = arguments[0], refused = [];
            document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
            document.body.append(Object.assign(new Image(), {src: "http://127.0.0.1:9/x.png"}));
            document.body.append(Object.assign(document.createElement("script"), {textContent: "window.ran = 1"}));
            document.body.insertAdjacentHTML("beforeend", "<p onclick='window.ran = 1'></p>");
            document.body.lastChild.click();
            fetch("http://127.0.0.1:9/x").catch(() => setTimeout(() => done(refused.concat(window.ran ?? [])), 50));""")
        self.assertEqual(sorted(refused), ["connect-src", "img-src", "script-src-attr", "script-src-elem"])
        self.driver.get_log("browser")  # which says so, too

    def test_tables_sort_by_what_is_clicked(self):
        def sizes():
            return [cell.text for cell in self.all("#allocations tbody td:nth-child(3)")]

        self.open(report_data.usual())
        self.assertEqual(sizes(), ["7.5 GiB", "8.9 GiB", "1.0 GiB", "200 MiB", "381 MiB"])
        button = self.all("#allocations th:nth-child(3) button")[0]
        button.click()
        self.assertEqual(sizes(), ["8.9 GiB", "7.5 GiB", "1.0 GiB", "381 MiB", "200 MiB"])
        button.send_keys(Keys.ENTER)
        self.assertEqual(sizes()[0], "200 MiB")
        self.assertEqual(self.all("#allocations th:nth-child(3)")[0].get_attribute("aria-sort"), "ascending")
        self.assertEqual(len(self.all("#functions tbody tr")), 15)
        self.all("#functions .more")[0].click()
        self.assertEqual(len(self.all("#functions tbody tr")), 25)

    def test_all_charts_over_time_zoom_together(self):
        ranges = "return charts.slice(0, 4).map(({chart}) => [chart.scales.x.min, chart.scales.x.max])"
        self.open(report_data.usual())
        self.need_charts()
        self.assertEqual(self.run_script(ranges), [[0, 83.1]] * 4)
        canvas = self.all("#timeline canvas")[1]
        ActionChains(self.driver).move_to_element(canvas).click_and_hold().move_by_offset(200, 0).release().perform()
        zoomed = self.run_script(ranges)
        self.assertEqual(zoomed, [zoomed[0]] * 4)
        self.assertTrue(30 < zoomed[0][0] < zoomed[0][1] < 70, zoomed)
        self.all(".timeline")[0].send_keys(Keys.ESCAPE)
        self.assertEqual(self.run_script(ranges), [[0, 83.1]] * 4)
        self.all(".timeline")[0].send_keys("+")
        self.assertEqual(self.run_script(ranges)[3], [83.1 / 4, 83.1 * 3 / 4])
        self.expect_drawn(6)

    def test_keys_read_values(self):
        run = report_data.small()
        self.open(run)
        self.need_charts()
        self.all(".timeline")[0].send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        heard = self.driver.find_element(By.ID, "spoken").get_attribute("textContent")
        self.assertIn(f"At {run['samples']['seconds'][1] * 1000:.0f} ms: ", heard)
        self.assertIn(f"running {run['samples']['running_threads'][1]:g}", heard)
        self.assertEqual(
            f"in memory {run['samples']['memory_bytes'][1] / (1 << 20):.1f} MiB", self.text(".timeline .legend")
        )
        self.all("#curve .chart")[0].send_keys(Keys.ARROW_RIGHT)
        self.assertEqual(self.text("#curve .legend"), "64.0 MiB: about 940 ms, 900 blocks read")

    def test_the_other_views_are_drawn_too(self):
        self.open(report_data.usual())
        self.need_charts()
        for button in self.all(".pair .chart-head button"):
            button.click()
        self.assertEqual(self.text("#curve .legend"), "Blocks read")
        self.expect_drawn(6)
        self.expect_silence()

    def test_the_theme_follows_the_button(self):
        def paper():
            return self.run_script("return getComputedStyle(document.body).backgroundColor")

        self.open(report_data.usual())
        light, button = paper(), self.all("#theme")[0]
        button.click()
        self.assertEqual((paper(), button.text), (light, "Theme: light"))
        button.click()
        self.assertNotEqual(paper(), light)
        if self.run_script("return typeof Chart !== 'undefined'"):
            self.expect_drawn(6)

    def test_it_prints_in_light_colours(self):
        self.open(report_data.usual(), theme="dark")
        self.run_script(
            """addEventListener("beforeprint", () => { window.theme = document.documentElement.dataset.theme; });"""
        )
        printed = base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
        self.assertTrue(printed.startswith(b"%PDF"))
        self.assertEqual(self.run_script("return window.theme"), "light")
        self.assertEqual(self.run_script("return document.documentElement.dataset.theme"), "dark")
        self.expect_silence()

    def test_a_narrow_window_needs_no_scrolling_sideways(self):
        for width in (360, 700):
            self.open(report_data.usual(), width=width)
            self.assertLessEqual(self.run_script("return document.documentElement.scrollWidth"), width)

    def test_without_the_library_the_numbers_are_there(self):
        self.open(report_data.usual(), "_without_charts")
        self.assertEqual(self.all("canvas"), [])
        self.assertIn("Charts were left out of this build", self.text("#no-charts"))
        self.assertEqual(self.text("#advice .verdict"), "Give it 6.0 GiB.")
        for section, words in (
            ("figures", "12.4 GiB"),
            ("timeline", "1 min 23 s"),
            ("latency", "99.9 % within"),
            ("curve", "33.2 s"),
            ("functions", "knn.cc:88"),
        ):
            self.assertIn(words, self.text(f"#{section}"))
        self.assertFalse(self.driver.find_element(By.ID, "licence").is_displayed())

    def test_data_that_cannot_be_shown_is_refused_in_a_sentence(self):
        for text, words in (
            ('{"schema": 1, "comm', "Was the file cut short?"),
            ("", "cannot be read"),
            ('{"schema": 2}', "of schema 2, and this version"),
            ("null", "reads 1"),
        ):
            self.open(text)
            self.assertIn(words, self.text("#broken"))
            self.assertFalse(self.driver.find_element(By.ID, "advice").is_displayed())
        self.open({"schema": 1})  # of which all else is missing
        self.assertEqual(self.text("h1"), "An unnamed program")


if __name__ == "__main__":
    tool_case.main()
