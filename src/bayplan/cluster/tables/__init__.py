"""How objects become rows: for each kind the columns that kubectl prints, as a table of columns and their cells.

columns                                          what a column is, and the cells that many kinds share
pods workloads jobs autoscaler nodes             the columns of each kind
network storage events plain
table                                            all kinds, and the meta.k8s.io/v1 Table made of them

Source of truth: kube-apiserver 1.36, pkg/printers/internalversion. All pure: a document and the time in, cells out.
"""
