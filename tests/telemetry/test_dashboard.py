"""The dashboard imports into any Grafana: it names no data source, id or variable that is not its own."""

import json
import re
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BOARD = json.loads((ROOT / "docs" / "grafana.json").read_text(encoding="utf-8"))
PANELS = BOARD["panels"]
VARIABLES = {variable["name"]: variable for variable in BOARD["templating"]["list"]}
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]
GRAFANAS_OWN = {"__range", "__rate_interval"}
COLUMNS = 24
"""Of Grafana's grid."""


def test_the_data_source_is_chosen_at_the_import():
    assert BOARD["id"] is None
    assert BOARD["schemaVersion"] >= 36, "data sources are objects since"
    assert VARIABLES["datasource"]["type"] == "datasource"
    named = re.findall(r'"uid": "([^"]*)"', json.dumps([PANELS, BOARD["templating"]]))
    assert set(named) == {"${datasource}"}


def test_each_variable_is_used_and_each_one_that_is_used_is_there():
    used = set(re.findall(r"\$(\w+)", " ".join(QUERIES)))
    assert used - GRAFANAS_OWN == set(VARIABLES) - {"datasource"}


def test_panels_have_ids_and_places_of_their_own():
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    places = [(p["gridPos"]["x"], p["gridPos"]["y"], p["gridPos"]["w"], p["gridPos"]["h"]) for p in PANELS]
    assert all(x + w <= COLUMNS for x, _, w, _ in places)
    for (x, y, w, h), (x2, y2, w2, h2) in combinations(places, 2):
        assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
