"""What a node remembers over a restart: our own checkpoint, and the kubelet's, read and verified.

go_dump           a Go value as spew prints it, the text of which is the kubelet's checksum
kubelet           which of the kubelet's formats a file is in, by its checksum
kubelet_cpu       cpu_manager_state
kubelet_memory    memory_manager_state
own               our format
comparison        the kubelet's state and ours, difference by difference
store             the file, replaced whole or not at all
"""
