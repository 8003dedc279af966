"""Scripts that a daemon would start; the tests run them, and import none."""
