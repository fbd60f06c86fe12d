"""``gradwire top``: what a server does, in a terminal.

:mod:`.feed` receives the server's activity once a second, :mod:`.rows` orders the sessions and chooses the columns that
fit, :mod:`.screen` lays out the screen, :mod:`.keyboard` reads single keys, and :mod:`.command` puts them together.
Without a terminal it prints once, without control characters.
"""
