"""Record processors written for amazon_kclpy, run unchanged, without kclpy's ways of losing what they were given.

Two ways in, and nothing in a processor changes by either:

* `python -m kcl_spark.compat app.py` runs a script that says `from amazon_kclpy import kcl`, installed or not;
* `from kcl_spark.compat import kcl` is the import to write instead.

docs/kclpy.md says what stays, what changes, and which test proves it. Nothing is imported here: `-m` imports this file
before the protocol's pipes are safe from whatever an import might print.
"""
