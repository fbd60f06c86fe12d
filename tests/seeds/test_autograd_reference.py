"""Every code block of a reference page on ``torch.autograd``, under torch and under gradwire."""

from __future__ import annotations

import pytest

from tests.seeds.running import GIVEN, TRAINING, WEIGHTS, compare

pytestmark = pytest.mark.usefixtures("session")

BLOCKS = {
    "backward": """
import torch

x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x.sum()

# Compute gradients
torch.autograd.backward(y)
print(x.grad)  # tensor([1., 1., 1.])
""",
    "grad": """
import torch

x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x ** 2
z = y.sum()

# Compute gradients without accumulating
grads = torch.autograd.grad(z, x)
print(grads[0])  # tensor([2., 4., 6.])
""",
    "no_grad": """
import torch

x = torch.tensor([1., 2., 3.], requires_grad=True)

with torch.no_grad():
    y = x ** 2  # No gradient tracking
    print(y.requires_grad)  # False
""",
    # The call is not in the document.
    "no_grad as a decorator": """
@torch.no_grad()
def inference(model, data):
    return model(data)

print(inference(lambda data: data * 2, torch.ones(2, requires_grad=True)).requires_grad)
""",
    "enable_grad": """
import torch

x = torch.tensor([1., 2., 3.], requires_grad=True)

with torch.no_grad():
    with torch.enable_grad():
        y = x ** 2  # Gradient tracking enabled
        print(y.requires_grad)  # True
""",
    # The prints are not in the document.
    "set_grad_enabled": """
import torch

def forward(x, training=True):
    with torch.set_grad_enabled(training):
        y = x ** 2
        return y

x = torch.tensor([1., 2., 3.], requires_grad=True)
y = forward(x, training=False)  # No gradients
print(y.requires_grad)
print(forward(x))
""",
    # model and x are set up.
    "inference_mode": """
import torch
model, x = (lambda data: data * 2), torch.tensor([1., 2., 3.])

with torch.inference_mode():
    # Faster inference, but tensors can't be used
    # for autograd after leaving this context
    y = model(x)
print(y, y.is_inference())
""",
    "what inference mode forbids": """
with torch.inference_mode():
    y = torch.ones(2)
y.requires_grad_()
""",
    # The use of y in autograd, which the comment speaks of, is not in the document.
    "what inference mode forbids later": """
import torch
x = torch.tensor([1., 2., 3.], requires_grad=True)
with torch.inference_mode():
    y = torch.ones(3) * 2
try:
    (x * y).sum().backward()
except RuntimeError:
    print("y was made in inference mode")
try:
    y.sum().backward()
except RuntimeError:
    print("y has no history")
""",
    # given for randn.
    "gradcheck": """
import torch
from torch.autograd import gradcheck

def my_func(x):
    return x ** 2

x = given(3, 4, dtype=torch.double, requires_grad=True)
test = gradcheck(my_func, x, eps=1e-6, atol=1e-4)
print(f"Gradcheck passed: {test}")
""",
    # given for randn.
    "gradgradcheck": """
import torch
from torch.autograd import gradgradcheck

def my_func(x):
    return (x ** 3).sum()

x = given(3, 4, dtype=torch.double, requires_grad=True)
test = gradgradcheck(my_func, x)
print(f"Gradgradcheck passed: {test}")
""",
    # The print is not in the document.
    "detect_anomaly": """
import torch

x = torch.tensor([1., 2., 3.], requires_grad=True)

with torch.autograd.detect_anomaly():
    y = x ** 2
    z = y.sum()
    z.backward()
    # If NaN/Inf detected, provides detailed error
print(x.grad)
""",
    # The error that the comment above speaks of, handled where backward is called; not in the document.
    "an anomaly that a program handles": """
import torch
import warnings
warnings.simplefilter("ignore")
x = torch.zeros(2, requires_grad=True)
with torch.autograd.detect_anomaly():
    try:
        (x.sqrt() * 0).sum().backward()
    except RuntimeError:
        print("NaN in backward")
""",
    # What follows the call is not in the document; the mode is turned off again. Where the operation was called, torch
    # tells in a warning, gradwire in the error.
    "set_detect_anomaly": """
import warnings
warnings.simplefilter("ignore")
torch.autograd.set_detect_anomaly(True)
# Now all backward passes check for anomalies
x = torch.tensor([-1., 2.], requires_grad=True)
try:
    (torch.sqrt(x) * 0).sum().backward()
    print(x.grad)
except RuntimeError as error:
    print("SqrtBackward0" in str(error))
finally:
    torch.autograd.set_detect_anomaly(False)
""",
    "a custom function": """
import torch
from torch.autograd import Function

class MySquare(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input ** 2

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_tensors
        grad_input = 2 * input * grad_output
        return grad_input

# Usage
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = MySquare.apply(x)
y.sum().backward()
print(x.grad)  # tensor([2., 4., 6.])
""",
    # The document shows the two methods alone; class and use are added. given for its inputs.
    "saving tensors for backward": """
class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        return input @ weight

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        grad_input = grad_output @ weight.t()
        grad_weight = input.t() @ grad_output
        return grad_input, grad_weight

input, weight = given(2, 3, requires_grad=True), given(3, 2, requires_grad=True)
product = Product.apply(input, weight)
print(product)
(product * product).sum().backward()
print(input.grad, weight.grad)
""",
    # The document names both methods of ctx in a sentence.
    "mark_non_differentiable and set_materialize_grads": """
class Largest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        values, places = x.max(0)
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(places)
        ctx.shape = x.shape
        return values, places

    @staticmethod
    def backward(ctx, grad_values, grad_places):
        print(grad_places)
        places, = ctx.saved_tensors
        return torch.zeros(ctx.shape).scatter(0, places.unsqueeze(0), grad_values.unsqueeze(0))

x = given(3, 2, requires_grad=True)
values, places = Largest.apply(x)
print(values, places, places.requires_grad)
values.sum().backward()
print(x.grad)
""",
    "gradient accumulation": """
import torch

x = torch.tensor([1., 2., 3.], requires_grad=True)

# First backward
y = x.sum()
y.backward()
print(x.grad)  # tensor([1., 1., 1.])

# Second backward - gradients accumulate
y = x.sum()
y.backward()
print(x.grad)  # tensor([2., 2., 2.])

# Clear gradients
x.grad.zero_()
print(x.grad)  # not in the document
# Or better for memory:
x.grad = None
print(x.grad)  # not in the document
""",
    "gradients of gradients": """
import torch

x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x ** 3

# First derivative
grad_x = torch.autograd.grad(
    outputs=y,
    inputs=x,
    grad_outputs=torch.ones_like(y),
    create_graph=True  # Keep graph for next derivative
)[0]

# Second derivative
grad_grad_x = torch.autograd.grad(
    outputs=grad_x,
    inputs=x,
    grad_outputs=torch.ones_like(grad_x)
)[0]

print(grad_x)       # tensor([3., 12., 27.])
print(grad_grad_x)  # tensor([6., 12., 18.])
""",
    # given for randn, fewer elements; backward is not in the document. torch asks for use_reentrant.
    "checkpoint": """
import torch
from torch.utils.checkpoint import checkpoint

def custom_forward(x, y):
    z = x * y
    z = z ** 2
    return z

x = given(10, 10, requires_grad=True)
y = (given(10, 10) + 1).detach().requires_grad_()

# Regular: stores all intermediate tensors
z = custom_forward(x, y)
regular = torch.autograd.grad(z.sum(), (x, y))

# Checkpointed: only stores inputs, recomputes forward during backward
z = checkpoint(custom_forward, x, y, use_reentrant=False)
again = torch.autograd.grad(z.sum(), (x, y))
print(all((a == b).all().item() for a, b in zip(regular, again)))
print(again)
""",
    "checkpoint without use_reentrant": """
from torch.utils.checkpoint import checkpoint
x = given(3, requires_grad=True)
z = checkpoint(lambda x: x ** 2, x)
z.sum().backward()
print(x.grad)
""",
    "jacobian and hessian": """
import torch
from torch.autograd.functional import jacobian, hessian

def f(x):
    return x ** 2

x = torch.tensor([1., 2., 3.])

# Jacobian: derivative matrix
jac = jacobian(f, x)
print(jac)  # diag([2., 4., 6.])

# Hessian: second derivative matrix
hess = hessian(lambda x: f(x).sum(), x)  # repaired: hessian needs a scalar
print(hess)  # diag([2., 2., 2.])
""",
    "hessian of what is not a scalar": """
from torch.autograd.functional import hessian
hessian(lambda x: x ** 2, torch.tensor([1., 2., 3.]))
""",
    # It is no error: what x ** 2 saved is x.
    "an in-place operation": """
x = torch.tensor([1., 2., 3.], requires_grad=True)
y = x ** 2
y += 1  # Error if you later need y.backward()
# Better: y = y + 1
y.sum().backward()
print(x.grad, y)
""",
    # given for randn.
    "detach to convert to NumPy": """
x = given(3, requires_grad=True)
y = x.detach().numpy()  # Convert to numpy
print(y, y.dtype)
""",
    "numpy without detach": """
given(3, requires_grad=True).numpy()
""",
}

