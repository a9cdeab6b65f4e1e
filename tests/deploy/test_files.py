"""The files of docs/deploy and .github are what Compose, Prometheus, LiteLLM's chart and GitHub read, and agree."""

import re
import sys

import pytest
import yaml
from environments import ROOT, done
from recipes import FOLDER, yaml_file

from ctx_hooks.cli import main

pytestmark = pytest.mark.deploy

COMPOSE = yaml_file("docs/deploy/compose.yaml")
VALUES = yaml_file("docs/deploy/helm-values.yaml")
JOB = yaml_file("docs/deploy/prometheus.yml")["scrape_configs"][0]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
OF_WORKFLOWS = ("vendor.github-workflows", "custom.github-workflows-require-timeout")
SCHEMAS = [
    (FOLDER / "compose.yaml", "vendor.compose-spec"),
    (ROOT / ".github" / "dependabot.yml", "vendor.dependabot"),
    *((path, schema) for path in WORKFLOWS for schema in OF_WORKFLOWS),
]


@pytest.mark.parametrize(("path", "schema"), SCHEMAS, ids=lambda value: getattr(value, "name", value))
def test_files_follow_their_schemas(path, schema):
    done(sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, path, cwd=ROOT)


def test_actions_are_pinned_by_hash():
    """A tag of another repository can be moved."""
    used = [action for path in WORKFLOWS for action in re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))]
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action)] == []


def test_workflow_tests_supported_versions():
    jobs = yaml_file(".github/workflows/tests.yml")["jobs"]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert jobs["python"]["strategy"]["matrix"]["python"] == re.findall(r"Python :: (3\.\d+)", project)
    (versions,) = re.findall(r"versions=\(('.*')\)", (ROOT / ".ci" / "versions").read_text(encoding="utf-8"))
    assert jobs["litellm"]["strategy"]["matrix"]["litellm"] == [version.strip("'") for version in versions.split()]


@pytest.mark.parametrize("name", [".github/CONTRIBUTING.md", ".github/SECURITY.md", "docs/install.md"])
def test_guides_name_existing_files(name):
    guide = (ROOT / name).read_text(encoding="utf-8")
    there = {path.name for folder in ("ctx_hooks", "tests", "docs", ".github", ".ci") for path in (ROOT / folder).rglob("*")}
    named = {path.rpartition("/")[2] for path in re.findall(r"`([\w./-]+\.(?:py|md|ya?ml))`", guide)}
    assert named - there - {"litellm_config.yaml"} == set()


def test_prometheus_scrapes_composes_service():
    ((target,),) = (static["targets"] for static in JOB["static_configs"])
    service, port = target.split(":")
    assert COMPOSE["services"][service]["ports"] == [f"{port}:{port}"]
    (secret,) = COMPOSE["services"]["prometheus"]["secrets"]
    assert JOB["authorization"]["credentials_file"] == f"/run/secrets/{secret}"
    assert COMPOSE["secrets"][secret]["environment"] in COMPOSE["services"][service]["environment"]


def test_configurations_have_no_mistake(tmp_path, capsys):
    inline = tmp_path / "config.yaml"
    inline.write_text(yaml.safe_dump(VALUES["proxy_config"]))
    for path in (FOLDER / "litellm_config.yaml", inline):
        assert main(["check", str(path)]) == 0, capsys.readouterr()
