"""The ``chain`` step on other remote tensor libraries, side by side with gradwire: ``python -m benchmarks.peers``."""
