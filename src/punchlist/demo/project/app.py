version = "1.1"
