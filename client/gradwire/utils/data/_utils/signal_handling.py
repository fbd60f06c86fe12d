"""``torch.utils.data._utils.signal_handling``: workers are threads, whose ends are no signals."""

_SIGCHLD_handler_set = False


def _set_SIGCHLD_handler() -> None:
    """Nothing to do."""
