"""Compiling beside a run: in a process that loads nothing of the user's, locked where it can be."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from raybpe import settings
from raybpe.flow import warm
from raybpe.kernels.entry import Kernel


def test_the_process_beside_imports_nothing_from_the_working_directory(tmp_path, monkeypatch):
    config = settings.train_config(300, settings.count_config())
    (tmp_path / "regex.py").write_text("raise SystemExit('the wrong regex')\n")
    monkeypatch.chdir(tmp_path)
    relative = os.path.relpath(Path(warm.__file__).parents[2])
    monkeypatch.setattr(sys, "path", ["", relative, *sys.path])
    monkeypatch.setattr(Kernel, "compiled", False)
    started = []

    class Started:
        def __init__(self, command, **options):
            started.append((command, options))

        def wait(self):
            return 0

    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", Started)
        warm.compile_ahead(config, exporting=False)
    ((command, options),) = started
    assert all(map(os.path.isabs, options["env"]["PYTHONPATH"].split(os.pathsep)))
    script = [*command[:2], "raybpe.flow.warm"]  # the same without a kernel to compile
    done = subprocess.run(script, cwd=options["cwd"], env=options["env"], check=False)
    assert done.returncode == 0
    assert Path(options["cwd"], "raybpe", "flow").is_dir()


def test_no_lock_is_no_reason_to_stop(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with warm._lock(tmp_path / "kernel.lock"):
        pass


def test_errors_of_compiling_are_not_hidden(tmp_path):
    with pytest.raises(OSError, match="mine"), warm._lock(tmp_path / "kernel.lock"):
        raise OSError("mine")
