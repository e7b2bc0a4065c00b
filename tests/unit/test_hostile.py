"""Damaged tokenizer files give an error of ours or load right; the benchmark checks 100,000."""

import importlib.util
from pathlib import Path


def test_a_sample_of_damaged_files(root: Path, private_cache: Path) -> None:
    path = root / "benchmarks" / "check_hostile.py"
    spec = importlib.util.spec_from_file_location("check_hostile", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    outcomes = module.run(1_000, seed=1)
    assert outcomes["FormatError"] > 200
    assert outcomes["loaded"] > 50
    assert set(outcomes) <= {"FormatError", "loaded"}
