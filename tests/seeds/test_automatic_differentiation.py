"""Every code block of a chapter on automatic differentiation engines, under torch and under gradwire."""

from __future__ import annotations

import pytest

from tests.seeds.running import GIVEN, TRAINING, WEIGHTS, compare

pytestmark = pytest.mark.usefixtures("session")

BLOCKS = {
    "autograd in PyTorch": """
import torch
x = torch.tensor(2.0, requires_grad=True)
y = x ** 2 + 3 * x
print(y)
print(y.requires_grad)
print(y.grad_fn)
y.backward()
print(x.grad) # tensor(7.)
""",
    "leaf and non-leaf tensors": """
x = torch.tensor(2.0, requires_grad=True)
w = torch.tensor(3.0, requires_grad=True)
y = w * x
print(x.is_leaf) # True
print(w.is_leaf) # True
print(y.is_leaf) # False
y.backward()
print(x.grad) # tensor(3.)
print(w.grad) # tensor(2.)
print(y.grad) # usually None
""",
    "a retained gradient": """
x = torch.tensor(2.0, requires_grad=True)
a = x ** 2
a.retain_grad()
y = 3 * a
y.backward()
print(a.grad) # tensor(3.)
""",
    # Indentation restored.
    "the dynamic graph": """
x = torch.tensor(2.0, requires_grad=True)
if x.item() > 0:
    y = x ** 2
else:
    y = -x
y.backward()
print(x.grad) # tensor(4.)
""",
    "backward graph nodes": """
x = torch.tensor(2.0, requires_grad=True)
a = x + 1
b = a ** 2
c = b.mean()
print(a.grad_fn)
print(b.grad_fn)
print(c.grad_fn)
""",
    "gradient accumulation": """
x = torch.tensor(2.0, requires_grad=True)
y1 = x ** 2
y1.backward()
print(x.grad) # tensor(4.)
y2 = 3 * x
y2.backward()
print(x.grad) # tensor(7.)
""",
    "detaching": """
x = torch.tensor(2.0, requires_grad=True)
y = x ** 2
z = y.detach()
print(y.requires_grad) # True
print(z.requires_grad) # False
""",
    "nothing flows through a detached tensor": """
x = torch.tensor(2.0, requires_grad=True)
y = x ** 2
z = y.detach()
loss = 3 * z
print(loss.requires_grad) # False
""",
    "backward": """
x = torch.tensor(2.0, requires_grad=True)
y = x ** 3
y.backward()
print(x.grad) # tensor(12.)
""",
    "autograd.grad": """
x = torch.tensor(2.0, requires_grad=True)
y = x ** 3
grad_x = torch.autograd.grad(y, x)[0]
print(grad_x) # tensor(12.)
print(x.grad) # None
""",
    "higher-order derivatives": """
x = torch.tensor(2.0, requires_grad=True)
y = x ** 3
dy_dx = torch.autograd.grad(y, x, create_graph=True)[0]
d2y_dx2 = torch.autograd.grad(dy_dx, x)[0]
print(dy_dx) # tensor(12., grad_fn=<MulBackward0>)
print(d2y_dx2) # tensor(12.)
""",
    # Indentation restored.
    "a custom function": """
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_x = grad_output * 2 * x
        return grad_x
x = torch.tensor(3.0, requires_grad=True)
y = Square.apply(x)
y.backward()
print(x.grad) # tensor(6.)
print(y, y.grad_fn)  # not in the document: the node's name
""",
    # Indentation restored; given for randn.
    "gradient checking a custom function": """
import torch
from torch.autograd import gradcheck
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x
x = given(3, dtype=torch.double, requires_grad=True)
test = gradcheck(Square.apply, (x,))
print(test)
""",
    # x is the document's own of a moment before; without requires_grad, as the lines need.
    "in-place operations": """
x = torch.tensor([-3.0, 2.0])
x.add_(1)
print(x)
x.relu_()
print(x)
""",
    # given for randn.
    "an in-place operation that autograd refuses": """
x = given(4, requires_grad=True)
y = x ** 2
x.add_(1.0)
loss = y.sum()
loss.backward()
""",
    "the out-of-place form": """
x = given(4, requires_grad=True)
x2 = x + 1.0
print(x2)
""",
    "views": """
x = torch.arange(6.0, requires_grad=True)
y = x.view(2, 3)
print(y)
""",
    # given for randn.
    "contiguity": """
x = given(2, 3, 4)
y = x.permute(0, 2, 1)
print(y.is_contiguous()) # False
z = y.contiguous()
print(z.is_contiguous(), z.stride(), z)  # not in the document
""",
    # given for randn; the layer's random weights are replaced. Indentation restored.
    "modules": """
import torch.nn as nn
layer = nn.Linear(3, 4)
print(layer.weight.requires_grad) # True
print(layer.bias.requires_grad) # True
X = given(8, 3)
Y = layer(X)
loss = Y.sum()
loss.backward()
print(layer.weight.grad.shape)
print(layer.bias.grad.shape)
print(layer.weight.grad, layer.bias.grad)  # not in the document: these do not depend on the weights
for param in layer.parameters():
    param.requires_grad = False
print([param.requires_grad for param in layer.parameters()])  # not in the document
""",
    "backward without a graph": """
x = torch.tensor(2.0)
y = x ** 2
y.backward()
""",
    "backward with one": """
x = torch.tensor(2.0, requires_grad=True)
y = x ** 2
y.backward()
print(x.grad)
""",
    "backward twice through one graph": """
x = torch.tensor(2.0, requires_grad=True)
y = x ** 2
y.backward()
y.backward()
""",
    "backward twice with retain_graph": """
x = torch.tensor(2.0, requires_grad=True)
y = x ** 2
y.backward(retain_graph=True)
y.backward()
print(x.grad)
""",
}

