"""Faults made for real, and an oracle that saw everything: the ledger's database must tell the same story as etcd."""
