"""The doctor tells what is here without loading it."""

import subprocess
import sys

from raybpe.doctor import machine_rows, speed_rows


def test_machine_rows() -> None:
    rows = dict(machine_rows())
    assert rows["numba"][0].isdigit()
    assert rows["python"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
    assert "usable" in rows["cores"]
    assert rows["executor auto"].startswith(("local", "ray"))
    assert "kernels" in rows["kernel cache"]


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
