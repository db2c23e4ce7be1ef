"""How a compiled file starts, before it has modelc: the standard library alone, on any Python 3.

The builder copies this folder into the file. It finds out whether the interpreter fits, unpacks what the file carries
into a private cache folder, once, and hands over to modelc.
"""
