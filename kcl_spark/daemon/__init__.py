"""The MultiLangDaemon as a user meets it: its properties, its jars, its command line."""
