"""`bayplan describe`: all about an object, for people to read. Pure pages, from documents and the time to lines."""
