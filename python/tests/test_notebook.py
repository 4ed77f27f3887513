"""The magics, in kernels that nbclient starts, and in a terminal's shell."""

import subprocess
import sys

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs nbclient and ipykernel")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
ipykernel = pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel")

SETUP = "%load_ext spillway\nimport time, numpy as np, spillway\n"
CONFIGURED = SETUP + "spillway.configure(memory='32M')"


@pytest.fixture
def cells(tmp_path, monkeypatch):
    """cells(source...): their outputs, and all messages of the kernel as (cell, type, content)."""
    # A kernel of this interpreter, whatever others are installed.
    spec = tmp_path / "kernels" / "here"
    spec.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(f'{{"argv": {str(command).replace(chr(39), chr(34))}, "display_name": "here"}}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))

    def execute(*sources, launcher=()):
        if launcher:
            words = str([*launcher, *command]).replace(chr(39), chr(34))
            (spec / "kernel.json").write_text(f'{{"argv": {words}, "display_name": "here"}}')
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
        messages = []

        class Client(nbclient.NotebookClient):
            def process_message(self, message, cell, index):
                messages.append((index, message["msg_type"], message["content"]))
                return super().process_message(message, cell, index)

        Client(notebook, timeout=100, kernel_name="here", allow_errors=True).execute()
        return [cell.outputs for cell in notebook.cells], messages

    return execute


def texts(outputs):
    return [output["data"]["text/plain"] for output in outputs if "data" in output]


def test_a_cell_is_measured_while_it_runs_and_when_it_has_ended(cells):
    outputs, messages = cells(
        CONFIGURED,
        "%%spillway --interval 0.05\narray = spillway.empty(16 << 20)\n"
        "for i in range(4):\n    array += i\n    time.sleep(0.1)\narray[0]",
        "%spillway",
    )
    report, result = texts(outputs[1])
    assert result == "np.float64(6.0)" or result == "6.0"
    assert report.startswith("spillway: ") and " misses; read " in report and "cap 32.0 MiB" in report
    assert "read 0 B" not in report and "wrote 0 B" not in report and "of 128.0 MiB in memory" in report
    shown = [c["data"]["text/plain"] for i, kind, c in messages if i == 1 and "display_data" in kind]
    assert len(shown) >= 4 and shown[-1] == report
    assert all("/s), wrote" in line for line in shown[:-1])
    kinds = [kind for i, kind, c in messages if i == 1 and "display_data" in kind]
    assert kinds.count("display_data") == 1, "one display, and updates of it"
    assert "misses, read" in outputs[2][0]["text"]


def test_cells_are_what_they_would_be_without_it(cells):
    outputs, _ = cells(
        CONFIGURED,
        "%%spillway --quiet\nx = 5\nx + 1",
        "x",
        "%%spillway --quiet\nx;",
        "%%spillway --quiet\ndef f():\n    return 1 / 0\nf()",
        "%%spillway --quiet\n!echo shell\n%time 3",
        "%%spillway --quiet\n# nothing",
        "%%spillway --quiet\nx = )",
        "_",
    )
    assert texts(outputs[1])[0] == "6" and texts(outputs[2]) == ["5"]
    assert [text.startswith("spillway: ") for text in texts(outputs[3])] == [True]
    error = next(output for output in outputs[4] if output.output_type == "error")
    assert error.ename == "ZeroDivisionError" and any("return 1 / 0" in line for line in error.traceback)
    assert len([output for output in outputs[4] if output.output_type == "error"]) == 1
    assert "shell" in str(outputs[5]) and texts(outputs[6])[0].startswith("spillway: ")
    assert outputs[7][-1].ename == "SyntaxError"


def test_wrong_words_are_said(cells):
    outputs, _ = cells(
        CONFIGURED,
        "%%spillway --speed\nran = 1",
        "%%spillway --interval soon\nran = 1",
        "%%spillway --interval 0\nran = 1",
        "%spillway now",
        "%%spillway --memory 16M\nran = 1",
        "ran",
        "%unload_ext spillway",
        "%%spillway\n1",
    )
    for found, text in zip(outputs[1:6], ["--speed", "soon", "above 0", "takes nothing", "python -m spillway run"]):
        assert found[0].output_type == "error" and text in found[0].evalue
    assert outputs[6][0].ename == "NameError"
    assert "not found" in str(outputs[8])


def test_a_kernel_under_spillway_run_manages_all_arrays(cells):
    outputs, _ = cells(
        SETUP,
        "%%spillway --quiet --memory 96M\narray = np.ones(24 << 20)\nspillway.is_managed(array)",
        "spillway.statistics().memory_limit_bytes >> 20",
        launcher=[sys.executable, "-m", "spillway", "run", "--memory", "128M", "--"],
    )
    assert "True" in texts(outputs[1]) and "cap 96.0 MiB" in str(texts(outputs[1]))
    assert texts(outputs[2]) == ["128"]


def test_a_terminals_shell_gets_a_line(tmp_path):
    code = "%load_ext spillway\nget_ipython().run_cell_magic('spillway', '', 'print(40 + 2)')\n"
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"],
        input=code,
        cwd=tmp_path,
        env={**__import__("os").environ, "IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "42" in done.stdout and done.stderr.count("spillway: ") == 1 and "threads waited" in done.stderr
