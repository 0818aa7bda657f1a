"""Names that an earlier cell rebound are as they were, before a cell that grades is run.

A submission may have made ``numpy.allclose`` always true, or the library's forward pass its own: whether by accident
(``np.random = ...``, ``sum = 0`` in builtins) or not, the cell that grades compares with the real ones. This is a help
against plain rebinding, not against a program that is out to deceive: see ``sandbox.py`` for what is not promised.

The text of this file is executed in the kernel before the submission, with nothing but the standard library.
"""

import builtins
import importlib
import os
import sys
import types

ALSO = ("math", "numpy", "numpy.linalg", "numpy.testing", "numpy.random", "hashlib", "importlib", "torch")
PACKAGE = "residual_gd"


class Guard:
    """What the library's modules were when this was made, and builtins, NumPy, torch where they are loaded.

    ``modules`` are imported first; names that are no modules are passed over.
    """

    def __init__(self, modules):
        for name in modules:
            try:
                importlib.import_module(name)
            except ImportError:
                continue
        self.environment = {key: os.environ.get(key) for key in ("RESIDUAL_GD_STUDENT", "NBGRADER_EXECUTION")}
        self.kept = {}
        self.functions = []
        names = [*ALSO, *(name for name in sys.modules if name.split(".")[0] == PACKAGE)]
        for module in [builtins, *(sys.modules[name] for name in names if name in sys.modules)]:
            self._keep(module)

    def _keep(self, module):
        self.kept[module.__name__] = (module, dict(module.__dict__))
        if module.__name__.split(".")[0] == PACKAGE:
            for value in module.__dict__.values():
                if isinstance(value, types.FunctionType):
                    self.functions.append((value, value.__code__, value.__defaults__, value.__kwdefaults__))

    def restore(self):
        """Everything as it was; names that were added stay."""
        for key, value in self.environment.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
        for name, (module, names) in self.kept.items():
            sys.modules[name] = module
            changed = module.__dict__
            for key, value in names.items():
                if changed.get(key, self) is not value:
                    changed[key] = value
        for function, *parts in self.functions:
            function.__code__, function.__defaults__, function.__kwdefaults__ = parts