# Blocks that use a model, data, a loss and an optimizer that the document does not define.
TRAINING_BLOCKS = {
    "a training step": """
pred = model(X)
loss = loss_fn(pred, y)
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""
    + WEIGHTS,
    # Indentation restored.
    "a training loop": """
for X, y in dataloader:
    pred = model(X)
    loss = loss_fn(pred, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    + WEIGHTS,
    # The loss is set up.
    "clear gradients before backward": """
loss = loss_fn(model(X), y)
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""
    + WEIGHTS,
    # Indentation restored; microbatches and compute_loss are set up.
    "microbatches": """
microbatches = [(X[:4], y[:4]), (X[4:], y[4:])]
def compute_loss(microbatch):
    return loss_fn(model(microbatch[0]), microbatch[1])
optimizer.zero_grad()
for microbatch in microbatches:
    loss = compute_loss(microbatch)
    loss = loss / len(microbatches)
    loss.backward()
optimizer.step()
"""
    + WEIGHTS,
    # Indentation restored.
    "no_grad": """
model.eval()
with torch.no_grad():
    pred = model(X)
print(pred)
""",
    # Indentation restored.
    "inference_mode": """
model.eval()
with torch.inference_mode():
    pred = model(X)
print(pred, pred.is_inference())
""",
    # encoder, decoder, x and target are set up.
    "detaching by accident": """
encoder, decoder, x, target = model[0], model[2], X, y
h = encoder(x)
h = h.detach()
out = decoder(h)
loss = loss_fn(out, target)
loss.backward()
print([parameter.grad is None for parameter in encoder.parameters()])
print([parameter.grad is None for parameter in decoder.parameters()])
""",
    # Indentation restored.
    "parameters without gradient": """
for name, param in model.named_parameters():
    if param.grad is None:
        print(name, "has no gradient")
""",
}

RAISES = {"an in-place operation that autograd refuses", "backward without a graph", "backward twice through one graph"}


@pytest.mark.parametrize("title", BLOCKS)
def test_block(title: str) -> None:
    shown = compare(BLOCKS[title], GIVEN)
    assert (shown.raised is not None) == (title in RAISES)


@pytest.mark.parametrize("title", TRAINING_BLOCKS)
def test_block_of_training(title: str) -> None:
    assert compare(TRAINING_BLOCKS[title], TRAINING).raised is None
