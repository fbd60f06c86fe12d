"""How fast gradwire is, side by side with torch on the same machine: ``python -m benchmarks``."""
