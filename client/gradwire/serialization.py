"""Saving state dicts."""


def save():
    raise NotImplementedError


def load():
    raise NotImplementedError
