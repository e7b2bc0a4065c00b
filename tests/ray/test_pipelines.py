"""The jobs in pipelines/, as `ray job submit` would run them on the cluster's head."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import raybpe

pytestmark = pytest.mark.ray


@pytest.fixture
def job(root: Path, ray_local: Any) -> Any:
    """Run a pipeline against the Ray of this module."""
    address = ray_local.get_runtime_context().gcs_address

    def run(name: str, *arguments: object) -> str:
        environment = {**os.environ, "RAY_ADDRESS": address, "PYTHONPATH": str(root)}
        command = [sys.executable, str(root / "pipelines" / name), *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert "started for this run" not in done.stderr
        return done.stdout

    return run


def test_count_train_and_encode(job: Any, sample_file: Path, tmp_path: Path) -> None:
    counts, sizes, direct = tmp_path / "a.arrow", tmp_path / "sizes", tmp_path / "direct"
    assert "pretokens" in job("count_corpus.py", sample_file, "--output", counts)
    job("train_from_counts.py", counts, "--output", sizes, "--vocab-size", 400, "--vocab-size", 500)
    job("train_tokenizer.py", sample_file, "--output", direct, "--vocab-size", 500)
    assert (sizes / "500/tokenizer.json").read_bytes() == (direct / "tokenizer.json").read_bytes()
    assert raybpe.Tokenizer.load(sizes / "400").vocab_size == 400
    job("encode_dataset.py", direct, sample_file, "--output", tmp_path / "tokens")
    assert list((tmp_path / "tokens").glob("*.npy"))
