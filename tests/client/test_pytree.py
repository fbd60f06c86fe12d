"""``torch.utils._pytree``: the same results as PyTorch's, for built-in containers and registered ones."""

from __future__ import annotations

import collections
import dataclasses
import http
import json
import time
import warnings

import pytest
import torch.utils._pytree as theirs

from gradwire.utils import _pytree as ours

Point = collections.namedtuple("Point", "x y")
TREES = [
    3, None, "ab", [1, (2, [3, {}]), []], {"b": 1, "a": [2, None]}, Point([1], 2),
    collections.OrderedDict(z=1, y=(2,)), collections.defaultdict(list, {"k": [1]}), collections.deque([1, [2]], 5),
    time.localtime(), ({"a": (1,)}, [Point(1, {"c": 2})]),
]  # fmt: skip
both = pytest.mark.parametrize("tree", TREES, ids=range(len(TREES)))


@both
def test_trees_are_taken_apart_as_pytorch_does(tree) -> None:
    def facts(lib):
        leaves, spec = lib.tree_flatten(tree)
        paths, _ = lib.tree_flatten_with_path(tree)
        return [
            leaves, repr(spec), spec.num_nodes, spec.num_leaves, spec.num_children, spec.is_leaf(), spec.type,
            spec.context, len(spec.children()), lib.tree_unflatten(leaves, spec), spec == lib.tree_structure(tree),
            lib.tree_leaves(tree), list(lib.tree_iter(tree)), lib.tree_is_leaf(tree), lib._get_node_type(tree),
            [(lib.keystr(path), leaf) for path, leaf in paths], repr(paths),
            [lib.key_get(tree, path) for path, _ in paths], lib.treespec_pprint(spec), isinstance(hash(spec), int),
            lib.tree_map(lambda x: [x], tree), lib.tree_map_only(int, lambda x: -x, tree),
            lib.tree_map_with_path(lambda path, x: (lib.keystr(path), x), tree),
            lib.tree_all(lambda x: x, tree), lib.tree_any(lambda x: x == 2, tree), lib.arg_tree_leaves(tree, a=tree),
            lib.tree_all_only(int, lambda x: x > 1, tree), lib.tree_any_only(str, lambda x: True, tree),
            lib._broadcast_to_and_flatten(7, spec), lib._broadcast_to_and_flatten([7, 8, 9], spec),
            lib.tree_flatten(tree, is_leaf=lambda x: isinstance(x, tuple))[0], lib.is_namedtuple(tree),
            lib.is_structseq(tree),
        ]  # fmt: skip

    assert facts(ours) == facts(theirs)


@both
def test_structures_are_written_and_read_as_pytorch_does(tree) -> None:
    spec, other = ours.tree_structure(tree), theirs.tree_structure(tree)
    if "Point" in repr(spec):
        for lib, each in ((ours, spec), (theirs, other)):
            with pytest.raises(NotImplementedError):
                lib.treespec_dumps(each)
        return
    assert json.loads(ours.treespec_dumps(spec)) == json.loads(theirs.treespec_dumps(other))
    assert ours.treespec_loads(theirs.treespec_dumps(other)) == spec


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1, 2], [[3], {"a": 4}]), ({"a": 1, "b": 2}, collections.OrderedDict(b=3, a=4)), ([1], (1,)), ([1, 2], [1]),
        ({"a": 1}, {"b": 1}), (collections.deque([1], 3), collections.deque([2])), (Point(1, 2), Point(3, 4)),
        (Point(1, 2), (3, 4)), ([1], 1),
    ],
)  # fmt: skip
def test_a_second_tree_fits_or_not(first, second) -> None:
    def outcome(lib):
        try:
            return lib.tree_map(lambda a, b: (a, b), first, second)
        except ValueError:
            return ValueError

    assert outcome(ours) == outcome(theirs)


