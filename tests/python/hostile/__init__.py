"""Hostile calls: every public callable of the package with arguments that no caller should pass.

surface.py lists the callables, arguments.py draws arguments, calls.py makes the calls in a process
of their own, watch.py starts such processes and reports crashes, hangs and unusual errors. One call
is named by its seed, its target and its number, and can be made again alone:

    python -m hostile.calls --seed 0 --target baregrad.sin --call 17 --show
"""
