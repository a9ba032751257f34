"""All that a person types. One file a verb; `main` knows them by name and loads the one that is called."""
