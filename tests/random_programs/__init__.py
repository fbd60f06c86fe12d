"""Random programs, run under torch and under gradwire.

A program is a list of Python statements. :mod:`.writing` generates it while torch runs along, so that most statements
fit the shapes they meet. :mod:`.running` runs it under a library and returns all visible results. :mod:`.shrinking`
deletes statements while the two libraries disagree, and prints the rest as a script.
"""
