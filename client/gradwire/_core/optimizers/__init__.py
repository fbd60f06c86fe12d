"""``Optimizer``, the base class of optimizers."""
