"""`ctx-hooks schema` prints the JSON Schema of the settings and of a policy."""

import json

from ctx_hooks.cli import main
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.policy.settings import Policy, Settings


def test_every_field_stands_in_the_schema_with_its_description(capsys):
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    policy = schema["policy"]
    parts = {Settings: schema["settings"], Policy: policy, ArchiveSettings: policy["$defs"]["ArchiveSettings"]}
    for model, part in parts.items():
        assert set(part["properties"]) == set(model.model_fields)
        assert all(field["description"] for field in part["properties"].values())
