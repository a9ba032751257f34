"""The CPU manager: who gets CPUs of its own, and which."""
