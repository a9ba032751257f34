"""What a cluster does by itself: each controller a function from what it sees to what it wants written."""
