"""Layers on images and sequences: the same program under torch and gradwire, with all visible results compared."""

from __future__ import annotations

import numpy as np
import pytest
from tests.side_by_side import Claims, leaf, name_of, same

import gradwire

claim = Claims()


def gradients(result, *leaves):
    """The results' gradients for leaves, with weights without regularities."""
    weights = ((result.detach().reshape(-1).cumsum(0) * 0 + 1).cumsum(0) % 5 - 2).reshape(result.shape)
    (result * weights).sum().backward()
    return [result, *(x.grad for x in leaves)]


def applied(module, *inputs):
    return [repr(module), *gradients(module(*inputs), *(x for x in inputs if x.requires_grad))]


@claim
def upsample_by_a_factor(lib):
    nn = lib.nn
    x = leaf(lib, 2, 3, 4, 5)
    return [
        applied(nn.Upsample(scale_factor=2), x),
        applied(nn.Upsample(scale_factor=(1.5, 2.5), mode="bilinear"), x),
        applied(nn.Upsample(scale_factor=(1.5, 2.5), mode="bilinear", recompute_scale_factor=True), x),
        applied(nn.UpsamplingNearest2d(scale_factor=2), x),
    ]


@claim
def upsample_to_a_size(lib):
    nn = lib.nn
    x = leaf(lib, 2, 3, 4, 5)
    return [
        applied(nn.Upsample(size=7, mode="nearest-exact"), x),
        applied(nn.Upsample(size=(3, 8), mode="bicubic", align_corners=True), x),
        applied(nn.Upsample(size=(3, 8), mode="area"), x),
        applied(nn.UpsamplingBilinear2d(size=(3, 8)), x),
        applied(nn.Upsample(size=9, mode="linear"), leaf(lib, 2, 3, 4)),
        applied(nn.Upsample(size=(2, 3, 4), mode="trilinear"), leaf(lib, 1, 2, 3, 3, 3)),
    ]


@claim
def antialiased_thumbnails(lib):
    x = leaf(lib, 1, 2, 12, 11)
    f = lib.nn.functional.interpolate
    return gradients(f(x, (4, 3), mode="bilinear", antialias=True) + f(x, (4, 3), mode="bicubic", antialias=True), x)


@claim
def interpolate_takes_size_or_factor_and_not_both(lib):
    return lib.nn.functional.interpolate(leaf(lib, 1, 1, 2, 2), size=3, scale_factor=2)


@claim
def interpolate_takes_one_size_per_dimension(lib):
    return lib.nn.functional.interpolate(leaf(lib, 1, 1, 2, 2), size=(3, 3, 3))


@claim
def interpolate_has_no_bilinear_mode_for_sequences(lib):
    return lib.nn.functional.interpolate(leaf(lib, 1, 1, 2), size=3, mode="bilinear")


@claim
def interpolate_nearest_has_no_corners_to_align(lib):
    return lib.nn.functional.interpolate(leaf(lib, 1, 1, 2), size=3, align_corners=True)


@claim
def a_spatial_transformer(lib):
    f = lib.nn.functional
    theta = lib.tensor([[[0.9, 0.2, 0.1], [-0.3, 0.8, -0.2]]], requires_grad=True)
    x = leaf(lib, 1, 2, 5, 6)
    grid = f.affine_grid(theta, (1, 2, 4, 3), align_corners=False)
    return gradients(f.grid_sample(x, grid, align_corners=False), x, theta)


@claim
def a_spatial_transformer_of_volumes(lib):
    f = lib.nn.functional
    theta = lib.tensor([[[0.9, 0.2, 0.1, 0.1], [-0.3, 0.8, -0.2, 0.0], [0.1, 0.2, 0.7, 0.1]]], requires_grad=True)
    x = leaf(lib, 1, 2, 3, 4, 5)
    grid = f.affine_grid(theta, (1, 2, 3, 3, 3), align_corners=True)
    return gradients(f.grid_sample(x, grid, padding_mode="border", align_corners=True), x, theta)


