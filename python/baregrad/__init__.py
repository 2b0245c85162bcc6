"""baregrad: a deep-learning engine from the bytes up."""
# mypy: implicit-reexport
# The line above makes what `import *` brings in public to type checkers too.

from baregrad._core import *
from baregrad._core import __array_api_version__ as __array_api_version__
from baregrad._core import __array_namespace_info__ as __array_namespace_info__
from baregrad._core import __version__ as __version__

# Not "from baregrad import ...": submodules of the engine have the same names.
import baregrad.autograd as autograd
import baregrad.data as data
import baregrad.graph as graph
import baregrad.io as io
import baregrad.linalg as linalg
import baregrad.memory as memory
import baregrad.nn as nn
import baregrad.optim as optim
import baregrad.profile as profile
from baregrad.autograd import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from baregrad.io import load, save


def show_config() -> None:
    """Prints config(), for bug reports."""
    for name, value in config().items():
        print(f"{name}: {', '.join(value) if isinstance(value, list) else value}")
