"""What `baregrad lab` measured, drawn and told: pictures, one HTML page, and the pages of docs/lab.

The command line measures and writes one file of JSON lines per experiment. Nothing is measured here,
and every number in a page is one of those records or of the file of what was derived from them.

    python -m baregrad.lab report DIR
    python -m baregrad.lab docs DIR docs/lab
"""

from baregrad.lab.records import Experiment, Record, load_run

__all__ = ["Experiment", "Record", "load_run"]