@claim
def grid_sample_names_its_modes(lib):
    return lib.nn.functional.grid_sample(leaf(lib, 1, 1, 2, 2), leaf(lib, 1, 1, 1, 2), mode="cubic")


@claim
def affine_grid_wants_a_matrix_per_image(lib):
    return lib.nn.functional.affine_grid(leaf(lib, 2, 3), (1, 1, 2, 2), align_corners=False)


@claim
def windows_as_columns_and_back(lib):
    nn = lib.nn
    x = leaf(lib, 2, 3, 5, 6)
    return [
        applied(nn.Unfold(2), x),
        applied(nn.Unfold((2, 3), padding=1, stride=(2, 1)), x),
        applied(nn.Fold(output_size=(4, 5), kernel_size=2, padding=1, stride=2), leaf(lib, 2, 12, 9)),
        applied(nn.Fold(4, 2, stride=2), leaf(lib, 12, 4)),
    ]


@claim
def pixels_and_channels_shuffled(lib):
    nn = lib.nn
    x = leaf(lib, 2, 8, 4, 6)
    return [
        applied(nn.PixelShuffle(2), x),
        applied(nn.PixelUnshuffle(2), x),
        [repr(nn.ChannelShuffle(4)), nn.ChannelShuffle(4)(x)],
        lib.pixel_shuffle(x, 2),
        lib.channel_shuffle(x, 2),
    ]


@claim
def a_pool_undone(lib):
    nn = lib.nn
    found = []
    for count, shape in ((1, (2, 3, 7)), (2, (2, 3, 6, 7)), (3, (1, 2, 4, 5, 6))):
        pool = getattr(nn, f"MaxPool{count}d")(2, stride=2, return_indices=True)
        unpool = getattr(nn, f"MaxUnpool{count}d")(2, stride=2)
        x = leaf(lib, *shape)
        values, indices = pool(x)
        found.append([repr(unpool), *gradients(unpool(values, indices, output_size=x.shape), x)])
    return found


@claim
def unpooling_to_a_size_out_of_reach(lib):
    values, indices = lib.nn.MaxPool2d(2, return_indices=True)(leaf(lib, 1, 1, 4, 4))
    return lib.nn.MaxUnpool2d(2)(values, indices, output_size=(9, 9))


@claim
def pools_at_given_random_places(lib):
    nn = lib.nn
    samples = (lib.arange(6.0) / 7).reshape(1, 3, 2)
    volume = (lib.arange(6.0) / 7).reshape(1, 2, 3)
    plane = nn.FractionalMaxPool2d(2, output_ratio=0.6, return_indices=True, _random_samples=samples)
    result, indices = plane(leaf(lib, 1, 3, 7, 8))
    solid = nn.FractionalMaxPool3d((2, 1, 2), output_size=3, _random_samples=volume)
    return [repr(plane), result, indices, applied(solid, leaf(lib, 1, 2, 5, 6, 7))]


@claim
def a_fractional_pool_needs_a_size_or_a_ratio(lib):
    return repr(lib.nn.FractionalMaxPool2d(2))


@claim
def a_ratio_is_below_one(lib):
    return repr(lib.nn.FractionalMaxPool2d(2, output_ratio=1.5))


@claim
def power_averages(lib):
    nn = lib.nn
    return [
        applied(nn.LPPool1d(2, 3, stride=2), leaf(lib, 2, 3, 8).abs().detach().requires_grad_()),
        [repr(nn.LPPool2d(1.5, (3, 2), ceil_mode=True)), nn.LPPool2d(2, (3, 2), ceil_mode=True)(leaf(lib, 2, 3, 7, 5))],
        applied(nn.LPPool3d(1, 2), leaf(lib, 1, 2, 4, 4, 4).abs().detach().requires_grad_()),
    ]


