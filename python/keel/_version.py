"""The version of the package. It equals that of the C library that it was written for."""
__version__ = "0.1.0"
