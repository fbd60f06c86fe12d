"""Tests of a fleet: a Ray cluster on this machine, gateways as processes of their own."""
