"""The live picture of a cluster: what is to be seen (`picture`), on a terminal (`screen`) and in lines (`lines`)."""