# Blocks that use a model, inputs and a loss that the document does not define.
TRAINING_BLOCKS = {
    "inference mode for inference": """
inputs = X
with torch.inference_mode():
    outputs = model(inputs)
print(outputs)
""",
    # backward is not in the document.
    "clearing gradients": """
loss_fn(model(X), y).backward()
# Better memory behavior
model.zero_grad(set_to_none=True)
print([parameter.grad for parameter in model.parameters()])
loss_fn(model(X), y).backward()
# Instead of
model.zero_grad()
print([parameter.grad for parameter in model.parameters()])
""",
    # large_module and x are set up; use_reentrant given; backward is not in the document.
    "checkpointing a module": """
from torch.utils.checkpoint import checkpoint
large_module, x = model, X
y = checkpoint(large_module, x, use_reentrant=False)
print(y)
y.sum().backward()
"""
    + WEIGHTS,
    "retain_graph": """
loss = loss_fn(model(X), y)
# Only use retain_graph when needed
loss.backward(retain_graph=True)
# Clear gradients after last backward
model.zero_grad(set_to_none=True)
loss.backward()
"""
    + WEIGHTS,
}

RAISES = {"what inference mode forbids", "hessian of what is not a scalar", "numpy without detach"}


@pytest.mark.parametrize("title", BLOCKS)
def test_block(title: str) -> None:
    shown = compare(BLOCKS[title], GIVEN)
    assert (shown.raised is not None) == (title in RAISES), shown


@pytest.mark.parametrize("title", TRAINING_BLOCKS)
def test_block_of_training(title: str) -> None:
    assert compare(TRAINING_BLOCKS[title], TRAINING).raised is None
