"""Common uses of modules under PyTorch and gradwire: hooks on state, paths, registration, copies."""

from __future__ import annotations

import copy

import pytest
from tests.side_by_side import Claims, name_of, same

claim = Claims()


def net(lib):
    """A model with parameters, buffers of both kinds, a shared module and nothing drawn at random."""
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.BatchNorm1d(3))
            self.head = nn.Linear(3, 3)
            self.again = self.head
            self.scale = nn.Parameter(lib.ones(3))
            self.tied = self.scale
            self.register_buffer("offset", lib.zeros(3))
            self.register_buffer("scratch", lib.zeros(2), persistent=False)
            self.register_buffer("none", None)
            self.register_parameter("absent", None)

        def forward(self, x):
            return self.again(self.head(self.body(x))) * self.scale + self.offset

    made = Net()
    with lib.no_grad():
        for i, p in enumerate(made.parameters()):
            p.fill_(i / 4)
    return made


@claim
def names_of_everything(lib):
    m = net(lib)
    walks = [m.named_parameters, m.named_buffers, m.named_modules]
    found = [[n for n, _ in walk()] for walk in walks]
    found += [[n for n, _ in walk(remove_duplicate=False)] for walk in walks]
    found += [[n for n, _ in walk(prefix="p")] for walk in walks]
    found += [[n for n, _ in m.named_children()], len(list(m.children())), len(list(m.modules()))]
    return [*found, [n for n, _ in m.named_parameters(recurse=False)], [n for n, _ in m.named_buffers(recurse=False)]]


@claim
def a_state_dict_has_metadata(lib):
    state = net(lib).state_dict()
    return [type(state).__name__, list(state), sorted(state._metadata), state._metadata[""], state]


@claim
def a_state_dict_goes_into_a_mapping_with_a_prefix(lib):
    into = {"first": 1}
    found = net(lib).state_dict(destination=into, prefix="net.")
    return [found is into, list(into)]


@claim
def hooks_before_and_after_a_state_dict(lib):
    m, seen = net(lib), []
    m.register_state_dict_pre_hook(lambda module, prefix, keep: seen.append(("before", prefix, keep)))
    handle = m.head.register_state_dict_post_hook(
        lambda module, state, prefix, metadata: seen.append(("after", prefix, len(state), metadata["version"]))
    )
    m._register_state_dict_hook(lambda module, state, prefix, metadata: {"only": state["scale"]})
    first = m.state_dict(keep_vars=True)
    handle.remove()
    return [first["only"] is m.scale, list(m.state_dict()), seen]


@claim
def a_hook_after_a_state_dict_returns_nothing(lib):
    m = net(lib)
    m.register_state_dict_post_hook(lambda module, state, prefix, metadata: {})
    return m.state_dict()


@claim
def hooks_before_and_after_loading(lib):
    m, seen = net(lib), []
    state = m.state_dict()
    state["renamed"] = state.pop("scale")

    def rename(state, prefix, metadata, strict, missing, unexpected, problems):
        seen.append((prefix, strict, metadata.get("version")))
        state[prefix + "scale"] = state.pop(prefix + "renamed")

    m._register_load_state_dict_pre_hook(rename)
    m.head.register_load_state_dict_pre_hook(lambda module, *rest: seen.append((type(module).__name__, rest[1])))
    m.register_load_state_dict_post_hook(lambda module, keys: seen.append([list(k) for k in keys]))
    return [repr(m.load_state_dict(state)), seen]


@claim
def a_hook_after_loading_forgives(lib):
    m = net(lib)
    state = m.state_dict()
    state["more"] = state.pop("scale")

    def forgive(module, keys):
        keys.missing_keys.clear()
        keys.unexpected_keys.clear()

    m.register_load_state_dict_post_hook(forgive)
    return repr(m.load_state_dict(state))


@claim
def a_hook_after_loading_returns_nothing(lib):
    m = net(lib)
    m.register_load_state_dict_post_hook(lambda module, keys: keys)
    return m.load_state_dict(m.state_dict())


@claim
def loading_what_does_not_fit(lib):
    m = net(lib)
    state = m.state_dict()
    del state["scale"]
    state["other"] = lib.ones(1)
    return [[list(k) for k in m.load_state_dict(state, strict=False)], m.load_state_dict(state)]


