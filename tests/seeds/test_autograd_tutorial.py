"""Every code block of the autograd part of PyTorch's 60-minute tutorial, under torch and under gradwire.

The document is one program that lost its print lines; they are restored where it shows their output.
"""

from __future__ import annotations

import pytest

from tests.seeds.running import compare

pytestmark = pytest.mark.usefixtures("session")

BLOCKS = {
    "from a tensor of ones to its gradient": """
import torch

x = torch.ones(2, 2, requires_grad=True)
print(x)

y = x + 2
print(y)

print(y.grad_fn)

z = y * y * 3
out = z.mean()

print(z, out)

out.backward()
print(x.grad)
""",
    # given for randn; the prints and the requires_grad_ between the lines are put back.
    "requires_grad_ changes a flag in place": """
a = given(2, 2)
a = ((a * 3) / (a - 1))
print(a.requires_grad)
a.requires_grad_(True)
print(a.requires_grad)
b = (a * a).sum()
print(b.grad_fn)
""",
    # given for randn; the loop's condition is put back.
    "a vector-Jacobian product": """
x = given(3, requires_grad=True)

y = x * 2
while y.data.norm() < 1000:
    y = y * 2

print(y)

v = torch.tensor([0.1, 1.0, 0.0001], dtype=torch.float)
y.backward(v)

print(x.grad)
""",
    # given for randn; the prints of x are put back.
    "no_grad and detach": """
x = given(3, requires_grad=True)
print(x.requires_grad)
print((x ** 2).requires_grad)

with torch.no_grad():
    print((x ** 2).requires_grad)

y = x.detach()
print(y.requires_grad)
print(x.eq(y).all())
""",
    # Said of out in the text: backward() of a scalar is backward of one.
    "backward of a scalar is backward of one": """
x = torch.ones(2, 2, requires_grad=True)
out = (3 * (x + 2) ** 2).mean()
out.backward(torch.tensor(1.))
print(x.grad)
""",
}


@pytest.mark.parametrize("title", BLOCKS)
def test_block(title: str) -> None:
    assert compare(BLOCKS[title]).raised is None
