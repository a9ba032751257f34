"""What a node does with its CPUs, memory and devices: policies that are pure, edges that are thin."""