@claim
def loading_another_shape(lib):
    m = net(lib)
    state = m.state_dict()
    state["scale"] = lib.ones(4)
    return m.load_state_dict(state, strict=False)


@claim
def loading_by_assignment(lib):
    m = net(lib)
    state = {k: v.double() if v.is_floating_point() else v for k, v in m.state_dict().items()}
    m.load_state_dict(state, assign=True)
    return [m.scale.dtype, m.offset.dtype, m.scale.requires_grad, type(m.scale).__name__, m.offset is state["offset"]]


@claim
def loading_what_is_no_mapping(lib):
    return net(lib).load_state_dict([("scale", lib.ones(3))])


@claim
def loading_into_another_dtype(lib):
    m = net(lib).half()
    m.load_state_dict(net(lib).state_dict())
    return [m.scale, m.head.weight]


@claim
def state_beyond_tensors(lib):
    class Counter(lib.nn.Module):
        count = 3

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    outer = lib.nn.Sequential(Counter())
    state = outer.state_dict()
    other = lib.nn.Sequential(Counter())
    other[0].count = 9
    other.load_state_dict(state)
    return [list(state), other[0].count, [list(k) for k in other.load_state_dict({}, strict=False)]]


@claim
def state_beyond_tensors_of_a_plain_module(lib):
    return lib.nn.Linear(2, 2).get_extra_state()


@claim
def paths(lib):
    m = net(lib)
    return [
        m.get_submodule("") is m, m.get_submodule("body.0") is m.body[0], m.get_parameter("body.0.weight").shape,
        m.get_buffer("body.2.running_mean").shape,
    ]  # fmt: skip


for _name, _walk in {
    "no submodule": lambda m: m.get_submodule("body.9"),
    "a parameter is no submodule": lambda m: m.get_submodule("body.0.weight"),
    "no parameter": lambda m: m.get_parameter("body.0.weights"),
    "a buffer is no parameter": lambda m: m.get_parameter("offset"),
    "a parameter is no buffer": lambda m: m.get_buffer("scale"),
    "no attribute": lambda m: m.nothing,
    "deleting no attribute": lambda m: delattr(m, "nothing"),
    "a parameter that is no parameter": lambda m: setattr(m, "scale", 3),
    "a module that is no module": lambda m: setattr(m, "head", 3),
    "a buffer that is no tensor": lambda m: setattr(m, "offset", 3),
    "a mode that is no bool": lambda m: m.train("yes"),
    "an integer dtype": lambda m: m.to(m.body[2].num_batches_tracked.dtype),
    "no forward": lambda m: type(m).__bases__[0]()(1),
    "a name with a dot": lambda m: m.register_buffer("a.b", None),
    "an empty name": lambda m: m.add_module("", None),
    "a name that is no string": lambda m: m.register_parameter(1, None),
    "a name that is there": lambda m: m.register_buffer("training", None),
    "a buffer that is a number": lambda m: m.register_buffer("x", 3),
    "a parameter that is a tensor": lambda m: m.register_parameter("x", m.offset),
    "a computed parameter": lambda m: m.register_parameter("x", m.scale * 2),
    "a module that is a number": lambda m: m.add_module("x", 3),
    "a submodule without a path": lambda m: m.set_submodule("", m.head),
    "a submodule that is none": lambda m: m.set_submodule("head", 3),
    "a submodule in the place of a parameter": lambda m: m.set_submodule("scale", m.head),
    "a strict submodule that is not there": lambda m: m.set_submodule("body.9", m.head, strict=True),
    "to() of nonsense": lambda m: m.to({}),
    "an unknown argument of to()": lambda m: m.to(color="red"),
}.items():

    def _refused(lib, walk=_walk):
        return walk(net(lib))

    _refused.__name__ = _name.replace(" ", "_")
    claim(_refused)


@claim
def replacing_submodules(lib):
    m = net(lib)
    m.set_submodule("body.1", lib.nn.Tanh())
    m.set_submodule("tail", lib.nn.Identity())
    m.set_submodule("head", lib.nn.Identity(), strict=True)
    return repr(m)


