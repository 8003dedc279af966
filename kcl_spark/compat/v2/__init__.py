"""Version 2 of the record processor, at amazon_kclpy's address."""
