"""The package beside LiteLLM, by pip and as a tool of uv's, as docs/install.md says: an overflow is answered."""

import os
import sys
from pathlib import Path

import pytest
from deployed import OVERFLOWING, SMALL, asked, assert_rescued, started, without_the_callback
from environments import ROOT, compiled_as_here, done
from recipes import commands, yaml_file
from uv import find_uv_bin

pytestmark = pytest.mark.deploy


def test_pip_installs_and_uninstalls_beside_litellm(litellm_alone, provider, tmp_path):
    install, check, start = commands("pip")
    assert start == "litellm --config litellm_config.yaml"
    litellm_alone.run(install, litellm_alone.package.checkout)
    assert litellm_alone.run(check, ROOT)
    with started(litellm_alone.program("litellm"), yaml_file("litellm_config.yaml"), provider) as proxy:
        assert_rescued(proxy, provider)

    (uninstall,) = commands("Uninstall")
    litellm_alone.run(uninstall, tmp_path)
    litellm_alone.run("! python -c 'import ctx_hooks'", tmp_path)
    config = without_the_callback(yaml_file("litellm_config.yaml"))
    assert config["callback_settings"]["ctx_hooks"]
    with started(litellm_alone.program("litellm"), config, provider) as proxy:
        answer, attempts = asked(proxy, provider, SMALL)
        assert (answer.status_code, attempts) == (200, [200])
        answer, _ = asked(proxy, provider, OVERFLOWING)
        assert answer.status_code == 400
        assert not [name for name in answer.headers if "ctx-hooks" in name]


def test_uv_installs_tool_with_plugin(package, constraints, provider, tmp_path):
    install, start = commands("uv")
    assert start == "litellm --config litellm_config.yaml"
    folders = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    versions = {"UV_CONSTRAINT": str(constraints), "UV_FIND_LINKS": str(package.folder), "UV_PYTHON": sys.executable}
    path = os.pathsep.join([str(Path(find_uv_bin()).parent), os.environ["PATH"]])
    done("sh", "-c", install, cwd=package.checkout, env={**folders, **versions, "PATH": path})
    compiled_as_here(tmp_path / "tools" / "litellm")
    with started(tmp_path / "bin" / "litellm", yaml_file("litellm_config.yaml"), provider) as proxy:
        assert_rescued(proxy, provider)
