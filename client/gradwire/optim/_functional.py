"""``torch.optim._functional``: steps as functions of lists. An optimizer's step is one record here."""

from .._core.surface.stand_ins import stand_ins as _stand_ins

globals().update(
    _stand_ins(
        __name__, "adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd sparse_adam",
        "the optimizers of torch.optim make the step",
    )
)  # fmt: skip
