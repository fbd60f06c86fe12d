"""Drawings of the autograd graph show the server's state and are valid SVG."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest

import gradwire
from gradwire import nn, viz
from gradwire._core.context.call_sites import FRAMES_KEPT, RecentLines, user_line
from gradwire.viz.drawing import spell_bytes
from gradwire_protocol.drawing.layout import arrange, layers_of, nearest
from gradwire_protocol.drawing.svg import text_width
from gradwire_protocol.frames import position_of

SVG = "{http://www.w3.org/2000/svg}"


def parsed(drawing) -> ElementTree.Element:
    return ElementTree.fromstring(drawing.svg)


def texts(drawing) -> list[str]:
    return [element.text or "" for element in parsed(drawing).iter(f"{SVG}text")]


def names(drawing) -> list[str]:
    """The names of the nodes, as boxes show them: a box's first line is in two parts when it ends in Backward."""
    found = []
    for group in boxes(drawing):
        first, *rest = group.findall(f"{SVG}text")
        y = first.get("y")
        found.append("".join([first.text or "", *(t.text or "" for t in rest if t.get("y") == y)]))
    return found


def boxes(drawing) -> list[ElementTree.Element]:
    return [g for g in parsed(drawing).iter(f"{SVG}g") if g.find(f"{SVG}title") is not None]


def box(drawing, name: str) -> ElementTree.Element:
    (found,) = [g for g, n in zip(boxes(drawing), names(drawing), strict=True) if n == name]
    return found


def shown(drawing, name: str) -> str:
    return "\n".join(t.text or "" for t in box(drawing, name).iter(f"{SVG}text"))


def kind(drawing, name: str) -> str:
    rectangle = box(drawing, name).find(f"{SVG}rect")
    assert rectangle is not None
    return rectangle.get("class", "")


@pytest.fixture
def network(session):
    model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 4))
    loss = nn.functional.cross_entropy(model(gradwire.randn(8, 20)), gradwire.randint(0, 4, (8,)))
    return model, loss


