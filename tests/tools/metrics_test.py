"""What --metrics serves, as others read it: Prometheus' own parsers, a socket, and the board of examples/metrics."""

import http.client
import json
import re
import shutil
import socket
import subprocess
import unittest

import tool_case

try:
    from prometheus_client import openmetrics, parser
    from prometheus_client.openmetrics import parser as openmetrics_parser
except ImportError:
    openmetrics = None

WITHOUT_PARSER = "no prometheus_client (Debian: python3-prometheus-client)"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# What Prometheus 2.42 sends.
ACCEPT = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
AWKWARD_NAME = './my "best" prog\\v2\n'  # of metrics_run.h
SAMPLE = re.compile(r"\b(spillway_\w+)")
RATE = re.compile(r"\b(?:rate|increase)\((\w+)")


class SocketConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Served(tool_case.ToolCase):
    def setUp(self):
        super().setUp()
        self.address = f"{self.folder}/run.sock"
        self.server = subprocess.Popen([self.programs / "metrics_of", self.address], text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end)
        if not self.server.stdout.readline():
            error = self.server.stderr.read()
            self.assertIn("without libevent", error)
            self.skipTest("this build has no libevent (Debian: libevent-dev)")

    def end(self):
        self.server.communicate(timeout=30)

    def get(self, accept):
        connection = SocketConnection(self.address)
        connection.request("GET", "/metrics", headers={"Accept": accept})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        return answer.headers["Content-Type"], answer.read().decode()

    def test_openmetrics_is_what_its_own_parser_takes(self):
        if openmetrics is None:
            self.skipTest(WITHOUT_PARSER)
        kind, text = self.get(ACCEPT)
        self.assertEqual(kind, OPENMETRICS)
        families = {family.name: family for family in openmetrics_parser.text_string_to_metric_families(text)}
        self.assertEqual(len(families), text.count("# TYPE "))
        self.assertEqual(families["spillway_run_spilled_bytes"].unit, "bytes")
        programs = {sample.labels["program"] for sample in families["spillway_process"].samples}
        self.assertEqual(programs, {"sort", AWKWARD_NAME})
        buckets = [sample for sample in families["spillway_process_miss_duration_seconds"].samples
                   if sample.labels.get("le") == "+Inf"]
        self.assertEqual([bucket.value for bucket in buckets], [26, 26])

    def test_the_older_text_is_what_its_own_parser_takes(self):
        if openmetrics is None:
            self.skipTest(WITHOUT_PARSER)
        kind, text = self.get("text/plain")
        self.assertEqual(kind, "text/plain; version=0.0.4; charset=utf-8")
        families = {family.name: family for family in parser.text_string_to_metric_families(text)}
        self.assertEqual(families["spillway_run_misses"].samples[0].value, 3.1e6)
        self.assertEqual(families["spillway_run_misses"].type, "counter")
        self.assertEqual(families["spillway_process_miss_duration_seconds"].type, "histogram")
        self.assertFalse([family for family in families.values() if family.type == "unknown"])

    def test_promtool_has_nothing_to_say(self):
        promtool = shutil.which("promtool")
        if promtool is None:
            self.skipTest("no promtool (Debian: prometheus)")
        _, text = self.get("text/plain")
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=30)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_the_board_shows_what_is_served(self):
        _, text = self.get(OPENMETRICS)
        served = {SAMPLE.match(line)[1] for line in text.splitlines() if SAMPLE.match(line)}
        board = json.loads((self.source / "examples/metrics/grafana.json").read_text())
        shown = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(shown), 20)
        asked = shown + [variable["definition"] for variable in board["templating"]["list"] if "definition" in variable]
        for question in asked:
            names = SAMPLE.findall(question)
            self.assertTrue(names, question)
            self.assertEqual([name for name in names if name not in served], [], question)
            for name in RATE.findall(question):
                self.assertRegex(name, "_(total|bucket|count|sum)$", "a rate of what is no counter")
        variables = {variable["name"] for variable in board["templating"]["list"]} | {"__rate_interval"}
        used = set(re.findall(r"\$\{?(\w+)", json.dumps(board["panels"])))
        self.assertEqual(used - variables, set())

    def test_the_file_of_the_socket_goes_with_the_run(self):
        self.end()
        self.assertEqual(list(self.folder.iterdir()), [])


class Board(tool_case.ToolCase):
    def test_no_panel_lies_over_another(self):
        panels = json.loads((self.source / "examples/metrics/grafana.json").read_text())["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        taken = {}
        for panel in panels:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((x, y), taken, f"{panel['title']} over {taken.get((x, y))}")
                    taken[x, y] = panel["title"]


if __name__ == "__main__":
    tool_case.main()
