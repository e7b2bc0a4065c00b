"""The doctor tells what is here without loading it."""

import subprocess
import sys

from raybpe.doctor import machine_rows, speed_rows
from raybpe.flow.node_facts import differing


def test_machine_rows() -> None:
    rows = dict(machine_rows())
    assert rows["numba"][0].isdigit()
    assert rows["python"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
    assert "usable" in rows["cores"]
    assert rows["executor auto"].startswith(("local", "ray"))
    assert "kernels" in rows["kernel cache"]


def test_an_address_is_what_auto_would_go_by() -> None:
    assert dict(machine_rows("auto"))["executor auto"] == "ray (--address was given)"


def test_versions_that_differ() -> None:
    here = dict(machine_rows()) | {"raybpe": "1.2 (run from its sources)"}
    assert (
        differing([here, here | {"raybpe": "1.2", "python": f"{here['python']} elsewhere"}]) == []
    )
    assert differing([here, here | {"raybpe": "1.3"}]) == [("raybpe DIFFERS", "1.2, 1.3")]


def test_asking_does_not_load_ray() -> None:
    code = (
        "import sys; from raybpe.doctor import machine_rows; machine_rows(); "
        "print([m for m in ('ray',) if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_speed_rows() -> None:
    rows = dict(speed_rows())
    assert set(rows) == {"count, gpt2", "count, cl100k"}
    assert "(scan" in rows["count, gpt2"]
    assert "(automaton" in rows["count, cl100k"]
