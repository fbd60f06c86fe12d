"""Random programs, run under torch and under gradwire.

A program is a list of statements in Python, written by :mod:`.writing` while torch runs along, so that most of them fit
the shapes they meet. :mod:`.running` runs one under a library and tells all that can be seen afterwards;
:mod:`.shrinking` deletes statements as long as the two libraries disagree, and prints what is left as a script.
"""
