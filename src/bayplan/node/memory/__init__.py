"""The memory manager: on which NUMA nodes a pod's memory and huge pages are set aside."""
