"""The manual: a site with search and navigation, made offline from docs/ and from the packages.

``python -m tools.manual`` (``make manual``) writes Sphinx's sources below ``build/manual/source`` and builds the site
into the folder that the server serves under ``/manual``. Every warning, such as a link without target, is an error.

====================== =======================================================================
:mod:`.navigation`     the sections, from ``docs/navigation.toml``
:mod:`.links`          links of a page of the repository, as the manual has them
:mod:`.operations`     a page a family of operations, from the op table, its rules and derivatives
:mod:`.python_api`     a page a public module of the client, from signatures and docstrings
:mod:`.http_api`       the routes, from the OpenAPI document
:mod:`.commands`       the two commands, from their options
:mod:`.sources`        all of this as a tree of files
:mod:`.site`           Sphinx, and what it writes made fit for a strict Content-Security-Policy
====================== =======================================================================
"""