@claim
def neighbouring_channels_normalised(lib):
    x = leaf(lib, 2, 5, 3, 4)
    module = lib.nn.LocalResponseNorm(3, alpha=0.1)
    even = lib.nn.LocalResponseNorm(4, alpha=0.1)
    return [repr(module), *gradients(module(x), x), even(x.detach()), module(leaf(lib, 2, 5, 3).detach())]


@claim
def channels_across_a_map_normalised(lib):
    x = leaf(lib, 2, 5, 3, 4).detach()
    return [repr(lib.nn.CrossMapLRN2d(3)), *[lib.nn.CrossMapLRN2d(n, alpha=0.1)(x) for n in (1, 3, 4, 5)]]


@claim
def synchronised_batches_of_one_process(lib):
    nn = lib.nn
    net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(3, momentum=0.3), nn.ReLU()))
    x = leaf(lib, 4, 3, 2, 2)
    return [repr(net), list(net.state_dict()), *gradients(net(x), x), net[0].running_mean, net[0].running_var]


@claim
def bags_of_rows(lib):
    nn = lib.nn
    table = (lib.arange(20.0) * 3 % 7).reshape(5, 4)
    found = []
    for mode in ("sum", "mean", "max"):
        bag = nn.EmbeddingBag.from_pretrained(table, freeze=False, mode=mode, padding_idx=2)
        rows = bag(lib.tensor([[1, 2, 4], [0, 3, 3]]))
        found.append([repr(bag), list(bag.state_dict()), *gradients(rows), bag.weight.grad])
    bag = nn.EmbeddingBag.from_pretrained(table, mode="sum", include_last_offset=True)
    weights = lib.tensor([0.5, 2.0, -1.0], requires_grad=True)
    found.append(gradients(bag(lib.tensor([1, 2, 4]), lib.tensor([0, 2, 3]), weights), weights))
    return found


@claim
def a_bag_keeps_its_rows_short(lib):
    bag = lib.nn.EmbeddingBag.from_pretrained((lib.arange(20.0) / 3).reshape(5, 4), max_norm=2.0)
    return [bag(lib.tensor([[1, 2], [4, 4]])), bag.weight]


@claim
def a_vector_of_bags_needs_offsets(lib):
    return lib.nn.functional.embedding_bag(lib.tensor([1, 2]), leaf(lib, 5, 4))


@claim
def randomly_leaking_rectifiers_in_evaluation(lib):
    module = lib.nn.RReLU(0.1, 0.4).eval()
    return [repr(module), repr(lib.nn.RReLU(inplace=True)), module(leaf(lib, 3, 4).detach())]


@claim
def dropouts_for_self_normalising_networks_in_evaluation(lib):
    x = leaf(lib, 3, 4)
    modules = [lib.nn.AlphaDropout(0.3), lib.nn.FeatureAlphaDropout(0.3)]
    return [[repr(m), m.eval()(x)] for m in modules]


@claim
def gated_halves(lib):
    x = leaf(lib, 3, 6)
    return gradients(lib.nn.functional.glu(x, 1), x)


@claim
def borders_of_convolutions(lib):
    found = []
    for mode in ("zeros", "reflect", "replicate", "circular"):
        for padding in (1, (2, 1), "same"):
            layer = lib.nn.Conv2d(1, 1, (3, 1), padding=padding, padding_mode=mode, bias=False)
            with lib.no_grad():
                layer.weight.copy_((lib.arange(3.0) - 1).reshape(1, 1, 3, 1))
            found.append([repr(layer), layer(leaf(lib, 1, 1, 5, 6)).detach()])
    return found


@claim
def statistics_of_normalisations(lib):
    x = leaf(lib, 3, 4, 5).detach()
    mean, var = lib.zeros(4), lib.ones(4)
    return [
        *lib.native_layer_norm(x, (5,), None, None, 1e-5),
        *lib.native_group_norm(x, None, None, 3, 4, 5, 2, 1e-5),
        *lib.native_batch_norm(x, None, None, mean, var, True, 0.1, 1e-5), mean, var,
        lib.constant_pad_nd(x, (1, 2), 3.0),
    ]  # fmt: skip


