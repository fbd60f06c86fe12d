"""The methods and attributes of ``Tensor``, and the functions of the main namespace.

Most are generated from the op table. Indexing is not one op: ``x[...]`` becomes the chain of ``select``, ``slice``,
``unsqueeze`` and ``index`` that PyTorch makes of it, so graphs have PyTorch's node names. Positions are data, so a
slice that moves in a loop does not change the frame's structure. The op signatures are read at their first use, which
keeps ``import gradwire`` quick.
"""
