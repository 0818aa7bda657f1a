"""Functions of the library that may not be called for a while: "implement it by hand" means by hand."""

import importlib
import types
from contextlib import ExitStack, contextmanager

FUNCTION = types.FunctionType


@contextmanager
def own_functions(*names):
    """Inside the block, each of the named functions raises AssertionError "write this yourself".

    It does so under every name: also where it was imported with ``from ... import`` or kept in a variable, and where
    another function of the library calls it. Compute what you compare with before the block.

    Parameters
    ----------
    *names : str
        Dotted names such as "residual_gd.transformer.forward". Functions written in Python raise under every name;
        others (``numpy.kron``) only under the dotted name itself.

    Raises
    ------
    ValueError
        If a name is not that of something that can be called.
    """
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(_blocked(name))
        yield


@contextmanager
def _blocked(name):
    owner, last = _find(name)
    function = getattr(owner, last)

    def refuse(*args, **kwargs):
        raise AssertionError(f"{name} was called: write this yourself")

    if type(function) is FUNCTION and function.__closure__ is None:
        # The code itself is exchanged, so that no other name of the function leads around the block. It must have no
        # free variable, as the function has none: the message is therefore a default of its last argument.
        kept = function.__code__, function.__defaults__, function.__kwdefaults__
        function.__code__ = _refuse.__code__
        function.__defaults__, function.__kwdefaults__ = None, {"_blocked_name": name}
        try:
            yield
        finally:
            function.__code__, function.__defaults__, function.__kwdefaults__ = kept
    else:
        setattr(owner, last, refuse)
        try:
            yield
        finally:
            setattr(owner, last, function)


def _refuse(*args, _blocked_name, **kwargs):
    raise AssertionError(f"{_blocked_name} was called: write this yourself")


def _find(name):
    """The owner (a module or a class) and the last part of a dotted name."""
    parts = name.split(".") if isinstance(name, str) else []
    for cut in range(len(parts) - 1, 0, -1):
        try:
            owner = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:-1]:
            owner = getattr(owner, part, None)
        if callable(getattr(owner, parts[-1], None)):
            return owner, parts[-1]
        break
    raise ValueError(f'names: expected the dotted name of a function, "package.module.function", got {name!r}')