def test_every_node_of_the_graph_is_drawn_with_its_name(network):
    model, loss = network
    drawing = viz.graph(loss, params=dict(model.named_parameters()) | {"loss": loss})
    walked, stack = set(), [loss.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in walked:
            walked.add(node)
            stack.extend(n for n, _ in node.next_functions)
    ops = [node.name() for node in walked if node.next_functions]
    assert sorted(names(drawing)) == sorted([*ops, "loss", "0.weight", "0.bias", "2.weight", "2.bias"])
    assert len(drawing.nodes) == len(walked)


def test_a_leaf_shows_name_shape_dtype_and_size(network):
    model, loss = network
    drawing = viz.graph(loss, params=dict(model.named_parameters()))
    assert shown(drawing, "0.weight") == "0.weight\nfloat32[30, 20]\n2.3 KB"
    assert kind(drawing, "0.weight") == "parameter"


def test_a_leaf_without_a_name_says_what_it_is(session):
    x, w = gradwire.ones(3, dtype=gradwire.float64, requires_grad=True), nn.Parameter(gradwire.ones(3))
    drawing = viz.graph((x * w).sum())
    assert shown(drawing, "leaf") == "leaf\nfloat64[3]\n24 B"
    assert shown(drawing, "parameter") == "parameter\nfloat32[3]\n12 B"


def test_what_a_node_keeps_is_shown_and_counted_once_in_all(session):
    x = gradwire.randn(16, 16, requires_grad=True)
    y = x.exp()
    total = (y.sin() + y.cos()).sum()
    drawing = viz.graph(total)
    for name in ("ExpBackward0", "SinBackward0", "CosBackward0"):
        assert "keeps 1 KB" in shown(drawing, name)
        assert kind(drawing, name) == "saving"
    assert kind(drawing, "AddBackward0") == "plain"
    assert drawing.saved_bytes == 1024
    assert "; 1 KB kept for backward" in texts(drawing)[0]


def test_a_graph_that_was_freed_says_so(session):
    x = gradwire.randn(4, requires_grad=True)
    y = x.exp().sum()
    y.backward()
    drawing = viz.graph(y)
    assert kind(drawing, "ExpBackward0") == "freed"
    assert drawing.saved_bytes == 0


def test_a_node_shows_the_line_that_made_it(session):
    x = gradwire.randn(4, requires_grad=True)
    y = x.exp()
    line = sys._getframe().f_lineno - 1
    drawing = viz.graph(y.sum())
    assert f"test_viz.py:{line}" in shown(drawing, "ExpBackward0")
    (node,) = [n for n in drawing.nodes if n["name"] == "ExpBackward0"]
    assert node["line"] == f"{__file__}:{line}"
    assert f"at {__file__}:{line}" in (box(drawing, "ExpBackward0").findtext(f"{SVG}title") or "")
    assert f"ExpBackward0 keeps 16 B at {__file__}:{line}" in repr(drawing)


def test_the_lines_survive_many_frames(session):
    x = gradwire.randn(4, requires_grad=True)
    kept = x.exp()
    line = sys._getframe().f_lineno - 1
    for _ in range(50):
        (kept + 1).sum().item()
    (node,) = [n for n in viz.graph(kept).nodes if n["name"] == "ExpBackward0"]
    assert node["line"] == f"{__file__}:{line}"


def test_results_are_named_and_intermediate_ones_too(session):
    x = gradwire.randn(4, requires_grad=True)
    hidden = x.tanh()
    drawing = viz.graph(hidden.sum(), params={"hidden": hidden, "x": x})
    assert shown(drawing, "result") == "result\nfloat32[]"
    assert "hidden: float32[4]" in shown(drawing, "TanhBackward0")
    assert "x" in names(drawing)


def test_several_results_are_drawn_in_one_drawing(session):
    x = gradwire.randn(4, requires_grad=True)
    y = x.tanh()
    drawing = viz.graph(y, y.sum(), params={"y": y})
    assert names(drawing).count("TanhBackward0") == 1
    assert {"y", "result"} <= set(names(drawing))


def test_a_leaf_can_be_drawn(session):
    x = gradwire.randn(4, requires_grad=True)
    drawing = viz.graph(x, params={"x": x})
    assert names(drawing) == ["x"]
    assert drawing.edges == []


def test_without_tensors_all_live_graphs_are_drawn():
    with gradwire.connect() as own:
        x = gradwire.randn(4, requires_grad=True)
        y, z = x.tanh(), x.exp()
        assert sorted(names(viz.graph())) == ["ExpBackward0", "TanhBackward0", "leaf"]
        assert own.graph()["nodes"]
        del y, z
        assert names(viz.graph()) == []


def test_names_that_are_not_in_the_graph_are_told(network):
    model, loss = network
    other = nn.Linear(2, 2)
    drawing = viz.graph(loss, params=dict(model.named_parameters()) | {"other.weight": other.weight})
    assert drawing.unused == ["other.weight"]
    assert "not in this graph: other.weight" in texts(drawing)
    assert "not in this graph: other.weight" in repr(drawing)


def test_edges_to_several_results_of_a_node_say_which(session):
    x = gradwire.randn(3, 4, requires_grad=True)
    a, b, c = x.unbind(0)
    drawing = viz.graph(a.exp() + c * c, params={"b": b})
    assert {"[0]", "[2] ×2"} <= set(texts(drawing))
    assert "3 × float32[4]" in shown(drawing, "UnbindBackward0")


def test_a_function_of_the_program_has_its_own_colour(session):
    class Twice(gradwire.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    x = gradwire.randn(3, requires_grad=True)
    drawing = viz.graph(Twice.apply(x))
    assert kind(drawing, "TwiceBackward") == "custom"


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "a&b", 'quo"te', "]]>", "nul\x00and\x1b", "é 漢字 😀", "\ud800"]
)
def test_names_are_escaped(session, name):
    x = gradwire.randn(3, requires_grad=True)
    drawing = viz.graph(x.exp(), params={name: x})
    assert re.sub("[^\t\n\r\x20-\ud7ff\ue000-\U0010ffff]", "�", name) in names(drawing)
    assert "<script" not in drawing.svg
    drawing.svg.encode("utf-8")


def test_a_drawing_refers_to_nothing_outside(network):
    drawing = viz.graph(network[1])
    for element in parsed(drawing).iter():
        assert element.tag in {SVG + t for t in ("svg", "title", "style", "g", "rect", "text", "path")}
        assert not [a for a in element.attrib if a.endswith(("href", "src")) or a.startswith("on")]
    assert "url(" not in drawing.svg


def test_light_and_dark(network):
    light, dark, auto = (viz.graph(network[1], theme=theme).svg for theme in ("light", "dark", "auto"))
    assert "prefers-color-scheme" in auto and "prefers-color-scheme" not in light + dark
    assert re.findall(r'fill="([^"]*)"', light) == re.findall(r'fill="([^"]*)"', auto)
    assert re.findall(r'fill="([^"]*)"', light) != re.findall(r'fill="([^"]*)"', dark)


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_texts_can_be_read_on_every_colour():
    from gradwire_protocol.drawing.svg import _DARK, _LIGHT

    for colours in (_LIGHT, _DARK):
        for name, (fill, _) in colours.items():
            if name not in ("line", "arrow", "ink", "faint"):
                for ink in ("ink", "faint"):
                    assert contrast(colours[ink][0], fill) >= 4.5, (name, ink)


