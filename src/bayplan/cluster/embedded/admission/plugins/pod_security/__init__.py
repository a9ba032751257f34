"""Pod Security Standards: the checks (`baseline`, `restricted`), the levels they make up, and the plugin that asks."""
