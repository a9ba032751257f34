"""How GPUs are used, as a monitor measured it: from a Prometheus, into rows beside the periods that pods hold them."""
