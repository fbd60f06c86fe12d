"""Everything that docs/deploying.md names exists."""

from __future__ import annotations

import re

import yaml

from gradwire._core.wire.tls import VARIABLE
from gradwire_server.settings.secret_files import SECRETS
from gradwire_server.settings.settings import PREFIX, Settings, variable
from tests.live_server import ROOT

PAGE = (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")


def test_every_variable_of_the_page_is_one() -> None:
    known = {variable(name) for name in Settings.model_fields} | {f"{variable(name)}_FILE" for name in SECRETS}
    named = set(re.findall(PREFIX + r"[A-Z_]*[A-Z]", PAGE))
    assert named - known == {VARIABLE}


def test_every_file_of_the_page_is_there() -> None:
    ignored = {"docker/secrets", "docker/wheels"}
    named = {path.rstrip(".") for path in re.findall(r"\b(?:docker|examples)/[\w./-]+", PAGE)}
    assert all((ROOT / path).exists() for path in named - ignored)


def test_a_stop_is_given_the_time_that_the_server_may_take() -> None:
    fields = Settings.model_fields
    needed = fields["drain_timeout_s"].default + fields["drain_grace_s"].default + 15
    given = [*re.findall(r"--stop-timeout (\d+)", PAGE), *re.findall(r"TimeoutStopSec=(\d+)", PAGE)]
    assert len(given) == 2
    assert all(int(seconds) >= needed for seconds in given)


def test_values_of_the_chart_that_the_page_names_exist() -> None:
    values = yaml.safe_load((ROOT / "docker" / "helm" / "gradwire" / "values.yaml").read_text(encoding="utf-8"))
    named = re.findall(
        r"\b((?:keys|settings|persistence|networkPolicy|ingress|gpu|image)\.(?!md\b|json\b|sh\b)\w+)\b", PAGE
    )
    for group, name in (each.split(".") for each in named):
        assert name in values[group] or (group == "settings" and name in Settings.model_fields)
    assert len(named) > 8
