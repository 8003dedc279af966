"""Kinesis streams into tables with PySpark, exactly once, under the KCL MultiLangDaemon."""

__version__ = "0.1.0"
