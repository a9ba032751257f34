"""What people ask the ledger: each question an async function over an opened store, its answer a frozen struct.

asking              which clusters and namespaces are asked about; what time it is there
windows  amounts    a span cut into steps, and GPUs times time, in whole numbers: sums are exact
usage    idle       who held GPUs; what was left of them
held                who holds GPUs and does not use them
present             pods, workloads, nodes and events as they were at a time
naming   below      the pod or the workload that a person means; who is below it
pending  gone       why a pod waits or waited; why it is no more
timeline            the life of a workload's pods
doctor              what is wrong with a ledger, and what cures it

Reading is here, and what is made of the rows is pure.
"""
