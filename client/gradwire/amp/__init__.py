"""``torch.amp``: mixed precision. ``autocast`` chooses the precision of operations, ``GradScaler`` keeps gradients in
float16 from vanishing."""

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler, OptState

__all__ = ["GradScaler", "OptState", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
