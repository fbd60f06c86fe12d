"""Modules, sessions, their numbers, profiles and reports in a notebook: well-formed and escaped; plain for programs."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import msgspec
import pytest
from tests.well_formed_html import Element, parsed

import gradwire as torch
from gradwire import nn
from gradwire._core.context import html
from gradwire._core.context.displayed import DisplayedText
from gradwire._core.modules import html_tree
from gradwire.profiler import profile, round_trips

MARKUP = "<script>alert('&\"')</script>"


def rows(page: Element) -> list[list[str]]:
    return [[cell.text for cell in row.children if isinstance(cell, Element)] for row in page.all("tr")]


def lines(page: Element) -> list[str]:
    """The lines of a tree: what folds, and what does not."""
    return [each.text for each in page.all("summary")] + [
        each.text for each in page.all("div") if each.attributes.get("class") == "gradwire-leaf"
    ]


# Modules


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.nothing = None
        self.scale = nn.Parameter(torch.ones(7), requires_grad=False)


def test_a_module_is_a_tree_of_kinds_shapes_and_counts_without_a_round_trip(round_trips) -> None:
    model = nn.Sequential(Block(), nn.ReLU())
    wanted = sum(p.numel() for p in model.parameters())
    round_trips()
    page = parsed(model._repr_html_())
    assert round_trips() == 0
    assert f"{wanted} parameters" in page.text and f"{wanted - 7} trained" in page.text and "training" in page.text
    found = lines(page)
    assert "0 Block31" in found
    assert "linear Linear(in_features=3, out_features=4, bias=True)16" in found
    assert "weight [4, 3] parameter float32" in found
    assert "scale [7] parameter float32, not trained" in found
    assert "running_mean [4] buffer float32" in found
    assert "1 ReLU" in found


def test_only_the_first_level_of_a_tree_is_unfolded() -> None:
    page = parsed(nn.Sequential(Block(), Block())._repr_html_())
    assert ["open" in each.attributes for each in page.all("details")] == [True] + [False] * 6


def test_a_parameter_that_two_modules_share_counts_once() -> None:
    first, second = nn.Linear(5, 5, bias=False), nn.Linear(5, 5, bias=False)
    second.weight = first.weight
    assert "25 parameters" in parsed(nn.Sequential(first, second)._repr_html_()).text


def test_unusual_modules_have_trees() -> None:
    lazy = nn.Sequential(nn.LazyLinear(3), nn.Identity())
    assert "weight parameter, no shape yet" in lines(parsed(lazy._repr_html_()))
    assert "0 parameters" in parsed(nn.Module()._repr_html_()).text
    assert "meta" in parsed(nn.Linear(2, 2, device="meta")._repr_html_()).text
    around = nn.Module()
    around._modules["inner"] = nn.Module()
    around._modules["inner"]._modules["outer"] = around
    around._modules["none"] = None
    found = lines(parsed(around._repr_html_()))
    assert "outer Module contains itself" in found and "none None" in found


def test_a_large_module_has_a_tree_of_bounded_size(monkeypatch) -> None:
    wide = nn.ModuleList(nn.ReLU() for _ in range(200))
    assert f"and {200 - html_tree.MOST_BESIDE} more modules" in lines(parsed(wide._repr_html_()))
    monkeypatch.setattr(html_tree, "MOST_LINES", 20)
    deep = nn.ModuleList(nn.ModuleList(nn.Linear(1, 1) for _ in range(10)) for _ in range(10))
    assert len(lines(parsed(deep._repr_html_()))) < 40


def test_names_and_descriptions_of_a_program_are_escaped() -> None:
    class Named(nn.Module):
        def extra_repr(self) -> str:
            return MARKUP

        def _get_name(self) -> str:
            return MARKUP

    model = Named()
    model.add_module(MARKUP.replace(".", ""), nn.Linear(1, 1))
    found = model._repr_html_()
    assert "<script" not in found
    assert parsed(found).text.count("<script>") >= 4


# Sessions


def test_a_session_tells_what_it_holds_in_one_request(session, monkeypatch, round_trips) -> None:
    asked: list[str] = []
    glance = session.rest.get_once
    monkeypatch.setattr(session.rest, "get_once", lambda path: asked.append(path) or glance(path))
    kept = torch.ones(1000)
    round_trips()
    session.synchronize()
    round_trips()
    page = parsed(session._repr_html_())
    assert round_trips() == 0
    assert asked == [f"/v1/sessions/{session.id}"]
    assert session.id in page.text and session.url in page.text and "running" in page.text
    assert "live_bytes" in page.text
    assert kept.sum().item() == 1000


def test_a_session_shows_no_key(session) -> None:
    assert session.api_key and session.api_key not in session._repr_html_()


def test_a_closed_session_says_so_without_asking() -> None:
    with torch.connect() as ended:
        pass
    assert "closed" in parsed(ended._repr_html_()).text


def test_a_session_whose_server_does_not_answer_is_shown_with_the_reason(session, monkeypatch) -> None:
    def silent(path: str) -> Any:
        raise torch.Unavailable("the server cannot be reached")

    monkeypatch.setattr(session.rest, "get_once", silent)
    page = parsed(session._repr_html_())
    assert "the server cannot be reached" in page.text and "round trip" in page.text


# Numbers and texts that stay what they are


def unpickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301  (of the line itself)


def numbers(session: Any) -> list[Any]:
    function = torch.compile(lambda x: x * 2)
    function(torch.ones(2))
    return [session.stats(), session.memory(), function.stats()]


@pytest.mark.parametrize("which", [0, 1, 2], ids=["stats", "memory", "compiled"])
def test_numbers_are_dictionaries_for_programs_and_tables_for_notebooks(which, session) -> None:
    found = numbers(session)[which]
    plain = dict(found.items())
    assert isinstance(found, dict) and found == plain and plain == found and repr(found) == repr(plain)
    assert json.loads(json.dumps(found)) == plain and msgspec.json.decode(msgspec.json.encode(found)) == plain
    for copied in (unpickled(found), copy.copy(found), copy.deepcopy(found), found.copy(), found | {}):
        assert copied == plain and type(copied) is dict
    shown = rows(parsed(found._repr_html_()))
    assert [row[0] for row in shown] == list(plain)


def test_memory_is_drawn_as_a_part_of_the_limit() -> None:
    from gradwire._core.session.displayed_facts import SessionMemory

    page = parsed(SessionMemory(live_bytes=3 << 20, limit_bytes=12 << 20)._repr_html_())
    assert [row[:2] for row in rows(page)] == [["live_bytes", "3 MB"], ["limit_bytes", "12 MB"]]
    assert [each.attributes["style"] for each in page.all("i")] == ["width:25.0%"]


def test_texts_are_strings_for_programs_and_keep_their_lines_in_notebooks(session) -> None:
    @torch.compile
    def doubled(x: Any) -> Any:
        return x * 2

    doubled(torch.ones(2))
    found = doubled.explain()
    plain = str(found)
    assert isinstance(found, str) and found == plain and hash(found) == hash(plain) and repr(found) == repr(plain)
    assert json.dumps(found) == json.dumps(plain)
    assert type(unpickled(found)) is str and type(copy.deepcopy(found)) is str
    assert plain in parsed(found._repr_html_()).text
    assert plain in parsed(doubled._repr_html_()).text
    (kept,) = parsed(DisplayedText("a <b>\n  c")._repr_html_()).all("pre")
    assert kept.text == "a <b>\n  c"


# Profiles and reports


def test_a_profile_is_a_table_of_the_same_numbers(session) -> None:
    with profile(record_shapes=True, profile_memory=True) as recorded:
        (torch.ones(64, 64) @ torch.ones(64, 64)).sum().item()
    averages = recorded.key_averages()
    head, *body = rows(parsed(averages._repr_html_()))
    assert head[:2] == ["name", "self CPU"]
    assert sorted(row[0] for row in body) == sorted(event.key for event in averages)
    times = {event.key: event.self_cpu_time_total_str for event in averages}
    assert all(row[1] == times[row[0]] for row in body)
    assert rows(parsed(recorded._repr_html_())) == [head, *body]
    assert averages.table() in parsed(averages.table()._repr_html_()).text
    assert type(unpickled(averages.table())) is str


def test_a_profile_that_recorded_nothing_has_no_table(session) -> None:
    assert profile()._repr_html_() is None
    with profile() as recorded:
        pass
    assert "no events" in parsed(recorded._repr_html_()).text


def test_lines_that_waited_are_a_table(session) -> None:
    with round_trips() as waited:
        torch.ones(3).sum().item()  # <this> line
    head, (place, count, *_) = rows(parsed(waited._repr_html_()))
    assert head[:2] == ["line", "waits"]
    assert "test_notebook_pages.py:" in place and "<this> line" in place and count == "1"
    assert parsed(session.round_trip_report()._repr_html_()).all("tr")


def test_characters_that_html_cannot_hold_are_replaced() -> None:
    assert html.text("a\x00\x1b<\ud800") == "a\ufffd\ufffd&lt;\ufffd"
