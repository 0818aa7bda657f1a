"""When gradient descent trains a Transformer with residual connections, and how fast.

The library of the book: every numbered statement is a function here or a check of one.
The modules follow the chapters; imports go down only.
"""

__version__ = "0.1.0"
