"""The step of ``chain`` on others who compute elsewhere, side by side with gradwire: ``python -m benchmarks.peers``."""
