"""Turns the records of `baregrad lab` into pictures, one HTML page, and the pages of docs/lab.

The command line measures and writes one file of JSON lines per experiment. Nothing is measured
here,
and every number on a page is in these records or in the file of values derived from them.

    python -m baregrad.lab report DIR
    python -m baregrad.lab docs DIR docs/lab
"""

from baregrad.lab.records import Experiment, Record, load_run

__all__ = ["Experiment", "Record", "load_run"]
