"""Interoperability tests with a real TensorFlow, as client and as peer: make interop.

README.md describes how to add a test.
"""
