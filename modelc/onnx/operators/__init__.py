"""Operators, one file for each group; each file ends with its table."""
