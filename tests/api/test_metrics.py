"""What the documentation's dashboard asks for is what the server gives."""

import json
import re
from pathlib import Path
from typing import Any

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana-dashboard.json"


def test_the_dashboard_asks_for_figures_that_there_are(client_of: Any, model: Any) -> None:
    client = client_of(model)
    client.post("/complete", json={"prompt": "hi"})
    given = set(re.findall(r"^(modelc_\w+)[{ ]", client.get("/metrics").text, re.MULTILINE))
    text = json.dumps([panel["targets"] for panel in json.loads(DASHBOARD.read_text())["panels"]])
    asked = set(re.findall(r"modelc_\w+", text))
    assert len(asked) > 15
    assert asked <= given


def test_every_figure_of_the_scheduler_is_on_the_dashboard(client_of: Any, model: Any) -> None:
    text = DASHBOARD.read_text()
    for name in re.findall(r"^# TYPE (modelc_\w+) ", client_of(model).get("/metrics").text, re.MULTILINE):
        assert name.endswith("_created") or name.removesuffix("_total") in text, name
