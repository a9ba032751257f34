"""pytest fixtures for projects that test against bayplan; found by pytest on its own."""
