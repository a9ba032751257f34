"""What holds for every test: property tests are judged by what they find, never by how long they take."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("bayplan", deadline=None)
settings.load_profile("bayplan")
