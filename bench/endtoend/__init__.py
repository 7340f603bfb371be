"""The measurements of the end-to-end table, one module per topic. bench.groups lists the modules.

A module defines its measurements as bench.rows describes.
"""
