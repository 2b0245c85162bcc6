"""Networks: modules, layers, losses."""
# mypy: implicit-reexport
# The line above makes what `import *` brings in public to type checkers too.

from baregrad._core.nn import *
from baregrad.nn import functional as functional
from baregrad.nn import init as init
from baregrad.nn import utils as utils
from baregrad.nn.containers import ModuleDict as ModuleDict
from baregrad.nn.containers import ModuleList as ModuleList
from baregrad.nn.containers import ParameterList as ParameterList