@claim
def registering_is_listed(lib):
    m = lib.nn.Module()
    m.register_module("inner", lib.nn.ReLU())
    m.add_module("none", None)
    m.register_parameter("p", None)
    m.p = lib.nn.Parameter(lib.ones(2))
    m.register_buffer("b", lib.zeros(1), persistent=False)
    m.register_buffer("b", lib.ones(1))
    m.c = lib.nn.Buffer(lib.ones(3))
    m.plain = lib.ones(4)
    listed = [n for n in dir(m) if n in ("inner", "none", "p", "b", "c", "plain")]
    del m.p, m.b
    return [listed, repr(m), list(m.state_dict()), hasattr(m, "p"), m.plain]


@claim
def attributes_before_the_constructor(lib):
    class Early(lib.nn.Module):
        def __init__(self):
            self.p = lib.nn.Parameter(lib.ones(1))

    return Early()


@claim
def a_deep_copy_shares_nothing(lib):
    m = net(lib)
    seen = []
    m.head.register_forward_hook(lambda module, args, result: seen.append(1))
    other = copy.deepcopy(m)
    with lib.no_grad():
        other.scale.add_(1)
    other.eval()
    other(lib.ones(2, 2))
    return [m.scale, other.scale, other.tied is other.scale, other.again is other.head, m.training, len(seen)]


@claim
def a_shallow_copy_shares_parameters(lib):
    m = net(lib)
    other = copy.copy(m)
    return [other.scale is m.scale, other.head is m.head]


@claim
def casting(lib):
    m = net(lib)
    found = []
    for cast in ("double", "half", "bfloat16", "float", "cpu"):
        kept = m.scale
        assert getattr(m, cast)() is m
        found.append([m.scale is kept, *sorted({repr(v.dtype) for v in m.state_dict().values()})])
    m.type(lib.float64)
    found.append([repr(v.dtype) for v in m.state_dict().values()])
    m.to(lib.ones(1, dtype=lib.float16))
    return [*found, m.scale.dtype, m.to("cpu", lib.float32).offset.dtype, m.share_memory() is m]


@claim
def emptying(lib):
    m = net(lib)
    head = m.head.weight
    m.to_empty(device="cpu", recurse=False)
    return [m.scale.shape, m.head.weight is head, m.head.weight, type(m.scale).__name__, m.scale.requires_grad]


@claim
def training_modes(lib):
    m = net(lib)
    m.body.eval()
    before = [x.training for x in m.modules()]
    m.train()
    return [before, [x.training for x in m.modules()], m.eval() is m, m.train(False).training]


@claim
def gradients_come_and_go(lib):
    m = net(lib)
    m(lib.ones(2, 2)).sum().backward()
    had = [n for n, p in m.named_parameters() if p.grad is not None]
    m.zero_grad(set_to_none=False)
    zeros = [float(p.grad.abs().sum()) for p in m.parameters()]
    m.zero_grad()
    m.requires_grad_(False)
    return [had, zeros, [p.grad for p in m.parameters()], [p.requires_grad for p in m.parameters()]]


@claim
def applying_to_all(lib):
    seen = []
    m = net(lib)
    return [m.apply(lambda x: seen.append(type(x).__name__)) is m, seen]


@claim
def compiling_changes_nothing(lib):
    m = lib.nn.ReLU()
    if lib.__name__ == "gradwire":
        m.compile(mode="reduce-overhead")
    return m(lib.ones(2))


@claim
def hooks_are_kept_as_they_are_given(lib):
    m = lib.nn.ReLU()

    def hook(module, args, kwargs=None, result=None):
        return None

    m.register_forward_pre_hook(hook, with_kwargs=True)
    m.register_forward_hook(hook, always_call=True)
    handle = m.register_full_backward_hook(lambda module, given, got: None)
    kept = [list(m._forward_pre_hooks.values()) == [hook], list(m._forward_hooks.values()) == [hook]]
    kept.append(len(m._backward_hooks))
    handle.remove()
    return [*kept, len(m._backward_hooks), m(lib.ones(2))]


@pytest.mark.parametrize("claimed", claim.all, ids=name_of)
def test_a_program_comes_out_the_same(claimed):
    same(claimed)