@claim
def layers_beside_those_of_functional(lib):
    x = leaf(lib, 2, 3, 4).detach()
    ones = lib.ones(3)
    return [
        lib.dropout(x, 0.5, False), lib.alpha_dropout(x, 0.0, True), lib.feature_dropout(x, 0.5, False),
        lib.rrelu(x), lib.rrelu_(x.clone(), 0.1, 0.2), lib.selu_(x.clone()), lib.threshold_(x.clone(), 0.0, 1.0),
        lib.grid_sampler(x[None], lib.zeros(1, 1, 2, 2) + 0.3, 0, 1, True),
        lib.embedding_bag(x[0], lib.tensor([1, 2, 0]), lib.tensor([0, 2]))[0],
        lib.batch_norm(x, ones * 2, ones, lib.zeros(3), ones, False, 0.1, 1e-5, False),
        lib.instance_norm(x, ones * 2, ones, None, None, True, 0.1, 1e-5, False),
        lib.convolution(x, lib.ones(5, 3, 2), None, [1], [0], [1], False, [0], 1),
        lib.convolution(x, lib.ones(3, 2, 2), None, [2], [0], [1], True, [0], 1),
        lib.conv_tbc(x, lib.ones(2, 4, 5), lib.zeros(5), 1), lib.native_channel_shuffle(x, 3),
        lib.pairwise_distance(x[0], x[1]), lib.bilinear(x[0], x[1], lib.ones(2, 4, 4)),
    ]  # fmt: skip


@claim
def pools_with_indices(lib):
    f = lib.nn.functional
    return [
        f.adaptive_max_pool1d_with_indices(leaf(lib, 2, 7).detach(), 3),
        f.adaptive_max_pool2d_with_indices(leaf(lib, 2, 5, 7).detach(), (3, None)),
        f.adaptive_max_pool3d(leaf(lib, 2, 3, 4, 5).detach(), 2, return_indices=True),
    ]


@pytest.mark.parametrize("wanted", claim, ids=name_of)
def test_same_as_torch(wanted):
    same(wanted)


def test_alpha_dropout_keeps_mean_and_variance():
    gradwire.manual_seed(3)
    x = gradwire.randn(200, 500)
    for module, shape in (
        (gradwire.nn.AlphaDropout(0.2), (200, 500)),
        (gradwire.nn.FeatureAlphaDropout(0.2), (200, 500, 1)),
    ):
        dropped = module(x.reshape(shape))
        assert abs(float(dropped.mean())) < 0.05
        assert abs(float(dropped.var()) - 1) < 0.1


def test_feature_alpha_dropout_drops_whole_channels():
    gradwire.manual_seed(3)
    dropped = gradwire.nn.functional.feature_alpha_dropout(gradwire.zeros(8, 16, 5, 5), 0.5, True).numpy()
    assert (dropped == dropped[:, :, :1, :1]).all() and len(np.unique(dropped)) == 2


def test_rrelu_draws_slopes_in_training():
    gradwire.manual_seed(3)
    x = gradwire.full((1000,), -2.0)
    result = gradwire.nn.RReLU(0.25, 0.5)(x).numpy()
    assert (result <= -0.5).all() and (result >= -1).all() and result.std() > 0.05


def test_the_table_of_a_bag_starts_as_pytorchs():
    bag = gradwire.nn.EmbeddingBag(2000, 30, padding_idx=5)
    weight = bag.weight.detach().numpy()
    assert not weight[5].any() and abs(np.delete(weight, 5, 0).std() - 1) < 0.02


def test_sparse_gradients_of_bags_are_refused():
    with pytest.raises(NotImplementedError, match="sparse"):
        gradwire.nn.EmbeddingBag(3, 4, sparse=True)
