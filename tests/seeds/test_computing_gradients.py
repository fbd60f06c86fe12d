"""Every code block of an article on computing gradients with autograd, under torch and under gradwire."""

from __future__ import annotations

import pytest

from tests.seeds.running import compare

pytestmark = pytest.mark.usefixtures("session")

BLOCKS = {
    "enabling gradient tracking": """
import torch

# Create a tensor and enable gradient tracking
x = torch.tensor([2.0, 3.0], requires_grad=True)
print(f"Requires grad: {x.requires_grad}") # True
print(f"Gradient attribute: {x.grad}") # None (no gradient yet)

# You can also enable grad tracking after creation
y = torch.tensor([4.0, 5.0])
y.requires_grad_(True) # In-place operation
print(f"After enabling: {y.requires_grad}") # True

# Create tensors without gradient tracking (more efficient for inference)
z = torch.tensor([1.0, 2.0], requires_grad=False)
print(f"No grad tracking: {z.requires_grad}") # False
""",
    "building a computation graph": """
import torch

# Create input tensor with gradient tracking enabled
x = torch.tensor([3.0], requires_grad=True)

# Perform operations - PyTorch records them in the computation graph
y = x ** 2 # y = x^2
z = y * 2 + 1 # z = 2*y + 1 = 2*x^2 + 1

print(f"x: {x}")
print(f"y: {y}")
print(f"z: {z}")

# Check the computation history
print(f"y.grad_fn: {y.grad_fn}") # Output: PowBackward0
print(f"z.grad_fn: {z.grad_fn}") # Output: AddBackward0

# The computation graph is built implicitly - no manual graph construction needed
""",
    "computing gradients with backpropagation": """
import torch

# Single scalar output
x = torch.tensor([2.0], requires_grad=True)
y = x ** 2 + 3 * x + 2

# Compute gradients via backward pass
y.backward()

# Access computed gradient
print(f"dy/dx = {x.grad}") # Expected: 4*x + 3 = 4*2 + 3 = 11

# Creating multiple tensors and computing gradients
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = (x ** 2).sum() # Sum reduces to scalar

y.backward()
print(f"Gradients for vector: {x.grad}") # [2, 4, 6] (d/dx of x^2)
""",
    "gradient accumulation": """
import torch

x = torch.tensor([2.0], requires_grad=True)

# First backward pass
y = x ** 2
y.backward()
print(f"First gradient: {x.grad}") # 4.0

# Second backward pass - gradient accumulates
z = x ** 3
z.backward()
print(f"After second backward: {x.grad}") # 4.0 + 12.0 = 16.0

# Reset gradients to zero
x.grad.zero_()
print(f"After zero: {x.grad}") # 0.0

# This is why training loops call optimizer.zero_grad() before each backward
""",
    # loss2 goes through y's graph a second time, which torch still has: the first backward of y retained it.
    "non-scalar outputs": """
import torch

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
y = x ** 2 # Vector output, shape (2, 2)

# For vector output, provide gradient weights (usually ones for loss)
y.backward(torch.ones_like(y))
print(f"Gradients from vector backward:\\n{x.grad}")

# Reset for next example
x.grad.zero_()

# Compute multiple backward passes on the same graph
y = x ** 2
loss1 = y.sum()
loss1.backward(retain_graph=True) # Keep graph for another backward
print(f"After first backward: {x.grad}")

# Compute another loss on the same graph
loss2 = (y * 2).sum()
loss2.backward() # This time we don't need retain_graph
print(f"After second backward: {x.grad}")
""",
    # Indentation restored.
    "detaching and disabling gradients": """
import torch

# Create tensor with gradient tracking
x = torch.tensor([2.0], requires_grad=True)
y = x ** 2

# Detach breaks the computation graph
y_detached = y.detach()
print(f"Original y requires grad: {y.requires_grad}") # True
print(f"Detached y requires grad: {y_detached.requires_grad}") # False

# Operations on detached tensor don't create graph
z = y_detached + 1
print(f"z.grad_fn: {z.grad_fn}") # None (no backward possible)

# Use torch.no_grad() during inference
with torch.no_grad():
    predictions = []
    for input_batch in range(5):
        logits = input_batch ** 2 # Won't track gradients
        predictions.append(logits)

print(f"Predictions computed without tracking gradients")

# Decorator for functions
@torch.no_grad()
def inference_function(x):
    return x ** 2 + 1

result = inference_function(torch.tensor([3.0], requires_grad=True))
print(f"Result from decorated function requires grad: {result.requires_grad}") # False
""",
    # Indentation restored.
    "a standard training pattern": """
import torch

# Simple model: y = wx + b (parameters we'll optimize)
w = torch.tensor([0.5], requires_grad=True)
b = torch.tensor([0.1], requires_grad=True)

# Example training data
x_data = torch.tensor([1.0, 2.0, 3.0])
y_true = torch.tensor([2.0, 4.0, 6.0])

# Learning rate
learning_rate = 0.01

# Training loop (simplified)
for epoch in range(3):
    # Forward pass
    y_pred = w * x_data + b

    # Compute loss (mean squared error)
    loss = ((y_pred - y_true) ** 2).mean()

    print(f"Epoch {epoch}: Loss = {loss.item():.4f}")

    # Backward pass
    loss.backward()

    print(f" w.grad = {w.grad.item():.4f}, b.grad = {b.grad.item():.4f}")

    # Manual parameter update (using gradients)
    with torch.no_grad():
        w -= learning_rate * w.grad
        b -= learning_rate * b.grad

    # Zero gradients for next iteration
    w.grad.zero_()
    b.grad.zero_()
""",
    "inspecting gradient flow": """
import torch

# Leaf tensor (created by user)
x = torch.tensor([2.0], requires_grad=True)
print(f"x.is_leaf: {x.is_leaf}") # True
print(f"x.grad_fn: {x.grad_fn}") # None (leaf tensors have no grad_fn)

# Non-leaf tensor (result of operation)
y = x ** 2
print(f"y.is_leaf: {y.is_leaf}") # False
print(f"y.grad_fn: {y.grad_fn}") # PowBackward0

# Gradients only accumulate in leaf tensors
y.backward()
print(f"x.grad: {x.grad}") # 4.0
print(f"y.grad: {y.grad}") # the document expects an AttributeError; torch warns and gives None

# This is by design - gradients for intermediate tensors are freed to save memory
""",
    # From the questions at the end: code that stands in sentences.
    "answers to questions": """
x = torch.tensor([1.0, 2.0], requires_grad=True)
output = x ** 2
output.backward(torch.ones_like(output), retain_graph=True)
output.sum().backward()
print(x.grad)
loss = (x ** 3).sum()
loss.backward(create_graph=True)
print(x.grad)
""",
    "backward of a non-scalar": """
x = torch.tensor([1.0, 2.0], requires_grad=True)
(x ** 2).backward()
""",
}

RAISES = {"backward of a non-scalar"}


@pytest.mark.parametrize("title", BLOCKS)
def test_block(title: str) -> None:
    assert (compare(BLOCKS[title]).raised is not None) == (title in RAISES)
