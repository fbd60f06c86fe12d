"""``gradwire doctor``: checks, from this program to the server's disk, and what to do about each.

:mod:`.findings` is what a check returns. :mod:`.address`, :mod:`.certificate`, :mod:`.answering`, :mod:`.computing` and
:mod:`.machine` hold the checks, :mod:`.examination` their order, :mod:`.command` the command line. Every check has a
limit of time (:mod:`.patience`), and no text contains the key.
"""
