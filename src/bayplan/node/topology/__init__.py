"""The topology manager: hints of several resources merged into one affinity."""
