"""The four ways to patch an object, as pure functions on plain JSON documents: merge, JSON, strategic, apply."""