def test_programs_register_containers() -> None:
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    @dataclasses.dataclass
    class Record:
        x: int
        y: object = None
        z: int = 5

    class Fixed:
        def __eq__(self, other):
            return isinstance(other, Fixed)

        def __hash__(self):
            return 1

    fixed = Fixed()
    for lib in (ours, theirs):
        lib.register_pytree_node(
            Pair, lambda p: ([p.a, p.b], "c"), lambda v, c: Pair(*v), serialized_type_name=f"{lib.__name__}.Pair",
            flatten_with_keys_fn=lambda p, lib=lib: ([(lib.GetAttrKey("a"), p.a), (lib.GetAttrKey("b"), p.b)], "c"),
        )  # fmt: skip
        with pytest.raises(ValueError, match="already registered"):
            lib.register_pytree_node(Pair, None, None)
        assert lib.tree_leaves([Pair(1, [2]), 3]) == [1, 2, 3]
        made = lib.tree_map(lambda x: x + 1, Pair(1, {"k": 2}))
        assert (made.a, made.b) == (2, {"k": 3})
        spec = lib.tree_structure(Pair(1, 2))
        assert lib.treespec_loads(lib.treespec_dumps(spec)) == spec
        assert [lib.keystr(path) for path, _ in lib.tree_leaves_with_path([Pair(1, 2)])] == ["[0].a", "[0].b"]
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            lib._register_pytree_node(Pair, lambda p: ([p.a], p.b), lambda v, c: Pair(v[0], c))
        assert seen
        assert lib.tree_leaves(Pair(1, 2)) == [1]
        with pytest.raises(ValueError, match="flatten_with_keys_fn"):
            lib.tree_leaves_with_path(Pair(1, 2))
        lib._deregister_pytree_node(Pair)
        assert len(lib.tree_leaves(Pair(1, 2))) == 1
        with pytest.raises(ValueError, match="field_names does not include all dataclass fields"):
            lib.register_dataclass(Record, field_names=["x"])
        lib.register_dataclass(Record)
        assert lib.tree_leaves(Record(1)) == [1, 5]
        assert lib.tree_map(lambda x: x * 2, Record(1, [2])) == Record(2, [4], 10)
        with pytest.raises(TypeError):
            lib.register_constant(Pair)
        lib.register_constant(Fixed)
        leaves, spec = lib.tree_flatten([fixed, 1])
        assert leaves == [1]
        assert lib._is_constant_holder(spec.child(0))
        assert lib.tree_unflatten([2], spec)[0] is fixed


def test_what_text_may_name_is_what_the_program_has() -> None:
    def written(name):
        context = json.dumps([{"__enum__": True, "fqn": name, "name": "GET"}])
        leaf = {"type": None, "context": None, "children_spec": []}
        return json.dumps([1, {"type": "builtins.dict", "context": context, "children_spec": [leaf]}])

    assert ours.treespec_loads(written("http:HTTPMethod")).context == [http.HTTPMethod.GET]
    assert theirs.treespec_loads(written("http:HTTPMethod")).context == [http.HTTPMethod.GET]
    for name in ("antigravity:Kind", "os:system", "http:HTTPMethod.GET.name"):
        with pytest.raises(NotImplementedError, match="no enumeration of a module"):
            ours.treespec_loads(written(name))
    factory = {"default_factory_module": "os", "default_factory_name": "system", "dict_context": []}
    with pytest.raises(NotImplementedError, match="default factory"):
        ours._read_defaultdict(factory)


def test_wrong_arguments() -> None:
    for lib in (ours, theirs):
        with pytest.raises(ValueError):
            lib.tree_unflatten([1], lib.tree_structure([1, 2]))
        with pytest.raises(TypeError):
            lib.tree_unflatten([1], [2])
        with pytest.raises(TypeError):
            lib.tree_map_only(3, abs, [1])
        assert lib.tree_unflatten(lib.tree_structure([1, 2]), [3, 4]) == [3, 4]
        spec = lib.treespec_dict(a=lib.treespec_leaf(), b=lib.treespec_tuple([lib.treespec_leaf()]))
        assert lib.tree_unflatten([1, 2], spec) == {"a": 1, "b": (2,)}
        assert lib.tree_map_(lambda x: None, spec) is spec
    assert isinstance(ours.LeafSpec(), ours.LeafSpec)
    assert not isinstance(ours.tree_structure([1]), ours.LeafSpec)
