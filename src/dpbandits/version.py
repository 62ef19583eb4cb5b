"""The version of this package, written into every save file and trace."""

__version__ = "0.1.0"
