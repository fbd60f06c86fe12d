"""``torch.optim.optimizer``: the base class of optimizers, and hooks of all of them."""

from .._core.optimizers.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    required,
)

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]