def test_a_drawing_is_saved_and_shown_by_notebooks(network, tmp_path):
    drawing = viz.graph(network[1])
    drawing.save(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == drawing.svg == drawing._repr_svg_()
    assert drawing.svg in drawing._repr_html_()
    ElementTree.fromstring(drawing._repr_html_())
    first = repr(drawing).splitlines()[0]
    assert re.fullmatch(r"<drawing of \d+ nodes \(4 leaves\), \d+ edges; [\d.]+ KB kept for backward>", first)


def test_a_large_graph_is_drawn_up_to_max_nodes(session):
    x = gradwire.randn(4, requires_grad=True)
    y = x
    for _ in range(100):
        y = y.sin()
    drawing = viz.graph(y, max_nodes=10)
    assert names(drawing).count("SinBackward0") == 10
    assert "91 more nodes" in names(drawing)
    assert drawing.omitted == 91
    assert "91 nodes are left out (max_nodes=10)" in texts(drawing)
    assert len(drawing.nodes) == 101
    assert viz.graph(y, max_nodes=101).omitted == 0
    assert "1 more nodes" not in names(viz.graph(y, max_nodes=101))


def test_five_hundred_nodes_are_drawn_without_overlaps(session):
    w = gradwire.randn(4, 4, requires_grad=True)
    h = gradwire.zeros(2, 4)
    for _ in range(124):
        h = gradwire.tanh(gradwire.ones(2, 4) @ w + h @ w)
    drawing = viz.graph(h)
    assert 400 < len(drawing.nodes) <= 500 and drawing.omitted == 0
    assert_apart([rectangle_of(group) for group in boxes(drawing)])


def rectangle_of(group: ElementTree.Element) -> tuple[float, float, float, float]:
    rectangle = group.find(f"{SVG}rect")
    assert rectangle is not None
    x, y, width, height = (float(rectangle.get(a, "")) for a in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def assert_apart(rectangles: list[tuple[float, float, float, float]]) -> None:
    rows: dict[float, list[tuple[float, float, float, float]]] = {}
    for rectangle in rectangles:
        rows.setdefault(rectangle[1], []).append(rectangle)
    floor = -1.0
    for top in sorted(rows):
        assert top > floor
        floor = max(rectangle[3] for rectangle in rows[top])
        for one, other in pairwise(sorted(rows[top])):
            assert one[2] + 10 <= other[0]


def test_texts_fit_their_boxes(network):
    model, loss = network
    drawing = viz.graph(loss, params={f"a.very.long.name.of.a.parameter.{k}": p for k, p in model.named_parameters()})
    for group in boxes(drawing):
        left, _, right, _ = rectangle_of(group)
        for text in group.findall(f"{SVG}text"):
            wide = text_width(text.text or "", float(text.get("font-size", "")))
            x = float(text.get("x", ""))
            start = x - {"middle": wide / 2, "end": wide}.get(text.get("text-anchor", ""), 0.0)
            assert left + 4 <= start and start + wide <= right - 4, text.text


def test_what_cannot_be_drawn_is_an_error(session):
    x = gradwire.ones(3)
    with pytest.raises(RuntimeError, match=r"tensor 1, of shape \[3\], does not require grad"):
        viz.graph(gradwire.ones(2, requires_grad=True), x)
    with pytest.raises(TypeError, match="tensor 0 is a float"):
        viz.graph(1.0)
    with pytest.raises(TypeError, match="w is a list"):
        viz.graph(gradwire.ones(2, requires_grad=True), params={"w": [1.0]})
    with pytest.raises(ValueError, match="max_nodes=0"):
        viz.graph(gradwire.ones(2, requires_grad=True), max_nodes=0)
    with pytest.raises(ValueError, match="theme='blue'"):
        viz.graph(gradwire.ones(2, requires_grad=True), theme="blue")
    with gradwire.connect():
        other = gradwire.ones(2, requires_grad=True)
        with pytest.raises(ValueError, match="another session"):
            viz.graph(other, gradwire.ones(2, requires_grad=True), x.detach().requires_grad_())


def test_drawing_changes_nothing(session):
    x = gradwire.randn(4, requires_grad=True)
    y = x.exp().sum()
    viz.graph(y)
    y.backward()
    gradwire.autograd.grad(x.exp().sum(), x)
    assert x.grad.tolist() == x.exp().tolist()


def test_importing_gradwire_does_not_import_drawing():
    program = "import sys, gradwire; print('gradwire.viz' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=400, check=True)
    assert done.stdout.strip() == "False"


# The layout by itself


def test_every_arrow_points_down():
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (3, 4), (0, 4)]
    layers = layers_of(5, edges)
    assert layers == [0, 1, 1, 2, 3]
    layout = arrange([(50, 20)] * 5, edges)
    assert all(line.start[1] < line.end[1] <= line.down_to for line in layout.lines)
    assert_apart([(x, y, x + 50, y + 20) for x, y in layout.corners])


def test_a_second_beginning_lies_right_above_what_it_points_to():
    assert layers_of(5, [(0, 1), (1, 2), (2, 3), (4, 3)]) == [0, 1, 2, 3, 2]


def test_a_cycle_is_an_error():
    with pytest.raises(ValueError, match="cycle"):
        arrange([(10, 10)] * 3, [(0, 1), (1, 2), (2, 1)])


def test_nothing_is_laid_out_in_no_space():
    assert arrange([], []).corners == []


def test_lines_that_need_not_cross_do_not():
    # Two chains whose boxes are numbered against each other.
    edges = [(0, 3), (1, 2), (2, 5), (3, 4), (4, 7), (5, 6)]
    layout = arrange([(40, 20)] * 8, edges)
    xs = [x for x, _ in layout.corners]
    assert len({xs[0], xs[3], xs[4], xs[7]}) == 1
    assert len({xs[1], xs[2], xs[5], xs[6]}) == 1


def test_lines_to_one_box_share_a_lane():
    edges = [(i, i + 1) for i in range(9)] + [(i, 9) for i in range(8)]
    layout = arrange([(40, 20)] * 10, edges)
    lanes = [line for line in layout.lines if line.source is None]
    assert len(lanes) == 8
    assert len({line.start[0] for line in lanes}) == 1  # and it is straight


def test_places_are_the_nearest_that_keep_their_distance():
    assert nearest([0.0, 100.0], [1.0, 1.0], [0.0, 10.0]) == [0.0, 100.0]
    assert nearest([50.0, 50.0], [1.0, 1.0], [0.0, 10.0]) == [45.0, 55.0]
    assert nearest([50.0, 50.0], [1.0, 3.0], [0.0, 10.0]) == [42.5, 52.5]
    found = nearest([9.0, 1.0, 5.0, 5.0], [1.0] * 4, [0.0, 2.0, 4.0, 6.0])
    assert all(b - a >= 2.0 - 1e-9 for a, b in pairwise(found))


@pytest.mark.parametrize(
    ("count", "spelled"),
    [
        (0, "0 B"), (1023, "1023 B"), (1024, "1 KB"), (1536, "1.5 KB"), (10 * 1024, "10 KB"), (1024**2 - 1, "1 MB"),
        (12_900_000, "12 MB"), (3 * 1024**3, "3 GB"), (5000 * 1024**4, "5000 TB"),
    ],
)  # fmt: skip
def test_sizes_are_spelled_for_people(count, spelled):
    assert spell_bytes(count) == spelled


# Where lines come from


def test_the_lines_of_the_last_frames_are_kept():
    lines = RecentLines(client=7)
    here = user_line()
    for seq in range(1, 100):
        lines.keep(seq, [None, here] * 5_000)
    assert lines.at(position_of(7, 99, 1)) is here
    assert lines.at(position_of(7, 90, 9_999)) is here
    assert lines.at(position_of(7, 99, 0)) is None
    assert lines.at(position_of(7, 99, 10_000)) is None  # the frame has no such record
    assert lines.at(position_of(7, 89, 1)) is None  # too long ago
    assert lines.at(position_of(8, 99, 1)) is None  # another client's
    assert lines.at(0) is None


def test_a_loop_keeps_the_lines_of_its_frames_once():
    lines = RecentLines(client=7)
    forward, step = [user_line(), None], [user_line()]
    for seq in range(1, 10_000):
        lines.keep(seq, list(forward if seq % 2 else step))
    assert lines.at(position_of(7, 9_999, 0)) == forward[0]
    assert lines.at(position_of(7, 9_998, 0)) == step[0]
    assert lines.at(position_of(7, 1, 0)) is None
    assert len(lines._frames) == FRAMES_KEPT
    assert len({id(kept) for kept in lines._frames.values()}) == 2


def test_the_last_frame_is_kept_however_large_it_is():
    lines = RecentLines(client=7)
    lines.keep(1, [user_line()])
    lines.keep(2, [user_line()] * 200_000)
    assert lines.at(position_of(7, 1, 0)) is None
    assert lines.at(position_of(7, 2, 199_999)) is not None


def test_drawing_is_imported_at_first_mention():
    program = "import gradwire; print(gradwire.viz.graph.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=400, check=True)
    assert done.stdout.strip() == "graph"
