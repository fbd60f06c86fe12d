"""Metrics, traces, logs and health.

What a frame did (``Applied``) travels with its reply from wherever it ran, and the server's process counts it: worker
processes need no metrics of their own. When it did what (``Timing`` of the protocol) travels in the reply of frames
that ask for it: four numbers if the program waits, one per record and backward node in a profile. So nothing is
measured twice, and a profile costs no round trip.
"""
