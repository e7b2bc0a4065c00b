"""Files for clusters: valid where that can be checked here, and with options that exist."""

import ast
import json
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
jsonschema = pytest.importorskip("jsonschema")


@pytest.fixture(scope="module")
def cluster(root: Path) -> Any:
    return yaml.safe_load((root / "cluster.yaml").read_text())


def test_cluster_launcher_takes_cluster_yaml(cluster: Any) -> None:
    ray = find_spec("ray")
    assert ray is not None
    assert ray.origin is not None
    schema = Path(ray.origin).parent / "autoscaler" / "ray-schema.json"
    jsonschema.validate(cluster, json.loads(schema.read_text()))
    assert cluster["head_node_type"] in cluster["available_node_types"]


def test_cluster_launcher_takes_what_the_docs_say_for_google_cloud(
    cluster: Any, root: Path
) -> None:
    (snippet,) = re.findall(r"```yaml\n(.*?)```", (root / "docs" / "clusters.md").read_text(), re.S)
    test_cluster_launcher_takes_cluster_yaml({**cluster, **yaml.safe_load(snippet)})


def test_cluster_keeps_tasks_off_the_head_and_the_dashboard_inside(cluster: Any) -> None:
    assert cluster["available_node_types"]["head"]["resources"] == {"CPU": 0}
    starts = cluster["head_start_ray_commands"] + cluster["worker_start_ray_commands"]
    for command in starts:
        if "ray start" in command:
            assert "RAY_AUTH_MODE=token" in command
    assert "--dashboard-host=127.0.0.1" in cluster["head_start_ray_commands"][-1]


def test_kubernetes_job_is_consistent(root: Path) -> None:
    job = yaml.safe_load((root / "pipelines" / "rayjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    spec = job["spec"]["rayClusterSpec"]
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    for group in groups:
        (container,) = group["template"]["spec"]["containers"]
        assert container["resources"]["requests"] == container["resources"]["limits"]
    assert spec["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0"}
    assert spec["authOptions"] == {"mode": "token"}


def test_kubernetes_job_runs_a_command_that_exists(root: Path) -> None:
    job = yaml.safe_load((root / "pipelines" / "rayjob.yaml").read_text())
    python, dash_m, module, command, *options = shlex.split(job["spec"]["entrypoint"])
    assert (python, dash_m, module, command) == ("python", "-m", "raybpe", "train")
    help_text = subprocess.run(
        [sys.executable, "-m", "raybpe", "train", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={"COLUMNS": "200", "PYTHONPATH": str(root), "PATH": ""},
    ).stdout
    for option in options:
        if option.startswith("--"):
            assert option in help_text


def pipelines() -> list[Path]:
    return sorted((Path(__file__).resolve().parents[2] / "pipelines").glob("*.py"))


@pytest.mark.parametrize("path", pipelines(), ids=lambda path: path.stem)
def test_pipelines_are_short_and_explain_themselves(path: Path) -> None:
    source = path.read_text()
    assert len(source.splitlines()) <= 60
    assert "ray job submit" in (ast.get_docstring(ast.parse(source)) or "")
    shown = subprocess.run(
        [sys.executable, str(path), "--help"], capture_output=True, text=True, check=True
    )
    assert "--output" in shown.stdout
