"""What virtual nodes and their pods say of themselves in annotations, and what follows from it for the next pod.

The kubelet of a virtual node writes and reads them; a scheduler reads them to know beforehand what it will say.
"""
