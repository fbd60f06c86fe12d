"""Benchmarks of gradwire, side by side with torch on the same machine: ``python -m benchmarks``."""
