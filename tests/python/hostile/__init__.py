"""Hostile calls: every public callable of the package with invalid arguments.

surface.py lists the callables, arguments.py draws arguments, calls.py makes the calls in a separate
process, watch.py starts such processes and reports crashes, hangs and unusual errors. A call is
identified by its seed, its target and its number, and can be repeated alone:

    python -m hostile.calls --seed 0 --target baregrad.sin --call 17 --show
"""
