"""The traces of the openb family: nodes and pods of a production GPU cluster, placed one by one."""
