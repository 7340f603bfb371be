"""The cases of bench.kernels, by family. Importing a module registers its cases."""

from bench.kernelcases import core, common, products, training  # noqa: F401
