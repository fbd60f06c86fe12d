import sys
from ast import literal_eval


def override(config):
    """Replace entries by those of arguments such as ``--batch_size=32``."""
    for arg in sys.argv[1:]:
        assert arg.startswith("--") and "=" in arg, arg
        key, val = arg[2:].split("=", 1)
        if key not in config:
            raise ValueError(f"Unknown config key: {key}")
        try:
            attempt = literal_eval(val)
        except (SyntaxError, ValueError):
            attempt = val
        assert type(attempt) is type(config[key]), (key, attempt)
        print(f"Overriding: {key} = {attempt}")
        config[key] = attempt
