"""The parts of Pyodide's own package that are used here."""

__version__: str
