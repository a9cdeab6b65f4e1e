"""The proposals for LiteLLM apply to the version that they name, and their tests pass there."""

import os
import re
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import litellm
import pytest
from environments import ROOT, done

pytestmark = pytest.mark.deploy

PROPOSALS = ROOT / "docs" / "upstream"
STATED = re.search(r"LiteLLM (\d[\d.]*\d)", (PROPOSALS / "README.md").read_text())[1]


@pytest.mark.skipif(version("litellm") != STATED, reason=f"the proposals are for LiteLLM {STATED}")
def test_each_applies_by_itself_and_the_tests_of_all_pass(tmp_path):
    installed, proposals = Path(litellm.__file__).parent, sorted(PROPOSALS.glob("*.patch"))
    shutil.copytree(installed, tmp_path / "litellm", copy_function=os.symlink)
    for name in re.findall(r"^--- a/(\S+)$", "".join(path.read_text() for path in proposals), re.MULTILINE):
        (tmp_path / name).unlink()
        shutil.copyfile(installed.parent / name, tmp_path / name)
    for path in proposals:
        done("git", "apply", "--check", path, cwd=tmp_path)
    done("git", "apply", *proposals, cwd=tmp_path)
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, "-c", os.devnull, "tests")
    assert " passed" in done(*command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
